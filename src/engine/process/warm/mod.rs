//! Warm Python: an interpreter that has imported what is slow to import, and of which each job is a
//! fork. It saves the start of the interpreter, the longest part of a short job. One fork is made
//! ahead and waits, so that a job does not wait for it either.
//!
//! The fork shuts itself into the same cell as a child that is started cold, and is watched, bounded
//! and ended in the same way: its parent between ends at once, so that this process, a subreaper,
//! becomes its parent. A job never depends on all this: whatever goes wrong before its script begins
//! only makes it start cold.

mod parent;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tracing::{debug, warn};

use super::child::{Spec, Started};
use super::orphans::Run;
use super::prepare::Prepared;
use super::sandbox::{Cell, Sandbox};
use crate::config::CommandOptions;
use parent::{Parent, Waiting};

/// The wait before a parent that has died is started again, doubled with each failure.
const BACKOFF: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_mins(5);
/// Variables that an interpreter, or a library below it, reads only as it starts.
const READ_AT_START: [&str; 7] =
    ["PYTHON", "LC_", "LANGUAGE", "LD_", "MALLOC_", "GLIBC_", "OPENSSL_"];
/// The locale of the parent, which is that of every job that does not say otherwise.
const LOCALE: &str = "C.UTF-8";

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

/// A parent, and the fork that is made ahead. Dropping it ends both, and the thread that makes forks.
#[derive(Debug)]
struct Ready {
    parent: Parent,
    spare: Option<Waiting>,
    /// Asks for the next spare.
    wanted: SyncSender<()>,
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
        cell: &Cell,
        spec: &Spec<'_>,
        channel: Option<OwnedFd>,
    ) -> Option<Started> {
        self.warm.fork(run, cell, &Job { prepared: self.prepared, spec, channel })
    }
}

/// What a job is beside its cell.
struct Job<'a> {
    prepared: &'a Prepared,
    spec: &'a Spec<'a>,
    /// The writing end of its channel.
    channel: Option<OwnedFd>,
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

    /// Whether a parent is ready, and a fork of it.
    #[cfg(test)]
    pub(super) fn is_ready(&self) -> bool {
        self.spare().is_some()
    }

    /// The process id of the parent.
    #[cfg(test)]
    fn pid(&self) -> Option<i32> {
        match &*self.lock() {
            State::Ready(ready) => Some(ready.parent.pid()),
            _ => None,
        }
    }

    /// The process id of the fork that waits.
    #[cfg(test)]
    fn spare(&self) -> Option<i32> {
        match &*self.lock() {
            State::Ready(ready) => ready.spare.as_ref().and_then(Waiting::pid),
            _ => None,
        }
    }

    /// Whether the parent could not be started.
    #[cfg(test)]
    fn has_failed(&self) -> bool {
        self.inner.failures.load(Ordering::Relaxed) > 0
    }

    /// Runs a job as a fork of the parent; `None` if it has to be started cold.
    fn fork(&self, run: Run, cell: &Cell, job: &Job<'_>) -> Option<Started> {
        if !fits(&job.spec.env) {
            return None;
        }
        // A spare may have died while it waited, so a new fork is tried too.
        let mut why = None;
        for may_be_spare in [true, false] {
            let (waiting, wanted) = match self.waiting(may_be_spare)? {
                Ok(waiting) => waiting,
                Err(error) => {
                    why = Some(error);
                    break;
                }
            };
            match waiting.begin(run, cell, job, &self.inner.args) {
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

    /// A fork that waits for a job, the spare if there is one, else a new one; and whom to ask for
    /// the next spare. `None` without a parent.
    fn waiting(&self, may_be_spare: bool) -> Option<io::Result<(Waiting, SyncSender<()>)>> {
        let mut state = self.lock();
        let State::Ready(ready) = &mut *state else {
            drop(state);
            self.warm_up();
            return None;
        };
        let spare = ready.spare.take().filter(|_| may_be_spare);
        let new = || self.fork_of(&ready.parent);
        let waiting = spare.map_or_else(new, Ok);
        Some(waiting.map(|waiting| (waiting, ready.wanted.clone())))
    }

    /// A new fork.
    fn fork_of(&self, parent: &Parent) -> io::Result<Waiting> {
        parent.fork(self.inner.sandbox.lease()?)
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
                *self.lock() = State::Ready(Ready { parent, spare: None, wanted });
                let inner = Arc::downgrade(&self.inner);
                drop(self);
                make_spares(&inner, &asked);
            }
            Err(error) => self.failed(&error.to_string()),
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

/// Makes a spare at once and whenever one is asked for, until the parent is gone.
fn make_spares(inner: &Weak<Inner>, asked: &Receiver<()>) {
    loop {
        let Some(inner) = inner.upgrade() else { return };
        let warm = Warm { inner };
        let failed = match &mut *warm.lock() {
            State::Ready(ready) if ready.spare.is_none() => match warm.fork_of(&ready.parent) {
                Ok(spare) => {
                    ready.spare = Some(spare);
                    None
                }
                Err(error) => Some(error),
            },
            State::Ready(_) => None,
            State::Gone(_) | State::Starting => return,
        };
        if let Some(error) = failed {
            warm.failed(&error.to_string());
            return;
        }
        drop(warm);
        if asked.recv().is_err() {
            return;
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
        let name = name.as_encoded_bytes();
        match name {
            b"LANG" => value == LOCALE,
            name => !READ_AT_START.iter().any(|start| name.starts_with(start.as_bytes())),
        }
    })
}

/// What a parent did not do.
fn broken(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

#[cfg(test)]
mod tests;
