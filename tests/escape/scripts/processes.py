
#: signal a process
#: landlock: 6
os.kill(VICTIM, signal.SIGCONT)
return True

#: signal a group
#: landlock: 6
os.killpg(VICTIM, signal.SIGCONT)
return True

#: signal a thread
#: landlock: 6
call((234, 131), VICTIM, VICTIM, int(signal.SIGCONT))
return True

#: signal with a value
#: landlock: 6
checked(libc.sigqueue(VICTIM, int(signal.SIGCONT), None))
return True

#: signal by a descriptor
#: landlock: 6
signal.pidfd_send_signal(os.pidfd_open(VICTIM), signal.SIGCONT)
return True

#: have the kernel signal it
#: landlock: 6
r, w = os.pipe()
fcntl.fcntl(r, fcntl.F_SETOWN, VICTIM)
return True

#: ask whether the daemon is there
#: landlock: 6
os.kill(DAEMON, 0)
return True

#: attach to a process
#: without: escapes as root
return reaches_the_kernel(lambda: checked(libc.ptrace(0x4206, VICTIM, 0, 0)))

#: read its memory by a call
#: without: escapes as root
l = struct.pack('QQ', ctypes.addressof(ctypes.create_string_buffer(8)), 8)
return reaches_the_kernel(lambda: checked(libc.process_vm_readv(VICTIM, l, 1, l, 1, 0)))

#: write its memory by a call
#: without: escapes as root
return reaches_the_kernel(lambda: checked(libc.process_vm_writev(VICTIM, None, 0, None, 0, 0)))

#: read its memory by /proc
#: without: escapes as root
open(f'/proc/{VICTIM}/mem', 'rb')
return True

#: read its environment
return TOKEN.encode() in open(f'/proc/{VICTIM}/environ', 'rb').read()

#: read the daemon's environment
return b'HERO_CONFIG' in open(f'/proc/{DAEMON}/environ', 'rb').read()

#: read the daemon's command line
return len(open(f'/proc/{DAEMON}/cmdline').read()) > 0

#: see the daemon's files
return len(os.listdir(f'/proc/{DAEMON}/fd')) > 0

#: enter the daemon's folder
return len(os.listdir(f'/proc/{DAEMON}/cwd')) > 0

#: list the processes there are
return len(os.listdir('/proc')) > 0

#: take a descriptor of a process
#: without: escapes as root
return reaches_the_kernel(lambda: call(438, os.pidfd_open(VICTIM), 0, 0))

#: compare with a process
#: without: escapes as root
return reaches_the_kernel(lambda: call((312, 272), os.getpid(), VICTIM, 2, 0, 0))

#: slow a process down
os.setpriority(os.PRIO_PROCESS, VICTIM, 1)
return True

#: slow all of the user down
#: without: not tried
return reaches_the_kernel(lambda: os.setpriority(os.PRIO_USER, 0, 99))

#: bind a process to its processors
os.sched_setaffinity(VICTIM, os.sched_getaffinity(VICTIM))
return True

#: limit a process
resource.prlimit(VICTIM, resource.RLIMIT_CORE, (0, 0))
return True

#: be a child of the daemon
#: without: not tried
return call((56, 220), 0x8000 | 17, 0, 0, 0, 0) >= 0

#: outlive its job
#: without: may be held
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for n in (0, 1, 2): os.close(n)
        time.sleep(2)
        open(OUTSIDE + '/alive', 'w')
    os._exit(0)
os.wait()
return False

#: fork until the end of its time
#: ends: timeout
#: without: may be held
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(5): os.fork()
os.setsid() if os.getpid() != os.getsid(0) else None
time.sleep(1000)

#: drown in signals
#: without: may be held
signal.signal(signal.SIGUSR1, lambda *_: None)
for _ in range(20000): os.kill(os.getpid(), signal.SIGUSR1)
os.killpg(0, signal.SIGUSR1)
return False

#: signal a thread by an older call
#: landlock: 6
call((200, 130), VICTIM, int(signal.SIGCONT))
return True

#: signal a thread with a value
#: landlock: 6
info = struct.pack('iii', int(signal.SIGCONT), 0, -1) + bytes(116)
return call((297, 240), VICTIM, VICTIM, int(signal.SIGCONT), info) == 0

#: ask whether it can signal all processes
os.kill(-1, 0)
return True

#: ask whether it can signal the first process
#: without: escapes as root
os.kill(1, 0)
return True

#: have the kernel signal it by an extended owner
#: landlock: 6
r, w = os.pipe()
fcntl.fcntl(r, 15, struct.pack('ii', 1, VICTIM))
return True

#: have the kernel signal it by a command of a socket
#: landlock: 6
a, b = socket.socketpair()
fcntl.ioctl(a, 0x8901, struct.pack('i', VICTIM))
return True

#: have the kernel signal it by a command of a pair
#: landlock: 6
a, b = socket.socketpair()
fcntl.ioctl(a, 0x8902, struct.pack('i', VICTIM))
return True

#: trace a process of its own
return reaches_the_kernel(lambda: checked(libc.ptrace(0, 0, 0, 0)))

#: trace the daemon
#: without: escapes as root
return reaches_the_kernel(lambda: checked(libc.ptrace(0x4206, DAEMON, 0, 0)))

#: read the daemon's memory by a call
#: without: escapes as root
l = struct.pack('QQ', ctypes.addressof(ctypes.create_string_buffer(8)), 8)
return reaches_the_kernel(lambda: checked(libc.process_vm_readv(DAEMON, l, 1, l, 1, 0)))

#: have a process's memory reclaimed
#: without: escapes as root
return reaches_the_kernel(lambda: call(440, os.pidfd_open(VICTIM), struct.pack('QQ', 4096, 4096), 1, 21, 0))

#: free the memory of a process
return reaches_the_kernel(lambda: call(448, os.pidfd_open(VICTIM), 0))

#: move the memory of a process
#: without: may be held
return reaches_the_kernel(lambda: call((279, 239), VICTIM, 0, 0, 0, 0, 0))

#: read where a process keeps its libraries
#: without: may be held
return len(open(f'/proc/{VICTIM}/maps').read()) > 0

#: see what a process waits for
#: without: may be held
return len(open(f'/proc/{VICTIM}/wchan').read()) > 0

#: have a process killed first when memory is short
return os.open(f'/proc/{VICTIM}/oom_score_adj', os.O_WRONLY) > 0

#: give a process another name
return os.open(f'/proc/{VICTIM}/comm', os.O_WRONLY) >= 0

#: slow a group down
os.setpriority(os.PRIO_PGRP, VICTIM, 1)
return True

#: slow a process's disk down
return call((251, 30), 1, VICTIM, 3 << 13) == 0

#: slow a group's disk down
return call((251, 30), 2, VICTIM, 3 << 13) == 0

#: give a process the processor only when it is idle
os.sched_setscheduler(VICTIM, os.SCHED_BATCH, os.sched_param(0))
return True

#: set the parameters of its scheduler
os.sched_setparam(VICTIM, os.sched_param(0))
return True

#: set the attributes of its scheduler
return call((314, 274), VICTIM, struct.pack('IIQiIQQQ', 48, 0, 0, 1, 0, 0, 0, 0), 0) == 0

#: read the limits of the daemon
return len(resource.prlimit(DAEMON, resource.RLIMIT_NOFILE)) == 2

#: share the processor's secrets with a process
#: without: may be held
return libc.prctl(62, 2, VICTIM, 0, 0) == 0

#: stop itself
#: ends: timeout
#: without: not tried
os.kill(os.getpid(), signal.SIGSTOP)

#: stop all of its group
#: ends: timeout
#: without: not tried
os.fork()
os.killpg(0, signal.SIGSTOP)

#: adopt the orphans of its children
#: ends: timeout
#: without: not tried
libc.prctl(36, 1, 0, 0, 0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    os.fork()
time.sleep(1000)

#: wait for a child that has stopped itself
#: ends: timeout
#: without: not tried
subprocess.run(['/bin/sh', '-c', 'trap "" TERM; kill -STOP $$'])
