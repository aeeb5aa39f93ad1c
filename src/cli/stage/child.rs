//! One child process of a stage, with a name for messages.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::super::output;
use super::unavailable;
use crate::config::format_duration;
use crate::engine::process::{Service, ServiceSpec, find_program};
use crate::error::{Error, Exit};

/// The end of the log that is shown for a child that ended too early.
const TAIL_LINES: usize = 15;
const TAIL_BYTES: u64 = 16_384;
/// The exit code of a child that was killed, as a shell reports it.
const KILLED: u8 = 128 + 9;
/// The beginnings of the log lines of units that have reloaded, or rejected the configuration.
const RELOAD_OUTCOMES: [&str; 2] = ["read the configuration again", "the reload changed nothing"];
/// The longest time until a unit reports its reload.
const RELOAD_MAX: Duration = Duration::from_secs(10);
/// The wait before the person is told that jobs still run.
const QUIET_DRAIN: Duration = Duration::from_millis(500);

pub(in crate::cli) struct StageChild {
    name: String,
    service: Service,
    /// The file of its output; `None` for standard error.
    log: Option<PathBuf>,
    status: Option<ExitStatus>,
    /// The place in its log and the time of a reload that it has not confirmed.
    reload: Option<(u64, Instant)>,
}

impl StageChild {
    /// Starts a child with no input, whose output goes to a file or to standard error.
    pub(super) fn start(
        name: &str,
        mut spec: ServiceSpec,
        folder: &Path,
        verbose: bool,
    ) -> Result<Self, Error> {
        let failed = |what: &str, error: io::Error| unavailable(format!("{what} {name}: {error}"));
        let log = (!verbose).then(|| folder.join(format!("{name}.log")));
        let output = match &log {
            Some(file) => File::create(file),
            None => io::stderr().as_fd().try_clone_to_owned().map(File::from),
        };
        spec.output = Some(output.map_err(|error| failed("cannot make the log of", error))?);
        let service = Service::start(with_death_signal(spec))
            .map_err(|error| failed("cannot start", error))?;
        Ok(Self { name: name.to_owned(), service, log, status: None, reload: None })
    }

    /// Starts a child with the standard input, output and error of this process.
    pub(super) fn with_terminal(name: &str, spec: ServiceSpec) -> Result<Self, Error> {
        let service = Service::start(spec).map_err(|error| {
            let exit = match error.kind() {
                io::ErrorKind::NotFound => Exit::NotFound,
                io::ErrorKind::PermissionDenied => Exit::NotPermitted,
                _ => Exit::Unavailable,
            };
            Error::new(exit, format!("cannot start {name}: {error}"))
        })?;
        Ok(Self { name: name.to_owned(), service, log: None, status: None, reload: None })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true once it was killed, if it is an actor: no other unit of a stage is started again.
    pub(super) fn is_to_restart(&mut self) -> Result<bool, Error> {
        Ok(self.ended()? == Some(KILLED) && self.is_actor())
    }

    pub(super) fn is_actor(&self) -> bool {
        self.name != "supervisor"
    }

    pub(super) fn pid(&self) -> i32 {
        self.service.pid()
    }

    /// Returns its exit code as a shell reports it, once it has ended.
    pub(super) fn ended(&mut self) -> Result<Option<u8>, Error> {
        if self.status.is_none() {
            let status = self.service.try_wait();
            self.status = status
                .map_err(|error| unavailable(format!("waiting for {}: {error}", self.name)))?;
        }
        Ok(self.status.map(code))
    }

    pub(super) fn ask_to_end(&mut self) {
        self.service.ask_to_end();
    }

    pub(super) fn ask_to_reload(&mut self) {
        // Without a file, its log is at the terminal.
        let length = |log: &PathBuf| log.metadata().map(|data| data.len()).unwrap_or_default();
        self.reload = self.log.as_ref().map(|log| (length(log), Instant::now()));
        self.service.ask_to_reload();
    }

    /// Returns once what it did with the configuration, as its log has it.
    pub(super) fn reload_report(&mut self) -> Option<String> {
        let ((begin, asked), log) = (self.reload?, self.log.as_ref()?);
        let text = read_from(log, SeekFrom::Start(begin)).unwrap_or_default();
        let outcome = text.lines().find_map(|line| {
            let words = RELOAD_OUTCOMES.into_iter();
            words.filter_map(|words| line.find(words)).map(|at| line[at..].to_owned()).next()
        });
        let is_late = asked.elapsed() > RELOAD_MAX;
        let outcome = outcome.or_else(|| {
            is_late.then(|| format!("it has not reported its reload: see {}", log.display()))
        })?;
        self.reload = None;
        Some(format!("hero: {}: {outcome}", self.name))
    }

    pub(super) fn kill(&mut self) -> Result<(), Error> {
        let ended = self.service.terminate(Duration::ZERO);
        self.status =
            Some(ended.map_err(|error| unavailable(format!("ending {}: {error}", self.name)))?);
        Ok(())
    }

    /// Describes the end of a child that should still run.
    pub(super) fn failure(&self) -> String {
        let status = self.status.map(|status| format!(": {status}")).unwrap_or_default();
        let end = format!("{} has ended{status}", self.name);
        match self.log.as_deref().map(tail) {
            Some(Ok(log)) if !log.is_empty() => format!("{end}; its log ends with\n{log}"),
            _ => end,
        }
    }
}

/// Makes the kernel send SIGTERM to the child when this process dies, where `setpriv` is
/// installed. `setpriv` becomes the program and keeps the pid.
fn with_death_signal(mut spec: ServiceSpec) -> ServiceSpec {
    if let Some(setpriv) = find_program("setpriv") {
        let program = std::mem::replace(&mut spec.program, setpriv.into());
        spec.args.splice(0..0, ["--pdeathsig".into(), "TERM".into(), "--".into(), program]);
    }
    spec
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn tail(file: &Path) -> io::Result<String> {
    let start = file.metadata()?.len().saturating_sub(TAIL_BYTES);
    let text = read_from(file, SeekFrom::Start(start))?;
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
}

fn read_from(file: &Path, begin: SeekFrom) -> io::Result<String> {
    let mut file = File::open(file)?;
    file.seek(begin)?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reports after a while why the shutdown takes long.
pub(super) async fn tell_of_drain(time: Duration) -> Infallible {
    tokio::time::sleep(QUIET_DRAIN).await;
    let time = format_duration(time);
    output::note(&format!(
        "waiting up to {time} for the jobs that run; another Ctrl-C cuts them off"
    ));
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(script: &str) -> (StageChild, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let spec = ServiceSpec {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            own_group: true,
            ..ServiceSpec::default()
        };
        let child = StageChild::start("unit-1", spec, folder.path(), false).expect("sh starts");
        (child, folder)
    }

    #[test]
    fn failure_names_the_child_its_status_and_the_end_of_its_log() {
        let (mut child, _folder) = child("seq 100; exit 3");
        while child.ended().expect("waited").is_none() {
            std::thread::yield_now();
        }
        let text = child.failure();
        assert!(text.starts_with("unit-1 has ended: exit status: 3"), "{text}");
        assert!(text.ends_with("\n99\n100") && text.lines().count() == 1 + TAIL_LINES, "{text}");
    }

    #[test]
    fn killed_child_has_the_exit_code_of_a_shell() {
        let (mut child, _folder) = child("kill -KILL $$");
        let code = loop {
            if let Some(code) = child.ended().expect("waited") {
                break code;
            }
            std::thread::yield_now();
        };
        assert_eq!(code, 137);
    }
}
