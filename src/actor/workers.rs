//! The threads that run scripts: as many per actor as it has tasks, for all shards together. They share
//! nothing with the async runtime but the handover of jobs and bounded channels of outcomes out.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tracing::warn;

use super::handover::{Handover, Turn};
use super::log_file::{LogFolder, NoLogFile};
use super::log_writer::LogWriter;
use super::running_job::{RunOutcome, RunningJob};
use super::secret_store::SecretStore;
use super::secrets::Secrets;
use super::signatures::SignatureCheck;
use crate::engine::{Engine, Failure, Script};
use crate::failpoint;
use crate::proto::job::{InvalidJob, Job};
use crate::proto::text::counted;

/// The longest time that the end of a run waits until its script was answered: Redis may be away.
const SETTLE_MAX: Duration = Duration::from_mins(1);

/// The settings of the threads of one actor.
#[derive(Clone)]
pub(super) struct ThreadSpec {
    /// The number of jobs at once.
    pub(super) tasks: usize,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) logs: LogFolder,
    pub(super) secrets: SecretStore,
    pub(super) signatures: SignatureCheck,
}

/// The threads of one actor. Dropping it ends each of them after the job that it runs.
pub(super) struct Workers {
    handover: Arc<Mutex<Handover>>,
    spec: Mutex<ThreadSpec>,
}

impl Workers {
    /// Starts threads that run jobs of this many shards.
    pub(super) fn start(spec: ThreadSpec, shards: usize) -> std::io::Result<Self> {
        let handover = Arc::new(Mutex::new(Handover::new(spec.tasks, shards)));
        let threads = start_threads(&spec, spec.tasks, 0, &handover)?;
        handover.lock().add(threads);
        Ok(Self { handover, spec: Mutex::new(spec) })
    }

    /// Replaces the threads; those before end after the job that they run.
    pub(super) fn take_over(&self, spec: ThreadSpec) -> std::io::Result<()> {
        let generation = self.handover().generation + 1;
        let threads = start_threads(&spec, spec.tasks, generation, &self.handover)?;
        self.handover().replace(spec.tasks, threads);
        *self.spec.lock() = spec;
        Ok(())
    }

    /// Begins a boot of a shard, and returns its number. Threads that still run jobs of the boot before are
    /// replaced.
    pub(super) fn join(&self, shard: usize) -> std::io::Result<u64> {
        let (boot, busy) = self.handover().join(shard);
        if busy > 0 {
            let generation = self.handover().generation;
            let spec = self.spec.lock().clone();
            let threads = start_threads(&spec, busy, generation, &self.handover)?;
            self.handover().add(threads);
        }
        Ok(boot)
    }

    pub(super) fn handover(&self) -> MutexGuard<'_, Handover> {
        self.handover.lock()
    }
}

/// Starts threads, which are free, and returns the channel of each.
fn start_threads(
    spec: &ThreadSpec,
    count: usize,
    generation: u64,
    handover: &Arc<Mutex<Handover>>,
) -> std::io::Result<Vec<SyncSender<Arc<RunningJob>>>> {
    let start = |number: usize| {
        let (sender, jobs) = sync_channel(1);
        let of = spec.clone();
        let mut log_writer = LogWriter::new(&spec.logs);
        let all = Arc::downgrade(handover);
        thread::Builder::new()
            .name(format!("{}-{number}", of.engine.script_type()))
            .stack_size(of.engine.stack_bytes())
            .spawn(move || work(jobs, &all, generation, &of, &mut log_writer))?;
        Ok(sender)
    };
    (1..=count).map(start).collect()
}

fn work(
    jobs: Receiver<Arc<RunningJob>>,
    handover: &Weak<Mutex<Handover>>,
    generation: u64,
    of: &ThreadSpec,
    log_writer: &mut LogWriter,
) {
    let mut turn = Turn::Wait(jobs);
    loop {
        let run = match turn {
            Turn::Run(run) => run,
            Turn::Wait(jobs) => match jobs.recv() {
                Ok(run) => run,
                Err(_) => return,
            },
            Turn::End => return,
        };
        let outcome = run_one(run, of, log_writer);
        let ended = Arc::clone(&outcome.run);
        // Free before the loop learns of it, as it hands over the next job at once.
        turn = match handover.upgrade() {
            Some(handover) => handover.lock().turn(generation, &ended),
            None => Turn::End,
        };
        // A boot that has ended needs no outcome.
        let _ = ended.outcomes.blocking_send(outcome);
    }
}

fn run_one(run: Arc<RunningJob>, of: &ThreadSpec, log_writer: &mut LogWriter) -> RunOutcome {
    let started = Instant::now();
    let RunningJob { job, inputs, files, cancel, log, .. } = run.as_ref();
    // Before anything is done for the job.
    if let Err(invalid) = of.signatures.check(&run) {
        return refused(run, &invalid, started);
    }
    if let Some(path) = &job.spec.log_path {
        match log_writer.open(path) {
            Ok(file) => log.also_into(file),
            Err(NoLogFile::Invalid(invalid)) => return refused(run, &invalid, started),
            Err(NoLogFile::Unavailable(reason)) => lines_are_missing(&run, &reason),
        }
    }
    let secrets = match of.secrets.of(&job.spec) {
        Ok(secrets) => secrets,
        Err(invalid) => return refused(run, &invalid, started),
    };
    if !secrets.is_empty() {
        log.secrets.write().add(Secrets::of_values(&secrets));
    }
    if job.attempt > 1 || job.crashes > 0 {
        log.mark(&begins(job));
    }
    let bounds = job.spec.asked_bounds();
    let script = Script {
        job_id: job.id.as_str(),
        caller_id: &job.spec.caller_id,
        context_id: &job.spec.context_id,
        token_bounds: job.bounds.as_ref(),
        attempt: job.attempt,
        traceparent: run.traceparent,
        attempts_left: attempts_left(job),
        started_at: job.started_at,
        state: job.kept_state.as_deref(),
        event: job.event.as_deref(),
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
        None => catch_unwind(AssertUnwindSafe(|| of.engine.run(&script, cancel, log)))
            .unwrap_or_else(|panic| Err(panicked(panic.as_ref()))),
    };
    log.requests.settle(cancel, SETTLE_MAX);
    let result = log.secrets.read().hide_in_result(result);
    if let Err(reason) = log.close() {
        lines_are_missing(&run, &reason);
    }
    failpoint::reached(failpoint::AFTER_RUN);
    RunOutcome { run, result, took: started.elapsed() }
}

/// Returns the end of a job that cannot run.
fn refused(run: Arc<RunningJob>, invalid: &InvalidJob, started: Instant) -> RunOutcome {
    let failure = Failure::Invalid { message: invalid.to_string() };
    RunOutcome { run, result: Err(failure), took: started.elapsed() }
}

fn attempts_left(job: &Job) -> u32 {
    job.spec.retries.unwrap_or_default().saturating_add(1).saturating_sub(job.attempt)
}

/// Returns the line of the log before an attempt. A job that a person has retried has more attempts than it
/// asked for.
fn begins(job: &Job) -> String {
    let attempt = job.attempt;
    let all = job.spec.retries.map(|retries| retries.saturating_add(1));
    let of = all.filter(|all| *all >= attempt).map(|all| format!(" of {all}")).unwrap_or_default();
    let crashes = match job.crashes {
        0 => String::new(),
        number => format!(
            ", after {}: its actor died, or its process was killed",
            counted(number, "crash", "crashes")
        ),
    };
    format!("attempt {attempt}{of} begins{crashes}")
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
    use tokio::sync::mpsc;

    use std::path::Path;

    use super::*;
    use crate::actor::log_buffer::LogBuffer;
    use crate::engine::{Cancel, InputFiles, Inputs, Log, StopReason, Success};
    use crate::proto::target::{ActorId, ScriptType};

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

    fn run(script: &str, cancel: Cancel, outcomes: &mpsc::Sender<RunOutcome>) -> Arc<RunningJob> {
        run_of((0, 0), script, cancel, outcomes)
    }

    fn run_of(
        (shard, boot): (usize, u64),
        script: &str,
        cancel: Cancel,
        outcomes: &mpsc::Sender<RunOutcome>,
    ) -> Arc<RunningJob> {
        Arc::new(RunningJob {
            job: Job::new("j1".parse().expect("legal"), script),
            claimed_at: 0,
            actor: 0,
            shard,
            boot,
            outcomes: outcomes.clone(),
            queue: "type:osis".parse().expect("legal"),
            inputs: Inputs::default(),
            files: InputFiles::default(),
            timeout: Duration::from_secs(1),
            cancel,
            log: LogBuffer::new(100, Arc::default()),
            traceparent: None,
            traced: None,
        })
    }

    /// The settings of threads without secrets and signatures.
    fn spec_of(tasks: usize, engine: Arc<dyn Engine>) -> ThreadSpec {
        let actor: ActorId = "osis:default:1".parse().expect("legal");
        let secrets = SecretStore::new(&crate::config::SecretsConfig::default(), &actor);
        let signatures = SignatureCheck::none(actor);
        ThreadSpec { tasks, engine, logs: LogFolder::at(Path::new("/")), secrets, signatures }
    }

    /// One thread for jobs of some shards.
    fn one_thread(shards: usize) -> Workers {
        let engine: Arc<dyn Engine> = Arc::new(Fragile("osis".parse().expect("legal")));
        Workers::start(spec_of(1, engine), shards).expect("threads")
    }

    #[test]
    fn panic_of_the_engine_fails_the_job_and_the_thread_serves_the_next() {
        let (sender, mut outcomes) = mpsc::channel(1);
        let workers = one_thread(1);
        workers.handover().run(&run("panic", Cancel::new(), &sender), None);
        let failed = outcomes.blocking_recv().expect("an outcome").result;
        let message = "the engine panicked: told to".to_owned();
        assert_eq!(failed, Err(Failure::Script { message, exit_code: None }));
        workers.handover().run(&run("next", Cancel::new(), &sender), None);
        let next = outcomes.blocking_recv().expect("an outcome").result;
        assert_eq!(next.map(|success| success.output), Ok("next".into()));
    }

    /// A channel that takes no outcome until the first is received.
    fn full_channel() -> (mpsc::Sender<RunOutcome>, mpsc::Receiver<RunOutcome>) {
        let (sender, outcomes) = mpsc::channel(1);
        let result = Ok(Success { output: "".into(), exit_code: None });
        let run = run("0", Cancel::new(), &sender);
        assert!(sender.blocking_send(RunOutcome { run, result, took: Duration::ZERO }).is_ok());
        (sender, outcomes)
    }

    #[test]
    fn job_waits_for_a_thread_in_order_until_it_is_taken_back() {
        // The thread waits with the first outcome until it is received.
        let (sender, mut outcomes) = full_channel();
        let workers = one_thread(1);
        for script in ["1", "2", "3", "4"] {
            workers.handover().run(&run(script, Cancel::new(), &sender), None);
        }
        let scripts = |runs: &[Arc<RunningJob>]| -> Vec<String> {
            runs.iter().map(|run| run.job.spec.script.clone()).collect()
        };
        let mut waiting = workers.handover().take_waiting(0);
        // It has run the first and taken the second.
        while waiting.len() > 2 {
            for run in &waiting {
                workers.handover().run(run, None);
            }
            thread::yield_now();
            waiting = workers.handover().take_waiting(0);
        }
        assert_eq!(scripts(&waiting), ["3", "4"]);
        assert!(workers.handover().waiting_since(0).is_none());
        let mut outputs = Vec::new();
        for _ in 0..3 {
            let outcome = outcomes.blocking_recv().expect("an outcome");
            outputs.push(outcome.run.job.spec.script.clone());
        }
        assert_eq!(outputs, ["0", "1", "2"]);
    }

    #[test]
    fn waiting_jobs_of_shards_run_in_turns() {
        let (sender, mut outcomes) = full_channel();
        let workers = one_thread(2);
        let of = |shard, script| run_of((shard, 0), script, Cancel::new(), &sender);
        for script in ["a", "b", "c"] {
            workers.handover().run(&of(0, script), None);
        }
        workers.handover().run(&of(1, "d"), None);
        let mut ran = Vec::new();
        for _ in 0..5 {
            let outcome = outcomes.blocking_recv().expect("an outcome");
            ran.push(outcome.run.job.spec.script.clone());
        }
        let place = |script: &str| ran.iter().position(|one| one == script);
        assert!(place("d") < place("c"), "{ran:?}");
    }

    #[test]
    fn thread_that_runs_a_job_of_the_boot_before_ends_with_it() {
        let (sender, _outcomes) = mpsc::channel(1);
        let mut handover = Handover::new(1, 1);
        let (thread, jobs) = sync_channel(1);
        handover.add(vec![thread]);
        handover.run(&run("old", Cancel::new(), &sender), None);
        let old = jobs.recv().expect("the job");
        assert_eq!(handover.join(0), (1, 1), "one thread is to be replaced");
        let (thread, jobs) = sync_channel(1);
        handover.add(vec![thread]);
        handover.run(&run_of((0, 1), "new", Cancel::new(), &sender), None);
        assert_eq!(jobs.recv().expect("the job").job.spec.script, "new");
        assert!(matches!(handover.turn(0, &old), Turn::End));
    }

    /// Threads that end no job until the gate opens.
    fn gated_threads(tasks: usize) -> (Workers, Arc<Gate>) {
        let gate = Arc::new(Gate { id: "osis".parse().expect("legal"), is_open: Mutex::new(()) });
        let engine: Arc<dyn Engine> = Arc::clone(&gate) as Arc<dyn Engine>;
        (Workers::start(spec_of(tasks, engine), 1).expect("threads"), gate)
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
        let ((workers, gate), (sender, mut outcomes)) = (gated_threads(3), mpsc::channel(16));
        let held = gate.is_open.lock();
        let brief = Some(Duration::from_micros(40));
        for script in ["1", "2", "3"] {
            workers.handover().run(&run(script, Cancel::new(), &sender), brief);
        }
        // One runs the first; two more take less than a wake-up.
        assert_eq!(workers.handover().free_and_waiting(0), (2, 2));
        workers.handover().run(&run("4", Cancel::new(), &sender), brief);
        let (free, _) = workers.handover().free_and_waiting(0);
        assert_eq!(free, 1, "120 us of work are worth a thread");
        drop(held);
        let mut outputs: Vec<String> = (0..4)
            .map(|_| outcomes.blocking_recv().expect("an outcome").run.job.spec.script.clone())
            .collect();
        outputs.sort();
        assert_eq!(outputs, ["1", "2", "3", "4"]);
    }

    #[test]
    fn a_job_behind_a_longer_one_gets_a_free_thread_of_its_own() {
        let ((workers, gate), (sender, mut outcomes)) = (gated_threads(2), mpsc::channel(16));
        let held = gate.is_open.lock();
        let brief = Some(Duration::from_micros(1));
        workers.handover().run(&run("long", Cancel::new(), &sender), brief);
        workers.handover().run(&run("next", Cancel::new(), &sender), brief);
        let at = workers.handover().spread_at(0).expect("one waits beside a free thread");
        let before = at.checked_sub(Duration::from_nanos(1)).expect("after the start");
        workers.handover().spread(0, before);
        assert_eq!(workers.handover().free_and_waiting(0).1, 1, "not yet");
        workers.handover().spread(0, at);
        assert_eq!(workers.handover().free_and_waiting(0).1, 0);
        assert!(workers.handover().spread_at(0).is_none());
        drop(held);
        for _ in 0..2 {
            assert!(outcomes.blocking_recv().expect("an outcome").result.is_ok());
        }
    }

    #[test]
    fn job_stopped_before_its_start_does_not_run() {
        let cancel = Cancel::new();
        cancel.request(StopReason::Requested);
        let engine = Arc::new(Fragile("osis".parse().expect("legal")));
        let (sender, _outcomes) = mpsc::channel(1);
        let outcome = run_one(
            run("panic", cancel, &sender),
            &spec_of(1, engine),
            &mut LogWriter::new(&LogFolder::at(Path::new("/"))),
        );
        assert_eq!(outcome.result, Err(Failure::Stopped(StopReason::Requested)));
    }
}
