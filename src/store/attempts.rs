//! The actor's side of a job until its attempt ends: claim it, or give it back.

use jiff::Timestamp;
use redis::Value;

pub(super) use super::backoff::millis;
use super::{ClaimLimits, Store, StoreError};
use crate::proto::job::{BootId, InvalidJob, Job, JobId, JobStatus, Retention};
use crate::proto::queue::Queue;
use crate::proto::target::ActorId;
use crate::proto::units::readable_size;

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
    /// The number of these that are claimed ahead: they wait for a thread. No job with a limit is among them, and
    /// none that an actor has died with.
    pub ahead: usize,
    /// The largest hash that is returned, in bytes.
    pub size_max_bytes: u64,
    /// The limits of the configuration.
    pub limits: &'a ClaimLimits,
}

/// The answer to a claim.
#[derive(Debug, Default)]
pub struct Claimed {
    /// The jobs, owned by the boot from now on.
    pub attempts: Vec<Attempt>,
    /// The number of void ids: illegal, or without a waiting job.
    pub skipped: u64,
    /// Some of them, each with the reason.
    pub skipped_some: Vec<(String, String)>,
    /// Lists that could not be read, each with the error.
    pub broken: Vec<(String, String)>,
    /// True if so many ids were void that the caller should claim again at once.
    pub more: bool,
    /// True if the next job may not be claimed ahead.
    pub none_ahead: bool,
    /// True if the boot has lost its lease: it can never claim again.
    pub fenced: bool,
    /// Lists with ids that programs have pushed: see [`Store::adopt`].
    pub unadopted: Vec<String>,
}

/// A claimed job: one attempt to run it.
#[derive(Debug)]
pub struct Attempt {
    /// The job's id.
    pub id: JobId,
    /// The time of its claim, as in the boot's running set, in microseconds since 1970.
    pub claimed_at: u64,
    /// The queue it waited in, and goes back to if it is requeued.
    pub queue: Queue,
    /// The job as it was before the claim, with its attempt and start, or the reason why its hash is
    /// invalid.
    pub job: Result<Job, InvalidJob>,
}

/// An attempt that goes back to its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReturnedAttempt {
    pub id: JobId,
    /// By [`Attempt::claimed_at`]: this attempt, and no later one of the same boot.
    pub claimed_at: u64,
    /// Its queue; without it, the queue that its hash names.
    pub queue: Option<Queue>,
    /// False if its script has not begun: then it does not count as an attempt before the next one.
    pub has_begun: bool,
    /// True if it was killed for the memory of its unit or of the machine: that is charged as a crash.
    pub has_crashed: bool,
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
            .arg(claim.wanted.saturating_sub(claim.ahead))
            .arg(claim.size_max_bytes)
            .arg(&*claim.limits.of_actor(claim.actor));
        let answer: Value = self.invoke("claiming jobs", &script).await?;
        let claimed = self.read_claim(answer, claim.size_max_bytes);
        let claimed = claimed.ok_or_else(|| StoreError::unexpected("claiming jobs"))?;
        self.skips.note(claimed.skipped, &claimed.skipped_some);
        // A Redis that rejects every write has let the script take nothing from any list.
        let rejected =
            |(_, reason): &(String, String)| StoreError::in_answer(&self.address(), reason);
        claimed.broken.iter().find_map(rejected).map_or(Ok(claimed), Err)
    }

    fn read_claim(&self, answer: Value, size_max_bytes: u64) -> Option<Claimed> {
        let [jobs, skipped, broken, more, fenced, at, unadopted]: [Value; 7] =
            array(answer)?.try_into().ok()?;
        let at = Timestamp::from_microsecond(number(&at)?).ok();
        let mut skipped = array(skipped)?.into_iter();
        let skipped_number = number(&skipped.next()?)?;
        Some(Claimed {
            attempts: array(jobs)?
                .into_iter()
                .map(|job| self.read_attempt(job, at, size_max_bytes))
                .collect::<Option<_>>()?,
            skipped: skipped_number.try_into().ok()?,
            skipped_some: pairs(skipped),
            broken: pairs(array(broken)?.into_iter()),
            more: number(&more)? > 0,
            none_ahead: number(&more)? == 2,
            fenced: number(&fenced)? == 1,
            unadopted: array(unadopted)?.iter().map(text).collect::<Option<_>>()?,
        })
    }

    fn read_attempt(
        &self,
        job: Value,
        at: Option<Timestamp>,
        size_max_bytes: u64,
    ) -> Option<Attempt> {
        let [id, list, attempt, claimed_at, fields]: [Value; 5] = array(job)?.try_into().ok()?;
        let id: JobId = text(&id)?.parse().ok()?;
        let queue = self.keys.queue_of_work(&text(&list)?)?;
        let fields = array(fields)?;
        let job = if fields.is_empty() {
            let why = format!(
                "is larger than {}, which job.script_size_max of this actor allows with all fields",
                readable_size(size_max_bytes)
            );
            Err(InvalidJob::new("its hash", why))
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

    /// Requeues jobs of a boot at the front of their queues, in order. Charges no attempt and no crash.
    /// Returns how many the boot still owned.
    ///
    /// # Errors
    /// [`StoreError`]; calling again is safe.
    pub async fn requeue(
        &self,
        boot: &BootId,
        retention: impl Into<Retention>,
        jobs: &[ReturnedAttempt],
    ) -> Result<u64, StoreError> {
        let mut script = self.scripts.requeue.prepare_invoke();
        script.arg(boot.as_str()).arg(kept(retention)).arg(jobs.len());
        for ReturnedAttempt { id, claimed_at, queue, has_begun, has_crashed } in jobs {
            let queue = queue.as_ref().map(ToString::to_string).unwrap_or_default();
            let began = match (has_begun, has_crashed) {
                (_, true) => 2,
                (begun, false) => u8::from(*begun),
            };
            script.arg(id.as_str()).arg(queue).arg(claimed_at).arg(began);
        }
        self.invoke("giving jobs back", &script).await
    }

    /// The jobs a boot owns, up to `limit`, each with the time of its claim. Jobs unknown to the owner
    /// come from a claim whose answer was lost.
    pub async fn running(
        &self,
        boot: &BootId,
        limit: usize,
    ) -> Result<Vec<(JobId, u64)>, StoreError> {
        let arguments = (self.keys.running(boot), 0, limit.saturating_sub(1), "WITHSCORES");
        let jobs: Vec<(String, u64)> =
            self.link.command("reading the jobs of a boot", "ZRANGE", arguments).await?;
        Ok(jobs.into_iter().filter_map(|(id, at)| Some((id.parse().ok()?, at))).collect())
    }
}

/// The retention of jobs in the form of the scripts.
pub(super) fn kept(retention: impl Into<Retention>) -> String {
    let Retention { default, failed, max } = retention.into();
    format!("{} {} {}", millis(default), millis(max), millis(failed))
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
