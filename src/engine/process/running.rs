//! A child that runs: how it is started and watched, ended where it must be, and reaped.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, kill_process_group, pidfd_open, waitpid,
};

use super::channel::{self, Channel};
use super::child::{Ended, Origin, Spec, Watch};
use super::deadline::timeout_until;
use super::disk_use::DiskUse;
use super::orphans::{self, Registered, Run};
use super::pipe::Pipe;
use crate::engine::{StopReason, Stream, Usage};
use crate::sandbox::{self, JobGroup, Restrictions};

/// How often orphans are looked at while a child runs: they may be many before it ends.
const ORPHANS_LOOK_EVERY: Duration = Duration::from_secs(5);

/// A child that has just been started, from its start, as a fork, or to wait for its program.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) pid: i32,
    pub(super) registered: Registered,
    /// The control group that it is in, if there is one.
    pub(super) cgroup: Option<JobGroup>,
    pub(super) stdout: PipeEnds,
    pub(super) stderr: PipeEnds,
    /// Its channel, if it gets one, and the end that it writes to.
    pub(super) channel: Option<(Channel, OwnedFd)>,
}

/// Both ends of a pipe of a child. Why the one that it writes to is kept says [`Running::written`].
#[derive(Debug)]
pub(super) struct PipeEnds {
    pub(super) read_end: OwnedFd,
    pub(super) write_end: OwnedFd,
}

impl PipeEnds {
    pub(super) fn open() -> io::Result<Self> {
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self { read_end, write_end })
    }
}

/// A child that is watched, and not yet reaped.
#[derive(Debug)]
pub(super) struct Running {
    /// Whether its number may be another's by now.
    reaped: bool,
    /// Keeps the child from being taken for an orphan, until it was reaped.
    _registered: Registered,
    pub(super) run: Run,
    /// All that it starts is in it, if it has one; whoever is still in it at the end is killed.
    pub(super) cgroup: Option<JobGroup>,
    /// The number of its process and of its group.
    group: Pid,
    exited: OwnedFd,
    pub(super) stdout: Pipe,
    pub(super) stderr: Pipe,
    pub(super) channel: Option<Channel>,
    /// The ends that it writes to. They stay open here until it has exited, which its process alone
    /// tells: each of them that closed before would wake this thread in vain.
    written: Vec<OwnedFd>,
    /// Why we are ending it, once we are.
    pub(super) why: Option<Ended>,
    /// When the grace is over and it is killed; none before it was asked and after it was killed.
    kill_at: Option<Instant>,
}

impl Running {
    /// Starts a child.
    ///
    /// # Errors
    /// Those of starting it.
    pub(super) fn start(
        spec: &Spec<'_>,
        watch: &Watch<'_>,
        origin: Origin<'_>,
    ) -> io::Result<Self> {
        let run = Run::next();
        let started = match origin {
            Origin::Cold => cold(run, spec, watch, &spec.restrictions()?)?,
            Origin::Fork(warm) => {
                let cell = spec.restrictions()?;
                let forked = warm.fork(run, &cell, spec, channel::open(watch.channel_bytes_max())?);
                forked.map_or_else(|| cold(run, spec, watch, &cell), Ok)?
            }
        };
        Self::new(run, started)
    }

    /// Takes over a process that was just started, the first of its group.
    ///
    /// # Errors
    /// There are no more descriptors. It is gone then: it must not go on unwatched.
    pub(super) fn new(run: Run, started: Started) -> io::Result<Self> {
        let Started { pid, registered, cgroup, stdout, stderr, channel } = started;
        let (channel, its) = channel.unzip();
        let group = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
        let parts = || {
            let exited = pidfd_open(group, PidfdFlags::empty())?;
            let out = Pipe::new(stdout.read_end, Stream::Stdout)?;
            let err = Pipe::new(stderr.read_end, Stream::Stderr)?;
            let written = [stdout.write_end, stderr.write_end].into_iter().chain(its).collect();
            Ok((exited, out, err, written))
        };
        let (exited, stdout, stderr, written) = parts().inspect_err(|_: &io::Error| {
            kill_and_reap(group);
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
    pub(super) fn watch(
        &mut self,
        spec: &Spec<'_>,
        watch: &Watch<'_>,
        cancelled: BorrowedFd<'_>,
    ) -> io::Result<Ended> {
        let mut orphans_at = Instant::now() + ORPHANS_LOOK_EVERY;
        let mut disk = DiskUse::new(spec.home, spec.sandbox.disk_bytes_max());
        loop {
            let now = Instant::now();
            if now >= orphans_at {
                orphans::sweep(None);
                orphans_at = now + ORPHANS_LOOK_EVERY;
            }
            if self.why.is_none() && disk.exceeds_limit(now) {
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
    pub(super) fn kill(&mut self) {
        let _ = kill_process_group(self.group, Signal::KILL);
        self.cgroup.iter().for_each(JobGroup::kill);
        self.kill_at = None;
    }

    /// Reaps it and gives how it ended and what it used.
    pub(super) fn reap(&mut self) -> io::Result<(ExitStatus, Usage)> {
        let reaped = sandbox::reap(nix::unistd::Pid::from_raw(self.group.as_raw_pid()))?;
        self.reaped = true;
        Ok(reaped)
    }

    /// Takes what is still in the pipes: at most what the largest pipe holds, as their writers
    /// are dead.
    pub(super) fn drain(&mut self, watch: &Watch<'_>) {
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
            kill_and_reap(self.group);
        }
    }
}

/// Kills and reaps a child, which may not be in a group of its own yet.
fn kill_and_reap(child: Pid) {
    let _ = kill_process_group(child, Signal::KILL);
    let _ = kill_process(child, Signal::KILL);
    let _ = waitpid(Some(child), WaitOptions::empty());
}

/// Starts a child from its start.
fn cold(run: Run, spec: &Spec<'_>, watch: &Watch<'_>, cell: &Restrictions) -> io::Result<Started> {
    let channel = channel::open(watch.channel_bytes_max())?;
    let (stdout, stderr) = (PipeEnds::open()?, PipeEnds::open()?);
    let null = File::open("/dev/null")?;
    let descriptors = descriptors(&null, &stdout, &stderr, channel.as_ref());
    let (mut pid, cgroup, mark) = (0, spec.sandbox.job_group()?, OsString::from(run.mark()));
    let members = cgroup.as_ref().map(JobGroup::members).transpose()?;
    let launch = spec.launch(&mark, channel.is_some(), &descriptors);
    let registered = Registered::adopt(Some(run), || {
        let members = members.as_ref().map(AsFd::as_fd);
        pid = sandbox::spawn(&launch, cell, members)?.as_raw();
        Ok(pid)
    })?;
    Ok(Started { pid, registered, cgroup, stdout, stderr, channel })
}

/// What a child gets, by their numbers from 0 on.
pub(super) fn descriptors<'a>(
    null: &'a File,
    stdout: &'a PipeEnds,
    stderr: &'a PipeEnds,
    channel: Option<&'a (Channel, OwnedFd)>,
) -> Vec<BorrowedFd<'a>> {
    let standard = [null.as_fd(), stdout.write_end.as_fd(), stderr.write_end.as_fd()];
    standard.into_iter().chain(channel.map(|(_, its)| its.as_fd())).collect()
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
