//! Changes of one job: stop, retry, delete; and the deletion of all.

use serde_json::{Map, Value};

use super::{Client, ClientError, moved};
use crate::proto::job::{Corrections, Job, JobId, JobStatus};
use crate::proto::text::counted;
use crate::store::{DeleteOutcome, ListQuery, StopOutcome};

impl Client {
    /// Stops a job: at once if it has not started, through its actor if it runs. Returns whether
    /// it has ended already; if not, its actor has been told.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::WrongState`] if it ended before, or its hash
    /// does not name its actor.
    pub async fn stop_job(&self, id: &JobId) -> Result<bool, ClientError> {
        let has_ended = self.stop_one(id).await?;
        self.note("job.stop", id).await;
        Ok(has_ended)
    }

    /// Stops a job without a record of it.
    pub(super) async fn stop_one(&self, id: &JobId) -> Result<bool, ClientError> {
        let wrong = |status: &str| ClientError::WrongState {
            doing: "stop",
            id: id.clone(),
            status: status.to_owned(),
        };
        let (store, by) = (self.of(id)?, self.author.signature());
        let mut outcome = store.stop_by(id, self.job.kept(), &by).await?;
        // It may be of a batch whose submission is decided, and not made.
        if outcome == StopOutcome::Missing && store.finish_commits(self.job.kept()).await? {
            outcome = store.stop_by(id, self.job.kept(), &by).await?;
        }
        match outcome {
            StopOutcome::Stopped => Ok(true),
            StopOutcome::Requested | StopOutcome::Own => Ok(false),
            StopOutcome::Unowned => Err(wrong("started by an actor that its hash does not name")),
            StopOutcome::Ended => Err(wrong("over already")),
            StopOutcome::Missing => Err(ClientError::NoSuchJob(id.clone())),
        }
    }

    /// Runs an ended job again, with attempts and crashes counted from 0. It waits for its
    /// prerequisites that have not finished. Returns its new state.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::WrongState`] if it has not ended;
    /// [`ClientError::FailedPrerequisite`] and [`ClientError::LostPrerequisite`], as it would run
    /// without an input.
    pub async fn retry_job(&self, id: &JobId) -> Result<JobStatus, ClientError> {
        let state = self.retry_one(id, &Map::new()).await?;
        self.note("job.retry", id).await;
        Ok(state)
    }

    /// Retries a job without a record of it.
    pub(super) async fn retry_one(
        &self,
        id: &JobId,
        changes: &Map<String, Value>,
    ) -> Result<JobStatus, ClientError> {
        let corrections = self.corrections(id, changes).await?;
        moved("retry", id, self.of(id)?.retry_corrected(id, &corrections).await?)
    }

    /// Returns a job as these changes would leave it, for further checks. Nothing is stored.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] for a change that is not legal.
    pub async fn corrected_job(
        &self,
        job: &Job,
        changes: &Map<String, Value>,
    ) -> Result<Job, ClientError> {
        let mut job = job.corrected(changes)?;
        let used = job.spec.uses.clone();
        // The parameters of a version that is no longer kept cannot be checked.
        if let Some(used) = used
            && let Some(script) = self.store.published_script(&used).await?
        {
            script.give_to(&mut job.spec)?;
        }
        job.spec.check(&self.job.bounds())?;
        Ok(job)
    }

    /// Returns the corrections that changes make of a job.
    pub(super) async fn corrections(
        &self,
        id: &JobId,
        changes: &Map<String, Value>,
    ) -> Result<Corrections, ClientError> {
        if changes.is_empty() {
            return Ok(Corrections::new());
        }
        let job = self.get_job(id).await?;
        Ok(job.corrections_to(&self.corrected_job(&job, changes).await?))
    }

    /// Resumes the failed part of a graph: retries a job if it failed, and all its dependents that failed because a
    /// prerequisite did. With changes the job itself is retried however it ended. Returns each with its new state, the
    /// job itself first, or the reason why a dependent stays as it is. It is not recorded.
    pub(super) async fn retry_tree(
        &self,
        id: &JobId,
        changes: &Map<String, Value>,
    ) -> Result<Vec<(JobId, Result<JobStatus, ClientError>)>, ClientError> {
        let corrections = self.corrections(id, changes).await?;
        let graph = self.of(id)?.retry_with_dependents(id, &corrections).await?;
        let own = moved("retry", id, graph.outcome)?;
        let mut jobs = vec![(id.clone(), Ok(own))];
        jobs.extend(graph.retried.into_iter().map(|(id, status)| (id, Ok(status))));
        jobs.extend(graph.stay.into_iter().map(|(id, why)| {
            let why = moved("retry", &id, why);
            (id, why)
        }));
        Ok(jobs)
    }

    /// Deletes a job that is not running, and its log. Its waiting dependents fail.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::WrongState`] if it runs.
    pub async fn delete_job(&self, id: &JobId) -> Result<(), ClientError> {
        self.delete_one(id).await?;
        self.note("job.delete", id).await;
        Ok(())
    }

    /// Deletes a job without a record of it.
    pub(super) async fn delete_one(&self, id: &JobId) -> Result<(), ClientError> {
        match self.of(id)?.delete(id, self.job.kept()).await? {
            DeleteOutcome::Deleted => Ok(()),
            DeleteOutcome::Missing => Err(ClientError::NoSuchJob(id.clone())),
            DeleteOutcome::Running => {
                let status = "started; stop it first".to_owned();
                Err(ClientError::WrongState { doing: "delete", id: id.clone(), status })
            }
        }
    }

    /// Deletes every job that is not running. Returns their number.
    ///
    /// # Errors
    /// [`ClientError::Store`]; the jobs before it are deleted.
    pub async fn clear_all_jobs(&self) -> Result<u64, ClientError> {
        let mut deleted = 0;
        let states = JobStatus::ALL.into_iter().filter(|status| *status != JobStatus::Started);
        let all = self.shards.all().iter();
        for (store, status) in all.flat_map(|store| states.clone().map(move |of| (store, of))) {
            let mut query = ListQuery {
                statuses: vec![status],
                limit: ListQuery::LIMIT_MAX,
                ..ListQuery::default()
            };
            loop {
                let page = store.list_jobs(&query).await?;
                for job in &page.items {
                    let outcome = store.delete(&job.id, self.job.kept()).await?;
                    deleted += u64::from(outcome == DeleteOutcome::Deleted);
                }
                match page.next {
                    Some(next) => query.cursor = Some(next),
                    None => break,
                }
            }
        }
        self.note("job.clear", counted(deleted, "job", "jobs")).await;
        Ok(deleted)
    }
}

/// Returns a job for the record of its change, with the names of the fields that change.
pub(super) fn with_fields(id: &JobId, changes: &Map<String, Value>) -> String {
    let names: Vec<&str> = changes.keys().map(String::as_str).collect();
    if names.is_empty() { id.to_string() } else { format!("{id} ({})", names.join(", ")) }
}
