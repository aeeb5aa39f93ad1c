//! Files: reading secrets, writing outside, and ways around path names.

use super::{Escape, Open, bash, python, try_all};

const ESCAPES: [Escape; 37] = [
    python("read a secret", "return open(SECRET).read() == TOKEN"),
    python("read a secret by a link", "os.symlink(SECRET, 'x')\nreturn open('x').read() == TOKEN"),
    python("read a secret by a hard link", "os.link(SECRET, 'x')\nreturn open('x').read() == TOKEN"),
    python(
        "read a secret by its folder's descriptor",
        "f = os.open(FOLDER, os.O_PATH)\nreturn os.read(os.open('secret', os.O_RDONLY, dir_fd=f), 99) == TOKEN.encode()",
    ),
    python("read a secret by /proc/self/root", "return open('/proc/self/root' + SECRET).read() == TOKEN"),
    python("read a secret by /proc/self/cwd", "return open('/proc/self/cwd/../..' + SECRET).read() == TOKEN"),
    python("read a secret by a mapping", "f = open(SECRET, 'rb')\nreturn mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[:] == TOKEN.encode()"),
    python("read a secret through a child", "return subprocess.run(['/bin/cat', SECRET], capture_output=True).stdout == TOKEN.encode()"),
    python("read a secret by a handle of its file", "b = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))\nm = ctypes.c_int()\nchecked(libc.name_to_handle_at(-100, SECRET.encode(), b, ctypes.byref(m), 0))\nreturn True"),
    python("list a private folder", "return 'secret' in os.listdir(FOLDER)"),
    python("watch a private folder", "i = checked(libc.inotify_init1(0))\nchecked(libc.inotify_add_watch(i, FOLDER.encode(), 0xfff))\nreturn True"),
    python("list the folders of other jobs", "return len(os.listdir(os.path.dirname(os.environ['TMPDIR']))) > 0"),
    python("read /etc/shadow", "return len(open('/etc/shadow').read()) > 0").open(Open::EscapesAsRoot),
    python("list /root", "os.listdir('/root')\nreturn True").open(Open::EscapesAsRoot),
    python("list /etc, with what is secret in it", "return len(os.listdir('/etc')) > 0"),
    python("write a new file outside", "open(OUTSIDE + '/new', 'w').write('x')\nreturn True"),
    python("write over a file outside", "open(FILE, 'w').write('x')\nreturn True"),
    python("append to a file outside", "open(FILE, 'a').write('x')\nreturn True"),
    python("write by a link", "os.symlink(FILE, 'x')\nopen('x', 'w').write('x')\nreturn True"),
    python("empty a file outside by its name", "os.truncate(FILE, 0)\nreturn True"),
    python("delete a file outside", "os.unlink(FILE)\nreturn True"),
    python("move a file out of its folder", "open('x', 'w').write('x')\nos.rename('x', OUTSIDE + '/x')\nreturn True").open(Open::NotTried),
    python("move a file outside under another name", "os.rename(FILE, OUTSIDE + '/x')\nreturn True"),
    python("exchange its folder's file with one outside", "open('x', 'w').write('x')\nchecked(libc.renameat2(-100, b'x', -100, FILE.encode(), 2))\nreturn True").open(Open::NotTried),
    python("make a folder outside", "os.mkdir(OUTSIDE + '/x')\nreturn True"),
    python("remove a folder outside", "os.unlink(FILE)\nos.rmdir(OUTSIDE)\nos.mkdir(OUTSIDE)\nreturn True"),
    python("make a link outside", "os.symlink('/', OUTSIDE + '/x')\nreturn True"),
    python("make a pipe outside", "os.mkfifo(OUTSIDE + '/x')\nreturn True"),
    python("make the node of a disk", "os.mknod('disk', stat.S_IFBLK | 0o600, os.makedev(8, 0))\nreturn True").open(Open::EscapesAsRoot),
    python("open a file outside to anybody (chmod = false)", "os.chmod(FILE, 0o777)\nreturn True"),
    python("change the owner of a file outside", "os.chown(FILE, os.getuid(), os.getgid())\nreturn True"),
    python("put a setuid program into its folder", "open('x', 'w').write('x')\nos.chmod('x', 0o4755)\nreturn True"),
    bash("read a secret with bash", "read -r line < \"$SECRET\"\n[ -n \"$line\" ] && echo ESCAPED || echo held"),
    bash("write by a link with bash", "ln -s \"$FILE\" l && (echo x > l) 2> /dev/null && echo ESCAPED || echo held"),
    bash("copy a secret with cp", "cp \"$SECRET\" x 2> /dev/null && echo ESCAPED || echo held"),
    bash("write below /tmp", "f=$(mktemp -p /tmp 2> /dev/null) && rm -f \"$f\" && echo ESCAPED || echo held"),
    bash("leave links to the outside to the clean-up", "ln -s \"$OUTSIDE\" a; ln -s \"$FILE\" b; mkdir c; ln -s \"$OUTSIDE\" c/d; echo held")
        .open(Open::HeldToo),
];

#[test]
fn no_script_accesses_foreign_files() {
    try_all("FILES", &ESCAPES);
}
