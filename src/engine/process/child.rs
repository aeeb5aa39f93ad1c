//! The one way in which a job's process is run: in a group of its own, watched, bounded, and
//! always gone afterwards, with all that it has started.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::channel::Channel;
use super::command;
use super::orphans::{self, Registered, Run};
use super::pipe::Pipe;
use crate::engine::{Cancel, Log, StopReason, Stream};

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
    let watched = child.watch(watch, cancelled);
    // The group goes before the child is reaped: until then its number cannot be another's.
    child.kill();
    orphans::end(child.run);
    let ended = watched?;
    child.drain(watch);
    let status = child.child.wait()?;
    Ok(Report {
        ended: child.why.unwrap_or(ended),
        status,
        stdout: std::mem::take(&mut child.stdout.kept),
        stderr: std::mem::take(&mut child.stderr.kept),
        stderr_tail: child.stderr.tail.text(),
        told_output: child.channel.as_mut().and_then(Channel::take_output),
    })
}

/// A child that has been started and not yet reaped.
struct Running {
    child: Child,
    /// Keeps the child from being taken for an orphan, until it was reaped.
    _registered: Registered,
    run: Run,
    group: Pid,
    exited: OwnedFd,
    stdout: Pipe,
    stderr: Pipe,
    channel: Option<Channel>,
    /// Why we are ending it, once we are.
    why: Option<Ended>,
    /// When the grace is over and it is killed; none before it was asked and after it was killed.
    kill_at: Option<Instant>,
}

impl Running {
    fn start(spec: &Spec<'_>, watch: &Watch<'_>) -> io::Result<Self> {
        let run = Run::next();
        let mut channel = None;
        let (mut child, registered) = Registered::start(Some(run), || {
            let mut command = command(&spec.program);
            command
                .args(&spec.args)
                .env_clear()
                .envs(spec.env.iter().map(|(name, value)| (name, value)))
                .env(orphans::MARK, run.mark())
                .current_dir(spec.cwd)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0);
            if watch.channel {
                channel = Some(Channel::new(&mut command, watch.stdout_bytes_max)?);
            }
            command.spawn()
        })?;
        match Self::parts(&mut child) {
            Ok((group, exited, stdout, stderr)) => {
                let (why, kill_at) = (None, None);
                Ok(Self {
                    child,
                    _registered: registered,
                    run,
                    group,
                    exited,
                    stdout,
                    stderr,
                    channel,
                    why,
                    kill_at,
                })
            }
            Err(error) => {
                // Out of descriptors: it must not go on unwatched.
                if let Some(group) = group_of(&child) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = child.wait();
                Err(error)
            }
        }
    }

    fn parts(child: &mut Child) -> io::Result<(Pid, OwnedFd, Pipe, Pipe)> {
        let group = group_of(child).ok_or(io::ErrorKind::NotFound)?;
        Ok((
            group,
            pidfd_open(group, PidfdFlags::empty())?,
            Pipe::new(child.stdout.take(), Stream::Stdout)?,
            Pipe::new(child.stderr.take(), Stream::Stderr)?,
        ))
    }

    /// Watches it until it has exited, ending it where it must be. It does not wait for the pipes
    /// to be closed: a process that was left behind may hold them for ever.
    fn watch(&mut self, watch: &Watch<'_>, cancelled: BorrowedFd<'_>) -> io::Result<Ended> {
        let mut look_at = Instant::now() + ORPHANS_LOOK_EVERY;
        loop {
            let now = Instant::now();
            if now >= look_at {
                orphans::sweep(None);
                look_at = now + ORPHANS_LOOK_EVERY;
            }
            if self.why.is_none() && now >= watch.deadline {
                self.end(Ended::Timeout, watch);
            }
            if self.kill_at.is_some_and(|at| now >= at) {
                self.kill();
            }
            let wake_at = if self.why.is_none() { Some(watch.deadline) } else { self.kill_at };
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
        self.kill_at = None;
    }

    /// Takes what is still in the pipes: at most what the largest pipe holds, as their writers
    /// are dead.
    fn drain(&mut self, watch: &Watch<'_>) {
        const ROUNDS: usize = 16;
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
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.kill();
            orphans::end(self.run);
            let _ = self.child.wait();
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

fn group_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// The time from now until `at`, as `poll` wants it; rounded up so that it never wakes early.
pub(in crate::engine) fn timeout_until(at: Instant) -> Timespec {
    let left = at.saturating_duration_since(Instant::now());
    Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    }
}
