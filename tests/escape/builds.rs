//! Packages whose own code is hostile: it runs while they are built, if `source_builds` allows that.

use std::path::Path;
use std::process::Command;

use crate::support::{Hero, Redis, needs};

const TOKEN: &str = "a-secret-that-nobody-may-read";
/// Makes a package whose build tries everything, and which tells what it could do.
const MAKE: &str = r#"
import io, sys, tarfile
backend = '''
import ctypes, os, shutil, signal, socket, zipfile
libc = ctypes.CDLL(None, use_errno=True)
SECRET, OUTSIDE, REDIS, DAEMON, CACHE = "@SECRET@", "@OUTSIDE@", "@REDIS@", int("@DAEMON@"), "@CACHE@"
PORT = int("@PORT@")
def checked(result):
    if result < 0: raise OSError(ctypes.get_errno(), "refused")
    return result
def link(): os.symlink(SECRET, "link"); return open("link").read()
def set_uid(): open("x", "w").close(); os.chmod("x", 0o4755); return True
def redis(): socket.socket(socket.AF_UNIX).connect(REDIS); return True
def neighbour(): socket.create_connection(("127.0.0.1", PORT), 5).close(); return True
def journal(): socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); return True
ATTEMPTS = {
    "read a secret": lambda: open(SECRET).read(),
    "read a secret by a link": link,
    "write outside": lambda: open(OUTSIDE, "w").write("x"),
    "list the cache of all packages": lambda: os.listdir(CACHE),
    "put a file into the cache": lambda: open(CACHE + "/x", "w"),
    "reach Redis by its socket": redis,
    "reach another port of the machine": neighbour,
    "make a socket for the journal": journal,
    "signal the daemon": lambda: os.kill(DAEMON, 0) is None,
    "read the daemon's environment": lambda: open(f"/proc/{DAEMON}/environ", "rb").read(),
    "make a set-uid program": set_uid,
    "make messages that outlive the job": lambda: checked(libc.msgget(0, 0o600)) + 1,
    "fix its own addresses": lambda: checked(libc.personality(0x40000)) + 1,
}
def outcome(attempt):
    try: return "ESCAPED" if attempt() else "held"
    except Exception as error: return "held: " + type(error).__name__
def build_wheel(folder, config_settings=None, metadata_directory=None):
    told = {name: outcome(attempt) for name, attempt in ATTEMPTS.items()}
    name = "hostile-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("hostile.py", "TOLD = " + repr(told))
        info = "hostile-1.0.dist-info/"
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: hostile\\nVersion: 1.0\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return name
'''
project = '''
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "hostile"
version = "1.0"
'''
with tarfile.open(sys.argv[1], "w:gz") as package:
    info = "Metadata-Version: 2.1\nName: hostile\nVersion: 1.0\n"
    for name, text in (("backend.py", backend), ("pyproject.toml", project), ("PKG-INFO", info)):
        entry = tarfile.TarInfo("hostile-1.0/" + name)
        entry.size = len(text.encode())
        package.addfile(entry, io.BytesIO(text.encode()))
"#;
const SCRIPT: &str = "# /// script\n# dependencies = [\"hostile\"]\n# ///\n\
                      import hostile\nfor name, told in hostile.TOLD.items(): print(f'{name}: {told}')\n";

#[expect(clippy::disallowed_methods, reason = "the test makes a package with Python")]
fn python(args: &[&str]) -> bool {
    let done = Command::new("/usr/bin/python3").args(args).output();
    done.is_ok_and(|done| done.status.success())
}

/// Returns what the build of the package could do.
fn told(is_sandboxed: bool) -> Vec<String> {
    let redis = Redis::start();
    let at = |name: &str| redis.folder().join(name);
    let (wheels, secret) = (at("wheels"), at("secret"));
    std::fs::create_dir(&wheels).expect("a folder");
    std::fs::write(&secret, TOKEN).expect("written");
    let hero = Hero::on(&redis)
        .set("type.hostile.engine", "\"command\"")
        .set("type.hostile.command", "[\"/usr/bin/python3\", \"{script}\"]")
        .set("type.hostile.dependencies.index", "\"none\"")
        .set("type.hostile.dependencies.find_links", &format!("[\"{}\"]", wheels.display()))
        .set("type.hostile.dependencies.source_builds", "true")
        .set("type.hostile.sandbox.enabled", &is_sandboxed.to_string());
    let actor = hero.actor("hostile-default-1").start();
    let text = |path: &Path| path.display().to_string();
    let neighbour = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let make = MAKE
        .replace("@SECRET@", &text(&secret))
        .replace("@OUTSIDE@", &text(&at("outside")))
        .replace("@REDIS@", &text(&at("redis.sock")))
        .replace("@CACHE@", &text(&at("cache")))
        .replace("@PORT@", &neighbour.local_addr().expect("an address").port().to_string())
        .replace("@DAEMON@", &actor.pid().to_string());
    assert!(python(&["-c", &make, &text(&wheels.join("hostile-1.0.tar.gz"))]), "no package");
    let done = hero.run(&["exec", "-t", "hostile", "--timeout", "120s", "-e", SCRIPT]).code(0);
    done.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn code_of_a_package_is_contained_while_it_is_built() {
    if !needs("python3-venv", || python(&["-c", "import ensurepip"])) {
        return;
    }
    let (sandboxed, open) = (told(true), told(false));
    assert_eq!(sandboxed.len(), 13, "{sandboxed:#?}");
    let escapes = |lines: &[String]| -> Vec<String> {
        lines.iter().filter(|line| line.ends_with(": ESCAPED")).cloned().collect()
    };
    assert_eq!(escapes(&sandboxed), [] as [&str; 0]);
    assert_eq!(escapes(&open).len(), 13, "each does harm without the sandbox: {open:#?}");
}
