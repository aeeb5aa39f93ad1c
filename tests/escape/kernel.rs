//! The kernel: changing the machine, gaining privileges, raw access.

use super::{Escape, Open, bash, python, try_all};

const ESCAPES: [Escape; 31] = [
    python("a namespace for users", "checked(libc.unshare(0x10000000))\nreturn True").open(Open::EscapesAsRoot),
    python("a namespace for mounts", "checked(libc.unshare(0x20000))\nreturn True").open(Open::EscapesAsRoot),
    python("a namespace for the network", "checked(libc.unshare(0x40000000))\nreturn True").open(Open::EscapesAsRoot),
    python("a namespace by clone", "return call((56, 220), 0x10000000 | 17, 0, 0, 0, 0) >= 0").open(Open::EscapesAsRoot),
    python("a namespace by clone3", "a = ctypes.create_string_buffer(struct.pack('8Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0))\nreturn call(435, a, 64) >= 0").open(Open::EscapesAsRoot),
    python("enter a namespace", "return reaches_the_kernel(lambda: checked(libc.setns(0, 0)))"),
    python("mount", "return reaches_the_kernel(lambda: checked(libc.mount(b'none', b'/no/such', b'tmpfs', 0, None)))").open(Open::EscapesAsRoot),
    python("unmount", "return reaches_the_kernel(lambda: checked(libc.umount2(b'/no/such', 0)))").open(Open::EscapesAsRoot),
    python("mount by the newer calls", "return call(428, -100, b'/', 0) >= 0"),
    python("change the root", "os.chroot('.')\nreturn True").open(Open::EscapesAsRoot),
    python("add a key", "return call((248, 217), b'user', b'hero-escape', b'x', 1, -2) > 0").open(Open::NotTried),
    python("ask for a keyring", "return call((250, 219), 0, -2, 1) > 0").open(Open::NotTried),
    python("load a program into the kernel", "return reaches_the_kernel(lambda: call((321, 280), 9999, 0, 0))").open(Open::EscapesAsRoot),
    python("io_uring", "return reaches_the_kernel(lambda: call(425, 1, 0))").open(Open::NotTried),
    python("count events of the processor", "return reaches_the_kernel(lambda: call((298, 241), 0, 0, 0, 0, 0))").open(Open::EscapesAsRoot),
    python("handle faults of its own memory", "return reaches_the_kernel(lambda: call((323, 282), -1))").open(Open::EscapesAsRoot),
    python("load a module", "return reaches_the_kernel(lambda: call((313, 273), -1, b'', 0))").open(Open::NotTried),
    python("restart the machine, with the wrong password", "return reaches_the_kernel(lambda: call((169, 142), 0, 0, 0, 0))").open(Open::EscapesAsRoot),
    python("read the kernel's log", "return reaches_the_kernel(lambda: checked(libc.klogctl(99, None, 0)))").open(Open::EscapesAsRoot),
    python("turn its own addresses fixed", "checked(libc.personality(0x40000))\nreturn True"),
    python("memory that outlives the job", "i = checked(libc.shmget(0, 4096, 0o600))\nlibc.shmctl(i, 0, None)\nreturn True"),
    python("semaphores that outlive the job", "i = checked(libc.semget(0, 1, 0o600))\nlibc.semctl(i, 0, 0)\nreturn True"),
    python("memory shared with other jobs", "f = '/dev/shm/hero-escape-%d' % os.getpid()\nopen(f, 'w')\nos.unlink(f)\nreturn True"),
    python("type into a terminal", "return reaches_the_kernel(lambda: fcntl.ioctl(1, 0x5412, b'x'))"),
    python("gain from a setuid program", "return libc.prctl(39, 0, 0, 0, 0) != 1"),
    python("become another user", "os.setuid(os.getuid() + 12345)\nreturn True").open(Open::EscapesAsRoot),
    python("change the number of its run", "n = ctypes.create_string_buffer(struct.pack('QQ', 7, 7))\nreturn call((302, 261), 0, 10, n, 0) == 0"),
    python("make a call of a 32-bit program", "if os.uname().machine != 'x86_64': return False\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(b'\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3')\nf = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\np = os.fork()\nif p == 0: os._exit(f() <= 0)\nreturn os.waitpid(p, 0)[1] == 0").open(Open::HeldToo),
    python("make a call of an x32 program", "return os.uname().machine == 'x86_64' and call(0x40000027) > 0").open(Open::HeldToo),
    python("take a process's namespace by its descriptor", "return fcntl.ioctl(os.pidfd_open(VICTIM), 0xff05) >= 0").open(Open::HeldToo),
    bash("raise its own limits again", "ulimit -Hn 1000000 2> /dev/null && echo ESCAPED || echo held").open(Open::HeldToo),
];

#[test]
fn no_script_changes_the_machine_or_gains_privileges() {
    try_all("KERNEL", &ESCAPES);
}
