//! Warm Python: an interpreter that has imported what is slow to import, and of which each job is a
//! fork. It saves the start of the interpreter, the longest part of a short job. A few forks are made
//! ahead and wait, so that a job does not wait for them either.
//!
//! The fork shuts itself into the same cell as a child that is started cold, and is watched, bounded
//! and ended in the same way: its parent between ends at once, so that this process, a subreaper,
//! becomes its parent. A job never depends on all this: whatever goes wrong before its script begins
//! only makes it start cold.

mod parent;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tracing::{debug, warn};

use super::channel::Channel;
use super::child::Spec;
use super::orphans::Run;
use super::prepare::{LOCALE, Prepared};
use super::running::Started;
use crate::config::CommandOptions;
use crate::sandbox::{Restrictions, Sandbox};
use parent::{Parent, Waiting};

/// The wait before a parent that has died is started again, doubled with each failure.
const BACKOFF: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_mins(5);
/// Forks that are made ahead. One takes some milliseconds until it is ready, longer than a short job
/// takes: of two, one is ready while the other is made.
const SPARES: usize = 2;
/// Variables that an interpreter, or a library below it, reads only as it starts.
const READ_AT_START: [&str; 7] = ["PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "GLIBC_", "OPENSSL_"];

/// Keeps a parent ready. A copy is another handle on the same one.
#[derive(Debug, Clone)]
pub(super) struct Warm {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    program: PathBuf,
    /// What stands between the program and the script.
    options: Vec<String>,
    /// What stands after the script.
    args: Vec<String>,
    preload: Vec<String>,
    sandbox: Sandbox,
    state: Mutex<State>,
    failures: AtomicU32,
}

#[derive(Debug)]
enum State {
    /// There is none, and none is started before this time.
    Gone(Instant),
    Starting,
    Ready(Ready),
}

/// A parent, and the forks that are made ahead. Dropping it ends them all, and the thread that makes
/// forks.
#[derive(Debug)]
struct Ready {
    parent: Arc<Parent>,
    /// The oldest first: it is the most likely to be ready.
    spares: VecDeque<Waiting>,
    /// Asks for more of them.
    wanted: SyncSender<()>,
}

/// What the thread that makes spares does.
enum Step {
    Fork(Arc<Parent>),
    Wait,
    End,
}

/// A script that may run as a fork.
#[derive(Debug, Clone, Copy)]
pub struct Warmed<'a> {
    pub(super) warm: &'a Warm,
    pub(super) prepared: &'a Prepared,
}

impl Warmed<'_> {
    /// Runs it as a fork; `None` if it has to be started cold.
    pub(super) fn fork(
        &self,
        run: Run,
        cell: &Restrictions,
        spec: &Spec<'_>,
        channel: Option<(Channel, OwnedFd)>,
    ) -> Option<Started> {
        let its = channel.as_ref().map(|(_, its)| its.as_fd());
        let started =
            self.warm.fork(run, cell, &Job { prepared: self.prepared, spec, channel: its });
        started.map(|started| Started { channel, ..started })
    }
}

/// What a job is beside its cell.
struct Job<'a> {
    prepared: &'a Prepared,
    spec: &'a Spec<'a>,
    /// The writing end of its channel.
    channel: Option<BorrowedFd<'a>>,
}

impl Warm {
    /// For a command of the form `PYTHON OPTIONS {script} ARGUMENTS`; `None` for any other, or if
    /// it is not asked for.
    pub(super) fn new(
        program: &Path,
        command: &[String],
        options: &CommandOptions,
        sandbox: &Sandbox,
    ) -> Option<Self> {
        const SCRIPT: &str = "{script}";
        if !options.warm {
            return None;
        }
        let at = command.iter().position(|word| word == SCRIPT)?;
        let (before, after) = (command.get(1..at)?, command.get(at + 1..)?);
        if after.iter().any(|word| word.contains(SCRIPT)) || !are_options(before) {
            return None;
        }
        let inner = Inner {
            program: program.to_owned(),
            options: before.to_vec(),
            args: after.to_vec(),
            preload: options.preload.clone(),
            sandbox: sandbox.clone(),
            state: Mutex::new(State::Gone(Instant::now())),
            failures: AtomicU32::new(0),
        };
        Some(Self { inner: Arc::new(inner) })
    }

    /// Starts the parent, if it is time to and there is none.
    pub(super) fn warm_up(&self) {
        let mut state = self.lock();
        if matches!(&*state, State::Gone(until) if Instant::now() >= *until) {
            *state = State::Starting;
            drop(state);
            let warm = self.clone();
            let thread = std::thread::Builder::new().name("warm".to_owned());
            if let Err(error) = thread.spawn(move || warm.start()) {
                self.failed(&format!("cannot start a thread: {error}"));
            }
        }
    }

    /// Whether a parent is ready, and all the forks that are made ahead.
    #[cfg(test)]
    pub(super) fn is_ready(&self) -> bool {
        self.spares().len() == SPARES
    }

    /// The process id of the parent.
    #[cfg(test)]
    fn pid(&self) -> Option<i32> {
        match &*self.lock() {
            State::Ready(ready) => Some(ready.parent.pid()),
            _ => None,
        }
    }

    /// The process ids of the forks that wait, the next one first.
    #[cfg(test)]
    fn spares(&self) -> Vec<i32> {
        match &*self.lock() {
            State::Ready(ready) => ready.spares.iter().filter_map(Waiting::pid).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether the parent could not be started.
    #[cfg(test)]
    fn has_failed(&self) -> bool {
        self.inner.failures.load(Ordering::Relaxed) > 0
    }

    /// Runs a job as a fork of the parent; `None` if it has to be started cold.
    fn fork(&self, run: Run, cell: &Restrictions, job: &Job<'_>) -> Option<Started> {
        if !fits(&job.spec.env) {
            return None;
        }
        // Spares may have died while they waited, so a new fork is tried too.
        let mut why = None;
        for may_be_spare in [true, false] {
            let Some((spare, parent, wanted)) = self.take_spare(may_be_spare) else {
                self.warm_up();
                return None;
            };
            let waiting = spare.map_or_else(|| self.fork_of(&parent), Ok);
            match waiting.and_then(|waiting| waiting.begin(run, cell, job, &self.inner.args)) {
                Ok(forked) => {
                    // Where one is asked for already, it is for this job too.
                    let _ = wanted.try_send(());
                    return Some(forked);
                }
                Err(error) => why = Some(error),
            }
        }
        self.failed(&why.map_or_else(String::new, |error| error.to_string()));
        self.warm_up();
        None
    }

    /// The spare that is next, if there is one and it may be one; the parent, and whom to ask for
    /// another. `None` without a parent.
    fn take_spare(
        &self,
        may_be_spare: bool,
    ) -> Option<(Option<Waiting>, Arc<Parent>, SyncSender<()>)> {
        let mut state = self.lock();
        let State::Ready(ready) = &mut *state else { return None };
        let spare = if may_be_spare { ready.spares.pop_front() } else { None };
        Some((spare, Arc::clone(&ready.parent), ready.wanted.clone()))
    }

    /// A new fork.
    fn fork_of(&self, parent: &Parent) -> io::Result<Waiting> {
        parent.fork(self.inner.sandbox.job_group()?)
    }

    /// Starts the parent and makes spares until it is gone; on a thread of its own.
    fn start(self) {
        let inner = &self.inner;
        let parent = Parent::start(&inner.program, &inner.options, &inner.preload, &inner.sandbox);
        match parent {
            Ok(parent) => {
                debug!("a warm interpreter is ready");
                inner.failures.store(0, Ordering::Relaxed);
                let (wanted, asked) = sync_channel(1);
                let ready = Ready {
                    parent: Arc::new(parent),
                    spares: VecDeque::with_capacity(SPARES),
                    wanted,
                };
                *self.lock() = State::Ready(ready);
                let inner = Arc::downgrade(&self.inner);
                drop(self);
                make_spares(&inner, &asked);
            }
            Err(error) => self.failed(&error.to_string()),
        }
    }

    /// What the thread that makes spares does next.
    fn next_step(&self) -> Step {
        match &*self.lock() {
            State::Ready(ready) if ready.spares.len() < SPARES => {
                Step::Fork(Arc::clone(&ready.parent))
            }
            State::Ready(_) => Step::Wait,
            State::Gone(_) | State::Starting => Step::End,
        }
    }

    /// Keeps a fork for a job to come, unless its parent is not the one any more.
    fn keep(&self, parent: &Arc<Parent>, spare: Waiting) {
        if let State::Ready(ready) = &mut *self.lock()
            && Arc::ptr_eq(&ready.parent, parent)
        {
            ready.spares.push_back(spare);
        }
    }

    fn failed(&self, why: &str) {
        let failures = self.inner.failures.fetch_add(1, Ordering::Relaxed);
        let wait = BACKOFF.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX);
        let program = self.inner.program.display();
        warn!("jobs start cold: the warm interpreter {program}: {why}; again in {wait:?}");
        let gone = std::mem::replace(&mut *self.lock(), State::Gone(Instant::now() + wait));
        // What it ends is waited for, which need not hold up anybody.
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whatever panicked, the state was replaced as a whole or not at all.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes spares at once and whenever more are asked for, until the parent is gone. No job waits for
/// that: a fork is made without the lock.
fn make_spares(inner: &Weak<Inner>, asked: &Receiver<()>) {
    loop {
        let Some(inner) = inner.upgrade() else { return };
        let warm = Warm { inner };
        match warm.next_step() {
            Step::Fork(parent) => match warm.fork_of(&parent) {
                Ok(spare) => warm.keep(&parent, spare),
                Err(error) => {
                    warm.failed(&error.to_string());
                    return;
                }
            },
            Step::Wait => {
                drop(warm);
                if asked.recv().is_err() {
                    return;
                }
            }
            Step::End => return,
        }
    }
}

/// Whether these words are options of an interpreter alone, and none that says what it runs.
fn are_options(words: &[String]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            // Their value is the next word, or the rest of this one.
            Some("W" | "X") => {
                words.next();
            }
            Some(option) if option.starts_with(['W', 'X']) => {}
            Some(letters) if !letters.is_empty() && !letters.contains(['-', 'c', 'm']) => {}
            _ => return false,
        }
    }
    true
}

/// Whether a fork can have this environment: some of it has to be there from the start.
fn fits(env: &[(OsString, OsString)]) -> bool {
    env.iter().all(|(name, value)| {
        let is_of_parent = name == LOCALE.0 && value == LOCALE.1;
        let name = name.as_encoded_bytes();
        is_of_parent || !READ_AT_START.iter().any(|start| name.starts_with(start.as_bytes()))
    })
}

/// What a parent did not do.
fn broken(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

#[cfg(test)]
mod tests;
