//! The run of one script, held by its thread: hooks and functions reach it without a parameter,
//! because a Rhai call never leaves its thread.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ::rhai::{Dynamic, EvalAltResult, FLOAT, Map, Position};
use fastrand::Rng;
use jiff::Timestamp;
use nix::poll::{PollFd, PollFlags};
use scoped_tls_hkt::scoped_thread_local;
use serde_json::Value as Json;

use super::memory::resident_bytes;
use super::settings::SalSettings;
use crate::config::{RhaiLimits, format_size};
use crate::engine::process::Scratch;
use crate::engine::{Backends, Cancel, Failure, Log, STACK_SIZE_BYTES, Script, StopReason, Stream};
use crate::proto::text::sha256;
use crate::sandbox::poll_until;

scoped_thread_local!(static RUN: for<'a> &'a ScriptRun<'a>);

/// Operations between two reads of the clock. A read costs 25 ns, about as much as an operation;
/// but one operation can take many milliseconds, when it copies a string of the maximum size.
const OPERATIONS_PER_CHECK: u32 = 4;
/// The time between two reads of the memory usage; a read costs about a microsecond.
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// The time between two checks for a stop while a script waits for a message.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The stack that a script may use to evaluate. The rest of its thread's stack is for values, which
/// are copied, measured and dropped without a check.
///
/// Tests run the deepest nesting that the default limits allow, 128 calls in deep expressions: it
/// takes 16 to 32 MiB.
const EVALUATION_STACK_BYTES_MAX: usize = 56 * 1024 * 1024;
/// The stack for one of the values that are nested in each other. A map in a map takes 610 bytes
/// while it is measured, more than copying or dropping it takes.
const STACK_BYTES_PER_VALUE: usize = 1024;

/// Returns the stack that a thread needs to run scripts with these limits. Rhai counts the elements of
/// nested arrays, and the entries of nested maps: so many can be nested in each other.
pub(crate) fn stack_bytes(limits: &RhaiLimits) -> usize {
    STACK_SIZE_BYTES + (limits.array_len_max + limits.map_len_max) * STACK_BYTES_PER_VALUE
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Timeout,
    Requested(StopReason),
    TooMuchMemory,
    NestsTooDeeply,
    /// The script asked for it: [`ScriptRun::give_up`].
    Asked,
}

pub(crate) struct ScriptRun<'a> {
    pub(crate) script: &'a Script<'a>,
    pub(crate) cancel: &'a Cancel,
    pub(crate) log: &'a dyn Log,
    /// The limits of the script type. Its `memory` is the growth of this process that ends the script.
    ///
    /// Rhai limits each value, and not their sum: 256 variables in each of 128 nested calls could
    /// have 100 MB each, and closures capture more. So the sum is measured. The kernel only reports the
    /// whole process, so scripts that grow at the same time may end each other; that is better than
    /// losing the actor. Between two checks a script can allocate four strings of the maximum size.
    pub(crate) limits: &'a RhaiLimits,
    /// Set once and never cleared, so a script that catches the error is still stopped.
    stop: Cell<Option<Stop>>,
    asked: OnceCell<Failure>,
    operations_until_check: Cell<u32>,
    memory_check_at: Cell<Instant>,
    /// The memory of the process at the first check; a short script never reads it.
    memory_before: Cell<Option<u64>>,
    stack_start: usize,
    /// Created at the first use, removed with the run.
    scratch: OnceCell<Scratch>,
    /// The outputs of the prerequisites as a script value, created at the first use.
    inputs: OnceCell<Map>,
    /// The parameters of the job as a script value, created at the first use.
    params: OnceCell<Map>,
    /// The start of relative paths, once the script has called `chdir`.
    pub(crate) folder: RefCell<Option<PathBuf>>,
    /// The context whose objects the script uses, if it has called `osis_use`.
    pub(crate) context: RefCell<Option<String>>,
    /// The ids of objects that the script has made by `osis_new`; and by context, type and id the versions that it has stored
    /// of them.
    pub(crate) made: RefCell<HashMap<String, u64>>,
    /// The random numbers of this attempt, created at the first use.
    generator: OnceCell<RefCell<Rng>>,
    pub(crate) exec_depth: Cell<usize>,
    /// `None` in an engine without the functions of `osis`.
    pub(crate) osis: Option<&'a Backends>,
    /// `None` in an engine without the functions of `sal`.
    pub(crate) sal: Option<&'a SalSettings>,
}

/// Returns the random numbers of an attempt: the same for each run of a job with the same id, attempt and start.
fn generator_of(script: &Script<'_>) -> Rng {
    let start = script.started_at.unwrap_or_else(Timestamp::now).as_microsecond();
    let text = format!("hero attempt {} {} {start}", script.job_id, script.attempt);
    let seed = u64::from_str_radix(&sha256(text)[..16], 16);
    seed.map_or_else(|_| Rng::new(), Rng::with_seed)
}

impl<'a> ScriptRun<'a> {
    pub(crate) fn new(
        script: &'a Script<'a>,
        cancel: &'a Cancel,
        log: &'a dyn Log,
        limits: &'a RhaiLimits,
        osis: Option<&'a Backends>,
        sal: Option<&'a SalSettings>,
    ) -> Self {
        Self {
            script,
            cancel,
            log,
            stop: Cell::new(None),
            asked: OnceCell::new(),
            operations_until_check: Cell::new(OPERATIONS_PER_CHECK),
            memory_check_at: Cell::new(Instant::now() + MEMORY_CHECK_INTERVAL),
            limits,
            memory_before: Cell::new(None),
            stack_start: stack_address(),
            scratch: OnceCell::new(),
            inputs: OnceCell::new(),
            params: OnceCell::new(),
            folder: RefCell::new(None),
            context: RefCell::new(None),
            made: RefCell::default(),
            generator: OnceCell::new(),
            exec_depth: Cell::new(0),
            osis,
            sal,
        }
    }

    pub(crate) fn generator(&self) -> &RefCell<Rng> {
        self.generator.get_or_init(|| RefCell::new(generator_of(self.script)))
    }

    pub(crate) fn enter<R>(&self, work: impl FnOnce() -> R) -> R {
        RUN.set(self, work)
    }

    /// Returns the reason to stop, if there is one. Cheap enough to call at every operation.
    pub(crate) fn poll(&self) -> Option<Stop> {
        if let Some(reason) = self.cancel.requested() {
            return Some(self.end(Stop::Requested(reason)));
        }
        // Comparing and printing values recurse for each level, and `eval` for each text in it.
        if self.stack_start.abs_diff(stack_address()) > EVALUATION_STACK_BYTES_MAX {
            return Some(self.end(Stop::NestsTooDeeply));
        }
        let operations = self.operations_until_check.get();
        if operations > 0 {
            self.operations_until_check.set(operations - 1);
            return self.stop.get();
        }
        self.operations_until_check.set(OPERATIONS_PER_CHECK);
        self.check_now()
    }

    /// Does what [`ScriptRun::poll`] does, and always reads the clock and the memory usage.
    pub(crate) fn check_now(&self) -> Option<Stop> {
        if let Some(reason) = self.cancel.requested() {
            return Some(self.end(Stop::Requested(reason)));
        }
        let now = Instant::now();
        if now >= self.script.deadline {
            return Some(self.end(Stop::Timeout));
        }
        if now >= self.memory_check_at.get() {
            self.memory_check_at.set(now + MEMORY_CHECK_INTERVAL);
            if let Some(size) = resident_bytes() {
                let before = self.memory_before.get().unwrap_or(size);
                self.memory_before.set(Some(before));
                if size.saturating_sub(before) > self.limits.memory {
                    return Some(self.end(Stop::TooMuchMemory));
                }
            }
        }
        self.stop.get()
    }

    /// Marks the run as stopped and returns the reason; the first one counts.
    pub(crate) fn end(&self, stop: Stop) -> Stop {
        let first = self.stop.get().unwrap_or(stop);
        self.stop.set(Some(first));
        first
    }

    /// Stops the run with a failure that the script asks for; the first one counts.
    pub(crate) fn give_up(&self, failure: Failure) {
        let _ = self.asked.set(failure);
        self.end(Stop::Asked);
    }

    pub(crate) fn stopped(&self) -> Option<Failure> {
        self.stop.get().map(|stop| match stop {
            Stop::Timeout => Failure::Timeout,
            Stop::Requested(reason) => Failure::Stopped(reason),
            Stop::TooMuchMemory => Failure::script(format!(
                "too much memory: more than {}, the limit type.NAME.limits.memory",
                format_size(self.limits.memory)
            )),
            Stop::NestsTooDeeply => Failure::script("values or calls nested too deeply"),
            Stop::Asked => self
                .asked
                .get()
                .cloned()
                .unwrap_or_else(|| Failure::script("stopped by the script")),
        })
    }

    /// Returns the script's own folder, where its commands and its relative paths start.
    pub(crate) fn scratch(&self) -> io::Result<&Path> {
        if let Some(made) = self.scratch.get() {
            return Ok(made.path());
        }
        let made = Scratch::new()?;
        Ok(self.scratch.get_or_init(|| made).path())
    }

    /// Returns the outputs of the prerequisites; `()` for a job that did not finish.
    pub(crate) fn inputs(&self) -> Map {
        let made = self.inputs.get_or_init(|| {
            let value = |output: &Option<Arc<str>>| {
                output.as_deref().map_or(Dynamic::UNIT, |text| text.to_owned().into())
            };
            let inputs = self.script.inputs.by_name.iter();
            inputs.map(|(name, output)| (name.as_str().into(), value(output))).collect()
        });
        made.clone()
    }

    pub(crate) fn params(&self) -> Map {
        let params = self.script.params.iter();
        let made = || params.map(|(name, value)| (name.as_str().into(), dynamic(value))).collect();
        self.params.get_or_init(made).clone()
    }

    pub(crate) fn log_text(&self, stream: Stream, text: &str) {
        if text.is_empty() {
            self.log.line(stream, text);
        }
        for line in text.lines() {
            self.log.line(stream, line);
        }
    }

    pub(crate) fn sleep(&self, time: Duration) -> io::Result<()> {
        let until = Instant::now().checked_add(time).unwrap_or(self.script.deadline);
        let cancelled = PollFd::new(self.cancel.descriptor()?, PollFlags::POLLIN);
        poll_until(&mut [cancelled], until.min(self.script.deadline))?;
        Ok(())
    }

    /// Waits for a message; `None` if none can come any more. The error is the reason to stop the script.
    pub(crate) fn receive<T>(&self, messages: &Receiver<T>) -> Result<Option<T>, Stop> {
        loop {
            match messages.recv_timeout(STOP_CHECK_INTERVAL) {
                Ok(message) => return Ok(Some(message)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => self.check_now().map_or(Ok(()), Err)?,
            }
        }
    }
}

/// Calls `work` with the run of this thread; `None` if no script runs, as while one is only checked.
pub(crate) fn with<R>(work: impl FnOnce(&ScriptRun<'_>) -> R) -> Option<R> {
    RUN.is_set().then(|| RUN.with(|run| work(run)))
}

/// Returns an address in the frame of this function.
#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

/// Returns the error that ends a script and that no script can catch.
pub(crate) fn terminated() -> EvalAltResult {
    EvalAltResult::ErrorTerminated(Dynamic::UNIT, Position::NONE)
}

/// Returns a value of JSON as one of Rhai. Its parser has bounded its size and its nesting.
pub(crate) fn dynamic(value: &Json) -> Dynamic {
    match value {
        Json::Null => Dynamic::UNIT,
        Json::Bool(truth) => (*truth).into(),
        Json::Number(number) => match number.as_i64() {
            Some(int) => int.into(),
            None => number.as_f64().unwrap_or(FLOAT::NAN).into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(values) => Dynamic::from_array(values.iter().map(dynamic).collect()),
        Json::Object(entries) => {
            let entry = |(name, value): (&String, &Json)| (name.as_str().into(), dynamic(value));
            Dynamic::from_map(entries.iter().map(entry).collect())
        }
    }
}
