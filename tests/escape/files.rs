//! Files: reading secrets, writing outside, and ways around path names.

use super::{Escape, Open, bash, python, try_all};

const ESCAPES: [Escape; 50] = [
    python("read a secret", "return open(SECRET).read() == TOKEN"),
    python("read a secret by a link", "os.symlink(SECRET, 'x')\nreturn open('x').read() == TOKEN"),
    python("read a secret by a hard link", "os.link(SECRET, 'x')\nreturn open('x').read() == TOKEN"),
    python(
        "read a secret by its folder's descriptor",
        "f = os.open(FOLDER, os.O_PATH)\nreturn os.read(os.open('secret', os.O_RDONLY, dir_fd=f), 99) == TOKEN.encode()",
    ),
    python("read a secret by /proc/self/root", "return open('/proc/self/root' + SECRET).read() == TOKEN"),
    python("read a secret by /proc/self/cwd", "return open('/proc/self/cwd' + '/..' * 9 + SECRET).read() == TOKEN"),
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
    python("open a file outside to anybody (chmod = false)", "os.chmod(FILE, 0o777)\nreturn True").with_settings(),
    python("change the mode of its open file (chmod = false)", "f = open('x', 'w')\nos.fchmod(f.fileno(), 0o777)\nreturn True").with_settings(),
    python("change a mode by an access list (chmod = false)", "a = struct.pack('<IHHIHHIHHI', 2, 1, 7, 0xffffffff, 4, 7, 0xffffffff, 0x20, 7, 0xffffffff)\nf = open('x', 'w')\nos.setxattr(f.fileno(), 'system.posix_acl_access', a)\nreturn True").with_settings().open(Open::HeldToo),
    python("change the owner of a file outside", "os.chown(FILE, os.getuid(), os.getgid())\nreturn True"),
    python("make a set-uid program with chmod", "open('x', 'w').write('x')\nos.chmod('x', 0o4755)\nreturn True"),
    python("make a set-gid program with chmod", "open('x', 'w').write('x')\nos.chmod('x', 0o2755)\nreturn True"),
    python("make a set-uid program with fchmod", "f = open('x', 'w')\nos.fchmod(f.fileno(), 0o4755)\nreturn True"),
    python("make a set-uid program with fchmodat2", "open('x', 'w').write('x')\nreturn call(452, -100, b'x', 0o4755, 0) == 0").open(Open::HeldToo),
    python("create a set-uid program", "return os.fstat(os.open('x', os.O_CREAT | os.O_WRONLY, 0o4755)).st_mode & 0o4000"),
    python("create a set-uid program with openat2", "h = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o4755, 0)\nreturn os.fstat(call(437, -100, b'x', h, 24)).st_mode & 0o4000"),
    python("create a set-uid program with creat", "return os.fstat(checked(libc.creat(b'x', 0o4755))).st_mode & 0o4000"),
    python("create a set-uid program with mknod", "os.mknod('x', stat.S_IFREG | 0o4755)\nreturn os.stat('x').st_mode & 0o4000"),
    python("create a set-gid program without a name", "return os.fstat(os.open('.', os.O_TMPFILE | os.O_RDWR, 0o2755)).st_mode & 0o2000").open(Open::HeldToo),
    bash("make a set-uid copy of bash", "cp /bin/bash b && chmod 755 b && chmod u+s b 2> /dev/null && echo ESCAPED || echo held"),
    bash("install a set-gid copy of bash", "install -m 2755 /bin/bash b 2> /dev/null; [ -g b ] && echo ESCAPED || echo held"),
    bash("change modes, keep them in copies and archives", "mkdir d && echo '#!/bin/sh' > d/p && chmod 751 d/p && chmod 1770 d && cp -r --preserve=mode d e && tar -cf t d && mkdir u && tar --no-same-owner -xpf t -C u && [ \"$(stat -c %a d e u/d d/p e/p u/d/p | xargs)\" = '1770 1770 1770 751 751 751' ] && echo held || echo ESCAPED")
        .open(Open::HeldToo),
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
