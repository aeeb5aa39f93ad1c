//! Long-lived children that the command line starts and ends.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::start::{Registered, command};
use crate::sandbox::{pidfd, poll_until};

/// A [`Service`] to start. By default its standard input is empty, and it writes to this process's output.
#[derive(Debug, Default)]
pub struct ServiceSpec {
    /// The program: a file, or a name looked up in `PATH`.
    pub program: OsString,
    pub args: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub cwd: Option<PathBuf>,
    /// Receives its standard output and error instead of this process's.
    pub output: Option<File>,
    pub inherit_stdin: bool,
    /// Its standard input, if it is neither empty nor this process's.
    pub input: Option<File>,
    /// True for a process group of its own: Ctrl-C does not reach it then, and ending it ends all that it started.
    pub own_group: bool,
}

/// A long-lived child. Dropping it kills it; if this process is killed, it runs on.
#[derive(Debug)]
pub struct Service {
    child: Child,
    /// Keeps it from being taken for an orphan.
    _registered: Registered,
    pid: Pid,
    own_group: bool,
    status: Option<ExitStatus>,
}

impl Service {
    pub fn start(spec: ServiceSpec) -> io::Result<Self> {
        let mut command = command(Path::new(&spec.program));
        command.args(&spec.args).envs(spec.env);
        if !spec.inherit_stdin {
            command.stdin(spec.input.map_or_else(Stdio::null, Stdio::from));
        }
        if let Some(cwd) = &spec.cwd {
            command.current_dir(cwd);
        }
        if let Some(output) = spec.output {
            command.stderr(output.try_clone()?).stdout(output);
        }
        if spec.own_group {
            command.process_group(0);
        }
        let (mut child, registered) = Registered::start(|| command.spawn())?;
        let Some(pid) = i32::try_from(child.id()).ok().map(Pid::from_raw) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(io::ErrorKind::NotFound.into());
        };
        let own_group = spec.own_group;
        Ok(Self { child, _registered: registered, pid, own_group, status: None })
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status)
    }

    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }

    pub fn ask_to_end(&mut self) {
        self.signal(Signal::SIGTERM);
    }

    /// Sends SIGHUP to the process alone, unless it has ended.
    pub fn ask_to_reload(&self) {
        if self.status.is_none() {
            let _ = kill(self.pid, Signal::SIGHUP);
        }
    }

    /// Sends SIGTERM, and SIGKILL after `grace`; reaps it.
    pub fn terminate(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        if let Some(status) = self.try_wait()? {
            return Ok(status);
        }
        self.signal(Signal::SIGTERM);
        self.wait_until(Instant::now() + grace)?;
        self.signal(Signal::SIGKILL);
        self.wait()
    }

    /// Blocks until it has ended; after `until`, ends it as [`Service::terminate`] does.
    pub fn wait_for(&mut self, until: Instant, grace: Duration) -> io::Result<ExitStatus> {
        self.wait_until(until)?;
        self.terminate(grace)
    }

    /// Blocks until it has exited or `until` has passed. Does not reap it, so the id of its group is not reused.
    fn wait_until(&self, until: Instant) -> io::Result<()> {
        let exited = pidfd(self.pid)?;
        poll_until(&mut [PollFd::new(exited.as_fd(), PollFlags::POLLIN)], until)?;
        Ok(())
    }

    /// Sends nothing once it was reaped: its id may be another process's.
    fn signal(&mut self, signal: Signal) {
        if self.status.is_some() {
            return;
        }
        let _ = if self.own_group { killpg(self.pid, signal) } else { kill(self.pid, signal) };
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if !matches!(self.try_wait(), Ok(Some(_))) {
            self.signal(Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn shell(script: &str, output: Option<File>) -> Service {
        Service::start(ServiceSpec {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("GREETING".into(), "hello".into())],
            output,
            own_group: true,
            ..ServiceSpec::default()
        })
        .expect("sh starts")
    }

    #[test]
    fn output_goes_to_the_file_and_the_status_is_kept() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let mut service = shell("echo $GREETING; exit 3", Some(file.reopen().expect("reopened")));
        assert_eq!(service.wait().expect("waited").code(), Some(3));
        assert_eq!(service.try_wait().expect("kept").and_then(|status| status.code()), Some(3));
        let mut text = String::new();
        io::Read::read_to_string(&mut file, &mut text).expect("read");
        assert_eq!(text, "hello\n");
    }

    #[test]
    fn service_that_ends_on_request_is_not_killed() {
        let mut service = shell("trap 'exit 7' TERM; while :; do sleep 0.01; done", None);
        // The trap may not be set yet; then the signal itself ends it.
        let status = service.terminate(Duration::from_secs(20)).expect("ended");
        assert!(status.code() == Some(7) || status.signal() == Some(15), "{status}");
    }

    #[test]
    fn service_that_ignores_the_request_is_killed_after_the_grace() {
        let (read_end, write_end) = io::pipe().expect("a pipe");
        let mut service = Service::start(ServiceSpec {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), "trap '' TERM; echo; while :; do sleep 9; done".into()],
            output: Some(File::from(std::os::fd::OwnedFd::from(write_end))),
            own_group: true,
            ..ServiceSpec::default()
        })
        .expect("sh starts");
        let mut first = [0_u8; 1];
        io::Read::read_exact(&mut &read_end, &mut first).expect("the trap is set");
        let status = service.terminate(Duration::from_millis(30)).expect("ended");
        assert_eq!(status.signal(), Some(9));
    }

    #[test]
    fn dropping_a_service_ends_it() {
        let service = shell("sleep 600", None);
        let pid = service.pid;
        drop(service);
        assert!(kill(pid, None).is_err());
    }
}
