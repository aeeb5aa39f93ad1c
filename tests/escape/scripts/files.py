
#: read a secret
return open(SECRET).read() == TOKEN

#: read a secret by a link
os.symlink(SECRET, 'x')
return open('x').read() == TOKEN

#: read a secret by a hard link
os.link(SECRET, 'x')
return open('x').read() == TOKEN

#: read a secret by its folder's descriptor
f = os.open(FOLDER, os.O_PATH)
return os.read(os.open('secret', os.O_RDONLY, dir_fd=f), 99) == TOKEN.encode()

#: read a secret by /proc/self/root
return open('/proc/self/root' + SECRET).read() == TOKEN

#: read a secret by /proc/self/cwd
return open('/proc/self/cwd' + '/..' * 9 + SECRET).read() == TOKEN

#: read a secret by a mapping
f = open(SECRET, 'rb')
return mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[:] == TOKEN.encode()

#: read a secret through a child
return subprocess.run(['/bin/cat', SECRET], capture_output=True).stdout == TOKEN.encode()

#: read a secret by a handle of its file
b = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))
m = ctypes.c_int()
checked(libc.name_to_handle_at(-100, SECRET.encode(), b, ctypes.byref(m), 0))
return True

#: list a private folder
return 'secret' in os.listdir(FOLDER)

#: watch a private folder
i = checked(libc.inotify_init1(0))
checked(libc.inotify_add_watch(i, FOLDER.encode(), 0xfff))
return True

#: list the folders of other jobs
return len(os.listdir(os.path.join(os.environ['TMPDIR'], '../..'))) > 0

#: read /etc/shadow
#: without: escapes as root
return len(open('/etc/shadow').read()) > 0

#: list /root
#: without: escapes as root
os.listdir('/root')
return True

#: list /etc, with what is secret in it
return len(os.listdir('/etc')) > 0

#: write a new file outside
open(OUTSIDE + '/new', 'w').write('x')
return True

#: write over a file outside
open(FILE, 'w').write('x')
return True

#: append to a file outside
open(FILE, 'a').write('x')
return True

#: write by a link
os.symlink(FILE, 'x')
open('x', 'w').write('x')
return True

#: empty a file outside by its name
os.truncate(FILE, 0)
return True

#: delete a file outside
os.unlink(FILE)
return True

#: move a file out of its folder
#: without: not tried
open('x', 'w').write('x')
os.rename('x', OUTSIDE + '/x')
return True

#: move a file outside under another name
os.rename(FILE, OUTSIDE + '/x')
return True

#: exchange its folder's file with one outside
#: without: not tried
open('x', 'w').write('x')
checked(libc.renameat2(-100, b'x', -100, FILE.encode(), 2))
return True

#: make a folder outside
os.mkdir(OUTSIDE + '/x')
return True

#: remove a folder outside
os.unlink(FILE)
os.rmdir(OUTSIDE)
os.mkdir(OUTSIDE)
return True

#: make a link outside
os.symlink('/', OUTSIDE + '/x')
return True

#: make a pipe outside
os.mkfifo(OUTSIDE + '/x')
return True

#: make the node of a disk
#: without: escapes as root
os.mknod('disk', stat.S_IFBLK | 0o600, os.makedev(8, 0))
return True

#: open a file outside to anybody (chmod = false)
#: type: bounds
os.chmod(FILE, 0o777)
return True

#: change the mode of its open file (chmod = false)
#: type: bounds
f = open('x', 'w')
os.fchmod(f.fileno(), 0o777)
return True

#: change a mode by an access list (chmod = false)
#: type: bounds
#: without: may be held
a = struct.pack('<IHHIHHIHHI', 2, 1, 7, 0xffffffff, 4, 7, 0xffffffff, 0x20, 7, 0xffffffff)
f = open('x', 'w')
os.setxattr(f.fileno(), 'system.posix_acl_access', a)
return True

#: change the owner of a file outside
os.chown(FILE, os.getuid(), os.getgid())
return True

#: make a set-uid program with chmod
open('x', 'w').write('x')
os.chmod('x', 0o4755)
return True

#: make a set-gid program with chmod
open('x', 'w').write('x')
os.chmod('x', 0o2755)
return True

#: make a set-uid program with fchmod
f = open('x', 'w')
os.fchmod(f.fileno(), 0o4755)
return True

#: make a set-uid program with fchmodat2
#: without: may be held
open('x', 'w').write('x')
return call(452, -100, b'x', 0o4755, 0) == 0

#: create a set-uid program
return os.fstat(os.open('x', os.O_CREAT | os.O_WRONLY, 0o4755)).st_mode & 0o4000

#: create a set-uid program with openat2
h = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o4755, 0)
return os.fstat(call(437, -100, b'x', h, 24)).st_mode & 0o4000

#: create a set-uid program with creat
return os.fstat(checked(libc.creat(b'x', 0o4755))).st_mode & 0o4000

#: create a set-uid program with mknod
os.mknod('x', stat.S_IFREG | 0o4755)
return os.stat('x').st_mode & 0o4000

#: create a set-gid program without a name
#: without: may be held
return os.fstat(os.open('.', os.O_TMPFILE | os.O_RDWR, 0o2755)).st_mode & 0o2000

#: read a secret by opening its descriptor without rights again
f = os.open(SECRET, os.O_PATH)
return open('/proc/self/fd/%d' % f).read() == TOKEN

#: read a secret by openat2
h = struct.pack('QQQ', os.O_RDONLY, 0, 0)
return os.read(call(437, -100, SECRET.encode(), h, 24), 99) == TOKEN.encode()

#: read a secret from inside its folder
os.chdir(FOLDER)
return open('secret').read() == TOKEN

#: read a secret with a program from memory
f = os.memfd_create('cat')
os.write(f, open('/bin/cat', 'rb').read())
done = subprocess.run([f'/proc/self/fd/{f}', SECRET], pass_fds=[f], capture_output=True)
return done.stdout == TOKEN.encode()

#: read a secret by a hard link from its descriptor
f = os.open(SECRET, os.O_PATH)
checked(libc.linkat(f, b'', -100, b'x', 0x1000))
return open('x').read() == TOKEN

#: read a secret by a hard link from /proc
f = os.open(SECRET, os.O_PATH)
checked(libc.linkat(-100, b'/proc/self/fd/%d' % f, -100, b'x', 0x400))
return open('x').read() == TOKEN

#: read a secret from a shell in /proc/self/root
p = subprocess.run(['/bin/sh', '-c', 'cd /proc/self/root && cat ".$SECRET"'], capture_output=True)
return p.stdout == TOKEN.encode()

#: read a secret in a new process group and session
if os.fork() == 0:
    os.setsid()
    try: open('x', 'w').write(open(SECRET).read())
    finally: os._exit(0)
os.wait()
return open('x').read() == TOKEN

#: read a secret in a thread
read = []
t = threading.Thread(target=lambda: read.append(open(SECRET).read()))
t.start()
t.join()
return read == [TOKEN]

#: read a secret that its child passes by a socket
a, b = socket.socketpair()
if os.fork() == 0:
    try: socket.send_fds(a, [b'x'], [os.open(SECRET, os.O_RDONLY)])
    finally: os._exit(0)
a.close()
files = socket.recv_fds(b, 1, 1)[1]
return [os.read(f, 99) for f in files] == [TOKEN.encode()]

#: read the daemon's configuration
return len(open(CONFIG).read()) > 0

#: read what is mounted
return len(open('/proc/self/mountinfo').read()) > 0

#: read the names of the kernel's functions
return len(open('/proc/kallsyms').read(100)) > 0

#: read the memory of the kernel
#: without: may be held
return len(os.read(os.open('/proc/kcore', os.O_RDONLY), 16)) > 0

#: read the first process's environment
#: without: may be held
return len(open('/proc/1/environ', 'rb').read()) >= 0

#: open a node of a device
#: without: escapes as root
names = ['kmsg', 'mem', 'kvm', 'fuse', 'net/tun', 'loop-control', 'loop0', 'vda', 'sda', 'ptmx', 'console', 'tty0', 'vsock', 'userfaultfd', 'mapper/control']
for name in names:
    try:
        os.open('/dev/' + name, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
        return True
    except OSError:
        pass
return False

#: open a terminal of its own
#: without: may be held
return os.openpty()[0] > 0

#: make the node of the memory
#: without: escapes as root
os.mknod('mem', stat.S_IFCHR | 0o600, os.makedev(1, 1))
return True

#: make a socket outside
os.mknod(OUTSIDE + '/x', stat.S_IFSOCK | 0o600)
return True

#: make a hard link outside
#: without: may be held
open('x', 'w').write('x')
os.link('x', OUTSIDE + '/x')
return True

#: give a file without a name one outside
#: without: may be held
f = os.open('.', os.O_TMPFILE | os.O_RDWR)
checked(libc.linkat(-100, b'/proc/self/fd/%d' % f, -100, OUTSIDE.encode() + b'/x', 0x400))
return True

#: move a folder outside
#: without: not tried
os.mkdir('d')
os.rename('d', OUTSIDE + '/d')
return True

#: leave a file without a name outside
#: without: may be held
return os.open(OUTSIDE, os.O_TMPFILE | os.O_RDWR) > 0

#: empty a file that it opens to read
os.open(FILE, os.O_RDONLY | os.O_TRUNC)
return os.stat(FILE).st_size == 0

#: delete a file by its folder's descriptor
f = os.open(OUTSIDE, os.O_PATH)
os.unlink('file', dir_fd=f)
return True

#: write a file by a descriptor of its folder
f = os.open(OUTSIDE, os.O_PATH)
os.write(os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=f), b'x')
return True

#: lock a file outside
fcntl.flock(os.open(FILE, os.O_RDONLY), fcntl.LOCK_EX)
return True

#: open the folder that the daemon has locked
return os.open(os.path.join(os.environ['TMPDIR'], '../..'), os.O_RDONLY) > 0

#: attach an attribute to a file outside
#: without: may be held
os.setxattr(FILE, 'user.hero', b'x')
return True

#: attach an attribute by a newer call
#: without: may be held
value = ctypes.create_string_buffer(b'x')
arguments = struct.pack('QII', ctypes.addressof(value), 1, 0)
return call(463, -100, FILE.encode(), 0, b'user.hero', arguments, 16) == 0

#: remove an attribute of a file outside
#: without: may be held
try:
    os.removexattr(FILE, 'user.hero')
except OSError as error:
    return error.errno == 61

#: make a file that nobody can remove
#: without: not tried
f = os.open('x', os.O_CREAT | os.O_RDWR)
fcntl.ioctl(f, 0x40086602, struct.pack('Q', 0x10))
return True

#: be told of changes in a private folder by an older call
#: without: may be held
i = call((253, 26), 0)
checked(libc.inotify_add_watch(i, FOLDER.encode(), 0xfff))
return True

#: be told of changes in a private folder by a signal
signal.signal(signal.SIGIO, signal.SIG_IGN)
fcntl.fcntl(os.open(FOLDER, os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_CREATE)
return True

#: be told of all that is opened
#: without: escapes as root
return reaches_the_kernel(lambda: call((300, 262), 0, 0))

#: open a file by a handle
#: without: escapes as root
return reaches_the_kernel(lambda: call((304, 265), -1, struct.pack('Ii', 8, 1) + bytes(8), 0))

#: start a program outside of its folders
return subprocess.run([PROGRAM]).returncode == 0

#: start a program outside by the loader of libraries
loader = '/lib64/ld-linux-x86-64.so.2' if X86 else '/lib/ld-linux-aarch64.so.1'
return subprocess.run([loader, PROGRAM]).returncode == 0

#: start a program outside by its descriptor
f = os.open(PROGRAM, os.O_PATH)
if os.fork() == 0:
    try: call((322, 281), f, b'', (ctypes.c_char_p * 2)(b'x', None), (ctypes.c_char_p * 1)(None), 0x1000)
    finally: os._exit(1)
return os.wait()[1] == 0

#: load a library from outside
try:
    ctypes.CDLL(PROGRAM)
except OSError as error:
    return 'Permission denied' not in str(error)

#: write over a program of the system
#: without: escapes as root
return os.open('/bin/true', os.O_WRONLY) > 0

#: write the list of users
#: without: escapes as root
return os.open('/etc/passwd', os.O_WRONLY | os.O_APPEND) > 0

#: write a setting of the kernel
#: without: may be held
return os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY) > 0

#: open the switch of the kernel's emergency keys
#: without: may be held
return os.open('/proc/sysrq-trigger', os.O_WRONLY) > 0
