//! Warm Python: an interpreter that has imported slow modules; each job is a fork of it. This saves
//! the start of the interpreter, the longest part of a short job. Forks are made ahead of their jobs.
//!
//! A fork enters the same sandbox as a cold child, and is watched and ended in the same way: the
//! process between it and its parent ends at once, so that this process, a subreaper, adopts it. If
//! anything fails before the script begins, the job starts cold.

mod parent;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tracing::{debug, info, warn};

use self::parent::{Fork, ForkJob, Parent, WaitingFork};
use super::registry::Run;
use super::spec::{Pipes, Spec, Started};
use crate::config::TypeConfig;
use crate::engine::process::prepare::{LOCALE, MODULES, Prepared, SCRIPT, UNBUFFERED};
use crate::sandbox::{Restrictions, Sandbox};

/// The wait before a parent that has died is started again, doubled with each failure.
const BACKOFF: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_mins(5);
/// The forks that are made ahead. With two, one is ready while the other is made, which takes longer
/// than a short job: a second one saves 12 % where jobs come one after the other.
const SPARES: usize = 2;
/// Prefixes of variables that an interpreter, or a library of it, reads only when it starts.
const READ_AT_START: [&str; 7] = ["PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "GLIBC_", "OPENSSL_"];

/// Keeps a parent interpreter ready.
#[derive(Debug)]
pub(in crate::process) struct Warm {
    program: PathBuf,
    /// The words between the program and the script.
    options: Vec<String>,
    /// The words after the script.
    args: Vec<String>,
    preload: Vec<String>,
    sandbox: Sandbox,
    state: Mutex<ParentState>,
    failures: AtomicU32,
}

#[derive(Debug)]
enum ParentState {
    /// No parent; none is started before this time.
    Gone(Instant),
    Starting,
    Ready(ReadyParent),
}

/// A parent and the forks made ahead. Dropping it ends them, and the thread that makes forks.
#[derive(Debug)]
struct ReadyParent {
    parent: Arc<Parent>,
    /// The oldest first: it is the most likely to be ready.
    spares: VecDeque<WaitingFork>,
    /// Asks the thread for more of them.
    wanted: SyncSender<()>,
}

/// A script that may run as a fork.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Warmed<'a> {
    pub(in crate::process) warm: &'a Arc<Warm>,
    pub(in crate::process) prepared: &'a Prepared,
}

impl Warmed<'_> {
    /// Runs it as a fork of the parent; `None` if it has to be started cold.
    pub(super) fn fork(
        &self,
        run: Run,
        restrictions: &Restrictions,
        spec: &Spec<'_>,
        pipes: Pipes,
    ) -> Option<Started> {
        let Self { warm, prepared } = *self;
        let args = [warm.args.as_slice(), &prepared.given_args].concat();
        let job = ForkJob { run, restrictions, spec, prepared, args: &args };
        // The parent may have imported another version of a package of the script.
        let may_hide_packages = prepared.packages.is_some() && !warm.preload.is_empty();
        if may_hide_packages || !fits(&job) || !warm.has_options(&prepared.options) {
            return None;
        }
        // Spares may have died while they waited, so a new fork is tried too.
        let mut why = None;
        for may_be_spare in [true, false] {
            let Some((spare, parent, wanted)) = warm.take_spare(may_be_spare) else {
                warm.warm_up();
                return None;
            };
            let waiting = spare.map_or_else(|| warm.fork_of(&parent), Ok);
            match waiting.and_then(|waiting| waiting.begin(&job, &pipes)) {
                Ok(Fork { pid, registered, group }) => {
                    // If the queue is full, a request is under way already.
                    let _ = wanted.try_send(());
                    return Some(Started { pid, run, registered, group, pipes, is_cold: false });
                }
                Err(error) => why = Some(error),
            }
        }
        warm.failed(&why.map_or_else(String::new, |error| error.to_string()));
        warm.warm_up();
        None
    }
}

impl Warm {
    /// For a command of the form `PYTHON OPTIONS {script} ARGUMENTS` with `warm = true`; else `None`.
    pub(in crate::process) fn new(
        program: &Path,
        config: &TypeConfig,
        sandbox: &Sandbox,
    ) -> Option<Arc<Self>> {
        if !config.warm {
            return None;
        }
        let command = &config.command;
        let at = command.iter().position(|word| word == SCRIPT)?;
        let (before, after) = (command.get(1..at)?, command.get(at + 1..)?);
        if after.iter().any(|word| word.contains(SCRIPT)) || !are_options(before) {
            return None;
        }
        let warm = Self {
            program: program.to_owned(),
            options: before.to_vec(),
            args: after.to_vec(),
            preload: config.preload.clone(),
            sandbox: sandbox.clone(),
            state: Mutex::new(ParentState::Gone(Instant::now())),
            failures: AtomicU32::new(0),
        };
        Some(Arc::new(warm))
    }

    /// Starts the parent if there is none and its backoff is over.
    pub(in crate::process) fn warm_up(self: &Arc<Self>) {
        let mut state = self.lock();
        if matches!(&*state, ParentState::Gone(until) if Instant::now() >= *until) {
            *state = ParentState::Starting;
            drop(state);
            let warm = Arc::clone(self);
            let thread = std::thread::Builder::new().name("warm".to_owned());
            if let Err(error) = thread.spawn(move || warm.start()) {
                self.failed(&format!("cannot start a thread: {error}"));
            }
        }
    }

    /// Returns true if the parent runs with these options. `-u` is what [`UNBUFFERED`] says already.
    fn has_options(&self, options: &[OsString]) -> bool {
        let is_own = |asked: &OsString| self.options.iter().any(|own| asked == own.as_str());
        options.iter().all(|asked| asked == "-u" || is_own(asked))
    }

    /// Takes the next spare if there is one, the parent, and the sender that asks for more. `None` without a parent.
    fn take_spare(
        &self,
        may_be_spare: bool,
    ) -> Option<(Option<WaitingFork>, Arc<Parent>, SyncSender<()>)> {
        let mut state = self.lock();
        let ParentState::Ready(ready) = &mut *state else { return None };
        if let Some(file) = ready.parent.modules.changed() {
            info!("starts another warm interpreter: {} has changed", file.display());
            let gone = std::mem::replace(&mut *state, ParentState::Gone(Instant::now()));
            // Ends its processes and waits for them, so the lock is released before.
            drop(state);
            drop(gone);
            return None;
        }
        let spare = if may_be_spare { ready.spares.pop_front() } else { None };
        Some((spare, Arc::clone(&ready.parent), ready.wanted.clone()))
    }

    fn fork_of(&self, parent: &Parent) -> io::Result<WaitingFork> {
        parent.fork(self.sandbox.job_group()?)
    }

    /// Starts the parent and makes spares until it is gone. Runs on a thread of its own.
    fn start(self: Arc<Self>) {
        match Parent::start(&self.program, &self.options, &self.preload, &self.sandbox) {
            Ok(parent) => {
                debug!("a warm interpreter is ready");
                self.failures.store(0, Ordering::Relaxed);
                let (wanted, asked) = sync_channel(1);
                let ready = ReadyParent {
                    parent: Arc::new(parent),
                    spares: VecDeque::with_capacity(SPARES),
                    wanted,
                };
                *self.lock() = ParentState::Ready(ready);
                let warm = Arc::downgrade(&self);
                drop(self);
                make_spares(&warm, &asked);
            }
            Err(error) => self.failed(&error.to_string()),
        }
    }

    /// Keeps a spare, unless its parent has been replaced.
    fn keep(&self, parent: &Arc<Parent>, spare: WaitingFork) {
        if let ParentState::Ready(ready) = &mut *self.lock()
            && Arc::ptr_eq(&ready.parent, parent)
        {
            ready.spares.push_back(spare);
        }
    }

    fn failed(&self, why: &str) {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed);
        let wait = BACKOFF.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX);
        let program = self.program.display();
        warn!("warm interpreter {program} failed ({why}); jobs start cold, retrying in {wait:?}");
        let gone = std::mem::replace(&mut *self.lock(), ParentState::Gone(Instant::now() + wait));
        // Ends its processes and waits for them, so the lock is released before.
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, ParentState> {
        // The state is only replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes spares until the parent is gone. Forks are made without the lock, so that no job waits.
fn make_spares(warm: &Weak<Warm>, asked: &Receiver<()>) {
    loop {
        let Some(warm) = warm.upgrade() else { return };
        let parent = match &*warm.lock() {
            ParentState::Ready(ready) if ready.spares.len() < SPARES => Some(ready.parent.clone()),
            ParentState::Ready(_) => None,
            ParentState::Gone(_) | ParentState::Starting => return,
        };
        let Some(parent) = parent else {
            drop(warm);
            if asked.recv().is_err() {
                return;
            }
            continue;
        };
        match warm.fork_of(&parent) {
            Ok(spare) => warm.keep(&parent, spare),
            Err(error) => return warm.failed(&error.to_string()),
        }
    }
}

/// Returns whether all words are options of the interpreter, and none selects the program to run.
fn are_options(words: &[String]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            // The value is the next word, or the rest of this one.
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

/// Returns whether a fork can have this environment: some variables count only at the start.
fn fits(job: &ForkJob<'_>) -> bool {
    job.spec.env.iter().all(|(name, value)| {
        let is_of_parent = [LOCALE, UNBUFFERED].iter().any(|of| name == of.0 && value == of.1)
            || (name == MODULES && value == job.prepared.modules.as_os_str());
        let name = name.as_encoded_bytes();
        is_of_parent || !READ_AT_START.iter().any(|start| name.starts_with(start.as_bytes()))
    })
}

#[cfg(test)]
mod tests;
