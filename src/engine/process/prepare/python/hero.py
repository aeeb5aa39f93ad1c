"""The interface between the script of a job and Hero.

    import hero
    hero.progress(0.4, "reading")     # the progress, shown to waiting clients
    hero.log("a line", 7)             # a line of the job's log
    hero.output({"answer": 42})       # the output of the job, instead of standard output
    hero.inputs                       # the outputs of the job's prerequisites, by id

Outside a job the same functions print, so that a script can be tested by hand.
"""

import json
import os
import sys

__all__ = ["inputs", "log", "output", "progress"]


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


def _send(message):
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
