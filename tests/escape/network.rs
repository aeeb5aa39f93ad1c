//! The network and the sockets of others.

use super::{Escape, Open, bash, python, try_all};

const ESCAPES: [Escape; 21] = [
    python("connect to a port of this machine", "socket.create_connection(('127.0.0.1', TCP), 5)\nreturn True"),
    python("send a datagram", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))\nreturn True"),
    python("make a socket of IPv6", "socket.socket(socket.AF_INET6)\nreturn True").open(Open::HeldToo),
    python("ask the cloud's metadata service", "socket.create_connection(('169.254.169.254', 80), 5)\nreturn True").open(Open::NotTried),
    python("reach Redis by its socket", "s = socket.socket(socket.AF_UNIX)\ns.connect(REDIS)\ns.send(b'PING\\r\\n')\nreturn b'PONG' in s.recv(99)"),
    python("reach a program by its socket", "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', UNIX)\nreturn True"),
    python("turn one of a pair to a program's socket", "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.sendto(b'x', UNIX)\nreturn True"),
    python("listen on an abstract socket", "s = socket.socket(socket.AF_UNIX)\ns.bind('\\0hero-escape-%d' % os.getpid())\nreturn True"),
    python("listen on a port", "s = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\nreturn True"),
    python("make a raw socket", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)\nreturn True").open(Open::EscapesAsRoot),
    python("make a socket for packets", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\nreturn True").open(Open::EscapesAsRoot),
    python("ask the kernel by netlink", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)\nreturn True"),
    python("make a socket to the host of a machine", "socket.socket(40, socket.SOCK_STREAM)\nreturn True").open(Open::NotTried),
    bash("connect with bash", "(echo > \"/dev/tcp/127.0.0.1/$TCP\") 2> /dev/null && echo ESCAPED || echo held"),
    bash("send a datagram with bash", "(echo > \"/dev/udp/127.0.0.1/$UDP\") 2> /dev/null && echo ESCAPED || echo held"),
    python("connect to a port that is not listed", "socket.create_connection(('127.0.0.1', TCP), 5)\nreturn True").with_settings(),
    python("open such a connection by its first data", "s = socket.socket()\ns.sendto(b'x', 0x20000000, ('127.0.0.1', TCP))\nreturn True").with_settings(),
    python("take another protocol for it", "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)\nreturn True").with_settings().open(Open::NotTried),
    python("send a datagram where ports are listed", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))\nreturn True").with_settings(),
    python("listen where ports are listed", "s = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\nreturn True").with_settings(),
    python("reach Redis where ports are listed", "s = socket.socket(socket.AF_UNIX)\ns.connect(REDIS)\nreturn True").with_settings(),
];

#[test]
fn no_script_connects_or_listens() {
    try_all("NETWORK", &ESCAPES);
}
