//! Jobs as their submitters see them: submit, start, read, retry, edit, delete, tell them an event.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::attempts::kept;
use super::outputs::READS_MAX;
use super::portions::{LINK_WORK, WORK_PER_CALL, portions};
use super::submission::{
    Submitted, WithFields, refused, replaces, submission, unawaited, with_fields, work,
};
use super::{BatchOutcome, JobStore, Result, StoreError, TOO_SLOW};
use crate::proto::job::{Corrections, InvalidJob, Job, JobId, JobStatus, Retention};
use crate::proto::target::{Group, Priority};
use crate::proto::word_table::words;

const RETRYING: &str = "retrying a job";
/// The values that continue a retry in its next step: an id and a place for each job.
const CONTINUED_MAX: usize = 2000;
/// The values that `retry.lua` returns.
type RetryStep =
    (String, String, Vec<(String, String)>, Vec<(String, String, String)>, usize, Vec<String>);

/// The answer to a start or a retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryOutcome {
    Moved(JobStatus),
    Missing,
    Refused(JobStatus),
    /// Its fields name no legal queue.
    Illegal,
    /// This job holds its unique key, or one that the caller may not see.
    Duplicate(Option<JobId>),
    /// One of its prerequisites failed; the failure of this job was the cause.
    FailedPrerequisite(JobId),
    /// This prerequisite does not exist any more.
    LostPrerequisite(JobId),
}

/// The answer to a retry of a job and its dependents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetriedGraph {
    /// The answer for the job itself; [`RetryOutcome::Moved`] also if it had not failed, and stays as it is.
    pub outcome: RetryOutcome,
    /// Its dependents that were retried, with their new states.
    pub retried: Vec<(JobId, JobStatus)>,
    /// Dependents that failed because of a prerequisite and were not retried, and why.
    pub stay: Vec<(JobId, RetryOutcome)>,
}

words! {
    /// The answer to a deletion.
    DeleteOutcome, "answer", "a word of delete.lua";
    Deleted = "deleted",
    /// It runs, and stays.
    Running = "running",
    Missing = "missing",
}

impl JobStore<'_> {
    /// Stores jobs and, if `start`, dispatches them, in as many calls as their number and bytes
    /// need, each atomic. Every job must name its script type.
    ///
    /// # Errors
    /// [`StoreError`]; the jobs of the calls before it are stored. After a lost connection the jobs of
    /// the last call may be: submitting them again returns [`Submitted::Exists`].
    pub async fn submit(
        self,
        jobs: &[Job],
        start: bool,
        retention: impl Into<Retention>,
    ) -> Result<Vec<Submitted>> {
        const DOING: &str = "submitting jobs";
        let retention = retention.into();
        let jobs: Vec<WithFields<'_>> = jobs.iter().map(|job| self.fields_of(job)).collect();
        let mut submitted = Vec::with_capacity(jobs.len());
        let with_links =
            |job: &WithFields<'_>| work(job) + LINK_WORK * job.0.spec.waits_for().count();
        for portion in portions(&jobs, with_links) {
            if let [(job, _)] = portion
                && start
                && LINK_WORK * job.spec.waits_for().count() > WORK_PER_CALL
            {
                submitted.push(self.submit_in_steps(job, retention).await?);
                continue;
            }
            // A job that may replace another goes alone.
            for part in portion.chunk_by(|a, b| !replaces(a) && !replaces(b)) {
                let replaces = part.iter().any(replaces);
                let script =
                    if replaces { &self.store.scripts.replace } else { &self.store.scripts.submit };
                let mut script = script.prepare_invoke();
                submission(&mut script, part, start, retention);
                let results: Vec<(String, String)> =
                    self.store.invoke_for_caller(DOING, None, script).await?;
                submitted.extend(results.into_iter().filter_map(
                    |(code, detail)| match code.parse() {
                        Ok(status) => Some(Submitted::Accepted(status)),
                        Err(_) => refused(&code, detail),
                    },
                ));
            }
        }
        let is_whole = submitted.len() == jobs.len();
        if is_whole { Ok(submitted) } else { Err(StoreError::unexpected(DOING)) }
    }

    /// Returns a job with its fields, as its submitter waits for it or not.
    pub(super) fn fields_of(self, job: &Job) -> WithFields<'_> {
        if self.store.is_unawaited { unawaited(job) } else { with_fields(job) }
    }

    /// Submits a job that waits for more others than one call should look at.
    async fn submit_in_steps(self, job: &Job, retention: Retention) -> Result<Submitted> {
        match self.store.batches().submit(std::slice::from_ref(job), None, retention).await? {
            BatchOutcome::Accepted => {
                let state = self.state(&job.id).await?;
                Ok(Submitted::Accepted(state.unwrap_or(JobStatus::WaitingForPrerequisites)))
            }
            BatchOutcome::Refused { why, .. } => Ok(why),
            BatchOutcome::TooSlow | BatchOutcome::GraphExists => {
                Err(StoreError::failed("submitting a job", TOO_SLOW))
            }
        }
    }

    /// Starts a job that was only stored.
    pub async fn start(self, id: &JobId, retention: impl Into<Retention>) -> Result<RetryOutcome> {
        const DOING: &str = "starting a job";
        let arguments = (id.as_str(), kept(retention));
        let (code, detail): (String, String) = self
            .store
            .run_for_caller(DOING, Some(id), &self.store.scripts.start, arguments)
            .await?;
        moved(&code, &detail).ok_or_else(|| StoreError::unexpected(DOING))
    }

    /// Runs an ended job again, or lets it wait for its prerequisites; its attempts and crashes are reset.
    pub async fn retry(self, id: &JobId) -> Result<RetryOutcome> {
        self.retry_corrected(id, &Corrections::new()).await
    }

    /// Does so with other settings. The script that its last attempt ran stays in the record of that attempt.
    pub async fn retry_corrected(
        self,
        id: &JobId,
        corrections: &Corrections,
    ) -> Result<RetryOutcome> {
        let corrections = correction_words(corrections);
        let (code, detail, ..) = self.retry_step(Some(id), "alone", &corrections).await?;
        moved(&code, &detail).ok_or_else(|| StoreError::unexpected(RETRYING))
    }

    /// Retries a job if it failed, and all its dependents that failed because a prerequisite did.
    /// Each step is atomic and takes bounded time. A job with corrections is retried however it ended.
    ///
    /// # Errors
    /// [`StoreError`]; some of the dependents may have been retried.
    pub async fn retry_with_dependents(
        self,
        id: &JobId,
        corrections: &Corrections,
    ) -> Result<RetriedGraph> {
        let unexpected = || StoreError::unexpected(RETRYING);
        let corrections = correction_words(corrections);
        let mut step = self.retry_step(Some(id), "dependents", &corrections).await?;
        let outcome = moved(&step.0, &step.1).ok_or_else(unexpected)?;
        let (mut retried, mut stay) = (Vec::new(), BTreeMap::new());
        let mut left = Vec::new();
        loop {
            let (_, _, moves, stays, done, more) = step;
            for (id, state) in moves {
                let state = StoreError::or_parsed(RETRYING, &state)?;
                retried.push((StoreError::or_parsed(RETRYING, &id)?, state));
            }
            for (id, code, detail) in stays {
                let id = StoreError::or_parsed(RETRYING, &id)?;
                stay.insert(id, moved(&code, &detail).ok_or_else(unexpected)?);
            }
            left.extend(more.into_iter().skip(done));
            if left.is_empty() {
                break;
            }
            let next = left.split_off(left.len().saturating_sub(CONTINUED_MAX));
            step = self.retry_step(None, "dependents", &next).await?;
        }
        for (id, _) in &retried {
            stay.remove(id);
        }
        Ok(RetriedGraph { outcome, retried, stay: stay.into_iter().collect() })
    }

    async fn retry_step(
        self,
        id: Option<&JobId>,
        what: &str,
        more: &[String],
    ) -> Result<RetryStep> {
        let arguments = (id.map_or("", JobId::as_str), what, more);
        self.store.run_for_caller(RETRYING, id, &self.store.scripts.retry, arguments).await
    }

    /// Deletes a job that does not run, with its log and reply. Dependents that wait for it fail.
    pub async fn delete(
        self,
        id: &JobId,
        retention: impl Into<Retention>,
    ) -> Result<DeleteOutcome> {
        const DOING: &str = "deleting a job";
        let arguments = (id.as_str(), kept(retention));
        let word: String = self
            .store
            .run_for_caller(DOING, Some(id), &self.store.scripts.delete, arguments)
            .await?;
        StoreError::or_parsed(DOING, &word)
    }

    /// Reads a job. `None` if it does not exist; [`InvalidJob`] if its hash cannot be parsed.
    pub async fn job(self, id: &JobId) -> Result<Option<Result<Job, InvalidJob>>> {
        let mut reads = 0;
        loop {
            reads += 1;
            let fields: Vec<(Vec<u8>, Vec<u8>)> = self
                .store
                .link
                .command("reading a job", "HGETALL", self.store.keys.job(id))
                .await?;
            if fields.is_empty() {
                return Ok(None);
            }
            let pairs = fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
            let mut job = Job::from_hash(id.clone(), pairs);
            let is_whole = match &mut job {
                Ok(job) => self.add_output(job).await?,
                Err(_) => true,
            };
            if is_whole || reads == READS_MAX {
                return Ok(Some(job));
            }
        }
    }
}

/// Returns corrections as the arguments of a script: fields and texts, an empty one to take the field away.
pub(super) fn correction_words(corrections: &Corrections) -> Vec<String> {
    let pairs = corrections.iter();
    pairs.flat_map(|(name, text)| [(*name).to_owned(), text.clone().unwrap_or_default()]).collect()
}

pub(super) fn moved(code: &str, detail: &str) -> Option<RetryOutcome> {
    match code {
        "missing" => Some(RetryOutcome::Missing),
        "illegal" => Some(RetryOutcome::Illegal),
        "refused" => detail.parse().ok().map(RetryOutcome::Refused),
        "duplicate" => Some(RetryOutcome::Duplicate(detail.parse().ok())),
        "failed_prerequisite" => detail.parse().ok().map(RetryOutcome::FailedPrerequisite),
        "lost_prerequisite" => detail.parse().ok().map(RetryOutcome::LostPrerequisite),
        status => status.parse().ok().map(RetryOutcome::Moved),
    }
}

/// The changes of a job that waits. Absent fields stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobEdit {
    pub priority: Option<Priority>,
    /// The group that may run it; `Some(None)` for any group. Takes its instance away.
    pub group: Option<Option<Group>>,
    /// The earliest time to start; one in the past means now.
    pub run_at: Option<Timestamp>,
    /// Further settings with new values, such as a corrected script.
    pub corrections: Corrections,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditOutcome {
    /// It is changed, and in this state.
    Edited(JobStatus),
    Refused(JobStatus),
    /// An actor is about to start it.
    Taken,
    /// Its queue is too long to take it out of the middle.
    LongQueue(String),
    /// Its fields name no queue.
    Illegal,
    Missing,
}

impl JobStore<'_> {
    /// Changes a job that has not started, and moves it to the queue or index where it then belongs.
    pub async fn edit(self, id: &JobId, edit: &JobEdit) -> Result<EditOutcome> {
        const DOING: &str = "changing a job";
        let group = edit.group.as_ref().map_or("", |group| {
            // No group has this name.
            group.as_ref().map_or("-", |group| group.as_str())
        });
        // Times before the epoch have no text in the script.
        let due = edit.run_at.map(|time| time.as_microsecond().max(0).to_string());
        let priority = edit.priority.map_or("", Priority::as_str);
        let corrections = correction_words(&edit.corrections);
        let arguments = (id.as_str(), priority, group, due.unwrap_or_default(), corrections);
        let (code, detail): (String, String) =
            self.store.run_for_caller(DOING, Some(id), &self.store.scripts.edit, arguments).await?;
        let state = || StoreError::or_parsed(DOING, &detail);
        Ok(match code.as_str() {
            "edited" => EditOutcome::Edited(state()?),
            "refused" => EditOutcome::Refused(state()?),
            "taken" => EditOutcome::Taken,
            "long" => EditOutcome::LongQueue(detail),
            "illegal" => EditOutcome::Illegal,
            "missing" => EditOutcome::Missing,
            _ => return Err(StoreError::unexpected(DOING)),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TellOutcome {
    /// The job waited for it, and goes to its queue.
    Told,
    /// The job keeps it for its next wait.
    Kept,
    /// The job has had it, or keeps it already.
    Twice,
    /// The wait of the job for it has ended by its time, and it does not wait for it again.
    Missed,
    /// The job waits for it from others.
    Forbidden,
    /// The job keeps too many events.
    Full,
    Refused(JobStatus),
    /// Its fields name no queue.
    Illegal,
    Missing,
}

impl JobStore<'_> {
    /// Sends an event, a JSON object without its time, to a job. `names` are of its sender.
    pub async fn tell(
        self,
        id: &JobId,
        (name, event): (&str, &str),
        names: &[String],
    ) -> Result<TellOutcome> {
        const DOING: &str = "telling a job an event";
        let arguments = (id.as_str(), name, event, names);
        let (code, detail): (String, String) =
            self.store.run_for_caller(DOING, Some(id), &self.store.scripts.tell, arguments).await?;
        Ok(match code.as_str() {
            "told" => TellOutcome::Told,
            "kept" => TellOutcome::Kept,
            "twice" => TellOutcome::Twice,
            "missed" => TellOutcome::Missed,
            "forbidden" => TellOutcome::Forbidden,
            "full" => TellOutcome::Full,
            "refused" => TellOutcome::Refused(StoreError::or_parsed(DOING, &detail)?),
            "illegal" => TellOutcome::Illegal,
            "missing" => TellOutcome::Missing,
            _ => return Err(StoreError::unexpected(DOING)),
        })
    }
}
