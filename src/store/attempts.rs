//! The actor's side of a job: claim it, record how the attempt ended, or give it back.

use std::fmt::{Display, Write};
use std::time::Duration;

use jiff::Timestamp;
use redis::Value;

use super::portions::{JOB_WORK, portions};
use super::{ClaimLimits, Store, StoreError};
use crate::proto::job::{BootId, InvalidJob, Job, JobId, JobOutput, JobStatus, Retention};
use crate::proto::message::Reply;
use crate::proto::queue::Queue;
use crate::proto::target::{ActorId, ScriptType};

/// A request for jobs.
#[derive(Debug)]
pub struct Claim<'a> {
    /// The boot that will own the jobs.
    pub boot: &'a BootId,
    /// The actor that will run them.
    pub actor: &'a ActorId,
    /// Work lists to take from, in order.
    pub lists: &'a [String],
    /// The limit on their number.
    pub wanted: usize,
    /// Entries that a blocking pop has taken: the list and the unchecked id.
    pub popped: &'a [(String, Vec<u8>)],
    /// The largest hash that is returned, in bytes.
    pub size_max_bytes: u64,
    /// The limits of the configuration.
    pub limits: &'a ClaimLimits,
    /// For jobs that end because they may not start.
    pub retention: Retention,
    /// True if an ended job runs again when a program pushes its id.
    pub requeue_by_push: bool,
}

/// The answer to a claim.
#[derive(Debug, Default)]
pub struct Claimed {
    /// The jobs, owned by the boot from now on.
    pub attempts: Vec<Attempt>,
    /// The number of void ids: illegal, or without a waiting job.
    pub skipped: u64,
    /// Some of the void ids, each with the reason.
    pub skipped_some: Vec<(String, String)>,
    /// Lists that could not be read, each with the error.
    pub broken: Vec<(String, String)>,
    /// True if so many ids were void that the caller should claim again at once.
    pub more: bool,
    /// True if the boot has lost its lease: it can never claim again.
    pub fenced: bool,
    /// The lists whose queues are paused.
    pub paused: Vec<String>,
    /// Lists and ids to put back after a moment, in order: an old worker may be about to start them.
    pub later: Vec<(String, String)>,
    /// Jobs that had ended and run again, because a program has pushed their ids.
    pub again: Vec<String>,
}

/// A claimed job: one attempt to run it.
#[derive(Debug)]
pub struct Attempt {
    /// The job's id.
    pub id: JobId,
    /// The time of its claim, by which the boot's running set knows it, in microseconds since 1970.
    pub claimed_at: u64,
    /// The queue it waited in, and goes back to if it is requeued.
    pub queue: Queue,
    /// The job as it was before the claim, with its attempt and start, or the reason why its hash is
    /// invalid.
    pub job: Result<Job, InvalidJob>,
}

/// The outcome of an attempt, decided by the actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The job finished, with this output.
    Finished {
        /// The output.
        output: JobOutput,
        /// The exit code, where a process ran.
        exit_code: Option<i32>,
    },
    /// The job ends in `error`.
    Error {
        /// The error.
        error: String,
        /// The exit code, where a process ran.
        exit_code: Option<i32>,
        /// True if it used up its attempts, and so becomes a dead letter.
        dead: bool,
    },
    /// The job is tried again.
    Retry {
        /// The error of this attempt.
        error: String,
        /// The exit code, where a process ran.
        exit_code: Option<i32>,
        /// The wait before the next attempt.
        delay: Duration,
    },
}

/// The end of one attempt, to be recorded.
#[derive(Debug, Clone)]
pub struct AttemptEnd {
    /// The job.
    pub id: JobId,
    /// By [`Attempt::claimed_at`]: the attempt that ended, and no later one of the same boot.
    pub claimed_at: u64,
    /// The script type of the actor, for a job that names none.
    pub script_type: ScriptType,
    /// The outcome.
    pub verdict: Verdict,
    /// Fields of the hash: the resource usage of a process, the missing lines of the log.
    pub used: Vec<(&'static str, String)>,
    /// Counters of its type that it adds to, beside its end.
    pub counts: Counts,
}

/// Counters, and by how much they grow.
pub type Counts = Vec<(String, u64)>;

/// The answer to the recording of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// It was recorded.
    Recorded,
    /// It had been recorded before: the answer to an earlier call was lost, or that call arrived late.
    Before,
    /// The boot no longer owns the job; nothing was written.
    Lost,
    /// Redis could not write it, for this reason.
    Failed(String),
}

impl Store {
    /// Claims jobs for an actor in one round trip.
    ///
    /// # Errors
    /// [`StoreError`]. After a lost connection the claim may have been made all the same: see
    /// [`Store::running`].
    pub async fn claim(&self, claim: &Claim<'_>) -> Result<Claimed, StoreError> {
        let mut script = self.scripts.claim.prepare_invoke();
        for list in claim.lists {
            script.key(list);
        }
        script
            .arg(claim.boot.as_str())
            .arg(claim.actor.to_string())
            .arg(claim.actor.script_type.as_str())
            .arg(claim.wanted)
            .arg(claim.size_max_bytes)
            .arg(claim.popped.len());
        for (list, id) in claim.popped {
            script.arg(list).arg(id.as_slice());
        }
        script.arg(claim.limits.as_argument()).arg(kept(claim.retention));
        script.arg(u8::from(claim.requeue_by_push));
        let answer: Value = self.invoke("claiming jobs", &script).await?;
        let claimed =
            self.read_claim(answer).ok_or_else(|| StoreError::unexpected("claiming jobs"))?;
        // A Redis that rejects every write has let the script take nothing from any list.
        let rejected =
            |(_, reason): &(String, String)| StoreError::in_answer(self.address(), reason);
        claimed.broken.iter().find_map(rejected).map_or(Ok(claimed), Err)
    }

    fn read_claim(&self, answer: Value) -> Option<Claimed> {
        let [jobs, skipped, broken, more, fenced, paused, at, later, again]: [Value; 9] =
            array(answer)?.try_into().ok()?;
        let at = Timestamp::from_microsecond(number(&at)?).ok();
        let mut skipped = array(skipped)?.into_iter();
        let skipped_number = number(&skipped.next()?)?;
        Some(Claimed {
            attempts: array(jobs)?
                .into_iter()
                .map(|job| self.read_attempt(job, at))
                .collect::<Option<_>>()?,
            skipped: skipped_number.try_into().ok()?,
            skipped_some: pairs(skipped),
            broken: pairs(array(broken)?.into_iter()),
            more: number(&more)? == 1,
            fenced: number(&fenced)? == 1,
            paused: array(paused)?.iter().map(text).collect::<Option<_>>()?,
            later: pairs(array(later)?.into_iter()),
            again: array(again)?.iter().map(text).collect::<Option<_>>()?,
        })
    }

    fn read_attempt(&self, job: Value, at: Option<Timestamp>) -> Option<Attempt> {
        let [id, list, attempt, claimed_at, fields]: [Value; 5] = array(job)?.try_into().ok()?;
        let id: JobId = text(&id)?.parse().ok()?;
        let queue = self.keys.queue_of_work(&text(&list)?)?;
        let fields = array(fields)?;
        let job = if fields.is_empty() {
            Err(InvalidJob::new("script", "makes the job larger than this actor accepts"))
        } else {
            let pairs = fields.chunks_exact(2).map(|pair| (bytes(&pair[0]), bytes(&pair[1])));
            Job::from_hash(id.clone(), pairs)
        };
        let attempt = number(&attempt)?.try_into().unwrap_or(u32::MAX);
        let status = JobStatus::Started;
        let job = job.map(|job| Job { attempt, status, started_at: at, ..job });
        let claimed_at = number(&claimed_at)?.try_into().ok()?;
        Some(Attempt { id, claimed_at, queue, job })
    }

    /// Records how attempts ended, each only while the boot owns the job, in as many calls as their
    /// number and bytes need. Returns one answer for each, in order.
    ///
    /// # Errors
    /// [`StoreError`]; calling again with the same endings is safe.
    pub async fn finish(
        &self,
        boot: &BootId,
        retention: impl Into<Retention>,
        endings: &[AttemptEnd],
    ) -> Result<Vec<Recorded>, StoreError> {
        let retention = kept(retention);
        let endings: Vec<UnsentEnd<'_>> = endings.iter().map(UnsentEnd::of).collect();
        let mut recorded = Vec::with_capacity(endings.len());
        for portion in portions(&endings, UnsentEnd::work) {
            recorded.extend(self.finish_portion(boot, &retention, portion).await?);
        }
        Ok(recorded)
    }

    async fn finish_portion(
        &self,
        boot: &BootId,
        retention: &str,
        endings: &[UnsentEnd<'_>],
    ) -> Result<Vec<Recorded>, StoreError> {
        let mut script = self.scripts.finish.prepare_invoke();
        script.arg(boot.as_str()).arg(retention).arg(endings.len());
        for UnsentEnd { ending, reply } in endings {
            let (kind, text, exit_code, delay) = match &ending.verdict {
                Verdict::Finished { output, exit_code } => {
                    ("finished", output.as_bytes(), exit_code, None)
                }
                Verdict::Error { error, exit_code, dead } => {
                    (if *dead { "dead" } else { "error" }, error.as_bytes(), exit_code, None)
                }
                Verdict::Retry { error, exit_code, delay } => {
                    ("retry", error.as_bytes(), exit_code, Some(delay))
                }
            };
            script
                .arg(ending.id.as_str())
                .arg(ending.claimed_at)
                .arg(ending.script_type.as_str())
                .arg(kind)
                .arg(text)
                .arg(exit_code.map(|code| code.to_string()).unwrap_or_default())
                .arg(delay.map(|delay| delay.as_micros().to_string()).unwrap_or_default())
                .arg(lines(ending.used.iter().map(|(name, value)| (*name, value))))
                .arg(reply)
                .arg(lines(ending.counts.iter().map(|(name, by)| (name.as_str(), by))));
        }
        let results: Vec<String> = self.invoke("recording how jobs ended", &script).await?;
        let rejected = |answer: &String| StoreError::in_answer(self.address(), answer);
        if let Some(error) = results.iter().find_map(rejected) {
            return Err(error);
        }
        if results.len() > endings.len() {
            self.settle_some(retention).await?;
        }
        Ok(results
            .into_iter()
            .take(endings.len())
            .map(|result| match result.as_str() {
                "ok" => Recorded::Recorded,
                "done" => Recorded::Before,
                "lost" => Recorded::Lost,
                _ => Recorded::Failed(self.scripts.finish.with_files(&result)),
            })
            .collect())
    }

    /// Requeues jobs of a boot at the front of their queues, in order; without a queue, at the one
    /// that the hash names. Charges no attempt and no crash. Returns how many the boot still owned.
    ///
    /// # Errors
    /// [`StoreError`]; calling again is safe.
    pub async fn requeue(
        &self,
        boot: &BootId,
        jobs: &[(JobId, Option<Queue>)],
    ) -> Result<u64, StoreError> {
        let mut script = self.scripts.requeue.prepare_invoke();
        script.arg(boot.as_str()).arg(jobs.len());
        for (id, queue) in jobs {
            let queue = queue.as_ref().map(ToString::to_string).unwrap_or_default();
            script.arg(id.as_str()).arg(queue);
        }
        self.invoke("giving jobs back", &script).await
    }

    /// The jobs a boot owns, up to `limit`. Jobs unknown to the owner come from a claim whose
    /// answer was lost.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn running(&self, boot: &BootId, limit: usize) -> Result<Vec<JobId>, StoreError> {
        let mut command = redis::cmd("ZRANGE");
        command.arg(self.keys.running(boot)).arg(0).arg(limit.saturating_sub(1));
        let ids: Vec<String> = self.link.query("reading the jobs of a boot", &command).await?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }
}

/// The bytes from which the reply with an output is made here. Redis escapes a megabyte in 15 ms.
const LONG_OUTPUT: usize = 16 << 10;

/// The end of an attempt with its reply as JSON, if the output is long or not UTF-8, else with ''.
struct UnsentEnd<'a> {
    ending: &'a AttemptEnd,
    reply: String,
}

impl<'a> UnsentEnd<'a> {
    fn of(ending: &'a AttemptEnd) -> Self {
        let reply = match &ending.verdict {
            Verdict::Finished { output, .. }
                if matches!(output, JobOutput::Bytes(_))
                    || output.as_bytes().len() >= LONG_OUTPUT =>
            {
                Reply::json_of(&ending.id, output)
            }
            _ => String::new(),
        };
        Self { ending, reply }
    }

    /// The text goes into the hash and into the reply.
    fn work(&self) -> usize {
        let text = match &self.ending.verdict {
            Verdict::Finished { output, .. } => output.as_bytes().len(),
            Verdict::Error { error, .. } | Verdict::Retry { error, .. } => error.len(),
        };
        2 * JOB_WORK + text + text.max(self.reply.len())
    }
}

/// Fields and values in the form of `finish.lua`.
fn lines<'a>(fields: impl Iterator<Item = (&'a str, impl Display)>) -> String {
    let mut text = String::new();
    for (name, value) in fields {
        let _ = writeln!(text, "{name}={value}");
    }
    text
}

/// Whole milliseconds, at least one: zero would mean "never" or "at once" to Redis.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).clamp(1, u64::MAX >> 12)
}

/// The retention of jobs in the form of the scripts.
pub(super) fn kept(retention: impl Into<Retention>) -> String {
    let Retention { default, max } = retention.into();
    format!("{} {}", millis(default), millis(max))
}

fn array(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

fn bytes(value: &Value) -> &[u8] {
    match value {
        Value::BulkString(bytes) => bytes,
        Value::SimpleString(text) => text.as_bytes(),
        _ => &[],
    }
}

fn text(value: &Value) -> Option<String> {
    std::str::from_utf8(bytes(value)).ok().map(str::to_owned)
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        other => std::str::from_utf8(bytes(other)).ok()?.parse().ok(),
    }
}

/// Pairs of strings; invalid UTF-8 is replaced.
fn pairs(mut values: impl Iterator<Item = Value>) -> Vec<(String, String)> {
    let shown = |value: &Value| String::from_utf8_lossy(bytes(value)).into_owned();
    std::iter::from_fn(|| Some((shown(&values.next()?), shown(&values.next()?)))).collect()
}
