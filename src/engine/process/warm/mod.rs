//! Warm Python: an interpreter that has imported what is slow to import, and of which each job is a
//! fork. It saves the start of the interpreter, the longest part of a short job.
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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::{debug, warn};

use super::child::Spec;
use super::orphans::{Registered, Run};
use super::prepare::Prepared;
use super::sandbox::Cell;
use crate::config::CommandOptions;
use parent::Parent;

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
    state: Mutex<State>,
    failures: AtomicU32,
}

#[derive(Debug)]
enum State {
    /// There is none, and none is started before this time.
    Gone(Instant),
    Starting,
    Ready(Parent),
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
    ) -> Option<Forked> {
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

/// A job that runs.
#[derive(Debug)]
pub(super) struct Forked {
    pub(super) pid: i32,
    pub(super) registered: Registered,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

impl Warm {
    /// For a command of the form `PYTHON OPTIONS {script} ARGUMENTS`; `None` for any other, or if
    /// it is not asked for.
    pub(super) fn new(
        program: &Path,
        command: &[String],
        options: &CommandOptions,
    ) -> Option<Self> {
        const SCRIPT: &str = "{script}";
        if !options.warm {
            return None;
        }
        let at = command.iter().position(|word| word == SCRIPT)?;
        let (before, after) = (command.get(1..at)?, command.get(at + 1..)?);
        if after.iter().any(|word| word.contains(SCRIPT)) {
            return None;
        }
        let inner = Inner {
            program: program.to_owned(),
            options: before.to_vec(),
            args: after.to_vec(),
            preload: options.preload.clone(),
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

    /// Whether a parent is ready.
    #[cfg(test)]
    pub(super) fn is_ready(&self) -> bool {
        matches!(&*self.lock(), State::Ready(_))
    }

    /// The process id of the parent.
    #[cfg(test)]
    fn pid(&self) -> Option<i32> {
        match &*self.lock() {
            State::Ready(parent) => Some(parent.pid()),
            _ => None,
        }
    }

    /// Whether the parent could not be started.
    #[cfg(test)]
    fn has_failed(&self) -> bool {
        self.inner.failures.load(Ordering::Relaxed) > 0
    }

    /// Runs a job as a fork of the parent; `None` if it has to be started cold.
    fn fork(&self, run: Run, cell: &Cell, job: &Job<'_>) -> Option<Forked> {
        if !fits(&job.spec.env) {
            return None;
        }
        let mut state = self.lock();
        let State::Ready(parent) = &mut *state else {
            drop(state);
            self.warm_up();
            return None;
        };
        let forked = parent.fork(run, cell, job.channel.as_ref());
        match forked {
            Ok(forked) => {
                drop(state);
                match forked.begin(run, cell, job, &self.inner.args) {
                    Ok(forked) => Some(forked),
                    Err(error) => {
                        self.failed(&error.to_string());
                        None
                    }
                }
            }
            Err(error) => {
                drop(state);
                self.failed(&error.to_string());
                self.warm_up();
                None
            }
        }
    }

    fn start(&self) {
        let inner = &self.inner;
        match Parent::start(&inner.program, &inner.options, &inner.preload) {
            Ok(parent) => {
                debug!("a warm interpreter is ready");
                inner.failures.store(0, Ordering::Relaxed);
                *self.lock() = State::Ready(parent);
            }
            Err(error) => self.failed(&error.to_string()),
        }
    }

    fn failed(&self, why: &str) {
        let failures = self.inner.failures.fetch_add(1, Ordering::Relaxed);
        let wait = BACKOFF.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX);
        let program = self.inner.program.display();
        warn!("jobs start cold: the warm interpreter {program}: {why}; again in {wait:?}");
        *self.lock() = State::Gone(Instant::now() + wait);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whatever panicked, the state was replaced as a whole or not at all.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
