"""The interface between the script of a job and Hero.

    import hero
    hero.progress(0.4, "reading")     # the progress, shown to waiting clients
    hero.log("a line", 7)             # a line of the job's log
    hero.output({"answer": 42})       # the output of the job, instead of standard output
    hero.retry_in("5m", "busy")       # ends the script: run the job again later, no attempt is lost
    hero.discard("no such customer")  # ends the script in an error that is not retried
    hero.wait("approved", "3d")       # ends the script: run the job again once it is told this event, or after 3 days
    hero.wait(children=True)          # ends the script: run the job again once the jobs that it submitted have ended
    hero.event                        # the event that ended the last wait; None before
    hero.inputs                       # what the job's prerequisites returned, each by its name or else its id
    hero.result("orders")             # one of them
    hero.checkpoint({"row": 700})     # keeps a state for the next attempt of the job; returns once it is kept
    hero.state                        # the state that was kept last; None at first
    hero.submit("print(1)", name="a")  # submits a job, a child of this one, and returns its id once it is kept
    hero.inputs("a")                  # the same of a child, or of another job of the graph, as it is now
    hero.job("a")                     # such a job: its id, status and, if it finished, output
    hero.params                       # the parameters of the job, by name

Outside a job the same functions print, so that a script can be tested by hand.
"""

import _thread
import json
import os
import sys

__all__ = ["Refused", "checkpoint", "discard", "inputs", "job", "log", "output", "params", "progress", "result",
           "retry_in", "state", "submit", "wait"]

# One request is answered before the next is sent.
_asking = _thread.allocate_lock()
# The state that this attempt has kept.
_kept = []


class Refused(Exception):
    """Hero did not do what the script asked for; the text says why."""


def output(value):
    """Sets the output of the job to a JSON value. The last call counts."""
    if not _send({"output": value}):
        print(json.dumps(value))


def progress(fraction, text=""):
    """Reports the progress of the job, from 0 to 1, with a message."""
    if not _send({"progress": float(fraction), "text": str(text)}):
        print(f"{float(fraction):.0%} {text}", file=sys.stderr)


def log(*values, sep=" "):
    """Writes a line into the job's log."""
    text = sep.join(str(value) for value in values)
    if not _send({"log": text}):
        print(text, file=sys.stderr)


def retry_in(delay, reason=""):
    """Ends the script, and lets the job run again after a delay: seconds, or a text such as "5m"."""
    seconds = _seconds(delay)
    if not _send({"retry_in": seconds, "text": str(reason)}):
        print(f"again in {seconds:g} s: {reason}", file=sys.stderr)
    sys.exit(75)


def wait(event=None, length=None, *, jobs=(), children=False, who=()):
    """Ends the script, and lets the job run again once what it waits for has come; no task is held meanwhile.

    That is an event (`hero job tell ID EVENT`), told by one of `who` if that is given, or the ends of jobs or of all
    children of this job, or a length of time alone: seconds, or a text such as "3d". The event is in `hero.event` then.
    """
    asked = {"event": event, "for": length, "jobs": list(jobs) or None, "children": bool(children) or None,
             "who": [who] if isinstance(who, str) else list(who) or None}
    asked = {name: value for name, value in asked.items() if value is not None}
    if not _send({"wait": asked}):
        print(f"waits: {json.dumps(asked)}", file=sys.stderr)
    sys.exit(0)


def discard(reason):
    """Ends the script in error, without another attempt."""
    if not _send({"discard": str(reason)}):
        print(reason, file=sys.stderr)
    sys.exit(65)


def checkpoint(state):
    """Keeps a JSON value of up to 64 KiB for the next attempt of this job, and returns once it is kept.

    It replaces the one before; None keeps nothing. Raises Refused if it is not kept.
    """
    if _ask({"state": state}) is None:
        print(f"kept: {json.dumps(state)}", file=sys.stderr)
    _kept[:] = [state]


def submit(script=None, *, file=None, **settings):
    """Submits a job, a child of this one, and returns its id once it is kept.

    The script is a text, or is read from a file; uses="NAME@3" names a published one in place of both. A line of a batch has
    the same settings: name, type, params, after, timeout...
    Without a type the file's extension tells it, else it is python. A further attempt that submits the same name gets the same
    job. A list of dicts instead of the script submits all of them or none, and returns their ids; after=["NAME"] makes them a
    graph. Raises Refused.
    """
    if isinstance(script, (list, tuple)):
        jobs = [_job(**job) for job in script]
    else:
        jobs = _job(script, file=file, **settings)
    answer = _ask({"submit": jobs})
    if answer is None:
        print(f"submitted: {json.dumps(jobs)}", file=sys.stderr)
        return [job.get("name") for job in jobs] if isinstance(jobs, list) else jobs.get("name")
    return [child["id"] for child in answer] if isinstance(answer, list) else answer["id"]


def _job(script=None, *, file=None, **settings):
    kinds = {".py": "python", ".sh": "bash", ".js": "node", ".mjs": "node", ".cjs": "node", ".ts": "node", ".v": "v",
             ".vsh": "v", ".rhai": "osis", ".hero": "heroscript"}
    if file is not None:
        with open(file, encoding="utf-8") as text:
            script = text.read()
    if "uses" in settings and script is None:
        return settings
    if "type" not in settings and "script_type" not in settings:
        settings["type"] = kinds.get(os.path.splitext(file or "")[1], "python")
    return {**settings, "script": script}


def _seconds(delay):
    if not isinstance(delay, str):
        return float(delay)
    for unit, worth in (("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("d", 86400)):
        number = delay.removesuffix(unit)
        if number != delay and number.isdecimal():
            return int(number) * worth
    raise ValueError(f"{delay!r} is not a delay: write a number of seconds, or a text such as \"5m\"")


def result(prerequisite):
    """Returns what a prerequisite returned, by its id, its name in a graph, or the name of the job.

    That is the value of an output that is JSON, the text of any other, None if it did not finish.
    """
    texts = _texts()
    if prerequisite not in texts:
        jobs = _read("prerequisites.json").get("jobs", {})
        if prerequisite in jobs:
            return _value(texts[jobs[prerequisite]])
        has = ", ".join([*jobs, *texts][:20]) or "no prerequisite"
        raise KeyError(f"the job does not wait for {prerequisite}: it has {has}")
    return _value(texts[prerequisite])


def job(name):
    """Returns a child, or another job of the graph, by its name or its id, as it is now.

    That is a dict with id, status and, if it finished, output. Raises Refused if the job may not have it.
    """
    found = _ask({"inputs": name})
    if found is None:
        print(f"asked for the job {name}", file=sys.stderr)
        return {"id": name, "status": "gone"}
    if "output" in found:
        found["output"] = _value(found["output"])
    return found


class _Inputs(dict):
    """What each prerequisite returned, once; a named one is found by its id as well.

    Called with the name or the id of a child, or of another job of the graph, it returns what that one returned by now:
    None if it did not finish. Raises Refused if the job may not have it.
    """

    def __missing__(self, prerequisite):
        return result(prerequisite)

    def __call__(self, name):
        return job(name).get("output")


def _value(text):
    try:
        return None if text is None else json.loads(text.removeprefix("\ufeff"))
    except ValueError:
        return text


def _read(name):
    file = os.environ.get("HERO_INPUTS")
    if not file:
        return {}
    with open(os.path.join(os.path.dirname(file), name or file), encoding="utf-8") as inputs:
        return json.load(inputs)


def _texts():
    return _read(None)


def _send(message):
    number = os.environ.get("HERO_FD")
    if not number:
        return False
    rest = memoryview((json.dumps(message, allow_nan=False) + "\n").encode())
    while rest:
        rest = rest[os.write(int(number), rest):]
    return True


def _ask(message):
    number = os.environ.get("HERO_FD_IN")
    if not number:
        _send(message)
        return None
    with _asking:
        _send(message)
        answer = b""
        while not answer.endswith(b"\n"):
            # Nothing stands behind the one answer.
            some = os.read(int(number), 65536)
            if not some:
                raise Refused("hero answers no more: answers were not read")
            answer += some
    answer = json.loads(answer)
    if "error" in answer:
        raise Refused(answer["error"])
    return answer["ok"]


def _state():
    if _kept:
        return _kept[0]
    file = os.environ.get("HERO_STATE")
    if not file:
        return None
    with open(file, encoding="utf-8") as state:
        return json.load(state)


def __getattr__(name):
    if name == "state":
        return _state()
    if name == "event":
        return json.loads(os.environ.get("HERO_EVENT") or "null")
    if name == "params":
        return json.loads(os.environ.get("HERO_PARAMS") or "{}")
    if name != "inputs":
        raise AttributeError(f"module 'hero' has no attribute {name!r}")
    texts, names = _texts(), _read("prerequisites.json").get("names")
    if not names:
        # The message of a queue: a text, as it came.
        return _Inputs(texts)
    return _Inputs((name, _value(texts[name])) for name in names)
