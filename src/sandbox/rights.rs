//! The sandbox of the daemon itself, where its scripts need neither files nor programs.

use std::io;
use std::path::PathBuf;

use landlock::{
    Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

use super::files::NEWEST;
use super::support::Support;

/// The rights that this process keeps. It cannot start programs or signal other processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rights {
    /// Folders and files that it may read. A path that does not exist now cannot be read later either.
    pub read: Vec<PathBuf>,
    /// Folders where it may create and write folders and files.
    pub write: Vec<PathBuf>,
    /// The TCP ports that it may connect to; `None` for all.
    pub ports: Option<Vec<u16>>,
    /// True if it may connect to abstract Unix sockets of others.
    pub abstract_sockets: bool,
}

impl Rights {
    /// Restricts this thread, and those that it starts later, to these rights for ever.
    /// Fails if the kernel has no Landlock, or the process has other threads, which would not be restricted.
    pub fn restrict_process(&self) -> io::Result<()> {
        let threads = std::fs::read_dir("/proc/self/task")?.count();
        if threads > 1 {
            return Err(io::Error::other(format!("it has {threads} threads already")));
        }
        self.restrict_thread()
    }

    fn restrict_thread(&self) -> io::Result<()> {
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

    /// Describes the rights, with those that this kernel cannot take away.
    pub fn summary(&self) -> String {
        let list = |paths: &[PathBuf]| {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
        };
        let network = match &self.ports {
            Some(_) if !Support::of_this_kernel().has_ports() => {
                "any TCP port (the kernel cannot restrict ports)".to_owned()
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
    use crate::test_support::needs;

    /// Restricts only a thread, which ends with the test.
    fn in_a_thread(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test).join().expect("the thread has not failed");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "that nothing is started is shown by trying")]
    fn only_the_given_rights_are_left() {
        let support = Support::of_this_kernel();
        if !needs("landlock", || support.landlock > 0) {
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
        let rights = Rights {
            read: vec![read.clone()],
            write: vec![write.clone()],
            ports: Some(vec![port.port()]),
            abstract_sockets: false,
        };
        let (secret, fresh) = (other.join("file"), read.join("fresh"));
        assert_eq!(fs::read_to_string(&secret).expect("not sandboxed yet"), "text");
        in_a_thread(move || {
            rights.restrict_thread().expect("sandboxed");
            let denied = |error: std::io::Error| assert_eq!(error.kind(), PermissionDenied);
            assert_eq!(fs::read_to_string(read.join("file")).expect("read"), "text");
            denied(fs::read_to_string(&secret).expect_err("not readable"));
            denied(fs::write(&secret, "").expect_err("not writable"));
            denied(fs::write(&fresh, "").expect_err("read-only"));
            fs::create_dir(write.join("below")).expect("a folder");
            fs::write(write.join("below/new"), "x").expect("written");
            denied(fs::remove_file(write.join("file")).expect_err("nothing is removed"));
            let started = std::process::Command::new("/bin/true").status();
            denied(started.expect_err("no program is started"));
            TcpStream::connect(port).expect("this port is open");
            if support.has_ports() {
                denied(TcpStream::connect(closed).expect_err("no other is"));
                denied(TcpListener::bind("127.0.0.1:0").expect_err("nothing listens"));
            }
            // A thread that is started later is restricted too.
            in_a_thread(move || denied(fs::read(&secret).expect_err("restricted")));
        });
        assert_eq!(
            fs::read_to_string(other.join("file")).expect("other threads are not restricted"),
            "text"
        );
    }

    #[test]
    fn process_with_threads_is_rejected() {
        let (hold, waits) = std::sync::mpsc::sync_channel::<()>(0);
        let other = std::thread::spawn(move || waits.recv());
        let error = Rights::default().restrict_process().expect_err("the tests have threads");
        assert!(error.to_string().contains("threads already"), "{error}");
        drop(hold);
        assert!(other.join().expect("it ended").is_err());
    }

    #[test]
    fn summary_lists_the_rights() {
        let rights =
            Rights { read: vec!["/a".into(), "/b".into()], ports: None, ..Rights::default() };
        let said = "reads /a, /b; writes nothing; connects to any TCP port; starts no program";
        assert_eq!(rights.summary(), said);
        let rights = Rights { ports: Some(Vec::new()), ..Rights::default() };
        let said = rights.summary();
        assert!(said.contains("no TCP port") || said.contains("cannot restrict"), "{said}");
    }
}
