//! The threads that run scripts: as many per actor as it has tasks. They share nothing with the
//! async runtime but the handover of jobs and a bounded channel of outcomes out.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tracing::warn;

use super::log_buffer::LogBuffer;
use super::log_writer::{LogWriter, NoLogFile};
use super::secret_store::SecretStore;
use super::secrets::Secrets;
use crate::engine::{Cancel, Engine, Failure, InputFiles, Inputs, Script, Success};
use crate::failpoint;
use crate::proto::job::{Job, JobId};
use crate::proto::queue::Queue;

/// The work for which one more thread is woken: its wake-up takes about as long.
const WORTH_A_THREAD: Duration = Duration::from_micros(100);
/// The time after which a job that waits beside free threads gets one: the job before it takes longer than
/// those before.
const SPREAD_AFTER: Duration = Duration::from_millis(1);

/// One attempt of a job, from its claim to its end. The fetch loop and the job's thread share it.
pub(super) struct RunningJob {
    /// The job.
    pub(super) job: Job,
    /// The time of its claim, as in [`crate::store::Attempt::claimed_at`].
    pub(super) claimed_at: u64,
    /// The actor that runs it, by its place in the process.
    pub(super) actor: usize,
    /// Where it waited, and goes back to if it is given back.
    pub(super) queue: Queue,
    /// The outputs of its prerequisites.
    pub(super) inputs: Inputs,
    /// The files that it is given.
    pub(super) files: InputFiles,
    /// The time that the attempt may take.
    pub(super) timeout: Duration,
    /// Stops it.
    pub(super) cancel: Cancel,
    /// Takes its log lines.
    pub(super) log: LogBuffer,
}

impl RunningJob {
    /// The job's id and the time of its claim.
    pub(super) fn attempt(&self) -> (JobId, u64) {
        (self.job.id.clone(), self.claimed_at)
    }
}

/// The end of an attempt, as its thread saw it.
pub(super) struct RunOutcome {
    /// The attempt.
    pub(super) run: Arc<RunningJob>,
    /// The result of the engine.
    pub(super) result: Result<Success, Failure>,
    /// The time that it ran.
    pub(super) took: Duration,
}

/// Threads that wait for jobs, or jobs that wait for threads.
#[derive(Default)]
struct Handover {
    /// The free threads, each by its own channel; the last that became free is first.
    free: Vec<SyncSender<Arc<RunningJob>>>,
    /// The jobs that were claimed ahead, each with the time since when it waits.
    waiting: VecDeque<(Instant, Arc<RunningJob>)>,
}

/// The threads of one actor. Dropping it ends each of them after the job that it runs.
pub(super) struct Workers {
    count: usize,
    handover: Arc<Mutex<Handover>>,
}

impl Workers {
    /// Starts `count` threads that run jobs on `engine` and send their outcomes.
    pub(super) fn start(
        count: usize,
        engine: &Arc<dyn Engine>,
        log_dir: &Path,
        secrets: &SecretStore,
        outcomes: &mpsc::Sender<RunOutcome>,
    ) -> std::io::Result<Self> {
        let handover = Arc::new(Mutex::new(Handover::default()));
        for number in 1..=count {
            let (engine, outcomes) = (Arc::clone(engine), outcomes.clone());
            let mut log_writer = LogWriter::new(log_dir);
            let secrets = secrets.clone();
            let (jobs, all) = (locked(&handover).wait(), Arc::downgrade(&handover));
            thread::Builder::new()
                .name(format!("{}-{number}", engine.script_type()))
                .stack_size(engine.stack_bytes())
                .spawn(move || {
                    work(jobs, &all, engine.as_ref(), &secrets, &mut log_writer, &outcomes);
                })?;
        }
        Ok(Self { count, handover })
    }

    /// Hands a job to a free thread, or lets it wait for one. `mean` is the time of such a job, if it may
    /// wait: jobs that take less than a wake-up are left to the threads that run already.
    pub(super) fn run(&self, run: &Arc<RunningJob>, mean: Option<Duration>) {
        let mut handover = locked(&self.handover);
        handover.waiting.push_back((Instant::now(), Arc::clone(run)));
        if !mean.is_some_and(|mean| handover.is_served(self.count, mean)) {
            handover.hand_over();
        }
    }

    /// Wakes free threads for the jobs that have waited for long.
    pub(super) fn spread(&self, now: Instant) {
        let mut handover = locked(&self.handover);
        while handover.spread_at().is_some_and(|at| at <= now) && handover.hand_over() {}
    }

    /// Returns when [`Workers::spread`] has something to do.
    pub(super) fn spread_at(&self) -> Option<Instant> {
        locked(&self.handover).spread_at()
    }

    /// Returns since when the first of the waiting jobs waits for a thread.
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        locked(&self.handover).waiting.front().map(|(since, _)| *since)
    }

    /// Takes the jobs back that no thread has begun.
    pub(super) fn take_waiting(&self) -> Vec<Arc<RunningJob>> {
        locked(&self.handover).waiting.drain(..).map(|(_, run)| run).collect()
    }
}

impl Handover {
    /// Lists the calling thread, or one that is about to start, as free.
    fn wait(&mut self) -> Receiver<Arc<RunningJob>> {
        let (sender, jobs) = sync_channel(1);
        self.free.push(sender);
        jobs
    }

    /// Returns whether the threads that run, of `count`, are enough for the waiting jobs, which take `mean`
    /// each.
    fn is_served(&self, count: usize, mean: Duration) -> bool {
        let running = count.saturating_sub(self.free.len());
        let of = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        mean.saturating_mul(of(self.waiting.len())) < WORTH_A_THREAD.saturating_mul(of(running))
    }

    /// Hands the first waiting job to a free thread. Returns whether there were both.
    fn hand_over(&mut self) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let Some(thread) = self.free.pop() else { return false };
        let Some((since, run)) = self.waiting.pop_front() else { return false };
        // Its thread has ended, which only a panic outside of a job does.
        if let Err(error) = thread.send(run) {
            self.waiting.push_front((since, error.0));
        }
        true
    }

    /// Returns when the first waiting job should get a thread of its own, if one is free.
    fn spread_at(&self) -> Option<Instant> {
        let first = self.waiting.front().filter(|_| !self.free.is_empty());
        first.map(|(since, _)| *since + SPREAD_AFTER)
    }

    /// Returns the next job, or where the calling thread waits for one.
    fn next(&mut self) -> Result<Arc<RunningJob>, Receiver<Arc<RunningJob>>> {
        self.waiting.pop_front().map(|(_, run)| run).ok_or_else(|| self.wait())
    }
}

fn locked(handover: &Mutex<Handover>) -> MutexGuard<'_, Handover> {
    handover.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(
    jobs: Receiver<Arc<RunningJob>>,
    handover: &Weak<Mutex<Handover>>,
    engine: &dyn Engine,
    secrets: &SecretStore,
    log_writer: &mut LogWriter,
    outcomes: &mpsc::Sender<RunOutcome>,
) {
    let mut next = Some(Err(jobs));
    while let Some(run_or_wait) = next {
        let run = match run_or_wait {
            Ok(run) => run,
            Err(jobs) => match jobs.recv() {
                Ok(run) => run,
                Err(_) => return,
            },
        };
        let outcome = run_one(run, engine, secrets, log_writer);
        // Free before the loop learns of it, as it hands over the next job at once.
        next = handover.upgrade().map(|handover| locked(&handover).next());
        if outcomes.blocking_send(outcome).is_err() {
            // The actor has ended.
            return;
        }
    }
}

fn run_one(
    run: Arc<RunningJob>,
    engine: &dyn Engine,
    store: &SecretStore,
    log_writer: &mut LogWriter,
) -> RunOutcome {
    let started = Instant::now();
    let RunningJob { job, inputs, files, cancel, log, .. } = run.as_ref();
    if let Some(path) = &job.spec.log_path {
        match log_writer.open(path) {
            Ok(file) => log.also_into(file),
            Err(NoLogFile::Invalid(invalid)) => {
                let failure = Failure::Invalid { message: invalid.to_string() };
                return RunOutcome { run, result: Err(failure), took: started.elapsed() };
            }
            Err(NoLogFile::Unavailable(reason)) => lines_are_missing(&run, &reason),
        }
    }
    let secrets = match store.of(&job.spec) {
        Ok(secrets) => secrets,
        Err(invalid) => {
            let failure = Failure::Invalid { message: invalid.to_string() };
            return RunOutcome { run, result: Err(failure), took: started.elapsed() };
        }
    };
    if !secrets.is_empty() {
        log.also_hiding(Secrets::of_values(&secrets));
    }
    if job.attempt > 1 {
        log.mark(&begins(job.attempt, job.spec.retries));
    }
    let bounds = job.spec.asked_bounds();
    let script = Script {
        job_id: job.id.as_str(),
        caller_id: &job.spec.caller_id,
        context_id: &job.spec.context_id,
        source: &job.spec.script,
        extension: &job.spec.extension,
        env: &job.spec.env_vars,
        args: &job.spec.args,
        params: &job.spec.params,
        bounds: &bounds,
        secrets: &secrets,
        inputs,
        files: Some(files),
        output_overflow: job.spec.output_overflow,
        deadline: started + run.timeout,
    };
    failpoint::reached(failpoint::BEFORE_RUN);
    let result = match cancel.requested() {
        // The stop came before the thread.
        Some(reason) => Err(Failure::Stopped(reason)),
        None => catch_unwind(AssertUnwindSafe(|| engine.run(&script, cancel, log)))
            .unwrap_or_else(|panic| Err(panicked(panic.as_ref()))),
    };
    let result = log.hide_in_result(result);
    if let Err(reason) = log.close() {
        lines_are_missing(&run, &reason);
    }
    failpoint::reached(failpoint::AFTER_RUN);
    RunOutcome { run, result, took: started.elapsed() }
}

/// Returns the line of the log before an attempt. A job that a person has retried has more attempts than it
/// asked for.
fn begins(attempt: u32, retries: Option<u32>) -> String {
    match retries.map(|retries| retries.saturating_add(1)).filter(|all| *all >= attempt) {
        Some(all) => format!("attempt {attempt} of {all} begins"),
        None => format!("attempt {attempt} begins"),
    }
}

/// Warns that the log file lacks lines, and marks it in the job's log.
fn lines_are_missing(run: &RunningJob, reason: &str) {
    let path = run.job.spec.log_path.as_deref().unwrap_or_default().escape_debug();
    warn!(job_id = %run.job.id, path = %path, "cannot write the log file of job {}: {reason}", run.job.id);
    run.log.mark(&format!("the log file lacks lines: {reason}"));
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
            Ok(Success { output: script.source.into(), exit_code: None })
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

    fn run(script: &str, cancel: Cancel) -> Arc<RunningJob> {
        Arc::new(RunningJob {
            job: Job::new("j1".parse().expect("legal"), script),
            claimed_at: 0,
            actor: 0,
            queue: "type:osis".parse().expect("legal"),
            inputs: Inputs::new(),
            files: InputFiles::default(),
            timeout: Duration::from_secs(1),
            cancel,
            log: LogBuffer::new(100, Arc::default()),
        })
    }

    fn no_secrets() -> SecretStore {
        SecretStore::new(
            &crate::config::SecretsConfig::default(),
            &"osis:default:1".parse().expect("legal"),
        )
    }

    #[test]
    fn panic_of_the_engine_fails_the_job_and_the_thread_serves_the_next() {
        let engine: Arc<dyn Engine> = Arc::new(Fragile("osis".parse().expect("legal")));
        let (sender, mut outcomes) = mpsc::channel(1);
        let workers =
            Workers::start(1, &engine, Path::new("/"), &no_secrets(), &sender).expect("threads");
        workers.run(&run("panic", Cancel::new()), None);
        let failed = outcomes.blocking_recv().expect("an outcome").result;
        let message = "the engine panicked: told to".to_owned();
        assert_eq!(failed, Err(Failure::Script { message, exit_code: None }));
        workers.run(&run("next", Cancel::new()), None);
        let next = outcomes.blocking_recv().expect("an outcome").result;
        assert_eq!(next.map(|success| success.output), Ok("next".into()));
    }

    #[test]
    fn job_waits_for_a_thread_in_order_until_it_is_taken_back() {
        let engine: Arc<dyn Engine> = Arc::new(Fragile("osis".parse().expect("legal")));
        // The thread waits with the first outcome until it is received.
        let (sender, mut outcomes) = mpsc::channel(1);
        let result = Ok(Success { output: "".into(), exit_code: None });
        let before = RunOutcome { run: run("0", Cancel::new()), result, took: Duration::ZERO };
        assert!(sender.blocking_send(before).is_ok());
        let workers =
            Workers::start(1, &engine, Path::new("/"), &no_secrets(), &sender).expect("threads");
        for script in ["1", "2", "3", "4"] {
            workers.run(&run(script, Cancel::new()), None);
        }
        // It has run the first and taken the second.
        while locked(&workers.handover).waiting.len() > 2 {
            thread::yield_now();
        }
        assert!(workers.waiting_since().is_some());
        let waiting = workers.take_waiting();
        let scripts: Vec<&str> = waiting.iter().map(|run| run.job.spec.script.as_str()).collect();
        assert_eq!(scripts, ["3", "4"]);
        assert!(workers.waiting_since().is_none() && workers.take_waiting().is_empty());
        let mut outputs = Vec::new();
        for _ in 0..3 {
            let outcome = outcomes.blocking_recv().expect("an outcome");
            outputs.push(outcome.run.job.spec.script.clone());
        }
        assert_eq!(outputs, ["0", "1", "2"]);
    }

    /// Threads, none of which has ended its first job, and the outcomes of the jobs.
    fn busy_workers(count: usize) -> (Workers, mpsc::Receiver<RunOutcome>, Arc<Gate>) {
        let gate = Arc::new(Gate { id: "osis".parse().expect("legal"), is_open: Mutex::new(()) });
        let engine: Arc<dyn Engine> = Arc::clone(&gate) as Arc<dyn Engine>;
        let (sender, outcomes) = mpsc::channel(16);
        let workers = Workers::start(count, &engine, Path::new("/"), &no_secrets(), &sender);
        (workers.expect("threads"), outcomes, gate)
    }

    /// Ends a script once it may lock this.
    struct Gate {
        id: ScriptType,
        is_open: Mutex<()>,
    }

    impl Engine for Gate {
        fn run(&self, script: &Script<'_>, _: &Cancel, _: &dyn Log) -> Result<Success, Failure> {
            drop(self.is_open.lock());
            Ok(Success { output: script.source.into(), exit_code: None })
        }

        fn unavailable(&self) -> Option<String> {
            None
        }

        fn capabilities(&self) -> Vec<String> {
            Vec::new()
        }

        fn script_type(&self) -> &ScriptType {
            &self.id
        }
    }

    #[test]
    fn brief_jobs_are_left_to_the_threads_that_run() {
        let (workers, mut outcomes, gate) = busy_workers(3);
        let held = gate.is_open.lock().expect("not poisoned");
        let brief = Some(Duration::from_micros(40));
        for script in ["1", "2", "3"] {
            workers.run(&run(script, Cancel::new()), brief);
        }
        // One runs the first; two more take less than a wake-up.
        assert_eq!(locked(&workers.handover).free.len(), 2);
        assert_eq!(locked(&workers.handover).waiting.len(), 2);
        workers.run(&run("4", Cancel::new()), brief);
        assert_eq!(locked(&workers.handover).free.len(), 1, "120 us of work are worth a thread");
        drop(held);
        let mut outputs: Vec<String> = (0..4)
            .map(|_| outcomes.blocking_recv().expect("an outcome").run.job.spec.script.clone())
            .collect();
        outputs.sort();
        assert_eq!(outputs, ["1", "2", "3", "4"]);
    }

    #[test]
    fn a_job_behind_a_longer_one_gets_a_free_thread_of_its_own() {
        let (workers, mut outcomes, gate) = busy_workers(2);
        let held = gate.is_open.lock().expect("not poisoned");
        let brief = Some(Duration::from_micros(1));
        workers.run(&run("long", Cancel::new()), brief);
        workers.run(&run("next", Cancel::new()), brief);
        let at = workers.spread_at().expect("one waits beside a free thread");
        workers.spread(at.checked_sub(Duration::from_nanos(1)).expect("after the start"));
        assert_eq!(locked(&workers.handover).waiting.len(), 1, "not yet");
        workers.spread(at);
        assert!(locked(&workers.handover).waiting.is_empty() && workers.spread_at().is_none());
        drop(held);
        for _ in 0..2 {
            assert!(outcomes.blocking_recv().expect("an outcome").result.is_ok());
        }
    }

    #[test]
    fn job_stopped_before_its_start_does_not_run() {
        let cancel = Cancel::new();
        cancel.request(StopReason::Requested);
        let engine = Fragile("osis".parse().expect("legal"));
        let outcome = run_one(
            run("panic", cancel),
            &engine,
            &no_secrets(),
            &mut LogWriter::new(Path::new("/")),
        );
        assert_eq!(outcome.result, Err(Failure::Stopped(StopReason::Requested)));
    }
}
