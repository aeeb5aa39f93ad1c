
#: connect to a port of this machine
socket.create_connection(('127.0.0.1', TCP), 5)
return True

#: send a datagram
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))
return True

#: make a socket of IPv6
#: without: may be held
socket.socket(socket.AF_INET6)
return True

#: ask the cloud's metadata service
#: without: not tried
socket.create_connection(('169.254.169.254', 80), 5)
return True

#: reach Redis by its socket
s = socket.socket(socket.AF_UNIX)
s.connect(REDIS)
s.send(b'PING\r\n')
return b'PONG' in s.recv(99)

#: reach a program by its socket
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', UNIX)
return True

#: turn one of a pair to a program's socket
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
a.sendto(b'x', UNIX)
return True

#: listen on an abstract socket
s = socket.socket(socket.AF_UNIX)
s.bind('\0hero-escape-%d' % os.getpid())
return True

#: listen on a port
s = socket.socket()
s.bind(('127.0.0.1', 0))
s.listen()
return True

#: make a raw socket
#: without: escapes as root
socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
return True

#: make a socket for packets
#: without: escapes as root
socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
return True

#: ask the kernel by netlink
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
return True

#: make a socket to the host of a machine
#: without: not tried
socket.socket(40, socket.SOCK_STREAM)
return True

#: connect to a port that is not listed
#: type: bounds
socket.create_connection(('127.0.0.1', TCP), 5)
return True

#: open such a connection by its first data
#: type: bounds
s = socket.socket()
s.sendto(b'x', 0x20000000, ('127.0.0.1', TCP))
return True

#: take another protocol for it
#: type: bounds
#: without: not tried
socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
return True

#: send a datagram where ports are listed
#: type: bounds
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))
return True

#: listen where ports are listed
#: type: bounds
s = socket.socket()
s.bind(('127.0.0.1', 0))
s.listen()
return True

#: reach Redis where ports are listed
#: type: bounds
s = socket.socket(socket.AF_UNIX)
s.connect(REDIS)
return True

#: make a socket of any family
for family in range(1, 47):
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(family, kind)
            return True
        except OSError:
            pass
return False

#: make a socket of any other family where ports are listed
#: type: bounds
for family in range(1, 47):
    if family in (2, 10): continue
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(family, kind)
            return True
        except OSError:
            pass
return False

#: take a cipher of the kernel
#: without: may be held
socket.socket(38, socket.SOCK_SEQPACKET).bind(('hash', 'sha256'))
return True

#: make a raw socket where ports are listed
#: type: bounds
#: without: escapes as root
socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
return True

#: send a ping where ports are listed
#: type: bounds
#: without: may be held
socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)
return True

#: send an unchecked datagram where ports are listed
#: type: bounds
#: without: may be held
socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136)
return True

#: listen on any port where ports are listed
#: type: bounds
socket.socket().listen()
return True

#: connect by an address of IPv6 where ports are listed
#: type: bounds
#: without: may be held
socket.create_connection(('::ffff:127.0.0.1', TCP), 5)
return True

#: connect with its first data as an option
#: type: bounds
#: without: may be held
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, 30, 1)
s.connect(('127.0.0.1', TCP))
s.send(b'x')
return True

#: connect with its first data as a message
#: type: bounds
#: without: may be held
s = socket.socket()
s.sendmsg([b'x'], [], 0x20000000, ('127.0.0.1', TCP))
return True

#: connect without waiting where ports are listed
#: type: bounds
s = socket.socket()
s.setblocking(False)
return s.connect_ex(('127.0.0.1', TCP)) in (0, 115)

#: take a name that all programs see, with one of a pair
a, b = socket.socketpair()
a.bind('\0hero-escape-%d' % os.getpid())
return True

#: list the networks of the machine, with one of a pair
a, b = socket.socketpair()
buffer = ctypes.create_string_buffer(4096)
fcntl.ioctl(a, 0x8912, struct.pack('iq', 4096, ctypes.addressof(buffer)))
return any(buffer.raw)

#: turn one of a connected pair to Redis
#: without: may be held
a, b = socket.socketpair()
a.connect(REDIS)
return True

#: tell systemd that the daemon stops
#: without: not tried
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'STOPPING=1', '/run/systemd/notify')
return True

#: write a line of the daemon into the journal
#: without: not tried
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'MESSAGE=forged\n', '/run/systemd/journal/socket')
return True

#: write to the system's log
#: without: not tried
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'<6>hero: forged', '/dev/log')
return True

#: find the daemon's variables in its environment
#: without: may be held
names = ('NOTIFY_SOCKET', 'WATCHDOG_USEC', 'CREDENTIALS_DIRECTORY', 'LISTEN_FDS', 'JOURNAL_STREAM', 'INVOCATION_ID', 'HERO_CONFIG', 'REDIS_URL', 'RUNTIME_DIRECTORY', 'STATE_DIRECTORY', 'CACHE_DIRECTORY')
return any(name in os.environ for name in names)

#: find an open descriptor of the daemon
#: without: may be held
for number in range(3, 128):
    try:
        os.fstat(number)
    except OSError:
        continue
    if number not in (HERO_FD, HERO_FD + 1): return True
return False
