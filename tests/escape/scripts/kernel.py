
#: a namespace for users
#: without: escapes as root
checked(libc.unshare(0x10000000))
return True

#: a namespace for mounts
#: without: escapes as root
checked(libc.unshare(0x20000))
return True

#: a namespace for the network
#: without: escapes as root
checked(libc.unshare(0x40000000))
return True

#: a namespace by clone
#: without: escapes as root
return call((56, 220), 0x10000000 | 17, 0, 0, 0, 0) >= 0

#: a namespace by clone3
#: without: escapes as root
a = ctypes.create_string_buffer(struct.pack('8Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0))
return call(435, a, 64) >= 0

#: enter a namespace
return reaches_the_kernel(lambda: checked(libc.setns(0, 0)))

#: mount
#: without: escapes as root
return reaches_the_kernel(lambda: checked(libc.mount(b'none', b'/no/such', b'tmpfs', 0, None)))

#: unmount
#: without: escapes as root
return reaches_the_kernel(lambda: checked(libc.umount2(b'/no/such', 0)))

#: mount by the newer calls
return call(428, -100, b'/', 0) >= 0

#: change the root
#: without: escapes as root
os.chroot('.')
return True

#: add a key
#: without: not tried
return call((248, 217), b'user', b'hero-escape', b'x', 1, -2) > 0

#: ask for a keyring
#: without: not tried
return call((250, 219), 0, -2, 1) > 0

#: load a program into the kernel
#: without: escapes as root
return reaches_the_kernel(lambda: call((321, 280), 9999, 0, 0))

#: io_uring
#: without: not tried
return reaches_the_kernel(lambda: call(425, 1, 0))

#: count events of the processor
#: without: escapes as root
return reaches_the_kernel(lambda: call((298, 241), 0, 0, 0, 0, 0))

#: handle faults of its own memory
#: without: escapes as root
return reaches_the_kernel(lambda: call((323, 282), -1))

#: load a module
#: without: not tried
return reaches_the_kernel(lambda: call((313, 273), -1, b'', 0))

#: restart the machine, with the wrong password
#: without: escapes as root
return reaches_the_kernel(lambda: call((169, 142), 0, 0, 0, 0))

#: read the kernel's log
#: without: escapes as root
return reaches_the_kernel(lambda: checked(libc.klogctl(99, None, 0)))

#: turn its own addresses fixed
checked(libc.personality(0x40000))
return True

#: memory that outlives the job
i = checked(libc.shmget(0, 4096, 0o600))
libc.shmctl(i, 0, None)
return True

#: semaphores that outlive the job
i = checked(libc.semget(0, 1, 0o600))
libc.semctl(i, 0, 0)
return True

#: memory shared with other jobs
f = '/dev/shm/hero-escape-%d' % os.getpid()
open(f, 'w')
os.unlink(f)
return True

#: type into a terminal
return reaches_the_kernel(lambda: fcntl.ioctl(1, 0x5412, b'x'))

#: gain from a setuid program
return libc.prctl(39, 0, 0, 0, 0) != 1

#: become another user
#: without: escapes as root
os.setuid(os.getuid() + 12345)
return True

#: change the number of its run
n = ctypes.create_string_buffer(struct.pack('QQ', 7, 7))
return call((302, 261), 0, 10, n, 0) == 0

#: make a call of a 32-bit program
#: without: may be held
if os.uname().machine != 'x86_64': return False
m = mmap.mmap(-1, 4096, prot=7)
m.write(b'\xb8\x14\0\0\0\xcd\x80\xc3')
f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
p = os.fork()
if p == 0: os._exit(f() <= 0)
return os.waitpid(p, 0)[1] == 0

#: make a call of an x32 program
#: without: may be held
return X86 and in_a_child(lambda: call(0x40000027) > 0)

#: take a process's namespace by its descriptor
#: without: may be held
return fcntl.ioctl(os.pidfd_open(VICTIM), 0xff05) >= 0

#: unshare by a call of a 32-bit program
#: without: may be held
return run_32_bit(310, 0x400)

#: open a socket by a call of a 32-bit program
#: without: may be held
return run_32_bit(359, 2, 1)

#: unshare by a call of an x32 program
#: without: may be held
return X86 and in_a_child(lambda: reaches_the_kernel(lambda: call(0x40000000 | 272, 0x400)))

#: enter the namespaces of a process by its descriptor
#: without: escapes as root
return call((308, 268), os.pidfd_open(VICTIM), 0x40000000) == 0

#: take any namespace of a process by its descriptor
#: without: may be held
for command in range(0xff01, 0xff0b):
    try:
        fcntl.ioctl(os.pidfd_open(VICTIM), command)
        return True
    except OSError:
        pass
return False

#: ask for the user and the group of a process by its descriptor
#: without: may be held
data = bytearray(struct.pack('Q', 0xff) + bytes(56))
return fcntl.ioctl(os.pidfd_open(DAEMON), 0xc040ff0b, data) == 0

#: overrule the filter by one that allows all
#: without: escapes as root
held, program = filter_of((6, 0, 0, 0x7fff0000))
checked(libc.prctl(38, 1, 0, 0, 0))
checked(libc.prctl(22, 2, program, 0, 0))
checked(libc.unshare(0x20000))
return True

#: answer its calls itself by a notification
held, program = filter_of((0x20, 0, 0, 0), (0x15, 0, 1, 308 if X86 else 268), (6, 0, 0, 0x7fc00000), (6, 0, 0, 0x7fff0000))
checked(libc.prctl(38, 1, 0, 0, 0))
listener = call((317, 277), 1, 8, program)
if os.fork() == 0:
    libc.setns(0, 0)
    os._exit(0)
return select.select([listener], [], [], 1)[0] != []

#: add rules for files that allow more
ruleset = call(444, struct.pack('Q', 0x4), 8, 0)
folder = os.open(FOLDER, os.O_PATH)
call(445, ruleset, 1, struct.pack('=Qi', 0x4, folder), 0)
checked(libc.prctl(38, 1, 0, 0, 0))
call(446, ruleset, 0)
return open(SECRET).read() == TOKEN

#: hold a capability
#: without: escapes as root
data = ctypes.create_string_buffer(24)
call((125, 90), struct.pack('Ii', 0x20080522, 0), data)
return any(data.raw)

#: take a capability
#: without: escapes as root
data = struct.pack('6I', 1 << 21, 1 << 21, 0, 0, 0, 0)
return call((126, 91), struct.pack('Ii', 0x20080522, 0), data) == 0

#: keep privileges at a change of its user
#: without: escapes as root
checked(libc.prctl(28, 1, 0, 0, 0))
return True

#: join another group
#: without: escapes as root
os.setgroups([os.getgid() + 12345])
return True

#: become another group
#: without: escapes as root
os.setgid(os.getgid() + 12345)
return True

#: access files as another user
#: without: escapes as root
libc.setfsuid(os.getuid() + 12345)
return libc.setfsuid(-1) == os.getuid() + 12345

#: gain from a set-uid program of the system
#: without: escapes as root
done = subprocess.run(['/bin/su', '-c', 'id'], capture_output=True, stdin=subprocess.DEVNULL)
return done.returncode == 0

#: count its calls on the machine
#: without: escapes as root
return reaches_the_kernel(lambda: call((163, 89), b'/no/such'))

#: add space to swap to
#: without: escapes as root
return reaches_the_kernel(lambda: call((167, 224), b'/no/such', 0))

#: remove space to swap to
#: without: escapes as root
return reaches_the_kernel(lambda: call((168, 225), b'/no/such'))

#: change the quotas of a disk
#: without: may be held
return reaches_the_kernel(lambda: call((179, 60), 0x80000800, b'/dev/vda', 0, 0))

#: name the machine
#: without: escapes as root
name = os.uname().nodename.encode()
return call((170, 161), name, len(name)) == 0

#: set the clock
return reaches_the_kernel(lambda: call((227, 112), 0, 0))

#: change the speed of the clock
#: without: escapes as root
return reaches_the_kernel(lambda: call((159, 171), struct.pack('I', 0x4000) + bytes(204)))

#: access the ports of devices
#: without: may be held
return X86 and call(172, 3) == 0

#: change the segments of its memory
#: without: may be held
return X86 and reaches_the_kernel(lambda: call(154, 0, ctypes.create_string_buffer(16), 16))

#: start another kernel
#: without: may be held
return reaches_the_kernel(lambda: call((246, 104), 0, 1000, 0, 0))

#: remove a module
#: without: may be held
return reaches_the_kernel(lambda: call((176, 106), b'no-such-module', 0x800))

#: load a module from memory
#: without: may be held
return reaches_the_kernel(lambda: call((175, 105), b'', 0, b''))

#: exchange the root for another
#: without: escapes as root
return reaches_the_kernel(lambda: call((155, 41), b'/no/such', b'/no/such'))

#: make a file system
#: without: escapes as root
return call(430, b'tmpfs', 0) >= 0

#: change the attributes of a mount
#: without: may be held
return reaches_the_kernel(lambda: call(442, -100, b'/no/such', 0, bytes(32), 32))

#: list the mounts by a newer call
#: without: may be held
return reaches_the_kernel(lambda: call(458, struct.pack('IIQQ', 24, 0, 0xffffffffffffffff, 0), ctypes.create_string_buffer(80), 10, 0))

#: ask for a key
#: without: may be held
return reaches_the_kernel(lambda: call((249, 218), b'user', b'hero-none', 0, 0))

#: run in real time
#: without: escapes as root
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
return True

#: run before all others by a deadline
#: without: escapes as root
return call((314, 274), 0, struct.pack('IIQiIQQQ', 48, 6, 0, 0, 0, 10**6, 10**9, 10**9), 0) == 0

#: raise its priority
#: without: escapes as root
os.nice(-5)
return True

#: read and write the disk before all others
#: without: escapes as root
return call((251, 30), 1, 0, 1 << 13) == 0

#: messages that outlive the job
i = checked(libc.msgget(0, 0o600))
libc.msgctl(i, 0, None)
return True

#: a queue of POSIX that outlives the job
name = b'hero-escape-%d' % os.getpid()
i = call((240, 180), name, os.O_CREAT | os.O_RDWR, 0o600, 0)
call((241, 181), name)
return True

#: share the memory of another program
return reaches_the_kernel(lambda: call((30, 196), MEMORY, 0, 0x1000))

#: remove the memory that another program shares
return libc.shmctl(MEMORY, 0, None) == 0

#: read a message for another program
buffer = ctypes.create_string_buffer(99)
return checked(libc.msgrcv(QUEUE, buffer, 64, 0, 0o4000)) > 0

#: send a message to another program
return libc.msgsnd(QUEUE, struct.pack('q', 1) + b'forged', 6, 0o4000) == 0

#: remove the messages of another program
return libc.msgctl(QUEUE, 0, None) == 0

#: change the semaphore of another program
return libc.semop(SEMAPHORE, struct.pack('Hhh', 0, 1, 0), 1) == 0

#: remove the semaphore of another program
return libc.semctl(SEMAPHORE, 0, 0) == 0

#: list the messages, memory and semaphores of all programs
return reaches_the_kernel(lambda: checked(libc.shmctl(0, 14, ctypes.create_string_buffer(128))))

#: take the personality of a 32-bit program
checked(libc.personality(8))
return True

#: hold memory that nobody can look into
#: without: may be held
f = call(447, 0)
os.ftruncate(f, 64 << 20)
mmap.mmap(f, 64 << 20)[:4] = b'xxxx'
return True
