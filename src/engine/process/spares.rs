//! Children that are made ahead, where jobs come one after the other: each has a folder of its own,
//! is shut into its cell, and waits for its program. That takes longer than many a job, and is done
//! while nobody waits for it.
//!
//! A job never depends on it: a child that is not there any more, or waits for another program, is
//! no more than time saved in vain. None waits for long, as what its rules name may be replaced.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::child::Spec;
use super::demand::{Demand, FRESH, is_fresh};
use super::orphans::{Registered, Run};
use super::running::{PipeEnds, Running, Started, descriptors};
use super::sandbox::{Newborn, Place, Sandbox};
use super::{Scratch, channel};

/// More than ever wait: a thread makes one when it is done with a job, and takes one when it gets the
/// next.
const SPARES_MAX: usize = 64;

/// The children that one engine has made ahead.
#[derive(Debug)]
pub(super) struct Spares {
    sandbox: Sandbox,
    /// Where a script starts, if not in its own folder.
    cwd: Option<PathBuf>,
    output_bytes_max: u64,
    made: Mutex<Made>,
}

#[derive(Debug, Default)]
struct Made {
    demand: Demand,
    /// The oldest first.
    spares: VecDeque<Spare>,
}

/// A child that was made ahead, and its folder.
#[derive(Debug)]
pub(super) struct Spare {
    // Before the folder that it may be in.
    pub(super) waiting: Box<Waiting>,
    pub(super) scratch: Scratch,
}

/// A child that waits for its program. Dropping it ends it.
#[derive(Debug)]
pub struct Waiting {
    made_at: Instant,
    /// What it may become.
    program: PathBuf,
    /// What it may read beside what its sandbox allows.
    read: Vec<PathBuf>,
    running: Running,
}

impl Spares {
    /// `None` where no child can be made ahead.
    pub(super) fn new(
        sandbox: &Sandbox,
        cwd: Option<&Path>,
        output_bytes_max: u64,
    ) -> Option<Self> {
        let (sandbox, cwd) = (sandbox.clone(), cwd.map(Path::to_owned));
        let spares = Self { sandbox, cwd, output_bytes_max, made: Mutex::default() };
        Newborn::is_supported().then_some(spares)
    }

    /// The one that has waited longest, for a job that comes.
    pub(super) fn take(&self) -> Option<Spare> {
        let now = Instant::now();
        let mut made = self.lock();
        made.demand.comes(now);
        let old = made.take_old(now);
        let spare = made.spares.pop_front();
        drop(made);
        drop(old);
        spare
    }

    /// Makes one for a job to come, if one may be expected. Returns when to call [`Self::put_away`],
    /// if ever.
    pub(super) fn make(&self, program: &Path) -> Option<Duration> {
        let mut made = self.lock();
        let is_wanted = made.demand.ends(Instant::now()) && made.spares.len() < SPARES_MAX;
        drop(made);
        if is_wanted
            // Should it fail, the job that comes will say so.
            && let Ok(spare) = self.spare(program)
        {
            self.lock().spares.push_back(spare);
        }
        self.next_old_in(Instant::now())
    }

    /// Ends those that have become too old. Returns when to call it again, if ever.
    pub(super) fn put_away(&self) -> Option<Duration> {
        let now = Instant::now();
        let old = self.lock().take_old(now);
        // Without the lock: each is waited for.
        drop(old);
        self.next_old_in(now)
    }

    fn next_old_in(&self, now: Instant) -> Option<Duration> {
        let made_at = self.lock().spares.front().map(|spare| spare.waiting.made_at);
        made_at.map(|made_at| (made_at + FRESH).saturating_duration_since(now))
    }

    fn spare(&self, program: &Path) -> io::Result<Spare> {
        let scratch = Scratch::new()?;
        let read: Vec<PathBuf> = self.cwd.iter().cloned().collect();
        let cell = self.sandbox.cell(program, scratch.path(), &read)?;
        let channel = channel::open(Some(self.output_bytes_max))?;
        let (stdout, stderr) = (PipeEnds::open()?, PipeEnds::open()?);
        let null = File::open("/dev/null")?;
        let descriptors = descriptors(&null, &stdout, &stderr, channel.as_ref());
        let cwd = self.cwd.as_deref().unwrap_or_else(|| scratch.path());
        let place = Place { cwd, descriptors: &descriptors };
        let (mut newborn, cgroup) = (None, self.sandbox.lease()?);
        let registered = Registered::adopt(None, || {
            let child = newborn.insert(Newborn::new(&place, cell, cgroup.as_ref())?);
            Ok(child.pid())
        })?;
        let pid = newborn.as_ref().map_or(0, Newborn::pid);
        let started = Started { pid, registered, cgroup, stdout, stderr, channel, newborn };
        let running = Running::new(Run::next(), started)?;
        let (made_at, program) = (Instant::now(), program.to_owned());
        let waiting = Waiting { made_at, program, read, running };
        Ok(Spare { waiting: Box::new(waiting), scratch })
    }

    /// The process ids of those that wait, the next one first.
    #[cfg(test)]
    fn pids(&self) -> Vec<i32> {
        self.lock().spares.iter().map(|spare| spare.waiting.running.pid()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Made> {
        // Nothing panics while it is held.
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Made {
    fn take_old(&mut self, now: Instant) -> Vec<Spare> {
        let spares = &mut self.spares;
        let first = spares.iter().position(|spare| is_fresh(spare.waiting.made_at, now));
        spares.drain(..first.unwrap_or(spares.len())).collect()
    }
}

impl Waiting {
    /// Has its program begin.
    ///
    /// # Errors
    /// It waits for another, or is not there any more: the program does not begin.
    pub(super) fn begin(mut self, spec: &Spec<'_>) -> io::Result<Running> {
        if self.program != spec.program || self.read != spec.read {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.running.begin(spec)?;
        Ok(self.running)
    }
}

#[cfg(test)]
mod tests;
