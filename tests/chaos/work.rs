//! The jobs that stream in, and the thread that submits them through a line as bad as any other: one
//! batch as a client of Hero, the next with plain commands of Redis, the third by redis-cli.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastrand::Rng;
use hero::client::JobBuilder;
use hero::proto::job::Job;
use hero::store::{Backoff, Store, Submitted};

use crate::support::{RETENTION, keys};

/// The expected end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Attempts after the first that its own failures cost.
    pub(crate) retries: usize,
    /// True if its script writes a line per run.
    pub(crate) leaves_lines: bool,
    pub(crate) finishes: bool,
    /// The length of its output, if that is too large for its hash.
    pub(crate) large_output: Option<usize>,
}

/// Makes jobs, the same from the same seed.
pub(crate) struct Work {
    rng: Rng,
    effects: PathBuf,
    made: usize,
}

impl Work {
    pub(crate) fn new(seed: u64, effects: &Path) -> Self {
        Self { rng: Rng::with_seed(seed), effects: effects.to_owned(), made: 0 }
    }

    pub(crate) fn made(&self) -> usize {
        self.made
    }

    /// The next job: mostly short, some long, some that fail, some that wait for others.
    pub(crate) fn next(&mut self) -> (Job, Expected) {
        let id = format!("c{}", self.made);
        let effects = self.effects.display();
        let (mut leaves_lines, mut fails, mut large_output) = (true, false, None);
        let (of, script) = match self.rng.u8(..100) {
            0..40 => {
                leaves_lines = false;
                large_output = self.made.is_multiple_of(LARGE_EVERY).then_some(16 << LARGE_TURNS);
                let turns = 1000 * self.rng.u32(1..20);
                let end = match large_output {
                    Some(_) => format!(
                        "let s = \"0123456789abcdef\"; for i in 0..{LARGE_TURNS} {{ s += s; }} s"
                    ),
                    None => "n".to_owned(),
                };
                ("osis", format!("let n = 0; while n < {turns} {{ n += 1; }} {end}"))
            }
            40..88 => ("sal", format!("file_write_append(\"{effects}\", \"{id}\\n\")")),
            88..90 => {
                fails = true;
                ("sal", format!("file_write_append(\"{effects}\", \"{id}\\n\"); throw \"no\""))
            }
            _ => {
                let pause = f64::from(self.rng.u8(1..20)) / 50.0;
                ("sh", format!("echo {id} >> {effects}; sleep {pause}"))
            }
        };
        let mut job = JobBuilder::new(of, script).id(&id).priority(self.rng.u8(..3));
        if fails {
            job = job.retries(1);
        }
        job = match self.rng.u8(..16) {
            0..2 => job.group("default"),
            2 => job.instance(1),
            _ => job,
        };
        if self.rng.u8(..10) == 0 {
            job = job.delay(Duration::from_millis(self.rng.u64(1..500)));
        }
        // Those that end in error take their dependents with them, so none may have any.
        if self.made > 0 && self.rng.u8(..20) == 0 && !fails {
            job = job.after(&format!("p{}", self.rng.usize(..PILLARS)));
        }
        self.made += 1;
        let (retries, finishes) = (usize::from(fails), !fails);
        let expected = Expected { retries, leaves_lines, finishes, large_output };
        (job.build().expect("a legal job"), expected)
    }

    /// Jobs that others wait for, to be submitted before them.
    pub(crate) fn pillars() -> Vec<(Job, Expected)> {
        let (leaves_lines, finishes, large_output) = (false, true, None);
        let expected = Expected { retries: 0, leaves_lines, finishes, large_output };
        (0..PILLARS)
            .map(|number| {
                let delay = Duration::from_millis(200 * number as u64);
                let job = JobBuilder::new("osis", "1").id(&format!("p{number}")).delay(delay);
                (job.build().expect("a legal job"), expected)
            })
            .collect()
    }
}

/// Of so many jobs, one leaves a large output if it is one of `osis`.
const LARGE_EVERY: usize = 10;
/// How often such a script doubles 16 bytes.
const LARGE_TURNS: usize = 13;

/// Jobs that others have as their prerequisite.
const PILLARS: usize = 20;

/// Submits batches, each until it is accepted.
pub(crate) struct Submitter {
    batches: Option<SyncSender<Vec<Job>>>,
    accepted: Receiver<usize>,
    thread: Option<JoinHandle<()>>,
    pub(crate) busy: bool,
}

impl Submitter {
    /// `url` is the url of the store's line.
    pub(crate) fn start(store: Store, url: String) -> Self {
        let (batches, waiting) = sync_channel::<Vec<Job>>(1);
        let (done, accepted) = sync_channel(1);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime");
            let plain = Plain::at(&url);
            for (number, batch) in waiting.into_iter().enumerate() {
                runtime.block_on(async {
                    match number % 3 {
                        0 => submit(&store, &batch).await,
                        1 => plain.push(&batch, "RPUSH", Plain::send).await,
                        _ => plain.push(&batch, "LPUSH", Plain::pipe).await,
                    }
                });
                if done.send(batch.len()).is_err() {
                    return;
                }
            }
        });
        Self { batches: Some(batches), accepted, thread: Some(thread), busy: false }
    }

    /// Hands over a batch. Only when it is not busy.
    pub(crate) fn submit(&mut self, batch: Vec<Job>) {
        self.busy = true;
        let batches = self.batches.as_ref().expect("it has not ended");
        batches.send(batch).expect("the submitter lives");
    }

    /// Returns the number of jobs accepted since the last call.
    pub(crate) fn accepted(&mut self) -> usize {
        let accepted = self.accepted.try_recv().unwrap_or(0);
        if accepted > 0 {
            self.busy = false;
        }
        accepted
    }
}

impl Drop for Submitter {
    fn drop(&mut self) {
        self.batches = None;
        // While a panic unwinds, the batch under way may never be accepted.
        if !thread::panicking()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// Submits until every job is known to be stored: an existing job was stored by a call whose
/// answer was lost.
pub(super) async fn submit(store: &Store, batch: &[Job]) {
    let mut backoff = Backoff::default();
    loop {
        match store.jobs().submit(batch, true, RETENTION).await {
            Ok(answers) => {
                let stored = |answer: &Submitted| {
                    matches!(answer, Submitted::Accepted(_) | Submitted::Exists)
                };
                assert!(answers.iter().all(stored), "{answers:?}");
                return;
            }
            Err(error) => {
                assert!(error.is_transient(), "submitting: {error}");
                tokio::time::sleep(backoff.failed()).await;
            }
        }
    }
}

/// A program that speaks plain commands of Redis.
struct Plain {
    client: redis::Client,
    socket: String,
}

impl Plain {
    /// After this time a command that was on its way when its connection ended has arrived, or never
    /// will.
    const ARRIVES_WITHIN: Duration = Duration::from_millis(300);

    fn at(url: &str) -> Self {
        let socket = url.trim_start_matches("redis+unix://").to_owned();
        Self { client: redis::Client::open(url).expect("a legal address"), socket }
    }

    /// Writes and pushes a batch in one transaction, until it is there. A second push of a job that
    /// has ended would run it again, so the program looks first.
    async fn push(
        &self,
        batch: &[Job],
        command: &str,
        send: impl Fn(&Self, &redis::Pipeline) -> bool,
    ) {
        let Some(first) = batch.first().map(|job| keys::job(job.id.as_str())) else { return };
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        for (number, job) in batch.iter().enumerate() {
            let key = keys::job(job.id.as_str());
            let queue = job.spec.queue().expect("a script type").to_string();
            // Every second one leaves the rest of its target to its list. One that names no type is lost with a foreign actor
            // that waits for it.
            let names_it = |name: &str| ["group", "instance", "priority"].contains(&name);
            let fields = job.submitted_fields().into_iter();
            let fields: Vec<_> =
                fields.filter(|(name, _)| number % 2 == 0 || !names_it(name)).collect();
            pipeline.cmd("HSET").arg(&key).arg(fields);
            pipeline.cmd("HSETNX").arg(&key).arg("status").arg("dispatched");
            pipeline.cmd(command).arg(keys::work(&queue)).arg(job.id.as_str());
        }
        let mut backoff = Backoff::default();
        while !send(self, &pipeline) {
            loop {
                tokio::time::sleep(Self::ARRIVES_WITHIN + backoff.failed()).await;
                let ask = |mut link| redis::cmd("EXISTS").arg(&first).query(&mut link);
                match self.client.get_connection().and_then(ask) {
                    Ok(true) => return,
                    Ok(false) => break,
                    Err(_) => {}
                }
            }
        }
    }

    fn send(&self, pipeline: &redis::Pipeline) -> bool {
        self.client.get_connection().and_then(|mut link| pipeline.exec(&mut link)).is_ok()
    }

    /// Sends it through redis-cli.
    #[expect(
        clippy::disallowed_methods,
        reason = "redis-cli is one of the programs tested against"
    )]
    fn pipe(&self, pipeline: &redis::Pipeline) -> bool {
        let mut child = Command::new("redis-cli")
            .args(["-s", &self.socket, "--pipe"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-cli is installed");
        // A client that has no connection does not read.
        let written =
            child.stdin.take().map(|mut to| to.write_all(&pipeline.get_packed_pipeline()));
        child.wait().expect("reaping redis-cli").success() && written.is_some_and(|all| all.is_ok())
    }
}
