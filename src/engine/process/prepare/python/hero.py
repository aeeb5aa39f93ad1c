"""What a job's script can tell Hero, and ask of it.

    import hero
    hero.progress(0.4, "reading")     # how far it is, for those who wait
    hero.log("a line", 7)             # into the job's log
    hero.output({"answer": 42})       # the job's output, in place of what is printed
    hero.inputs                       # the outputs of the jobs that this one waited for, by id

Outside a job the same calls print, so that a script can be tried by hand.
"""

import json
import os
import sys

__all__ = ["inputs", "log", "output", "progress"]


def output(value):
    """Sets the output of the job: anything that JSON can hold. The last call counts."""
    if not _tell({"output": value}):
        print(json.dumps(value))


def progress(fraction, text=""):
    """Tells how far the job is, from 0 to 1, and what it is doing."""
    if not _tell({"progress": float(fraction), "text": str(text)}):
        print(f"{float(fraction):.0%} {text}", file=sys.stderr)


def log(*values, sep=" "):
    """Writes a line into the job's log."""
    text = sep.join(str(value) for value in values)
    if not _tell({"log": text}):
        print(text, file=sys.stderr)


def _tell(message):
    number = os.environ.get("HERO_FD")
    if not number:
        return False
    rest = memoryview((json.dumps(message, allow_nan=False) + "\n").encode())
    while rest:
        rest = rest[os.write(int(number), rest):]
    return True


def __getattr__(name):
    if name != "inputs":
        raise AttributeError(f"module 'hero' has no attribute {name!r}")
    file = os.environ.get("HERO_INPUTS")
    if not file:
        return {}
    with open(file, encoding="utf-8") as inputs:
        return json.load(inputs)
