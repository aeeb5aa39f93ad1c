
#: take all memory
return len(bytearray(1 << 30)) > 0

#: map all memory
return len(mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE)) > 0

#: share all memory with its processes
#: ends: memory
#: without: not tried
m = mmap.mmap(-1, 1 << 30)
for n in range(0, 576 << 20, 4096): m[n] = 1
time.sleep(1000)

#: write a file without end
f = open('x', 'wb')
for _ in range(40): f.write(bytes(65536))
return True

#: make a huge file with nothing in it
#: without: may be held
os.truncate(os.open('x', os.O_CREAT | os.O_RDWR), 1 << 40)
return True

#: fill its folder with many files
#: ends: disk
#: without: not tried
for n in range(64): open(str(n), 'wb').write(bytes(500000))
time.sleep(1000)

#: hold removed files open
#: ends: disk
#: without: not tried
open_files = []
for n in range(20):
    open_files.append(open('x', 'wb', 0))
    open_files[-1].write(bytes(1000000))
    os.unlink('x')
time.sleep(1000)

#: hold files in memory
#: ends: disk
#: without: not tried
for n in range(20): os.write(os.memfd_create('x'), bytes(1000000))
time.sleep(1000)

#: hide files below the longest path
#: ends: disk
#: without: not tried
for _ in range(20):
    os.mkdir('d' * 250)
    os.chdir('d' * 250)
for n in range(20): open(str(n), 'wb').write(bytes(1000000))
time.sleep(1000)

#: hide files in a folder that cannot be listed
#: ends: disk
#: without: not tried
os.mkdir('d')
os.chmod('d', 0o300)
for n in range(20): open('d/%d' % n, 'wb').write(bytes(1000000))
time.sleep(1000)

#: hide files below many folders
#: ends: disk
#: without: not tried
for _ in range(300):
    os.mkdir('d')
    os.chdir('d')
    open('x', 'wb').write(bytes(16384))
time.sleep(1000)

#: hold memory in large buffers of sockets
a, b = socket.socketpair()
options = (socket.SO_SNDBUF, socket.SO_RCVBUF)
sizes = lambda: [a.getsockopt(socket.SOL_SOCKET, option) for option in options]
before = sizes()
for option in options: a.setsockopt(socket.SOL_SOCKET, option, 1 << 26)
return sizes() != before

#: hide its open files
return libc.prctl(4, 0, 0, 0, 0) == 0

#: open files without end
f = [open('/dev/null') for _ in range(300)]
return True

#: compute without end
#: ends: SIGXCPU
end = max(resource.getrlimit(resource.RLIMIT_CPU)[0], 1) + 2.5
while time.process_time() < end: pass
return True

#: write to standard output without end
#: ends: output
#: without: may be held
while True: print('x' * 1000)

#: fill its folder with empty files
#: ends: disk
#: without: not tried
for child in range(12):
    if os.fork() == 0:
        os.mkdir(str(child))
        for n in range(2000): os.mknod(f'{child}/{n}')
        break
time.sleep(1000)

#: fill its folder with links
#: ends: disk
#: without: not tried
for child in range(8):
    if os.fork() == 0:
        for n in range(200): os.symlink('x' * 4000, f'{child}-{n}')
        break
time.sleep(1000)

#: fill its folder from a child
#: ends: disk
#: without: not tried
if os.fork() == 0:
    os.setsid()
    for n in range(20): open(str(n), 'wb').write(bytes(1000000))
time.sleep(1000)

#: fill its folder again and again
#: ends: disk
#: without: not tried
os.mkdir('d')
while True:
    for n in range(8): open(f'd/{n}', 'wb').write(bytes(1000000))
    time.sleep(0.6)

#: map removed files
#: ends: disk
#: without: not tried
kept = []
for n in range(20):
    f = os.open('x', os.O_CREAT | os.O_RDWR)
    os.write(f, bytes(1000000))
    kept.append((f, mmap.mmap(f, 0)))
    os.unlink('x')
time.sleep(1000)

#: reserve space for a file
#: without: may be held
return os.posix_fallocate(os.open('x', os.O_CREAT | os.O_RDWR), 0, 8 << 20) is None

#: start threads without end
# The end of a thread loads it, which fails once there are too many.
ctypes.CDLL('libgcc_s.so.1')
try:
    for _ in range(300): _thread.start_new_thread(time.sleep, (1,))
except RuntimeError as error:
    # Without memory the interpreter may crash at its own end, so it has none.
    os.write(1, f'held: {error}'.encode())
    os._exit(0)
return True

#: grow its stack without end
#: ends: signal 11
#: without: may be held
checked(libc.setrlimit(3, struct.pack('QQ', 64 << 20, 64 << 20)))
# Python bounds its own stack; this function of C calls itself for each parenthesis.
libc.regcomp(ctypes.create_string_buffer(64), b'(' * 10**6, 1)

#: raise its own limits
#: without: may be held
for name in ('DATA', 'NOFILE', 'FSIZE', 'CPU'):
    limit = getattr(resource, 'RLIMIT_' + name)
    try:
        resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return True
    except (OSError, ValueError):
        pass
return False

#: raise its own limits by a newer call
#: without: may be held
return call((302, 261), 0, 2, struct.pack('QQ', 1 << 40, 1 << 40), 0) == 0

#: write to standard error without end
#: without: may be held
for _ in range(20000): os.write(2, b'x' * 999 + b'\n')
return False

#: write a line without end to standard error
#: without: may be held
for _ in range(20000): os.write(2, b'x' * 1000)
return False

#: write an output that is too large to its channel
#: ends: output
#: without: may be held
channel = int(os.environ['HERO_FD'])
os.write(channel, b'{"output": "')
while True: os.write(channel, b'x' * 1000)

#: write lines to its channel without end
#: without: may be held
channel = int(os.environ['HERO_FD'])
for _ in range(20000): os.write(channel, b'{"log": "' + b'x' * 500 + b'"}\n')
return False

#: write what is no message to its channel
#: without: may be held
#: ends: cannot read the line for
channel = int(os.environ['HERO_FD'])
for text in (b'[' * 100000, b'{"output":' * 10000, b'\xff\x00{}', b'{"progress": 1e999}', b'{"log": 1}'):
    os.write(channel, text + b'\n')
return False

#: ask without end, and read no answer
#: without: may be held
channel = int(os.environ['HERO_FD'])
for number in range(20000): os.write(channel, b'{"state": %d}\n' % number)
return False

#: keep a giant state, and one that nests without end
#: without: may be held
channel, answers = int(os.environ['HERO_FD']), int(os.environ['HERO_FD_IN'])
for state in (b'"' + b'x' * 70000 + b'"', b'[' * 100000 + b']' * 100000, b'"' + b'x' * 5000000 + b'"'):
    os.write(channel, b'{"state": ')
    os.write(channel, state + b'}\n')
    if os.read(answers, 4096).startswith(b'{"ok"'): return True
return False

#: keep the state of another job, or of none
#: without: may be held
channel, answers = int(os.environ['HERO_FD']), int(os.environ['HERO_FD_IN'])
for line in (b'{"state": 1, "id": "other"}', b'{"state": 1, "job": "other"}', b'{"state":', b'{"state"}', b'{"state": 1} {"state": 2}'):
    os.write(channel, line + b'\n')
os.write(channel, b'{"state": 7}\n')
answered = b''
while answered.count(b'\n') < 6: answered += os.read(answers, 4096)
return [line == b'{"ok":true}' for line in answered.splitlines()] != [False] * 5 + [True]

#: submit a job though the configuration names no type
#: without: may be held
channel, answers = int(os.environ['HERO_FD']), int(os.environ['HERO_FD_IN'])
for kind in (b'python', b'bash', b'sal', b'osis'):
    os.write(channel, b'{"submit": {"type": "%s", "script": "1", "name": "x"}}\n' % kind)
    if os.read(answers, 4096).startswith(b'{"ok"'): return True
return False

#: submit jobs with the id, the caller or the parent of another, in half lines, in giant ones and in lists without end
#: without: may be held
channel, answers = int(os.environ['HERO_FD']), int(os.environ['HERO_FD_IN'])
job = b'{"submit": {"type": "python", "script": "1", '
lines = [job + b'"id": "child-' + b'0' * 32 + b'"}}', job + b'"caller": "root"}}', job + b'"parent": "other"}}',
         job + b'"context_id": "other"}}', b'{"submit":', b'{"submit": {}} {"submit": {}}', b'{"submit": null}',
         b'{"submit": ' + b'[' * 100000 + b']' * 100000 + b'}', b'{"submit": [' + b'{},' * 60 + b'{}]}',
         job + b'"name": "' + b'x' * 300000 + b'"}}', job + b'"name": "' + b'x' * 5000000 + b'"}}',
         b'{"submit": {"type": "python", "script": "1"}, "state": 1}']
answered = b''
for number, line in enumerate(lines):
    rest = memoryview(line + b'\n')
    while rest: rest = rest[os.write(channel, rest):]
    while answered.count(b'\n') <= number: answered += os.read(answers, 4096)
return b'{"ok"' in answered

#: flood with submissions whose answers are never read
#: without: may be held
channel = int(os.environ['HERO_FD'])
for number in range(20000): os.write(channel, b'{"submit": {"type": "python", "script": "1"}}\n')
return False

#: print a NUL and escape sequences without end
#: ends: output
#: without: may be held
while True: os.write(1, b'\0\x1b[2J\xff' * 1000)

#: sleep past its time
#: ends: timeout
#: without: not tried
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True: time.sleep(1000)
