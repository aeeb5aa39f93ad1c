//! What a job's child leaves behind is found and killed, however it hid: with `setsid`, with a
//! second fork, without its environment.
//!
//! This process is a child subreaper: whoever loses its parent below it becomes its own child. So
//! every process that a job has started is, at the end, a child of this process or below one. Three
//! things tell whose it is: the mark in its environment; for those without a mark, the time when
//! they began, as no job leaves behind what is older than itself; and for a child that other code
//! in this process has started, its process group, which is this process's own.
//!
//! As their new parent this process also reaps them, and nobody else's children: those it waits
//! for are registered. A lock keeps a child from being seen between its start and that.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpgrp, getpid, kill_process, pidfd_open,
    set_child_subreaper, waitpid,
};
use tracing::warn;

use super::deadline::timeout_until;
use super::proc::{self, Stat};

/// The variable that marks whatever a job's child starts as its own.
pub(super) const MARK: &str = "HERO_RUN_ID";
/// How long killed processes may take to be gone. Only one that hangs in the kernel takes longer.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// Held for reading by those who start a child, until it is registered; for writing by those who
/// look for orphans.
static STARTING: RwLock<()> = RwLock::new(());
/// The children of this process that somebody waits for, by their pid.
static WAITED_FOR: Mutex<BTreeMap<i32, Known>> = Mutex::new(BTreeMap::new());

/// A child that somebody waits for.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// When it was about to begin, in the kernel's ticks since boot; for a child that was made ahead
    /// of its run, when that was.
    began: u64,
    /// The run it is, if it is a job's.
    run: Option<Run>,
}

/// One run of a job's child, told from all others of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run(u64);

impl Run {
    pub(super) fn next() -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(1);
        Self(RUNS.fetch_add(1, Ordering::Relaxed))
    }

    /// The value of the mark. Another Hero below this one has marks of its own.
    pub(super) fn mark(self) -> String {
        format!("{}.{}", std::process::id(), self.0)
    }

    /// The same in as many characters as any other: it is written over [`Run::blank_mark`].
    pub(super) fn wide_mark(self) -> String {
        format!("{:010}.{:020}", std::process::id(), self.0)
    }

    /// The mark of what is nobody's yet.
    pub(super) fn blank_mark() -> String {
        format!("{:010}.{:020}", 0, 0)
    }

    fn from_mark(mark: &[u8]) -> Option<Self> {
        let (process, run) = std::str::from_utf8(mark).ok()?.split_once('.')?;
        (process.parse() == Ok(std::process::id())).then_some(())?;
        run.parse().ok().map(Self)
    }
}

/// A child on the list of those that somebody waits for. To be dropped once it was reaped.
#[derive(Debug)]
pub(super) struct Registered(i32);

impl Registered {
    /// Starts a child that is no job's and puts it on the list.
    ///
    /// # Errors
    /// Those of starting it.
    pub(super) fn start(start: impl FnOnce() -> io::Result<Child>) -> io::Result<(Child, Self)> {
        let starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
        let began = proc::ticks();
        let child = start()?;
        let pid = i32::try_from(child.id()).unwrap_or_default();
        let registered = Self::put(pid, Known { began, run: None });
        drop(starting);
        Ok((child, registered))
    }

    /// Puts a process on the list that runs for a job, and that has become this one's child by the
    /// time that `start` gives its number, whoever has made it.
    ///
    /// # Errors
    /// Those of `start`.
    pub(super) fn adopt(
        run: Option<Run>,
        start: impl FnOnce() -> io::Result<i32>,
    ) -> io::Result<Self> {
        become_subreaper();
        let starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
        let began = proc::ticks();
        let registered = Self::put(start()?, Known { began, run });
        drop(starting);
        Ok(registered)
    }

    /// Makes a child that was nobody's yet the child of a run, which begins now.
    pub(super) fn begins(&self, run: Run) {
        let known = Known { began: proc::ticks(), run: Some(run) };
        WAITED_FOR.lock().unwrap_or_else(PoisonError::into_inner).insert(self.0, known);
    }

    fn put(pid: i32, known: Known) -> Self {
        WAITED_FOR.lock().unwrap_or_else(PoisonError::into_inner).insert(pid, known);
        Self(pid)
    }
}

/// Whoever loses its parent below this process becomes its child.
fn become_subreaper() {
    static SUBREAPER: Once = Once::new();
    SUBREAPER.call_once(|| {
        if let Err(error) = set_child_subreaper(Some(getpid())) {
            warn!("processes that leave their job's process group will not be found: {error}");
        }
    });
}

impl Drop for Registered {
    fn drop(&mut self) {
        WAITED_FOR.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// Ends all that a run has left behind, its own child already dead. Returns once it is gone.
pub(super) fn end(run: Run) {
    let until = Instant::now() + GONE_WITHIN;
    loop {
        let dying = sweep(Some(run));
        if dying.is_empty() {
            return;
        }
        for process in &dying {
            wait_for(process, until);
        }
        if Instant::now() >= until {
            warn!(processes = dying.len(), "processes that a job left behind do not die");
            return;
        }
    }
}

/// Reaps orphans that have died, and kills those of runs that are over: of `ending` too, whose
/// child still waits to be reaped. Returns those that it killed and that are not gone yet.
pub(super) fn sweep(ending: Option<Run>) -> Vec<OwnedFd> {
    let this = getpid().as_raw_pid();
    // Nearly always all are known, and nobody who starts another has to be waited for.
    if ending.is_some() && proc::adopted(this).is_some_and(|children| !has_unknown(&children)) {
        return Vec::new();
    }
    // No child is being started meanwhile, so each is either on the list or nobody waits for it.
    let _none_starts = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    let own_group = getpgrp().as_raw_pid();
    let mut dying = Vec::new();
    for pid in proc::children(this) {
        let known = WAITED_FOR.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains_key(&pid) {
            continue;
        }
        let Some(stat) = Stat::of(pid).filter(|stat| stat.parent == this) else { continue };
        // A child that other code of this process has started, and waits for.
        if stat.group == own_group {
            continue;
        }
        let Some(process) = Pid::from_raw(pid) else { continue };
        if stat.is_dead {
            let _ = waitpid(Some(process), WaitOptions::NOHANG);
        } else if is_over(pid, &stat, ending, &known) {
            dying.extend(kill_tree(process));
        }
    }
    dying
}

/// Whether one of them is a child that nobody waits for, or that is just being started.
fn has_unknown(children: &[i32]) -> bool {
    let known = WAITED_FOR.lock().unwrap_or_else(PoisonError::into_inner);
    children.iter().any(|pid| !known.contains_key(pid))
}

/// Whether an orphan belongs to a run that is over.
fn is_over(pid: i32, stat: &Stat, ending: Option<Run>, known: &BTreeMap<i32, Known>) -> bool {
    let mut others = known.values().filter(|known| known.run.is_some() && known.run != ending);
    match proc::variable(pid, MARK).as_deref().and_then(Run::from_mark) {
        Some(run) => others.all(|other| other.run != Some(run)),
        // It has no mark, or shed it: any job that is older may have started it.
        None => others.all(|other| other.began > stat.began),
    }
}

/// Kills a child of this process and what is below it. A number that is read from its parent's
/// list and used at once is as good as certain; that of a child is certain until it is reaped.
fn kill_tree(process: Pid) -> Option<OwnedFd> {
    let handle = pidfd_open(process, PidfdFlags::empty()).ok()?;
    for below in proc::descendants(process.as_raw_pid()) {
        if let Some(below) = Pid::from_raw(below) {
            let _ = kill_process(below, Signal::KILL);
        }
    }
    kill_process(process, Signal::KILL).ok().map(|()| handle)
}

fn wait_for(process: &OwnedFd, until: Instant) {
    loop {
        let mut waits = [PollFd::new(process, PollFlags::IN)];
        if !matches!(poll(&mut waits, Some(&timeout_until(until))), Err(Errno::INTR)) {
            return;
        }
    }
}
