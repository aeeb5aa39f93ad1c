//! The actor's side of a job until its attempt ends: claim it, keep the state of its script, or give it back.

use jiff::Timestamp;
use redis::Value;

pub(super) use super::backoff::millis;
use super::text::{BytePair, lossy_pairs, read};
use super::{AttemptStore, ClaimLimits, Result, StoreError};
use crate::proto::job::{BootId, InvalidJob, Job, JobId, JobStatus, Retention};
use crate::proto::queue::Queue;
use crate::proto::target::ActorId;
use crate::proto::units::readable_size;

#[derive(Debug)]
pub struct Claim<'a> {
    pub boot: &'a BootId,
    pub actor: &'a ActorId,
    /// Work lists to take from, in order.
    pub lists: &'a [String],
    /// The limit on their number.
    pub wanted: usize,
    /// The number of these that wait for a thread: no job with a limit, and none that an actor has died with.
    pub ahead: usize,
    /// The largest hash that is returned, in bytes.
    pub size_max_bytes: u64,
    pub limits: &'a ClaimLimits,
}

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
    /// Lists with ids that programs have pushed: see [`LegacyStore::adopt`](super::LegacyStore::adopt).
    pub unadopted: Vec<String>,
}

/// A claimed job: one attempt to run it.
#[derive(Debug)]
pub struct Attempt {
    pub id: JobId,
    /// The time of its claim, as in the boot's running set, in microseconds since 1970.
    pub claimed_at: u64,
    /// The queue it waited in, and goes back to if it is requeued.
    pub queue: Queue,
    /// The job before the claim, with its attempt and start, or the reason why its hash is invalid.
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

/// A job in the answer of `claim.lua`: its id, its work list, its attempt, the time of its claim, and its fields.
type ClaimedJob = (String, String, i64, u64, Vec<BytePair>);
/// The values that `claim.lua` returns.
type ClaimAnswer = (Vec<ClaimedJob>, Vec<Value>, Vec<BytePair>, u8, u8, i64, Vec<String>);

/// The fifth of these if Redis does not have the limits of the digest: nothing is claimed.
const UNKNOWN_LIMITS: u8 = 2;

/// The fourth of these if jobs wait in lists that a fair limit is to hold.
const UNHELD: u8 = 3;
/// The calls that hold such jobs after one claim.
const HOLDING_ROUNDS: usize = 20;

impl AttemptStore<'_> {
    /// Claims jobs for an actor in one round trip.
    ///
    /// # Errors
    /// [`StoreError`]. After a lost connection the claim may have been made: see [`AttemptStore::running`].
    pub async fn claim(self, claim: &Claim<'_>) -> Result<Claimed> {
        let limits = claim.limits.of_actor(claim.actor);
        let answer = self.run_claim(claim, &limits.wide, &limits.digest).await?;
        let answer = if answer.4 == UNKNOWN_LIMITS {
            // A Redis without memory for them takes them with each claim.
            drop(self.store.limits().publish(&limits).await);
            self.run_claim(claim, &limits.all, "").await?
        } else {
            answer
        };
        let mut waiting = answer.3 == UNHELD;
        let claimed = self.read_claim(answer, claim.size_max_bytes);
        // What is left is done by the next claim: these jobs should start.
        for _ in 0..HOLDING_ROUNDS {
            if !waiting {
                break;
            }
            let none = Claim { wanted: 0, ahead: 0, ..*claim };
            let held = self.run_claim(&none, &limits.wide, &limits.digest).await;
            waiting = held.is_ok_and(|answer| answer.3 == UNHELD);
        }
        let claimed = claimed.ok_or_else(|| StoreError::unexpected("claiming jobs"))?;
        self.store.skips.note(claimed.skipped, &claimed.skipped_some);
        // A Redis that rejects every write has let the script take nothing from any list.
        let rejected =
            |(_, reason): &(String, String)| StoreError::in_answer(&self.store.address(), reason);
        claimed.broken.iter().find_map(rejected).map_or(Ok(claimed), Err)
    }

    async fn run_claim(self, claim: &Claim<'_>, limits: &str, digest: &str) -> Result<ClaimAnswer> {
        let mut script = self.store.scripts.claim.prepare_invoke();
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
            .arg(limits)
            .arg(digest);
        self.store.invoke("claiming jobs", &script).await
    }

    fn read_claim(self, answer: ClaimAnswer, size_max_bytes: u64) -> Option<Claimed> {
        let (jobs, skipped, broken, more, fenced, at, unadopted) = answer;
        let at = Timestamp::from_microsecond(at).ok();
        let read_job = |job| self.read_attempt(job, at, size_max_bytes);
        let mut skipped = skipped.into_iter();
        Some(Claimed {
            attempts: jobs.into_iter().map(read_job).collect::<Option<_>>()?,
            skipped: read(skipped.next()?)?,
            skipped_some: lossy_pairs(read(Value::Array(skipped.collect()))?),
            broken: lossy_pairs(broken),
            more: more > 0,
            none_ahead: more == 2,
            fenced: fenced == 1,
            unadopted,
        })
    }

    fn read_attempt(
        self,
        (id, list, attempt, claimed_at, fields): ClaimedJob,
        at: Option<Timestamp>,
        size_max_bytes: u64,
    ) -> Option<Attempt> {
        let id: JobId = id.parse().ok()?;
        let queue = self.store.keys.queue_of_work(&list)?;
        let job = if fields.is_empty() {
            let why = format!(
                "is larger than {}, which job.script_size_max of this actor allows with all fields",
                readable_size(size_max_bytes)
            );
            Err(InvalidJob::new("its hash", why))
        } else {
            let pairs = fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
            Job::from_hash(id.clone(), pairs)
        };
        let attempt = attempt.try_into().unwrap_or(u32::MAX);
        let status = JobStatus::Started;
        let job = job.map(|job| Job { attempt, status, started_at: at, ..job });
        Some(Attempt { id, claimed_at, queue, job })
    }

    /// Requeues jobs of a boot at the front of their queues, in order. Charges no attempt and no crash.
    /// Returns how many the boot still owned. Calling again is safe.
    pub async fn requeue(
        self,
        boot: &BootId,
        retention: impl Into<Retention>,
        jobs: &[ReturnedAttempt],
    ) -> Result<u64> {
        let mut script = self.store.scripts.requeue.prepare_invoke();
        script.arg(boot.as_str()).arg(kept(retention)).arg(jobs.len());
        for ReturnedAttempt { id, claimed_at, queue, has_begun, has_crashed } in jobs {
            let queue = queue.as_ref().map(ToString::to_string).unwrap_or_default();
            let began = match (has_begun, has_crashed) {
                (_, true) => 2,
                (begun, false) => u8::from(*begun),
            };
            script.arg(id.as_str()).arg(queue).arg(claimed_at).arg(began);
        }
        self.store.invoke("giving jobs back", &script).await
    }

    /// The jobs a boot owns, up to `limit`, each with the time of its claim. Jobs unknown to the owner
    /// come from a claim whose answer was lost.
    pub async fn running(self, boot: &BootId, limit: usize) -> Result<Vec<(JobId, u64)>> {
        let arguments = (self.store.keys.running(boot), 0, limit.saturating_sub(1), "WITHSCORES");
        let jobs: Vec<(String, u64)> =
            self.store.link.command("reading the jobs of a boot", "ZRANGE", arguments).await?;
        Ok(jobs.into_iter().filter_map(|(id, at)| Some((id.parse().ok()?, at))).collect())
    }

    /// Stores a state, as JSON, for the next attempt of a job; an empty one keeps none. Returns `false` if the boot
    /// does not own the job any more, or has claimed it again after `claimed_at`: nothing was written.
    pub async fn keep_state(
        self,
        boot: &BootId,
        (id, claimed_at): (&JobId, u64),
        state: &str,
    ) -> Result<bool> {
        let arguments = (boot.as_str(), id.as_str(), claimed_at, state);
        self.store
            .run_script("keeping the state of a job", &self.store.scripts.keep_state, arguments)
            .await
    }
}

/// The retention of jobs in the form of the scripts.
pub(super) fn kept(retention: impl Into<Retention>) -> String {
    let Retention { default, failed, max } = retention.into();
    format!("{} {} {}", millis(default), millis(max), millis(failed))
}
