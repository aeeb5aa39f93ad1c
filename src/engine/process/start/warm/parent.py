# The parent interpreter of warm jobs. It has imported the slow modules; each job is a sandboxed fork,
# which runs one script as `python3 SCRIPT` would. The parent runs no script, and a fork only one, so
# nothing passes from one job to the next.
#
# For each fork the parent receives a socket on `control`, its standard input, and answers with the
# process id. It enters those parts of the sandbox that all jobs share. A fork sets its limits,
# rehearses a job, and waits on its socket for the descriptors of standard output and error, of the
# channel and its answers, and of the Landlock rules if there are any, and for one line of JSON with the
# rest. It sends "." before the script begins, or the reason why it cannot, and closes the socket.
def serve(control, preload, hero, semaphores, cell):
    READY_BYTES_MAX = 131072
    try:
        import atexit, builtins, ctypes, gc, importlib, json, os, resource, sys, types
    except ImportError as error:
        control.send(f"it lacks a module of its own: {error}".encode()[:1000])
        raise

    # As for a cold job: the kernel kills it before the daemon when memory runs out.
    try:
        with open("/proc/self/oom_score_adj", "r+") as score:
            if int(score.read()) < 500:
                score.write("500")
    except OSError:
        pass
    # A script may replace what these names mean.
    leave, interrupt = SystemExit, KeyboardInterrupt
    cell = json.loads(cell)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.getenv.restype = ctypes.c_void_p
    mark_at = libc.getenv(b"HERO_RUN_ID")
    libc.fopen.restype = ctypes.c_void_p
    run_file = ctypes.pythonapi.PyRun_SimpleFileExFlags
    run_file.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    # Reserves the numbers of the channel and of its answers.
    os.dup2(os.open("/dev/null", os.O_RDWR), 3)
    os.dup2(3, 4)

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    def checked(result, what):
        if result != 0:
            raise OSError(ctypes.get_errno(), what)

    def confine():
        """Enters the sandbox but for the limits, which count per process, and the rules for files."""
        if not cell["confined"]:
            return
        # Version 3, this process. In a systemd unit there may be no capabilities and no capset.
        header, held = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        checked(libc.capget(header, held), "capget")
        if any(held):
            checked(libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")
        checked(libc.prctl(38, 1, 0, 0, 0), "no_new_privs")
        if cell["filter"]:
            code = bytes.fromhex(cell["filter"])
            text = ctypes.create_string_buffer(code, len(code))
            program = Program(len(code) // 8, ctypes.addressof(text))
            checked(libc.prctl(22, 2, ctypes.byref(program), 0, 0), "seccomp")

    def descriptors_of(ancillary):
        descriptors = []
        for level, kind, data in ancillary:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                whole = len(data) - len(data) % 4
                descriptors += memoryview(data)[:whole].cast("i").tolist()
        return descriptors

    def receive(own):
        text, ancillary, _, _ = own.recvmsg(1 << 13, 256)
        descriptors = descriptors_of(ancillary)
        parts = [text]
        while not text.endswith(b"\n"):
            if not text:
                # The daemon dropped this fork.
                os._exit(0)
            text = own.recv(1 << 16)
            parts.append(text)
        return json.loads(b"".join(parts)), descriptors

    def take_environment(job):
        os.environ.clear()
        os.environ.update(job["env"])

    def renew_main():
        """Replaces `__main__` by an empty one; the interpreter adds the rest."""
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        main.__dict__.update(__annotations__={}, __builtins__=builtins)
        return main.__dict__

    def execute(script):
        """Runs a script as `python3 SCRIPT` does. Returns -1 if it failed; `sys.exit` does not return."""
        name = os.fsencode(script)
        file = libc.fopen(name, b"rbe")
        if not file:
            raise OSError(ctypes.get_errno(), "cannot open the script", script)
        return run_file(file, name, 1, None)

    def begin(own):
        """Receives a job on `own`, prepares for it and confirms."""
        job, (stdout, stderr, *rest) = receive(own)
        channel, answers = (rest.pop(0), rest.pop(0)) if job["channel"] else (None, None)
        rules = rest.pop(0) if job["rules"] else None
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        if channel is not None:
            os.dup2(channel, 3)
            os.dup2(answers, 4)
        else:
            os.closerange(3, 5)
        mark = job["env"]["HERO_RUN_ID"].encode()
        ctypes.memmove(mark_at, mark, len(mark))
        take_environment(job)
        site = sys.modules.get("site")
        if site is not None and site.ENABLE_USER_SITE:
            # Below the job's home, not the parent's.
            site.USER_BASE = site.USER_SITE = None
            site.getusersitepackages()
        if "TZ" in job["env"]:
            import time
            time.tzset()
        os.chdir(job["cwd"])
        numbers = sys.modules.get("numpy.random")
        if numbers is not None:
            numbers.seed()
        if job["site"]:
            import site
            # As in an environment of its own, the packages of the system are not there.
            of_system = site.getsitepackages()
            sys.path[:] = [folder for folder in sys.path if folder not in of_system]
            sys.prefix = sys.exec_prefix = job["prefix"]
            site.addsitedir(job["site"])
        if rules is not None:
            checked(libc.syscall(ctypes.c_long(446), ctypes.c_long(rules), ctypes.c_long(0)),
                    "landlock_restrict_self")
        # A fork that dies before this has sent nothing, and its job starts cold.
        own.send(b".")
        return job, (stdout, stderr, channel, answers)

    # An empty job as the daemon sends it.
    words = {"script": "/dev/null", "cwd": "/", "site": None, "args": [], "channel": True,
             "rules": False, "env": dict(os.environ)}
    nothing = (3).to_bytes(4, sys.byteorder) * 4
    trial = ([json.dumps(words).encode(), b"\n"],
             [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, nothing)])

    def rehearse():
        """Does once what every job does, so that its pages are copied before: saves 0.5 ms of 2."""
        told, own = _socket.socketpair()
        told.sendmsg(*trial)
        job, descriptors = begin(own)
        for descriptor in descriptors:
            os.close(descriptor)
        told.close()
        own.close()
        names = renew_main()
        os.path.dirname(job["script"])
        execute(job["script"])
        text = "import sys\ndef greet(name):\n    return f'{name!s}'\nprint(greet(1), [1], {1: 2})"
        exec(compile(text, "hero", "exec", dont_inherit=True), names)
        flush()

    def wait(descriptor):
        """Prepares the process and returns its job."""
        own = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, descriptor)
        try:
            os.setsid()
            control.detach()
            os.dup2(3, 0)
            for kind, soft, hard in cell["limits"]:
                resource.setrlimit(kind, (soft, hard))
            rehearse()
            job, _ = begin(own)
        except BaseException as error:
            own.send(f"{type(error).__name__}: {error}".encode()[:1000])
            os._exit(1)
        own.detach()
        os.closerange(5, 1 << 20)
        return job

    def run(job):
        script = job["script"]
        renew_main()
        sys.argv[:] = [script, *job["args"]]
        if hasattr(sys, "orig_argv"):
            sys.orig_argv[:] = [job["program"], *sys.orig_argv[1:-2], *sys.argv]
        sys.executable = job["program"]
        if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
            pass
        elif sys.path and sys.path[0] == "":
            sys.path[0] = os.path.dirname(script)
        if not sys.flags.ignore_environment:
            # As PYTHONPATH has it.
            sys.path.insert(1 if sys.path[:1] == [os.path.dirname(script)] else 0, job["modules"])
        gc.enable()
        failed = execute(script) != 0
        # From here on the interpreter ends by itself. An interrupted one ends by the signal.
        if failed and getattr(sys, "last_type", None) is not interrupt:
            raise leave(1)

    def thaw():
        """Lets the interpreter collect the objects of the parent at its end too, if it matters: an
        attribute of a class of theirs may hold a file of the script. It takes 2 ms."""
        if any(hasattr(kind, "__del__") for kind in {type(it) for it in gc.get_objects()}):
            gc.unfreeze()

    def flush():
        sys.stdout.flush()
        sys.stderr.flush()

    def fork():
        text, ancillary, _, _ = control.recvmsg(1, 64)
        if not text:
            os._exit(0)
        [descriptor] = descriptors_of(ancillary)
        read_end, write_end = os.pipe()
        between = os.fork()
        if between == 0:
            # This process ends at once, so that the daemon adopts the fork.
            pid = os.fork()
            if pid == 0:
                os.close(read_end)
                os.close(write_end)
                return wait(descriptor)
            os.write(write_end, b"%d" % pid)
            os._exit(0)
        os.close(write_end)
        pid = os.read(read_end, 32)
        os.close(read_end)
        os.close(descriptor)
        # From then on the daemon is the parent of the fork.
        os.waitpid(between, 0)
        control.send(pid or b"0")
        return None

    # The modules that a cold script finds beside it.
    for name, text in (("hero", hero), ("_hero_semaphores", semaphores)):
        module = types.ModuleType(name)
        exec(compile(text, name + ".py", "exec"), module.__dict__)
        sys.modules[name] = module
    try:
        module.install()
    except (AttributeError, ImportError):
        # This interpreter has no semaphores.
        pass
    before = set(sys.modules)
    try:
        for name in preload:
            importlib.import_module(name)
    except BaseException as error:
        control.send(f"cannot import {name}: {type(error).__name__}: {error}".encode()[:1000])
        os._exit(1)
    # Called first, it is the last function that an interpreter calls at its end.
    atexit.register(thaw)
    flush()
    for number in (1, 2):
        os.dup2(3, number)
    try:
        confine()
    except BaseException as error:
        control.send(f"{type(error).__name__}: {error}".encode()[:1000])
        os._exit(1)
    gc.collect()
    gc.disable()
    gc.freeze()
    # The daemon starts another parent once one of these files changes.
    files = (getattr(sys.modules[name], "__file__", None) for name in list(sys.modules) if name not in before)
    text = "\n".join(["ready", *sorted({file for file in files if isinstance(file, str) and "\n" not in file})])
    control.send(os.fsencode(text)[:READY_BYTES_MAX])
    job = None
    while job is None:
        try:
            job = fork()
        except (OSError, MemoryError) as error:
            control.send(f"cannot fork: {error}".encode()[:1000])
    run(job)
