//! Ends a child and all that it started: asks it, kills it, reaps it, and finds its orphans.

mod explain;
mod files;
mod message;
mod orphans;
mod reason;
mod traceback;

pub(crate) use explain::{Ending, Explainer, with_path};
pub(super) use explain::{ModuleFolders, missing_of_own_folder};
pub(super) use files::{Collected, collect};
pub(super) use message::{above_the_job, describe, job_output, log_output, missing_for_processes};
pub(crate) use message::{exceeded_message, failed_message, output_text};
#[cfg(test)]
pub(super) use orphans::sweep;
pub(super) use traceback::error_of;

use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use self::orphans::{kill_orphans, wake_reaper};
use super::start::{Registered, Run};
use super::watch::Ended;
use crate::engine::{StopReason, Usage};
use crate::sandbox::{self, JobGroup, Limit};

/// The longest wait for a child without a tick.
const TICK_MAX: Duration = Duration::from_mins(1);

/// The process of a child until it is reaped. Dropping it kills and reaps the child.
#[derive(Debug)]
pub(super) struct ChildProcess {
    pid: Pid,
    run: Run,
    /// Keeps the child from being taken for an orphan.
    _registered: Registered,
    /// Holds all that the child started, if jobs have control groups.
    pub(super) group: Option<JobGroup>,
    why: Option<Ended>,
    /// The time to kill the child; `None` before it was asked to end and after it was killed.
    kill_at: Option<Instant>,
    is_reaped: bool,
}

impl ChildProcess {
    pub(super) fn new(pid: Pid, run: Run, registered: Registered, group: Option<JobGroup>) -> Self {
        wake_reaper();
        let (why, kill_at, is_reaped) = (None, None, false);
        Self { pid, run, _registered: registered, group, why, kill_at, is_reaped }
    }

    pub(super) fn is_ending(&self) -> bool {
        self.why.is_some()
    }

    pub(super) fn next_tick(&self) -> Instant {
        self.kill_at.unwrap_or_else(|| Instant::now() + TICK_MAX)
    }

    /// The time when orphaned processes of the exited child are killed: after `grace` or at the `deadline`,
    /// or at the end of the grace that Hero gave the child already.
    pub(super) fn leftovers_end(&self, grace: Duration, deadline: Instant) -> Instant {
        let now = Instant::now();
        match (self.why, self.kill_at) {
            (None, _) => deadline.min(now + grace),
            (Some(_), Some(at)) => at,
            (Some(_), None) => now,
        }
    }

    pub(super) fn tick(&mut self) {
        if self.kill_at.is_some_and(|at| Instant::now() >= at) {
            self.kill();
        }
    }

    /// Asks the child to end, and kills it after the grace; at once if another actor may have its job already.
    pub(super) fn ask_to_end(&mut self, why: Ended, grace: Duration) {
        self.why = Some(why);
        if why == Ended::Stopped(StopReason::LeaseLost) {
            self.kill();
        } else {
            let _ = killpg(self.pid, Signal::SIGTERM);
            // A stopped process would not notice the request.
            let _ = killpg(self.pid, Signal::SIGCONT);
            self.kill_at = Some(Instant::now() + grace);
        }
    }

    fn kill(&mut self) {
        let _ = killpg(self.pid, Signal::SIGKILL);
        self.group.iter().for_each(JobGroup::kill);
        self.kill_at = None;
    }

    /// Kills the child and all that it started. Until it is reaped its id is not reused.
    pub(super) fn kill_all(&mut self) {
        self.kill();
        kill_orphans(self.run);
    }

    pub(super) fn reap(&mut self) -> io::Result<(ExitStatus, Usage)> {
        let reaped = sandbox::reap(self.pid)?;
        self.is_reaped = true;
        Ok(reaped)
    }

    /// The reason of the end: `too_much_output` counts if nothing came before it.
    pub(super) fn ended(&self, too_much_output: bool) -> Ended {
        let last = if too_much_output { Ended::Exceeded(Limit::Output) } else { Ended::Itself };
        self.why.unwrap_or(last)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.kill_all();
            // It may not be in a group of its own yet.
            let _ = kill(self.pid, Signal::SIGKILL);
            let _ = waitpid(self.pid, None);
        }
    }
}

/// Asks a process that is not a child to end. Fails if it does not exist, or belongs to another user.
pub(crate) fn ask_to_end(pid: i32) -> io::Result<()> {
    if pid <= 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(kill(Pid::from_raw(pid), Signal::SIGTERM)?)
}
