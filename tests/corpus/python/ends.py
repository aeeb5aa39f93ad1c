#: output is replaced by standard error
import sys
print("result")
sys.stdout = sys.stderr
print("said")
#: output is replaced by memory
import io, sys
print("result")
sys.stdout = io.StringIO()
print("not shown")
#: output is written twice
import sys
class Tee:
    def __init__(self, *streams):
        self.streams = streams
    def write(self, text):
        for stream in self.streams:
            stream.write(text)
    def flush(self):
        for stream in self.streams:
            stream.flush()
sys.stdout = Tee(sys.stdout, open("copy.txt", "w"))
print("both")
#: output goes to a file
import sys
print("before")
sys.stdout = open("out.txt", "w")
print("into the file")
#: output goes to a copy of the descriptor
import os, sys
print("before")
sys.stdout = os.fdopen(os.dup(1), "w")
print("after")
#: output is redirected for a while
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()) as kept:
    print("kept")
print("shown", kept.getvalue().upper())
#: output is closed
import sys
print("closed")
sys.stdout.close()
#: error output is closed
import sys
print("still works")
sys.stderr.close()
#: output is used as a context
import sys
with sys.stdout as out:
    out.write("written\n")
#: output is none
import sys
print("before")
sys.stdout = None
print("nothing")
#: output is deleted
import sys
print("before")
del sys.stdout
#: output to a closed descriptor
import os
print("lost")
os.close(1)
#: output without a line end
print("a", end="")
#: output of bytes and text in their order
import sys
sys.stdout.write("text ")
sys.stdout.flush()
sys.stdout.buffer.write(b"bytes ")
sys.stdout.write("text\n")
#: output is reconfigured
import sys
sys.stdout.reconfigure(encoding="latin-1", errors="replace", line_buffering=True)
print("caf\u00e9 \u4e2d")
#: sys.exit without a code
import sys
print("done")
sys.exit()
#: sys.exit with zero
import sys
sys.exit(0)
#: sys.exit with a code
import sys
print("partial")
sys.exit(3)
#: sys.exit with a large code
import sys
sys.exit(259)
#: sys.exit with a negative code
import sys
sys.exit(-1)
#: sys.exit with a text
import sys
sys.exit("it is over")
#: sys.exit with true
import sys
sys.exit(True)
#: sys.exit with a list
import sys
sys.exit(["a", 1])
#: sys.exit with an object whose text fails
import sys
class Bad:
    def __str__(self):
        raise ValueError("no text")
sys.exit(Bad())
#: exit and quit of site
print("first")
exit(4)
#: exit in finally
import sys
try:
    sys.exit(5)
finally:
    print("cleaned")
#: exit is caught
import sys
try:
    sys.exit(5)
except SystemExit as leaving:
    print("caught", leaving.code)
#: exit in a function of atexit
import atexit, sys
atexit.register(sys.exit, 6)
#: os._exit ends at once
import os
print("lost")
os._exit(7)
#: os.abort
import os
os.abort()
#: killed by a signal
import os, signal
print("lost")
os.kill(os.getpid(), signal.SIGTERM)
#: interrupted
import os, signal
print("before")
os.kill(os.getpid(), signal.SIGINT)
#: interrupt is caught
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("caught")
#: raises an interrupt of its own class
class Stop(KeyboardInterrupt):
    pass
raise Stop("own")
#: functions at exit in their order
import atexit
atexit.register(print, "first registered")
@atexit.register
def last():
    print("last registered")
#: function at exit fails
import atexit
atexit.register(print, "still called")
atexit.register(lambda: 1 / 0)
#: function at exit registers another
import atexit
atexit.register(lambda: atexit.register(print, "inner"))
#: functions at exit are cleared
import atexit
atexit.register(print, "never")
atexit._clear()
#: function at exit sees its globals
import atexit
value = 6
atexit.register(lambda: print(value, "__file__" in globals(), __name__))
#: function at exit after an error
import atexit
atexit.register(print, "at exit")
raise LookupError("failed")
#: destructor of a global
class Thing:
    def __del__(self):
        print("gone")
thing = Thing()
print("end")
#: destructor in a cycle
class Thing:
    def __del__(self):
        print("gone")
thing = Thing()
thing.self = thing
del thing
#: destructors of globals by their names
class Thing:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print("gone", self.name)
_private = Thing("private")
public = Thing("public")
__double = Thing("double")
#: destructor fails
class Thing:
    def __del__(self):
        raise ValueError("in a destructor")
thing = Thing()
#: finalizers of weak references
import weakref
class Thing:
    pass
thing = Thing()
weakref.finalize(thing, print, "finalized")
weakref.finalize(thing, print, "first").atexit = False
#: weak reference with a callback
import weakref
class Thing:
    pass
thing = Thing()
kept = weakref.ref(thing, lambda _: print("called back"))
#: suspended generator ends
def numbers():
    try:
        yield 1
    finally:
        print("generator ends")
running = numbers()
print(next(running))
#: file of a global is flushed
file = open("kept.txt", "w")
file.write("x" * 10)
#: file of an attribute of a module is flushed
import json
json.log = open("kept.txt", "w")
json.log.write("of a module")
#: file of builtins is flushed
import builtins
builtins.log = open("kept.txt", "w")
builtins.log.write("of builtins")
#: file of a class of a library is flushed
import logging
logging.Logger.extra = open("kept.txt", "w")
logging.Logger.extra.write("of a class")
#: file of a function of a library is flushed
import os.path
os.path.join.log = open("kept.txt", "w")
os.path.join.log.write("of a function")
#: file in a default argument is flushed
def log(text, file=open("kept.txt", "w")):
    file.write(text)
log("of an argument")
#: file in a closure is flushed
def logger():
    file = open("kept.txt", "w")
    return lambda text: file.write(text)
log = logger()
log("of a closure")
#: file of an imported module is flushed
import sys
with open("own_log.py", "w") as source:
    source.write("file = open('kept.txt', 'w')\nfile.write('of a module of its own')\n")
sys.path.insert(0, "")
sys.dont_write_bytecode = True
import own_log
#: compressed file is not closed
import gzip
file = gzip.open("kept.gz", "wt")
file.write("text")
file.flush()
print("end")
#: zip archive is not closed
import zipfile
archive = zipfile.ZipFile("kept.zip", "w")
archive.writestr("a", "b")
del archive
print(zipfile.ZipFile("kept.zip").namelist())
#: rows of a csv file are flushed
import csv
writer = csv.writer(open("rows.csv", "w", newline=""))
writer.writerows([[1, "a,b"], [2, 'c"d']])
#: database without a commit
import sqlite3
connection = sqlite3.connect("kept.db")
connection.execute("create table t (x)")
connection.execute("insert into t values (1)")
print(connection.execute("select count(*) from t").fetchone())
connection.close()
print(sqlite3.connect("kept.db").execute("select count(*) from t").fetchone())
import os
os.remove("kept.db")
#: excepthook of the script
import sys
sys.excepthook = lambda kind, error, trace: print("hook", kind.__name__, error)
raise ValueError("x")
#: excepthook that fails
import sys
def hook(kind, error, trace):
    raise RuntimeError("in the hook")
sys.excepthook = hook
raise ValueError("x")
#: hook of unraisable errors
import sys
sys.unraisablehook = lambda u: print("unraisable", u.exc_type.__name__)
class Thing:
    def __del__(self):
        1 / 0
thing = Thing()
del thing
#: names of exceptions are replaced
import builtins
builtins.SystemExit = builtins.BaseException = None
1 / 0
#: everything is deleted
for name in list(globals()):
    if not name.startswith("__") and name != "name":
        del globals()[name]
import sys
sys.modules.clear()
#: its own module is removed
import sys
del sys.modules["__main__"]
print("end")
