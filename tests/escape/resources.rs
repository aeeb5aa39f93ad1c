//! Resources: a job that exhausts one ends, and the actor runs the next.

use super::{Escape, Open, bash, python, try_all};

const ESCAPES: [Escape; 16] = [
    python("take all memory", "return len(bytearray(1 << 30)) > 0"),
    python("map all memory", "return len(mmap.mmap(-1, 1 << 30)) > 0"),
    python(
        "write a file without end",
        "f = open('x', 'wb')\nfor _ in range(40): f.write(bytes(65536))\nreturn True",
    ),
    python(
        "make a huge file with nothing in it",
        "os.truncate(os.open('x', os.O_CREAT | os.O_RDWR), 1 << 40)\nreturn True",
    )
    .open(Open::HeldToo),
    python(
        "fill its folder with many files",
        "for n in range(64): open(str(n), 'wb').write(bytes(500000))\ntime.sleep(1000)",
    )
    .held_by("disk")
    .open(Open::NotTried),
    python(
        "hold removed files open",
        "open_files = []\nfor n in range(20):\n    open_files.append(open('x', 'wb', 0))\n    open_files[-1].write(bytes(1000000))\n    os.unlink('x')\ntime.sleep(1000)",
    )
    .held_by("disk")
    .open(Open::NotTried),
    python(
        "hold files in memory",
        "for n in range(20): os.write(os.memfd_create('x'), bytes(1000000))\ntime.sleep(1000)",
    )
    .held_by("disk")
    .open(Open::NotTried),
    python(
        "hide files below the longest path",
        "for _ in range(20):\n    os.mkdir('d' * 250)\n    os.chdir('d' * 250)\nfor n in range(20): open(str(n), 'wb').write(bytes(1000000))\ntime.sleep(1000)",
    )
    .held_by("disk")
    .open(Open::NotTried),
    python(
        "hide files in a folder that cannot be listed",
        "os.mkdir('d')\nos.chmod('d', 0o300)\nfor n in range(20): open('d/%d' % n, 'wb').write(bytes(1000000))\ntime.sleep(1000)",
    )
    .held_by("disk")
    .open(Open::NotTried),
    python(
        "hide files below many folders",
        "for _ in range(300):\n    os.mkdir('d')\n    os.chdir('d')\n    open('x', 'wb').write(bytes(16384))\ntime.sleep(1000)",
    )
    .held_by("disk")
    .open(Open::NotTried),
    python("hide its open files", "return libc.prctl(4, 0, 0, 0, 0) == 0"),
    python("open files without end", "f = [open('/dev/null') for _ in range(300)]\nreturn True"),
    python("compute without end", "while time.process_time() < 1.8: pass\nreturn True")
        .held_by("SIGXCPU"),
    python("write to standard output without end", "while True: print('x' * 1000)")
        .held_by("output")
        .open(Open::HeldToo),
    bash("leave a core behind", "[ \"$(ulimit -Hc)\" = 0 ] && echo held || echo ESCAPED")
        .open(Open::HeldToo),
    bash(
        "nest folders without end",
        "for i in $(seq 200); do mkdir d && cd d || break; done; chmod 0 . 2> /dev/null; echo held",
    )
    .open(Open::HeldToo),
];

#[test]
fn no_script_exceeds_its_limits() {
    try_all("RESOURCES", &ESCAPES);
}
