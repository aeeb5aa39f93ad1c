//! The threads that run scripts: as many per actor as it has tasks. They share nothing with the
//! async runtime but two bounded channels, tasks in and outcomes out.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::handover::{Giver, Taker, handover};
use super::log_buffer::LogBuffer;
use super::log_file;
use crate::engine::{Cancel, Engine, Failure, Inputs, STACK_SIZE_BYTES, Script, Success};
use crate::failpoint;
use crate::proto::job::Job;

/// One attempt, handed to a thread.
pub(super) struct Task {
    /// What to run.
    pub(super) job: Job,
    /// What its prerequisites left.
    pub(super) inputs: Inputs,
    /// How long it may take from now on.
    pub(super) timeout: Duration,
    /// How it is told to stop.
    pub(super) cancel: Arc<Cancel>,
    /// Where its lines go.
    pub(super) log: Arc<LogBuffer>,
}

/// How an attempt ended, as its thread saw it.
pub(super) struct Outcome {
    /// The job, as it was handed over.
    pub(super) job: Job,
    /// What the engine said.
    pub(super) result: Result<Success, Failure>,
    /// How long it ran.
    pub(super) took: Duration,
}

/// The threads of one actor. Dropping it ends them, each after the task it runs.
pub(super) struct Workers {
    tasks: Giver<Task>,
}

impl Workers {
    /// Starts `count` threads that run tasks on `engine` and send what comes of them.
    pub(super) fn start(
        count: usize,
        engine: &Arc<dyn Engine>,
        log_dir: &Path,
        outcomes: &mpsc::Sender<Outcome>,
    ) -> std::io::Result<Self> {
        // Never more tasks than threads: the fetch loop claims only for free ones.
        let (tasks, waiting) = handover(count);
        for number in 1..=count {
            let (waiting, outcomes) = (waiting.clone(), outcomes.clone());
            let (engine, log_dir) = (Arc::clone(engine), log_dir.to_owned());
            thread::Builder::new()
                .name(format!("{}-{number}", engine.script_type()))
                .stack_size(STACK_SIZE_BYTES)
                .spawn(move || work(&waiting, &outcomes, engine.as_ref(), &log_dir))?;
        }
        Ok(Self { tasks })
    }

    /// Hands a task to a free thread; gives it back if there is none.
    pub(super) fn run(&self, task: Task) -> Result<(), Box<Task>> {
        self.tasks.give(task).map_err(Box::new)
    }
}

fn work(
    tasks: &Taker<Task>,
    outcomes: &mpsc::Sender<Outcome>,
    engine: &dyn Engine,
    log_dir: &Path,
) {
    while let Some(task) = tasks.take() {
        let outcome = run_one(task, engine, log_dir);
        if outcomes.blocking_send(outcome).is_err() {
            // Nobody is left to hear of it: the actor has ended.
            break;
        }
    }
}

fn run_one(task: Task, engine: &dyn Engine, log_dir: &Path) -> Outcome {
    let Task { job, inputs, timeout, cancel, log } = task;
    let started = Instant::now();
    if let Some(path) = &job.spec.log_path {
        match log_file::open_in(log_dir, path) {
            Ok(file) => log.also_into(file),
            Err(invalid) => {
                let failure = Failure::Invalid { message: invalid.to_string() };
                return Outcome { job, result: Err(failure), took: started.elapsed() };
            }
        }
    }
    let script = Script {
        job_id: job.id.as_str(),
        caller_id: &job.spec.caller_id,
        context_id: &job.spec.context_id,
        source: &job.spec.script,
        env: &job.spec.env_vars,
        inputs: &inputs,
        deadline: started + timeout,
    };
    failpoint::reached(failpoint::BEFORE_RUN);
    let result = match cancel.requested() {
        // A stop that was faster than the thread.
        Some(reason) => Err(Failure::Stopped(reason)),
        None => catch_unwind(AssertUnwindSafe(|| engine.run(&script, &cancel, log.as_ref())))
            .unwrap_or_else(|panic| Err(panicked(panic.as_ref()))),
    };
    failpoint::reached(failpoint::AFTER_RUN);
    Outcome { job, result, took: started.elapsed() }
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let reason = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "for an unknown reason".to_owned());
    Failure::Script { message: format!("the engine panicked: {reason}"), exit_code: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Log, StopReason};
    use crate::proto::target::ScriptType;

    /// Panics if the script says so.
    struct Fragile(ScriptType);

    impl Engine for Fragile {
        fn run(&self, script: &Script<'_>, _: &Cancel, _: &dyn Log) -> Result<Success, Failure> {
            assert!(script.source != "panic", "told to");
            Ok(Success { output: script.source.to_owned(), exit_code: None })
        }

        fn unavailable(&self) -> Option<String> {
            None
        }

        fn capabilities(&self) -> Vec<String> {
            Vec::new()
        }

        fn script_type(&self) -> &ScriptType {
            &self.0
        }
    }

    fn task(script: &str, cancel: Cancel) -> Task {
        Task {
            job: Job::new("j1".parse().expect("legal"), script),
            inputs: Inputs::new(),
            timeout: Duration::from_secs(1),
            cancel: Arc::new(cancel),
            log: Arc::new(LogBuffer::new(100, Arc::default())),
        }
    }

    #[test]
    fn a_panic_ends_the_job_and_the_thread_goes_on() {
        let engine: Arc<dyn Engine> = Arc::new(Fragile("osis".parse().expect("legal")));
        let (sender, mut outcomes) = mpsc::channel(1);
        let workers = Workers::start(1, &engine, Path::new("/"), &sender).expect("threads");
        assert!(workers.run(task("panic", Cancel::new())).is_ok());
        let failed = outcomes.blocking_recv().expect("an outcome").result;
        let message = "the engine panicked: told to".to_owned();
        assert_eq!(failed, Err(Failure::Script { message, exit_code: None }));
        assert!(workers.run(task("next", Cancel::new())).is_ok());
        let next = outcomes.blocking_recv().expect("an outcome").result;
        assert_eq!(next.map(|success| success.output), Ok("next".to_owned()));
    }

    #[test]
    fn a_stop_before_the_start_keeps_the_script_from_running() {
        let cancel = Cancel::new();
        cancel.request(StopReason::Requested);
        let engine = Fragile("osis".parse().expect("legal"));
        let outcome = run_one(task("panic", cancel), &engine, Path::new("/"));
        assert_eq!(outcome.result, Err(Failure::Stopped(StopReason::Requested)));
    }
}
