#: text file
with open("a.txt", "w") as file:
    file.write("one\ntwo\n")
with open("a.txt") as file:
    print([line.rstrip() for line in file])
#: standard input is empty
import sys
print(repr(sys.stdin.read()), sys.stdin.isatty())
#: input asks
try:
    input("name? ")
except EOFError as error:
    print("no answer", error)
#: encodings
import locale, sys
print(sys.stdout.encoding, sys.stdin.errors, sys.getfilesystemencoding(), locale.getpreferredencoding(), sys.flags.utf8_mode)
#: text beyond ascii
print("grüße 中文 \U0001f600")
#: text that cannot be encoded
print("a\udcff")
#: bytes that are not text
import sys
sys.stdout.buffer.write(b"\xff\xfe\n")
#: encoding in the first line
# -*- coding: latin-1 -*-
print("plain")
#: encoding of the source is unknown
# -*- coding: no-such -*-
print("never")
#: line ends
open("a", "w", newline="\r\n").write("1\n2\n")
print(open("a", "rb").read(), open("a").read())
#: bytes and seeks
with open("a", "wb+") as file:
    file.write(bytes(range(10)))
    file.seek(-3, 2)
    print(file.read(), file.tell())
#: pathlib
from pathlib import Path
Path("d/e").mkdir(parents=True)
Path("d/e/f.txt").write_text("x")
print(sorted(str(path) for path in Path("d").rglob("*")), Path.cwd() == Path(".").resolve())
#: temporary files
import os, tempfile
with tempfile.NamedTemporaryFile("w", delete=False, dir=".") as file:
    file.write("x")
os.remove(file.name)
with tempfile.TemporaryDirectory() as folder:
    print(os.listdir(folder), folder.startswith(os.environ["TMPDIR"]))
print(os.path.exists(folder))
#: temporary folder is not removed by the script
import tempfile
folder = tempfile.TemporaryDirectory(dir=".")
open(folder.name + "/a", "w").write("x")
#: home and temporary folder
import os, tempfile
print(os.path.expanduser("~") == os.environ["HOME"], tempfile.gettempdir() == os.environ["HOME"])
#: copies and moves
import os, shutil
open("a", "w").write("1")
shutil.copy("a", "b")
os.rename("a", "c")
os.symlink("c", "link")
print(sorted(os.listdir()), os.readlink("link"), shutil.which("sh"))
#: modes
import os, stat
open("a", "w").close()
os.chmod("a", 0o640)
print(stat.filemode(os.stat("a").st_mode), oct(os.umask(0)))
#: missing file
open("no-such-file")
#: folder is opened
open(".")
#: json
import json
json.dump({"b": [1, None, True], "a": "ü"}, open("a.json", "w"))
print(open("a.json").read(), json.loads('{"x": 1.5}'))
#: invalid json
import json
json.loads("{")
#: toml and configuration
import configparser, tomllib
print(tomllib.loads("[a]\nb = 1"))
parser = configparser.ConfigParser()
parser.read_string("[s]\nk = v\n")
print(dict(parser["s"]))
#: shelf
import shelve
with shelve.open("shelf", "n") as shelf:
    shelf["a"] = [1]
    print(dict(shelf))
import glob, os
[os.remove(name) for name in glob.glob("shelf*")]
#: logging to a file
import logging
logging.basicConfig(filename="log.txt", format="%(levelname)s:%(message)s", level=logging.INFO)
logging.info("one")
logging.debug("two")
#: logging to standard error
import logging
logging.warning("careful %d", 3)
logging.getLogger("a.b").error("bad")
logging.info("not shown")
#: logging in memory is flushed at exit
import logging, logging.handlers
target = logging.FileHandler("log.txt")
handler = logging.handlers.MemoryHandler(100, target=target)
logging.getLogger().addHandler(handler)
logging.getLogger().warning("kept in memory")
#: date and time
import datetime, time
print(datetime.datetime.fromtimestamp(0, datetime.timezone.utc), time.tzname, time.strftime("%Y", time.gmtime(0)))
#: random numbers with a seed
import random
random.seed(1)
print(random.random(), random.sample(range(10), 3))
#: random numbers differ
import random, uuid
print(random.random() != random.random(), uuid.uuid4() != uuid.uuid4())
#: decimal context
import decimal
decimal.getcontext().prec = 5
print(decimal.Decimal(1) / 3)
#: regular expressions and texts
import re, textwrap
print(re.findall(r"(\w)(\d)", "a1 b2"), textwrap.fill("word " * 10, 20))
#: hashes and encodings of bytes
import base64, hashlib, zlib
print(hashlib.sha256(b"a").hexdigest(), base64.b64encode(b"ab"), zlib.crc32(b"a"))
#: large output
print("x" * 200000)
#: many lines
for n in range(3000):
    print(n)
#: progress bar in one line
import sys
for n in range(3):
    sys.stderr.write(f"\r{n}")
sys.stderr.write("\n")
#: identity of the process
import os
print(os.getpid() == os.getsid(0), os.getpgrp() == os.getpid(), os.nice(0), os.getcwd() == os.path.realpath("."))
#: variables
import os
print(sorted(name for name in os.environ if not name.startswith(("HERO_", "LC_"))))
#: pretty print and formats
import pprint
pprint.pprint({"list": list(range(30)), "text": "x" * 60})
print(f"{3.14159:.2f} {1000000:,} {'a':>5} {255:#x}")
#: curses is absent or says why
import os
print(os.environ.get("TERM"), os.get_terminal_size.__name__)
try:
    os.get_terminal_size()
except OSError as error:
    print(error.errno)
#: server and client on a socket pair
import socket
a, b = socket.socketpair()
a.sendall(b"x")
print(b.recv(10))
#: select
import os, select
read_end, write_end = os.pipe()
os.write(write_end, b"x")
print(select.select([read_end], [], [], 1)[0] == [read_end])
#: mmap
import mmap
with open("a", "wb+") as file:
    file.write(b"abc")
    file.flush()
    view = mmap.mmap(file.fileno(), 0)
    view[0:1] = b"x"
    print(bytes(view))
#: ctypes
import ctypes
libc = ctypes.CDLL(None)
libc.printf(b"from C %d\n", 3)
libc.fflush(None)
print(libc.abs(-3))
#: output of C is flushed at the end
import ctypes
ctypes.CDLL(None).printf(b"from C\n")
#: function of C at exit
import ctypes, os
kept = ctypes.CFUNCTYPE(None)(lambda: None)
print(ctypes.CDLL(None).getpid() == os.getpid())
