#: names of the script
print(__name__, __doc__, __package__, __spec__, sorted(globals()))
#: doc of the script
"""What it does."""
print(__doc__)
#: future import
from __future__ import annotations
def f(x: Missing) -> Other: ...
print(f.__annotations__)
#: annotations of the script
count: int = 3
name: str
print(__annotations__)
#: main is importable
import __main__
value = 1
print(__main__.value, __main__.__dict__ is globals(), type(__loader__).__name__)
#: arguments and path
import os, sys
print(sys.argv[1:], os.path.basename(sys.argv[0]), sys.argv[0] == __file__)
print(sys.path[0] == os.path.dirname(__file__), sys.path[1:], os.path.isabs(__file__))
#: interpreter
import sys
print(sys.executable, sys.prefix, sys.base_prefix, sys.flags, sys.orig_argv[0], len(sys.orig_argv))
#: interpreter starts itself
import subprocess, sys
print(subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True))
#: script starts itself again
import subprocess, sys
if sys.argv[1:]:
    print("again", sys.argv[1:])
else:
    subprocess.run([sys.executable, __file__, "x"], check=True)
#: module beside the script
import os, sys
with open(os.path.join(os.path.dirname(__file__), "beside.py"), "w") as file:
    file.write("value = 5\nprint('loading', __name__)\n")
import beside, importlib
importlib.reload(beside)
print(beside.value)
#: package in the working directory
import os, sys
os.makedirs("pack/inner")
for name, text in {"pack/__init__.py": "top = 1", "pack/inner/__init__.py": "from .. import top", "pack/inner/m.py": "from . import top as t"}.items():
    with open(name, "w") as file:
        file.write(text)
sys.dont_write_bytecode = True
sys.path.insert(0, os.getcwd())
import pack.inner.m
print(pack.inner.m.t)
#: lazy import in a function
def load():
    import decimal
    return decimal.Decimal("0.1") + 1
print(load())
#: importlib and find_spec
import importlib.util
print(importlib.util.find_spec("json").name, importlib.util.find_spec("no_such"))
#: runpy
import runpy
with open("other.py", "w") as file:
    file.write("print(__name__)\nx = 2\n")
print(runpy.run_path("other.py", run_name="other")["x"])
#: exec and eval
names = {}
exec("def f():\n    return 7", names)
print(eval("f() + 1", names))
#: compile with flags
print(eval(compile("1 + 1", "text", "eval")))
#: hook of imports
import sys
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "virtual":
            print("asked for", name)
sys.meta_path.insert(0, Finder())
try:
    import virtual
except ImportError as error:
    print(error)
#: pickle of an own class
import pickle
class Point:
    def __init__(self, x):
        self.x = x
print(pickle.loads(pickle.dumps(Point(3))).x, Point.__module__, Point.__qualname__)
#: pickle of an own function
import pickle
def f():
    return 1
print(pickle.loads(pickle.dumps(f))())
#: dataclass
from dataclasses import asdict, dataclass, field
@dataclass(order=True)
class Item:
    name: str
    price: float = 0.0
    tags: list = field(default_factory=list)
print(Item("a", 1.5), asdict(Item("b")), Item("a") < Item("b"))
#: enum and typing
import enum, typing
class Color(enum.Enum):
    RED = enum.auto()
class Box(typing.NamedTuple):
    color: Color
print(Color.RED, Box(Color.RED), typing.get_type_hints(Box))
#: hint of a name of the script
import typing
class Node:
    next: "Node"
print(typing.get_type_hints(Node))
#: metaclass
class Meta(type):
    def __new__(cls, name, bases, names):
        print("making", name)
        return super().__new__(cls, name, bases, names)
class A(metaclass=Meta):
    pass
#: match
def kind(value):
    match value:
        case [x, *rest]:
            return x, rest
        case {"a": a}:
            return a
        case _:
            return None
print(kind([1, 2, 3]), kind({"a": 4}), kind(5))
#: doctest of itself
def double(n):
    """
    >>> double(2)
    4
    >>> double(3)
    7
    """
    return n * 2
import doctest
print(doctest.testmod().failed)
#: unittest of itself
import unittest
class Test(unittest.TestCase):
    def test_good(self):
        self.assertEqual(1, 1)
    def test_bad(self):
        self.assertEqual(1, 2)
unittest.main(exit=True, argv=["t"], testRunner=unittest.TextTestRunner(stream=open("/dev/null", "w")))
#: argparse
import argparse, sys
parser = argparse.ArgumentParser()
parser.add_argument("--count", type=int, default=2)
print(parser.parse_args())
parser.parse_args(["--count", "x"])
#: builtins are shadowed
def print(*texts, show=print):
    show("mine:", *texts)
print("a")
#: garbage collector
import gc
class A:
    pass
a = A(); a.a = a; del a
print(gc.collect() > 0, gc.isenabled(), gc.get_threshold())
#: memory is traced
import tracemalloc
tracemalloc.start()
kept = [bytes(1000) for _ in range(10)]
print(tracemalloc.get_traced_memory()[0] >= 10000)
#: profile
import cProfile, io, pstats
profile = cProfile.Profile()
profile.runcall(sum, range(10))
print(pstats.Stats(profile, stream=io.StringIO()).total_calls > 0)
#: trace function
import sys
seen = []
sys.settrace(lambda frame, event, arg: seen.append(frame.f_code.co_name))
def f():
    pass
f()
sys.settrace(None)
print(seen)
#: hashes of texts are random
print(isinstance(hash("a"), int), len({hash(str(n)) for n in range(100)}) > 90)
#: identity of main threads
import threading
print(threading.current_thread().name, threading.main_thread() is threading.current_thread(), threading.active_count())
