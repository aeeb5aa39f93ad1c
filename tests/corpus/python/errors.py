#: error in a function
def half(n):
    return 1 / n
half(0)
#: error of an error
try:
    1 / 0
except ZeroDivisionError as error:
    raise ValueError("second") from error
#: error while another is handled
try:
    {}["missing"]
except KeyError:
    [][1]
#: error with its cause hidden
try:
    1 / 0
except ZeroDivisionError:
    raise ValueError("alone") from None
#: error with notes
error = ValueError("x")
error.add_note("look here")
raise error
#: error of several lines
raise ValueError("one\ntwo\nthree")
#: error without a text
raise ValueError
#: error of an own class in a class
class Outer:
    class Failed(Exception):
        pass
raise Outer.Failed(1, 2)
#: error whose text fails
class Bad(Exception):
    def __str__(self):
        return 1
raise Bad()
#: group of errors
raise ExceptionGroup("several", [ValueError("one"), TypeError("two")])
#: groups in a group
def raised():
    try:
        raise OSError("inner")
    except OSError as error:
        return error
raise ExceptionGroup("outer", [ExceptionGroup("middle", [raised(), KeyError("k")]), raised()])
#: group is handled in part
try:
    raise ExceptionGroup("several", [ValueError("one"), TypeError("two")])
except* ValueError as group:
    print("handled", group.exceptions)
#: syntax error
print("never")
if x
#: indentation error
def f():
print(1)
#: error in text that is compiled
eval("1 +")
#: unterminated text
text = "abc
#: missing module
import no_such_module
#: missing name of a module
from os import no_such_name
#: name with a suggestion
import collections
collections.OrderedDic
#: misspelled name
counter = 1
print(countr)
#: assertion
value = 3
assert value == 4, f"value is {value}"
#: recursion without an end
def f(n):
    return f(n + 1)
try:
    f(0)
except RecursionError as error:
    print(error)
#: traceback of a recursion
import sys
sys.setrecursionlimit(100)
def f():
    f()
f()
#: deep recursion that ends
import sys
sys.setrecursionlimit(20000)
def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)
print(depth(9000))
#: traceback as text
import traceback
def inner():
    raise KeyError("k")
try:
    inner()
except KeyError:
    print(traceback.format_exc())
#: frames of a traceback
import sys, traceback
try:
    1 / 0
except ZeroDivisionError:
    frames = traceback.extract_tb(sys.exc_info()[2])
    print([(frame.lineno, frame.name, frame.line) for frame in frames])
#: stack of the script
import traceback
def inner():
    traceback.print_stack()
inner()
#: number of frames
import inspect
print(len(inspect.stack()))
#: source of its own functions
import inspect
def twice(n):
    return n * 2
print(inspect.getsource(twice))
print(inspect.getsourcefile(twice) == __file__, inspect.getmodule(twice).__name__)
#: warning
import warnings
warnings.warn("careful")
warnings.warn("old", DeprecationWarning)
#: warning of a caller
import warnings
def old():
    warnings.warn("old", DeprecationWarning, stacklevel=2)
old()
#: warning beyond the script
import warnings
warnings.warn("far", UserWarning, stacklevel=9)
#: warnings are errors
import warnings
warnings.simplefilter("error")
warnings.warn("now an error")
#: warning of unclosed file
import warnings
warnings.simplefilter("always")
def leave():
    open("left.txt", "w")
leave()
#: warning of the syntax
print(1 is 1)
#: error in a thread
import threading
def work():
    raise RuntimeError("in a thread")
thread = threading.Thread(target=work, name="worker")
thread.start()
thread.join()
print("end")
#: crash with a handler of faults
import faulthandler, signal, os
faulthandler.enable()
os.kill(os.getpid(), signal.SIGSEGV)
#: log of an exception
import logging
logging.basicConfig(format="%(levelname)s %(name)s %(message)s")
try:
    1 / 0
except ZeroDivisionError:
    logging.exception("it failed")
#: writes of errors between outputs
import sys
for n in range(3):
    print(n, file=sys.stderr)
    print(n)
