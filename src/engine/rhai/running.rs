//! The job that runs on this thread: what a script's functions and hooks reach without being
//! handed it. A Rhai call never leaves its thread, so a thread-local is enough.

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::rhai::{Dynamic, EvalAltResult, Map, Position};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use scoped_tls_hkt::scoped_thread_local;

use super::{osis, sal};
use crate::engine::process::Scratch;
use crate::engine::process::timeout_until;
use crate::engine::{Cancel, Failure, Log, Script, StopReason, Stream};

scoped_thread_local!(static RUNNING: for<'a> &'a Running<'a>);

/// How often the clock is looked at, in operations. It costs 25 ns, an operation about as much;
/// and a single operation can take a millisecond, when it copies a string of the largest size.
const OPERATIONS_PER_LOOK: u32 = 16;
/// How often memory is looked at; the look costs about a microsecond.
const MEMORY_LOOK_EVERY: Duration = Duration::from_millis(1);
/// By how much this process may grow while one script runs.
///
/// Rhai bounds each value: with the default limits an array or map holds 10 000 elements, nested
/// ones counted, and 10 MB of text. It bounds no sum: 128 calls deep, 256 variables each, that is
/// 320 GB, and values captured by closures come on top. So the sum is measured. The kernel's
/// figure is the whole process's, and scripts that grow at the same time may be ended for each
/// other's growth; far better than all of them with the actor. Between two looks a script can
/// take sixteen times the largest string more: 160 MB.
const MEMORY_GROWTH_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Why a script is being ended, other than by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Timeout,
    Requested(StopReason),
    TooMuchMemory,
    NestsTooDeeply,
}

/// One run of one script.
pub(super) struct Running<'a> {
    pub(super) script: &'a Script<'a>,
    pub(super) cancel: &'a Cancel,
    pub(super) log: &'a dyn Log,
    /// Set once and never unset: whatever the script does with the error, it has been stopped.
    stop: Cell<Option<Stop>>,
    until_look: Cell<u32>,
    memory_look_at: Cell<Instant>,
    /// The size of the process at the first look, so that a short script never asks for it.
    memory_before: Cell<Option<u64>>,
    /// Made when the script first needs it; gone with the run.
    scratch: OnceCell<Scratch>,
    /// What the script's prerequisites left, as its value: made when it is first asked for.
    inputs: OnceCell<Map>,
    /// Where relative paths start, once the script has chosen.
    folder: RefCell<Option<PathBuf>>,
    /// The context whose objects the script has chosen to use, if not its own.
    pub(super) context: RefCell<Option<String>>,
    /// What the functions of OSIS keep to; none in an engine without them.
    pub(super) osis: Option<&'a osis::Settings>,
    /// How many scripts run each other just now, the first not counted.
    pub(super) scripts_deep: Cell<usize>,
    /// What the functions of SAL keep to; none in an engine without them.
    pub(super) sal: Option<&'a sal::Settings>,
}

impl<'a> Running<'a> {
    pub(super) fn new(
        script: &'a Script<'a>,
        cancel: &'a Cancel,
        log: &'a dyn Log,
        osis: Option<&'a osis::Settings>,
        sal: Option<&'a sal::Settings>,
    ) -> Self {
        Self {
            script,
            cancel,
            log,
            stop: Cell::new(None),
            until_look: Cell::new(OPERATIONS_PER_LOOK),
            memory_look_at: Cell::new(Instant::now() + MEMORY_LOOK_EVERY),
            memory_before: Cell::new(None),
            scratch: OnceCell::new(),
            inputs: OnceCell::new(),
            folder: RefCell::new(None),
            context: RefCell::new(None),
            osis,
            scripts_deep: Cell::new(0),
            sal,
        }
    }

    /// Makes this the job of the thread for as long as `work` takes.
    pub(super) fn enter<R>(&self, work: impl FnOnce() -> R) -> R {
        RUNNING.set(self, work)
    }

    /// Whether it must end now. Cheap enough to be asked at every operation.
    pub(super) fn poll(&self) -> Option<Stop> {
        if let Some(reason) = self.cancel.requested() {
            return Some(self.end(Stop::Requested(reason)));
        }
        let until_look = self.until_look.get();
        if until_look > 0 {
            self.until_look.set(until_look - 1);
            return self.stop.get();
        }
        self.until_look.set(OPERATIONS_PER_LOOK);
        self.look()
    }

    /// As [`Running::poll`], with the clock and memory looked at in any case.
    pub(super) fn look(&self) -> Option<Stop> {
        if let Some(reason) = self.cancel.requested() {
            return Some(self.end(Stop::Requested(reason)));
        }
        let now = Instant::now();
        if now >= self.script.deadline {
            return Some(self.end(Stop::Timeout));
        }
        if now >= self.memory_look_at.get() {
            self.memory_look_at.set(now + MEMORY_LOOK_EVERY);
            if let Some(size) = resident_bytes() {
                let before = self.memory_before.get().unwrap_or(size);
                self.memory_before.set(Some(before));
                if size.saturating_sub(before) > MEMORY_GROWTH_BYTES_MAX {
                    return Some(self.end(Stop::TooMuchMemory));
                }
            }
        }
        self.stop.get()
    }

    /// Marks it as stopped; the first reason stays.
    pub(super) fn end(&self, stop: Stop) -> Stop {
        let first = self.stop.get().unwrap_or(stop);
        self.stop.set(Some(first));
        first
    }

    /// The failure that a stop is, if there was one.
    pub(super) fn stopped(&self) -> Option<Failure> {
        let limit =
            |message: &str| Failure::Script { message: message.to_owned(), exit_code: None };
        self.stop.get().map(|stop| match stop {
            Stop::Timeout => Failure::Timeout,
            Stop::Requested(reason) => Failure::Stopped(reason),
            Stop::TooMuchMemory => limit("too much memory"),
            Stop::NestsTooDeeply => limit("values nested too deeply"),
        })
    }

    /// The script's own folder, where its commands and its relative paths start.
    pub(super) fn scratch(&self) -> io::Result<&Path> {
        if self.scratch.get().is_none() {
            let _ = self.scratch.set(Scratch::new()?);
        }
        let made = self.scratch.get().ok_or(io::ErrorKind::NotFound)?;
        Ok(made.path())
    }

    /// What the script's prerequisites left; `()` for one that did not finish.
    pub(super) fn inputs(&self) -> Map {
        let made = self.inputs.get_or_init(|| {
            let value = |output: &Option<Arc<str>>| {
                output.as_deref().map_or(Dynamic::UNIT, |text| text.to_owned().into())
            };
            let inputs = self.script.inputs.iter();
            inputs.map(|(name, output)| (name.as_str().into(), value(output))).collect()
        });
        made.clone()
    }

    /// The folder that the script has chosen, if it has.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        self.folder.borrow().clone()
    }

    /// Makes `folder` the one in which relative paths start, for this script alone.
    pub(super) fn set_folder(&self, folder: PathBuf) {
        self.folder.replace(Some(folder));
    }

    /// Every line of `text` into the job's log.
    pub(super) fn log_text(&self, stream: Stream, text: &str) {
        if text.is_empty() {
            self.log.line(stream, text);
        }
        for line in text.lines() {
            self.log.line(stream, line);
        }
    }

    /// Waits for `time`, or until the script must end.
    pub(super) fn sleep(&self, time: Duration) -> io::Result<()> {
        let now = Instant::now();
        let until = now.checked_add(time).unwrap_or(self.script.deadline);
        let until = until.min(self.script.deadline);
        let cancelled = self.cancel.descriptor()?;
        loop {
            let mut waits = [PollFd::from_borrowed_fd(cancelled.as_fd(), PollFlags::IN)];
            match poll(&mut waits, Some(&timeout_until(until))) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(()),
            }
        }
    }
}

/// Calls `work` with the job of this thread; none runs while a script is only compiled.
pub(super) fn with<R>(work: impl FnOnce(&Running<'_>) -> R) -> Option<R> {
    RUNNING.is_set().then(|| RUNNING.with(|running| work(running)))
}

/// The error that ends a script and that no script can catch.
pub(super) fn terminated() -> EvalAltResult {
    EvalAltResult::ErrorTerminated(Dynamic::UNIT, Position::NONE)
}

/// How much memory this process has in use, if the kernel says so.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
