//! A child that runs: how it is started and watched, ended where it must be, and reaped.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, waitpid,
};

use super::channel::{self, Channel};
use super::child::{Ended, Spec, Watch};
use super::deadline::timeout_until;
use super::orphans::{self, Registered, Run};
use super::pipe::Pipe;
use super::sandbox::{self, Lease, Program};
use super::scratch::DiskLook;
use crate::engine::{StopReason, Stream, Usage};

/// How often orphans are looked at while a child runs: they may be many before it ends.
const ORPHANS_LOOK_EVERY: Duration = Duration::from_secs(5);

/// A child that has just been started, from the start or as a fork.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) pid: i32,
    pub(super) registered: Registered,
    /// The control group that it is in, if there is one.
    pub(super) cgroup: Option<Lease>,
    pub(super) stdout: PipeEnds,
    pub(super) stderr: PipeEnds,
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
pub(super) struct Running {
    /// Whether its number may be another's by now.
    reaped: bool,
    /// Keeps the child from being taken for an orphan, until it was reaped.
    _registered: Registered,
    pub(super) run: Run,
    /// All that it starts is in it, if it has one; whoever is still in it at the end is killed.
    pub(super) cgroup: Option<Lease>,
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
    pub(super) fn start(spec: &Spec<'_>, watch: &Watch<'_>) -> io::Result<Self> {
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
        let (stdout, stderr) = (PipeEnds::open()?, PipeEnds::open()?);
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
    pub(super) fn watch(
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
    pub(super) fn kill(&mut self) {
        let _ = kill_process_group(self.group, Signal::KILL);
        self.cgroup.iter().for_each(Lease::kill);
        self.kill_at = None;
    }

    /// Reaps it and gives how it ended and what it used.
    pub(super) fn reap(&mut self) -> io::Result<(ExitStatus, Usage)> {
        let reaped = sandbox::reap(self.group)?;
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
