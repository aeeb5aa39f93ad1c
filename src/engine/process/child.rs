//! The one way in which a job's process is run: in a group of its own, watched, bounded, and
//! always gone afterwards, with all that it has started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::channel::{self, Channel};
use super::orphans;
use super::running::Running;
use super::warm::Warmed;
use crate::engine::{Cancel, Log, StopReason, Usage};
use crate::sandbox::{self, Launch, Limit, Restrictions, Sandbox};

/// What to run. The environment holds nothing but `env`.
#[derive(Debug, Clone)]
pub struct Spec<'a> {
    /// The file of the program.
    pub program: PathBuf,
    /// Its arguments, without its own name.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub cwd: &'a Path,
    /// The folder that is its own to write in, whatever else the sandbox allows.
    pub home: &'a Path,
    /// What it is shut into.
    pub sandbox: &'a Sandbox,
    /// What it may read beside what the sandbox allows.
    pub read: &'a [PathBuf],
}

impl Spec<'_> {
    /// Creates its restrictions.
    ///
    /// # Errors
    /// Those of [`Sandbox::restrictions`].
    pub(super) fn restrictions(&self) -> io::Result<Restrictions> {
        self.sandbox.restrictions(&self.program, self.home, self.read)
    }

    /// Its program, with the mark of its run, and with the number of its channel if it has one.
    pub(super) fn launch<'a>(
        &'a self,
        mark: &'a OsStr,
        has_channel: bool,
        descriptors: &'a [BorrowedFd<'a>],
    ) -> Launch<'a> {
        let mut env: BTreeMap<&OsStr, &OsStr> =
            self.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect();
        env.insert(OsStr::new(orphans::MARK), mark);
        if has_channel {
            env.insert(OsStr::new(channel::VARIABLE), OsStr::new(channel::NUMBER));
        }
        Launch { file: &self.program, args: &self.args, env, cwd: self.cwd, descriptors }
    }
}

/// How it comes to run.
#[derive(Debug)]
pub enum Origin<'a> {
    /// It is started when it is to run.
    Cold,
    /// For Python: as a fork of an interpreter that has started.
    Fork(Warmed<'a>),
}

/// How long it may take, how much it may say, and who listens.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Ends it when requested.
    pub cancel: &'a Cancel,
    /// Ends it when passed.
    pub deadline: Instant,
    /// How long it may take to end when asked, before it is killed.
    pub kill_grace: Duration,
    /// The most bytes of standard output; more of them end it.
    pub stdout_bytes_max: u64,
    /// The most bytes of standard error that are kept; all of them reach the log.
    pub stderr_bytes_max: u64,
    /// Gets the lines, if anybody wants them.
    pub log: Option<&'a dyn Log>,
    /// Whether standard output is logged too, not only captured.
    pub log_stdout: bool,
    /// Whether it gets a descriptor to tell progress and its output on: see [`super::channel`].
    pub channel: bool,
}

/// Why a child is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, or by a signal that was not ours.
    Itself,
    /// We ended it: its deadline had passed.
    Timeout,
    /// We ended it: a stop was requested.
    Stopped(StopReason),
    /// We ended it: it wrote too much to standard output.
    TooMuchOutput,
    /// We ended it: it had too much in its own folder.
    TooMuchOnDisk,
}

/// What is left of a child.
#[derive(Debug)]
pub struct Report {
    /// Why it ended.
    pub ended: Ended,
    /// Its exit code or signal.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// The start of its standard error, as far as it was to be kept.
    pub stderr: Vec<u8>,
    /// The end of its standard error, as text of at most 4 KiB.
    pub stderr_tail: String,
    /// What it used, and which limit ended it.
    pub usage: Usage,
    /// The output that it told, if it told one.
    pub told_output: Option<String>,
}

impl Watch<'_> {
    /// The most bytes of an output that it tells, if it gets a channel.
    pub(super) fn channel_bytes_max(&self) -> Option<u64> {
        self.channel.then_some(self.stdout_bytes_max)
    }
}

/// Runs a child to its end and reaps it. When this returns, nothing that it has started runs.
///
/// # Errors
/// Those of starting it; once it runs, only a failure of `poll(2)` itself, and then it is killed.
pub fn run(spec: &Spec<'_>, watch: &Watch<'_>, origin: Origin<'_>) -> io::Result<Report> {
    let cancelled = watch.cancel.descriptor()?;
    let mut child = Running::start(spec, watch, origin)?;
    let watched = child.watch(spec, watch, cancelled);
    // The group goes before the child is reaped: until then its number cannot be another's.
    child.kill();
    orphans::end(child.run);
    let ended = watched?;
    child.drain(watch);
    let (status, mut usage) = child.reap()?;
    let ended = child.why.unwrap_or(ended);
    let stderr_tail = child.stderr.tail.text();
    usage.limit = match ended {
        Ended::TooMuchOutput => Some(Limit::Output),
        Ended::TooMuchOnDisk => Some(Limit::Disk),
        Ended::Timeout | Ended::Stopped(_) => None,
        Ended::Itself => sandbox::limit_hit(spec.sandbox.limits(), status, usage.cpu, &stderr_tail),
    };
    let failed = ended == Ended::Itself && !status.success();
    child.cgroup.iter().for_each(|cgroup| cgroup.report(&mut usage, failed));
    Ok(Report {
        ended,
        status,
        stdout: std::mem::take(&mut child.stdout.kept),
        stderr: std::mem::take(&mut child.stderr.kept),
        stderr_tail,
        usage,
        told_output: child.channel.as_mut().and_then(Channel::take_output),
    })
}
