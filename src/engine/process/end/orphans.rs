//! Finds and kills the processes that a job leaves behind, even those that escaped from its process
//! group with `setsid` or a second fork, or cleared their environment.
//!
//! This process is a child subreaper: a process below it that loses its parent becomes its child. So
//! at the end of a job all that it started are children of this process, or below one. They are told
//! apart by the number of their run, a resource limit that they inherit and cannot change. Without it,
//! as in a Hero below a Hero, by the mark in their environment; without a mark, by the time when they
//! began, as a job starts nothing before itself. Children that other code of this process started are
//! in its own process group.
//!
//! As their new parent this process also reaps orphans, but never a registered child.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::thread::Thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgid, getpgrp, getpid};
use tracing::warn;

use crate::engine::process::proc::{self, Stat};
use crate::engine::process::start::{RegisteredChild, Run, pause_starts, registered};
use crate::sandbox::{pidfd, poll_until};

/// The time that killed processes get to disappear. A process that hangs in the kernel takes longer, and so do many
/// that start others while they are killed; the reaper goes on with these.
const GONE_WITHIN: Duration = Duration::from_secs(2);
/// The interval of the reaper's searches while jobs run.
const REAP_EVERY: Duration = Duration::from_millis(500);
/// The interval while it finds something.
const REAP_AGAIN: Duration = Duration::from_millis(20);
/// The searches in a row that find nothing at the end. In the first, the kernel may have been moving an
/// orphan from its dead parent to this process.
const NOTHING_FOUND: u32 = 2;

#[derive(Debug, Default)]
pub(in crate::process) struct Swept {
    has_found: bool,
    dying: Vec<OwnedFd>,
}

/// Kills all orphans of a run, after its child has died. Returns once they are gone, or are left to the reaper.
pub(in crate::process) fn kill_orphans(run: Run) {
    let until = Instant::now() + GONE_WITHIN;
    let mut nothing_found = 0;
    while nothing_found < NOTHING_FOUND {
        let swept = sweep(Some(run));
        nothing_found = if swept.has_found { 0 } else { nothing_found + 1 };
        for process in &swept.dying {
            let _ = poll_until(&mut [PollFd::new(process.as_fd(), PollFlags::POLLIN)], until);
        }
        if Instant::now() >= until {
            warn!("orphaned processes of a job do not die yet");
            return;
        }
    }
}

/// Wakes the reaper, which searches while jobs run and until nothing is left of them.
pub(in crate::process) fn wake_reaper() {
    static REAPER: OnceLock<Option<Thread>> = OnceLock::new();
    let reaper = REAPER.get_or_init(|| {
        let reaper = std::thread::Builder::new().name("reaper".to_owned()).spawn(reap);
        let reaper = reaper.inspect_err(|error| {
            warn!("cannot start the reaper, orphaned processes are found only at the end of a job: {error}");
        });
        reaper.ok().map(|handle| handle.thread().clone())
    });
    reaper.iter().for_each(Thread::unpark);
}

fn reap() {
    let mut nothing_found = 0;
    loop {
        // Before the search: processes that the last of them leaves are found after it.
        let is_idle = registered().values().all(|child| child.run.is_none());
        nothing_found = if sweep(None).has_found { 0 } else { nothing_found + 1 };
        if nothing_found < NOTHING_FOUND {
            std::thread::park_timeout(REAP_AGAIN);
        } else if is_idle {
            std::thread::park();
        } else {
            std::thread::park_timeout(REAP_EVERY);
        }
    }
}

/// Reaps dead orphans, and kills orphans of runs that are over: `ending` is, although its child is not reaped.
pub(in crate::process) fn sweep(ending: Option<Run>) -> Swept {
    let this = getpid();
    let mut swept = Swept::default();
    // Nearly always all children are registered; then no start has to wait.
    if proc::adopted(this.as_raw()).is_some_and(|pids| all_registered(&pids)) {
        return swept;
    }
    let _paused = pause_starts();
    let own_group = getpgrp();
    let children = proc::children(this.as_raw());
    // Newer than the list of children: a live run of any of them is in it.
    let known = registered();
    // The newest first: one of a chain that forks without end has not forked yet.
    for pid in children.into_iter().rev().filter(|pid| !known.contains_key(pid)) {
        let process = Pid::from_raw(pid);
        // Other code of this process has started one in its own group, and waits for it.
        if getpgid(Some(process)).is_ok_and(|group| group == own_group) {
            continue;
        }
        match waitpid(process, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) if is_over(pid, ending, &known) => {
                // All that it started become children of this process, and are found next.
                let _ = kill(process, Signal::SIGKILL);
                swept.dying.extend(pidfd(process));
                swept.has_found = true;
            }
            Ok(WaitStatus::StillAlive) | Err(_) => {}
            Ok(_) => swept.has_found = true,
        }
    }
    swept
}

fn all_registered(pids: &[i32]) -> bool {
    let known = registered();
    pids.iter().all(|pid| known.contains_key(pid))
}

fn is_over(pid: i32, ending: Option<Run>, known: &BTreeMap<i32, RegisteredChild>) -> bool {
    let mut others = known.values().filter(|known| known.run.is_some() && known.run != ending);
    match Run::of_process(pid) {
        Some(run) => others.all(|other| other.run != Some(run)),
        // Any job that is older may have started it.
        None => Stat::of(pid).is_some_and(|stat| others.all(|other| other.began > stat.began)),
    }
}
