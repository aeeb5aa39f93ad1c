//! Children that live long: what the command line starts beside itself and takes down again.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use super::command;
use super::deadline::timeout_until;
use super::orphans::Registered;

/// How to start a [`Service`]. Standard input is empty; output goes where this process's goes.
#[derive(Debug, Default)]
pub struct ServiceSpec {
    /// The program: a file, or a name looked up in `PATH`.
    pub program: OsString,
    /// Its arguments, without its own name.
    pub args: Vec<OsString>,
    /// What its environment has on top of this process's.
    pub env: Vec<(OsString, OsString)>,
    /// Where it starts, if not where this process is.
    pub cwd: Option<PathBuf>,
    /// Takes its standard output and error, if they are not to be this process's.
    pub output: Option<File>,
    /// Whether it reads this process's standard input.
    pub inherit_stdin: bool,
    /// Whether it gets a process group of its own: a Ctrl-C at the terminal then does not reach
    /// it, and ending it ends all it has started.
    pub own_group: bool,
}

/// A child that runs until it ends or is ended; dropping it kills it.
///
/// A parent that is itself killed cannot take it down: that needs a call made inside the child
/// before it starts its program, which safe code has no way to make.
#[derive(Debug)]
pub struct Service {
    child: Child,
    /// Keeps it from being taken for an orphan, until it was reaped.
    _registered: Registered,
    pid: Pid,
    own_group: bool,
    status: Option<ExitStatus>,
}

impl Service {
    /// Starts it.
    ///
    /// # Errors
    /// Those of starting a program: not found, not permitted, no more processes.
    pub fn start(spec: ServiceSpec) -> io::Result<Self> {
        let mut command = command(Path::new(&spec.program));
        command.args(&spec.args).envs(spec.env);
        if !spec.inherit_stdin {
            command.stdin(Stdio::null());
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
        let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(io::ErrorKind::NotFound.into());
        };
        let own_group = spec.own_group;
        Ok(Self { child, _registered: registered, pid, own_group, status: None })
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Its status, if it has ended.
    ///
    /// # Errors
    /// Those of `waitpid(2)`.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status)
    }

    /// Blocks until it has ended.
    ///
    /// # Errors
    /// Those of `waitpid(2)`.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }

    /// Sends it SIGTERM, as an orderly way to end; nothing happens if it has ended.
    pub fn ask_to_end(&mut self) {
        self.signal(Signal::TERM);
    }

    /// Ends it: SIGTERM, then SIGKILL to what is left after `grace`; reaps it.
    ///
    /// # Errors
    /// Those of waiting for it.
    pub fn terminate(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        if let Some(status) = self.try_wait()? {
            return Ok(status);
        }
        self.signal(Signal::TERM);
        self.wait_until(Instant::now() + grace)?;
        self.signal(Signal::KILL);
        self.wait()
    }

    /// Blocks until it has exited or `until` is there; it is not reaped, so that its group's
    /// number stays its own.
    fn wait_until(&self, until: Instant) -> io::Result<()> {
        let exited = pidfd_open(self.pid, PidfdFlags::empty())?;
        loop {
            let mut waits = [PollFd::new(&exited, PollFlags::IN)];
            match poll(&mut waits, Some(&timeout_until(until))) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(()),
            }
        }
    }

    /// A number that has been reaped may be another process's, so nothing is sent then.
    fn signal(&mut self, signal: Signal) {
        if self.status.is_some() {
            return;
        }
        let _ = if self.own_group {
            kill_process_group(self.pid, signal)
        } else {
            kill_process(self.pid, signal)
        };
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if !matches!(self.try_wait(), Ok(Some(_))) {
            self.signal(Signal::KILL);
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
    fn its_output_goes_to_the_file_and_its_status_is_kept() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let mut service = shell("echo $GREETING; exit 3", Some(file.reopen().expect("reopened")));
        assert_eq!(service.wait().expect("waited").code(), Some(3));
        assert_eq!(service.try_wait().expect("kept").and_then(|status| status.code()), Some(3));
        let mut text = String::new();
        io::Read::read_to_string(&mut file, &mut text).expect("read");
        assert_eq!(text, "hello\n");
    }

    #[test]
    fn one_that_ends_when_asked_is_not_killed() {
        let mut service = shell("trap 'exit 7' TERM; while :; do sleep 0.01; done", None);
        // The trap may not be set yet; then the signal itself ends it.
        let status = service.terminate(Duration::from_secs(20)).expect("ended");
        assert!(status.code() == Some(7) || status.signal() == Some(15), "{status}");
    }

    #[test]
    fn one_that_ignores_the_request_is_killed_after_the_grace() {
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
    fn dropping_it_ends_it() {
        let service = shell("sleep 600", None);
        let pid = service.pid;
        drop(service);
        assert!(rustix::process::test_kill_process(pid).is_err());
    }
}
