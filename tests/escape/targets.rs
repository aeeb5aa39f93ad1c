//! The targets of the hostile scripts: created by the test, and checked after each script.

use std::fs::{self, Permissions};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::support::Redis;

const TOKEN: &str = "a-secret-that-nobody-may-read";
const CONTENT: &str = "as it was";

pub(super) struct Targets {
    folder: PathBuf,
    redis: PathBuf,
    daemon: u32,
    victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    _unix: UnixDatagram,
}

impl Targets {
    #[expect(clippy::disallowed_methods, reason = "a target is a process")]
    pub(super) fn new(redis: &Redis, daemon: u32) -> Self {
        let folder = redis.folder().join("targets");
        for made in ["private", "outside"] {
            fs::create_dir_all(folder.join(made)).expect("making a target");
        }
        let socket = folder.join("socket");
        let victim = Command::new("/bin/sleep")
            .arg("100000")
            .env_clear()
            .env("TOKEN", TOKEN)
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("starting a target");
        let targets = Self {
            redis: redis.folder().join("redis.sock"),
            daemon,
            victim,
            tcp: TcpListener::bind("127.0.0.1:0").expect("a listener"),
            udp: UdpSocket::bind("127.0.0.1:0").expect("a socket"),
            _unix: UnixDatagram::bind(socket).expect("a socket"),
            folder,
        };
        targets.restore();
        targets
    }

    fn secret(&self) -> PathBuf {
        self.folder.join("private/secret")
    }

    fn file(&self) -> PathBuf {
        self.folder.join("outside/file")
    }

    /// Restores the targets.
    pub(super) fn restore(&self) {
        let outside = self.folder.join("outside");
        fs::remove_dir_all(&outside).expect("emptying a target");
        fs::create_dir(&outside).expect("making a target");
        for (path, text) in [(self.secret(), TOKEN), (self.file(), CONTENT)] {
            fs::write(&path, text).expect("writing a target");
            fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("closing a target");
        }
    }

    /// Returns what a script has changed.
    pub(super) fn harm(&self) -> Option<String> {
        let entries = fs::read_dir(self.folder.join("outside")).ok().map(Iterator::count);
        if entries != Some(1) {
            return Some("the folder outside has changed".to_owned());
        }
        for (path, text) in [(self.secret(), TOKEN), (self.file(), CONTENT)] {
            let mode = fs::metadata(&path).map(|data| data.permissions().mode() & 0o7777);
            if fs::read_to_string(&path).ok().as_deref() != Some(text) || mode.ok() != Some(0o600) {
                return Some(format!("{} has changed", path.display()));
            }
        }
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.victim.id()));
        if !stat.is_ok_and(|stat| stat.contains(") S ")) {
            return Some("the victim is gone, or stopped".to_owned());
        }
        None
    }

    /// Returns the variables that tell a script where they are.
    pub(super) fn env(&self) -> Vec<(&'static str, String)> {
        let path = |path: PathBuf| path.display().to_string();
        vec![
            ("SECRET", path(self.secret())),
            ("FOLDER", path(self.folder.join("private"))),
            ("OUTSIDE", path(self.folder.join("outside"))),
            ("FILE", path(self.file())),
            ("VICTIM", self.victim.id().to_string()),
            ("DAEMON", self.daemon.to_string()),
            ("TCP", self.tcp.local_addr().expect("bound").port().to_string()),
            ("UDP", self.udp.local_addr().expect("bound").port().to_string()),
            ("UNIX", path(self.folder.join("socket"))),
            ("REDIS", path(self.redis.clone())),
            ("TOKEN", TOKEN.to_owned()),
        ]
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}
