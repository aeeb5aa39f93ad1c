//! Other processes of the same user: the daemon, its children and others.

use super::{Escape, Open, bash, python, try_all};

const ESCAPES: [Escape; 28] = [
    python("signal a process", "os.kill(VICTIM, signal.SIGCONT)\nreturn True"),
    python("signal a group", "os.killpg(VICTIM, signal.SIGCONT)\nreturn True"),
    python("signal a thread", "call((234, 131), VICTIM, VICTIM, int(signal.SIGCONT))\nreturn True"),
    python("signal with a value", "checked(libc.sigqueue(VICTIM, int(signal.SIGCONT), None))\nreturn True"),
    python("signal by a descriptor", "signal.pidfd_send_signal(os.pidfd_open(VICTIM), signal.SIGCONT)\nreturn True"),
    python("have the kernel signal it", "r, w = os.pipe()\nfcntl.fcntl(r, fcntl.F_SETOWN, VICTIM)\nreturn True"),
    python("ask whether the daemon is there", "os.kill(DAEMON, 0)\nreturn True"),
    bash("signal a process with bash", "kill -CONT \"$VICTIM\" 2> /dev/null && echo ESCAPED || echo held"),
    python("attach to a process", "return reaches_the_kernel(lambda: checked(libc.ptrace(0x4206, VICTIM, 0, 0)))").open(Open::EscapesAsRoot),
    python("read its memory by a call", "l = struct.pack('QQ', ctypes.addressof(ctypes.create_string_buffer(8)), 8)\nreturn reaches_the_kernel(lambda: checked(libc.process_vm_readv(VICTIM, l, 1, l, 1, 0)))").open(Open::EscapesAsRoot),
    python("write its memory by a call", "return reaches_the_kernel(lambda: checked(libc.process_vm_writev(VICTIM, None, 0, None, 0, 0)))").open(Open::EscapesAsRoot),
    python("read its memory by /proc", "open(f'/proc/{VICTIM}/mem', 'rb')\nreturn True").open(Open::EscapesAsRoot),
    python("read its environment", "return TOKEN.encode() in open(f'/proc/{VICTIM}/environ', 'rb').read()"),
    python("read the daemon's environment", "return b'HERO_CONFIG' in open(f'/proc/{DAEMON}/environ', 'rb').read()"),
    python("read the daemon's command line", "return len(open(f'/proc/{DAEMON}/cmdline').read()) > 0"),
    python("see the daemon's files", "return len(os.listdir(f'/proc/{DAEMON}/fd')) > 0"),
    python("enter the daemon's folder", "return len(os.listdir(f'/proc/{DAEMON}/cwd')) > 0"),
    python("list the processes there are", "return len(os.listdir('/proc')) > 0"),
    python("take a descriptor of a process", "return reaches_the_kernel(lambda: call(438, os.pidfd_open(VICTIM), 0, 0))").open(Open::EscapesAsRoot),
    python("compare with a process", "return reaches_the_kernel(lambda: call((312, 272), os.getpid(), VICTIM, 2, 0, 0))").open(Open::EscapesAsRoot),
    python("slow a process down", "os.setpriority(os.PRIO_PROCESS, VICTIM, 1)\nreturn True"),
    python("slow all of the user down", "return reaches_the_kernel(lambda: os.setpriority(os.PRIO_USER, 0, 99))").open(Open::NotTried),
    python("bind a process to its processors", "os.sched_setaffinity(VICTIM, os.sched_getaffinity(VICTIM))\nreturn True"),
    python("limit a process", "resource.prlimit(VICTIM, resource.RLIMIT_CORE, (0, 0))\nreturn True"),
    python("be a child of the daemon", "return call((56, 220), 0x8000 | 17, 0, 0, 0, 0) >= 0").open(Open::NotTried),
    python("outlive its job", "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        for n in (0, 1, 2): os.close(n)\n        time.sleep(2)\n        open(OUTSIDE + '/alive', 'w')\n    os._exit(0)\nos.wait()\nreturn False").open(Open::HeldToo),
    python("fork until the end of its time", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nfor _ in range(5): os.fork()\nos.setsid() if os.getpid() != os.getsid(0) else None\ntime.sleep(1000)").held_by("timeout").open(Open::HeldToo),
    python("drown in signals", "signal.signal(signal.SIGUSR1, lambda *_: None)\nfor _ in range(20000): os.kill(os.getpid(), signal.SIGUSR1)\nos.killpg(0, signal.SIGUSR1)\nreturn False").open(Open::HeldToo),
];

#[test]
fn no_script_reaches_another_process() {
    try_all("PROCESSES", &ESCAPES);
}
