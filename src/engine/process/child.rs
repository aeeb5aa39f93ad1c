//! The one way in which a job's process is run: in a group of its own, watched, bounded, and
//! always gone afterwards, with all that it has started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, waitpid,
};

use super::channel::{self, Channel};
use super::deadline::timeout_until;
use super::orphans::{self, Registered, Run};
use super::pipe::Pipe;
use super::sandbox::{self, Lease, Limit, Program, Sandbox};
use super::scratch::DiskLook;
use super::warm::Warmed;
use crate::engine::{Cancel, Log, StopReason, Stream, Usage};

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
    /// For Python: how it may come to run without the start of an interpreter.
    pub warm: Option<Warmed<'a>>,
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

/// How often orphans are looked at while a child runs: they may be many before it ends.
const ORPHANS_LOOK_EVERY: Duration = Duration::from_secs(5);

/// Runs a child to its end and reaps it. When this returns, nothing that it has started runs.
///
/// # Errors
/// Those of starting it; once it runs, only a failure of `poll(2)` itself, and then it is killed.
pub fn run(spec: &Spec<'_>, watch: &Watch<'_>) -> io::Result<Report> {
    let cancelled = watch.cancel.descriptor()?;
    let mut child = Running::start(spec, watch)?;
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
    child.cgroup.iter().for_each(|cgroup| cgroup.tell(&mut usage, failed));
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

/// A child that has just been started, from the start or as a fork.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) pid: i32,
    pub(super) registered: Registered,
    /// The control group that it is in, if there is one.
    pub(super) cgroup: Option<Lease>,
    pub(super) stdout: Reading,
    pub(super) stderr: Reading,
}

/// A pipe that is read here, with the other end of it: see [`Running::written`].
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) read_end: OwnedFd,
    pub(super) write_end: OwnedFd,
}

impl Reading {
    pub(super) fn open() -> io::Result<Self> {
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self { read_end, write_end })
    }
}

/// A child that is watched, and not yet reaped.
struct Running {
    /// Whether its number may be another's by now.
    reaped: bool,
    /// Keeps the child from being taken for an orphan, until it was reaped.
    _registered: Registered,
    run: Run,
    /// All that it starts is in it, if it has one; whoever is still in it at the end is killed.
    cgroup: Option<Lease>,
    /// The number of its process and of its group.
    group: Pid,
    exited: OwnedFd,
    stdout: Pipe,
    stderr: Pipe,
    channel: Option<Channel>,
    /// The ends that it writes to. They stay open here until it has exited, which its process alone
    /// tells: each of them that closed before would wake this thread in vain.
    written: Vec<OwnedFd>,
    /// Why we are ending it, once we are.
    why: Option<Ended>,
    /// When the grace is over and it is killed; none before it was asked and after it was killed.
    kill_at: Option<Instant>,
}

impl Running {
    fn start(spec: &Spec<'_>, watch: &Watch<'_>) -> io::Result<Self> {
        let run = Run::next();
        let cell = spec.sandbox.cell(&spec.program, spec.home, spec.read)?;
        if let Some(warm) = &spec.warm {
            let (channel, its) = channel::open(watch)?;
            if let Some(forked) = warm.fork(run, &cell, spec, its.as_ref().map(AsFd::as_fd)) {
                return Self::new(run, forked, channel, its);
            }
        }
        let (channel, its) = channel::open(watch)?;
        let null = File::open("/dev/null")?;
        let (stdout, stderr) = (Reading::open()?, Reading::open()?);
        let mut descriptors =
            vec![null.as_fd(), stdout.write_end.as_fd(), stderr.write_end.as_fd()];
        let mark = OsString::from(run.mark());
        let mut env: BTreeMap<&OsStr, &OsStr> =
            spec.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect();
        env.insert(OsStr::new(orphans::MARK), &mark);
        if let Some(its) = &its {
            descriptors.push(its.as_fd());
            env.insert(OsStr::new(channel::VARIABLE), OsStr::new(channel::NUMBER));
        }
        let program = Program {
            file: &spec.program,
            args: &spec.args,
            env,
            cwd: spec.cwd,
            descriptors: &descriptors,
        };
        let (mut pid, cgroup) = (0, spec.sandbox.lease()?);
        let registered = Registered::adopt(Some(run), || {
            pid = sandbox::spawn(&program, &cell, cgroup.as_ref())?;
            Ok(pid)
        })?;
        Self::new(run, Started { pid, registered, cgroup, stdout, stderr }, channel, its)
    }

    /// Takes over a process that was just started, the first of its group. Should that fail, for
    /// want of descriptors, it is gone: it must not go on unwatched.
    fn new(
        run: Run,
        started: Started,
        channel: Option<Channel>,
        its: Option<OwnedFd>,
    ) -> io::Result<Self> {
        let Started { pid, registered, cgroup, stdout, stderr } = started;
        let group = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
        let parts = || {
            let exited = pidfd_open(group, PidfdFlags::empty())?;
            let out = Pipe::new(stdout.read_end, Stream::Stdout)?;
            let err = Pipe::new(stderr.read_end, Stream::Stderr)?;
            let written = [stdout.write_end, stderr.write_end].into_iter().chain(its).collect();
            Ok((exited, out, err, written))
        };
        let (exited, stdout, stderr, written) = parts().inspect_err(|_: &io::Error| {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = waitpid(Some(group), WaitOptions::empty());
        })?;
        Ok(Self {
            reaped: false,
            _registered: registered,
            run,
            cgroup,
            group,
            exited,
            stdout,
            stderr,
            channel,
            written,
            why: None,
            kill_at: None,
        })
    }

    /// Watches it until it has exited, ending it where it must be. It does not wait for the pipes
    /// to be closed: a process that was left behind may hold them for ever.
    fn watch(
        &mut self,
        spec: &Spec<'_>,
        watch: &Watch<'_>,
        cancelled: BorrowedFd<'_>,
    ) -> io::Result<Ended> {
        let mut orphans_at = Instant::now() + ORPHANS_LOOK_EVERY;
        let mut disk = DiskLook::at(spec.home, spec.sandbox.disk_bytes_max());
        loop {
            let now = Instant::now();
            if now >= orphans_at {
                orphans::sweep(None);
                orphans_at = now + ORPHANS_LOOK_EVERY;
            }
            if self.why.is_none() && disk.finds_too_much(now) {
                self.end(Ended::TooMuchOnDisk, watch);
            }
            if self.why.is_none() && now >= watch.deadline {
                self.end(Ended::Timeout, watch);
            }
            if self.kill_at.is_some_and(|at| now >= at) {
                self.kill();
            }
            let wake_at = if self.why.is_none() { Some(watch.deadline) } else { self.kill_at };
            let look_at = disk.next.map_or(orphans_at, |at| at.min(orphans_at));
            let wake_at = wake_at.map_or(look_at, |at| at.min(look_at));
            let ready = self.wait(cancelled, wake_at)?;
            if ready.stdout {
                let lost = self.stdout.read(watch);
                if lost > 0 && self.why.is_none() {
                    self.end(Ended::TooMuchOutput, watch);
                }
            }
            if ready.stderr {
                self.stderr.read(watch);
            }
            if ready.channel && self.hears_too_much(watch) && self.why.is_none() {
                self.end(Ended::TooMuchOutput, watch);
            }
            if ready.exited {
                return Ok(Ended::Itself);
            }
            if self.why.is_none()
                && let Some(reason) = watch.cancel.requested()
            {
                self.end(Ended::Stopped(reason), watch);
            }
        }
    }

    /// Waits for whatever comes first. Once it is being ended, the cancel descriptor stays
    /// readable and is no longer asked.
    fn wait(&self, cancelled: BorrowedFd<'_>, until: Instant) -> io::Result<Ready> {
        let mut waits = vec![PollFd::new(&self.exited, PollFlags::IN)];
        if self.why.is_none() {
            waits.push(PollFd::from_borrowed_fd(cancelled, PollFlags::IN));
        }
        let first_pipe = waits.len();
        let [stdout, stderr, channel] = [
            self.stdout.read_end.as_ref().map(AsFd::as_fd),
            self.stderr.read_end.as_ref().map(AsFd::as_fd),
            self.channel.as_ref().and_then(Channel::descriptor),
        ];
        for read_end in [stdout, stderr, channel].into_iter().flatten() {
            waits.push(PollFd::from_borrowed_fd(read_end, PollFlags::IN));
        }
        match poll(&mut waits, Some(&timeout_until(until))) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(error) => return Err(error.into()),
        }
        let mut is_ready = waits[first_pipe..].iter().map(|wait| !wait.revents().is_empty());
        Ok(Ready {
            exited: !waits[0].revents().is_empty(),
            stdout: stdout.is_some() && is_ready.next().unwrap_or(false),
            stderr: stderr.is_some() && is_ready.next().unwrap_or(false),
            channel: channel.is_some() && is_ready.next().unwrap_or(false),
        })
    }

    /// Reads what was told. Returns whether an output was more than there may be.
    fn hears_too_much(&mut self, watch: &Watch<'_>) -> bool {
        let Some(channel) = &mut self.channel else { return false };
        channel.read(watch.log);
        channel.is_too_large()
    }

    /// Ends it: asks first, unless its job is already somebody else's.
    fn end(&mut self, why: Ended, watch: &Watch<'_>) {
        self.why = Some(why);
        if why == Ended::Stopped(StopReason::LeaseLost) {
            self.kill();
        } else {
            let _ = kill_process_group(self.group, Signal::TERM);
            // A stopped process would not notice that it is asked.
            let _ = kill_process_group(self.group, Signal::CONT);
            self.kill_at = Some(Instant::now() + watch.kill_grace);
        }
    }

    /// Kills whatever is in the group. It fails only when nothing is.
    fn kill(&mut self) {
        let _ = kill_process_group(self.group, Signal::KILL);
        self.cgroup.iter().for_each(Lease::kill);
        self.kill_at = None;
    }

    /// Reaps it and gives how it ended and what it used.
    fn reap(&mut self) -> io::Result<(ExitStatus, Usage)> {
        let reaped = sandbox::reap(self.group)?;
        self.reaped = true;
        Ok(reaped)
    }

    /// Takes what is still in the pipes: at most what the largest pipe holds, as their writers
    /// are dead.
    fn drain(&mut self, watch: &Watch<'_>) {
        const ROUNDS: usize = 16;
        self.written.clear();
        for _ in 0..ROUNDS {
            let lost = self.stdout.read(watch);
            if lost > 0 && self.why.is_none() {
                self.why = Some(Ended::TooMuchOutput);
            }
            self.stderr.read(watch);
            let _ = self.hears_too_much(watch);
        }
        self.stdout.close(watch);
        self.stderr.close(watch);
        if let Some(channel) = &mut self.channel {
            channel.close(watch.log);
            if channel.is_too_large() && self.why.is_none() {
                self.why = Some(Ended::TooMuchOutput);
            }
        }
    }
}

impl Drop for Running {
    /// Only where watching failed is it still there to be reaped.
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
            orphans::end(self.run);
            let _ = waitpid(Some(self.group), WaitOptions::empty());
        }
    }
}

/// Which of the descriptors there is something to read from.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
struct Ready {
    exited: bool,
    stdout: bool,
    stderr: bool,
    channel: bool,
}
