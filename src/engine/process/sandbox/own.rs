//! The sandbox of this process itself, for a daemon whose scripts need neither files nor programs.

use std::io;
use std::path::PathBuf;

use landlock::{
    Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

use super::files::NEWEST;
use super::support::Support;

/// What this process may still do. It starts no program, and signals no other process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Own {
    /// Folders and files that it reads. One that is not there now is not read later either.
    pub read: Vec<PathBuf>,
    /// Folders in which it makes folders and files, and writes them.
    pub write: Vec<PathBuf>,
    /// The TCP ports that it connects to; none for all of them.
    pub ports: Option<Vec<u16>>,
    /// Whether it reaches abstract sockets of others.
    pub abstract_sockets: bool,
}

impl Own {
    /// Holds this thread, and those that it starts later, to this, for ever.
    ///
    /// # Errors
    /// The kernel has no Landlock, or refuses; or there are other threads already, which would not
    /// be held.
    pub fn shut_in(&self) -> io::Result<()> {
        let threads = std::fs::read_dir("/proc/self/task")?.count();
        if threads > 1 {
            return Err(io::Error::other(format!("it has {threads} threads already")));
        }
        self.shut_this_thread_in()
    }

    fn shut_this_thread_in(&self) -> io::Result<()> {
        if Support::of_this_kernel().landlock == 0 {
            return Err(io::Error::other("the kernel has no Landlock"));
        }
        self.restrict().map_err(io::Error::other)
    }

    fn restrict(&self) -> Result<(), RulesetError> {
        let look = AccessFs::ReadFile | AccessFs::ReadDir;
        let write = look | AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::MakeDir;
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .scope(Scope::Signal)?;
        if self.ports.is_some() {
            ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
        }
        if !self.abstract_sockets {
            ruleset = ruleset.scope(Scope::AbstractUnixSocket)?;
        }
        let mut created = ruleset
            .create()?
            .add_rules(path_beneath_rules(&self.read, look))?
            .add_rules(path_beneath_rules(&self.write, write))?;
        for port in self.ports.iter().flatten() {
            created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
        created.restrict_self().map(|_| ())
    }

    /// What it may still do, in a few words; what the kernel does not hold among it.
    pub fn summary(&self) -> String {
        let list = |paths: &[PathBuf]| {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
        };
        let network = match &self.ports {
            Some(_) if !Support::of_this_kernel().holds_ports() => {
                "any TCP port (the kernel cannot hold it to some)".to_owned()
            }
            None => "any TCP port".to_owned(),
            Some(ports) if ports.is_empty() => "no TCP port".to_owned(),
            Some(ports) => {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                format!("TCP port {}", ports.join(", "))
            }
        };
        let (read, write) = (list(&self.read), list(&self.write));
        format!("reads {read}; writes {write}; connects to {network}; starts no program")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind::PermissionDenied;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Only the thread of the test is held: it ends with it.
    fn in_a_thread(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test).join().expect("the thread has not failed");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "that nothing is started is shown by trying")]
    fn nothing_is_left_but_what_was_said() {
        let support = Support::of_this_kernel();
        if support.landlock == 0 {
            println!("skip: the kernel has no Landlock");
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (read, write, other) =
            (folder.path().join("read"), folder.path().join("write"), folder.path().join("other"));
        for folder in [&read, &write, &other] {
            fs::create_dir(folder).expect("made");
            fs::write(folder.join("file"), "text").expect("written");
        }
        let listen = || TcpListener::bind("127.0.0.1:0").expect("a port");
        let (ours, others) = (listen(), listen());
        let address = |listener: &TcpListener| listener.local_addr().expect("an address");
        let (port, closed) = (address(&ours), address(&others));
        let own = Own {
            read: vec![read.clone()],
            write: vec![write.clone()],
            ports: Some(vec![port.port()]),
            abstract_sockets: false,
        };
        let (secret, fresh) = (other.join("file"), read.join("fresh"));
        assert_eq!(fs::read_to_string(&secret).expect("not shut in yet"), "text");
        in_a_thread(move || {
            own.shut_this_thread_in().expect("shut in");
            let denied = |error: std::io::Error| assert_eq!(error.kind(), PermissionDenied);
            assert_eq!(fs::read_to_string(read.join("file")).expect("read"), "text");
            denied(fs::read_to_string(&secret).expect_err("it is nobody's to read"));
            denied(fs::write(&secret, "").expect_err("nor to write"));
            denied(fs::write(&fresh, "").expect_err("what is read is not written"));
            fs::create_dir(write.join("below")).expect("a folder");
            fs::write(write.join("below/new"), "x").expect("written");
            denied(fs::remove_file(write.join("file")).expect_err("nothing is removed"));
            let started = std::process::Command::new("/bin/true").status();
            denied(started.expect_err("no program is started"));
            TcpStream::connect(port).expect("this port is open");
            if support.holds_ports() {
                denied(TcpStream::connect(closed).expect_err("no other is"));
                denied(TcpListener::bind("127.0.0.1:0").expect_err("nothing listens"));
            }
            // A thread that is started later is held too.
            in_a_thread(move || denied(fs::read(&secret).expect_err("held")));
        });
        assert_eq!(fs::read_to_string(other.join("file")).expect("others are not"), "text");
    }

    #[test]
    fn a_process_with_threads_is_not_held_by_half() {
        let (hold, waits) = std::sync::mpsc::sync_channel::<()>(0);
        let other = std::thread::spawn(move || waits.recv());
        let error = Own::default().shut_in().expect_err("the tests have threads");
        assert!(error.to_string().contains("threads already"), "{error}");
        drop(hold);
        assert!(other.join().expect("it ended").is_err());
    }

    #[test]
    fn what_is_left_is_said() {
        let own = Own { read: vec!["/a".into(), "/b".into()], ports: None, ..Own::default() };
        let said = "reads /a, /b; writes nothing; connects to any TCP port; starts no program";
        assert_eq!(own.summary(), said);
        let own = Own { ports: Some(Vec::new()), ..Own::default() };
        let said = own.summary();
        assert!(said.contains("no TCP port") || said.contains("cannot hold"), "{said}");
    }
}
