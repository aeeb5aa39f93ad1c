"""Serves the calls of a session in this interpreter: what a call defines stays for the next.

The argument is the number of seconds without a call after which it ends.
"""


def _serve(idle):
    import ast
    import base64
    import json
    import linecache
    import os
    import select
    import signal
    import sys
    import tempfile
    import traceback
    import types

    to_hero, from_hero = int(os.environ["HERO_FD"]), int(os.environ["HERO_FD_IN"])
    most = 131072

    class CallTimeout(BaseException):
        """The call has taken all of its time."""

    def overdue(*_):
        raise CallTimeout

    def say(message):
        rest = memoryview((json.dumps(message) + "\n").encode())
        while rest:
            rest = rest[os.write(to_hero, rest):]

    def next_line():
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([from_hero], [], [], idle)[0]:
                return None
            some = os.read(from_hero, 1 << 20)
            if not some:
                sys.exit("hero gives no further call")
            line += some
        return line

    def execute(text, name):
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        tree = ast.parse(text, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            if value is not None:
                print(repr(value))

    def exit_code(text, name, timeout):
        signal.signal(signal.SIGALRM, overdue)
        try:
            signal.setitimer(signal.ITIMER_REAL, timeout)
            try:
                execute(text, name)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except CallTimeout:
            print(f"the call took longer than {timeout} s", file=sys.stderr)
            return 124
        except SystemExit as end:
            if end.code is None or isinstance(end.code, int):
                return (end.code or 0) & 255
            print(end.code, file=sys.stderr)
            return 1
        except BaseException as error:
            of_call = error.__traceback__
            while of_call and of_call.tb_frame.f_code.co_filename != name:
                of_call = of_call.tb_next
            traceback.print_exception(type(error), error.with_traceback(of_call), of_call)
            return 1
        return 0

    def run(call, number):
        text = base64.b64decode(call["script"]).decode("utf-8", "replace")
        with tempfile.TemporaryFile() as output:
            kept = os.dup(1), os.dup(2)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            try:
                code = exit_code(text, f"<call {number}>", call["timeout"])
                for stream in (sys.stdout, sys.stderr):
                    try:
                        stream.flush()
                    except (AttributeError, OSError, ValueError):
                        pass
            finally:
                for number, copy in enumerate(kept, 1):
                    os.dup2(copy, number)
                    os.close(copy)
            cut = max(output.seek(0, os.SEEK_END) - most, 0)
            output.seek(cut)
            data = output.read(most)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(2, rest):]
        return {"exit": code, "output": base64.b64encode(data).decode(), "truncated": cut}

    main = types.ModuleType("__main__")
    names = main.__dict__
    sys.modules["__main__"], sys.argv = main, [""]
    said, number = None, 0
    while True:
        say({"next": said})
        line = next_line()
        if line is None:
            print(f"idle for {idle} s")
            return
        answer = json.loads(line)
        if "error" in answer:
            sys.exit(answer["error"])
        if "end" in answer["ok"]:
            print(answer["ok"]["end"])
            return
        number += 1
        said = run(answer["ok"], number)


import sys

_serve(int(sys.argv[1]))
