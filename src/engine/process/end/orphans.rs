//! Finds and kills the processes that a job leaves behind, even those that escaped from its process
//! group with `setsid` or a second fork, or cleared their environment.
//!
//! This process is a child subreaper: a process below it that loses its parent becomes its child. So
//! at the end of a job all that it started are children of this process, or below one. They are told
//! apart by the mark in their environment; without a mark, by the time when they began, as a job
//! starts nothing before itself. Children that other code of this process started are in its own
//! process group.
//!
//! As their new parent this process also reaps orphans, but never a registered child.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpgrp, getpid};
use tracing::warn;

use crate::engine::process::deadline::poll_until;
use crate::engine::process::proc::{self, Stat};
use crate::engine::process::start::{MARK, RegisteredChild, Run, pause_starts, registered};
use crate::sandbox::pidfd;

/// The time that killed processes get to disappear. Only one that hangs in the kernel takes longer.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// Kills all that a run has left behind, after its child has died. Returns once it is gone.
pub(in crate::engine::process) fn kill_orphans(run: Run) {
    let until = Instant::now() + GONE_WITHIN;
    loop {
        let dying = sweep(Some(run));
        if dying.is_empty() {
            return;
        }
        for process in &dying {
            let _ = poll_until(&mut [PollFd::new(process.as_fd(), PollFlags::POLLIN)], until);
        }
        if Instant::now() >= until {
            warn!(processes = dying.len(), "processes that a job left behind do not die");
            return;
        }
    }
}

/// Reaps dead orphans and kills those of runs that are over. `ending` is a run that is over although
/// its child has not been reaped. Returns the killed processes that still exist.
pub(in crate::engine::process) fn sweep(ending: Option<Run>) -> Vec<OwnedFd> {
    let this = getpid();
    // Nearly always all children are registered; then no start has to wait.
    if ending.is_some() && proc::adopted(this.as_raw()).is_some_and(|pids| all_registered(&pids)) {
        return Vec::new();
    }
    let _paused = pause_starts();
    let own_group = getpgrp();
    let mut dying = Vec::new();
    for pid in proc::children(this.as_raw()) {
        // Newer than the list of children: a live run of any of them is in it.
        let known = registered();
        if known.contains_key(&pid) {
            continue;
        }
        let Some(stat) = Stat::of(pid).filter(|stat| stat.parent == this.as_raw()) else {
            continue;
        };
        // Other code of this process has started it, and waits for it.
        if stat.group == own_group.as_raw() {
            continue;
        }
        if stat.is_dead {
            let _ = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
        } else if is_over(pid, &stat, ending, &known) {
            dying.extend(kill_tree(Pid::from_raw(pid)));
        }
    }
    dying
}

fn all_registered(pids: &[i32]) -> bool {
    let known = registered();
    pids.iter().all(|pid| known.contains_key(pid))
}

/// Returns whether an orphan belongs to a run that is over.
fn is_over(
    pid: i32,
    stat: &Stat,
    ending: Option<Run>,
    known: &BTreeMap<i32, RegisteredChild>,
) -> bool {
    let mut others = known.values().filter(|known| known.run.is_some() && known.run != ending);
    match proc::variable(pid, MARK).as_deref().and_then(Run::from_mark) {
        Some(run) => others.all(|other| other.run != Some(run)),
        // Any job that is older may have started it.
        None => others.all(|other| other.began > stat.began),
    }
}

/// Kills a child of this process and all below it. The id of a child is not reused until it is
/// reaped; that of a descendant is read from its parent's list and used at once.
fn kill_tree(process: Pid) -> Option<OwnedFd> {
    let handle = pidfd(process).ok()?;
    for below in proc::descendants(process.as_raw()) {
        let _ = kill(Pid::from_raw(below), Signal::SIGKILL);
    }
    kill(process, Signal::SIGKILL).ok().map(|()| handle)
}
