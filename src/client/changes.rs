//! Changes of one job: stop, with the jobs below it, retry, edit, delete, tell it an event; a copy of one; and the deletion of all.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::change_many::{ChangedJob, JobValues, TOLD, with_fields};
use super::{Client, ClientError, JobClient, Result, moved};
use crate::proto::audit::bounded;
use crate::proto::job::{Corrections, InvalidJob, Job, JobId, JobStatus, check_event, event_data};
use crate::proto::target::{Group, ScriptType};
use crate::proto::text::counted;
use crate::store::{DeleteOutcome, EditOutcome, ListQuery, StopOutcome, TellOutcome};

/// The most jobs below one job that are stopped with it.
const DESCENDANTS_MAX: usize = 20_000;
/// Fields that a copy does not take over: each job has its own.
const OF_ONE_JOB: [&str; 4] = ["id", "unique_key", "run_at", "signature"];

impl Client {
    /// Stops a job: at once if it has not started, through its actor if it runs. Returns whether
    /// it has ended already; if not, its actor has been told.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::WrongState`] if it ended before, or its hash
    /// does not name its actor.
    pub async fn stop_job(&self, id: &JobId) -> Result<bool> {
        let has_ended = self.jobs().stop_one(id).await?;
        self.audit().note("job.stop", id).await;
        Ok(has_ended)
    }

    /// Deletes a job that is not running, and its log. Its waiting dependents fail.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::WrongState`] if it runs.
    pub async fn delete_job(&self, id: &JobId) -> Result<()> {
        self.jobs().delete_one(id).await?;
        self.audit().note("job.delete", id).await;
        Ok(())
    }

    /// Deletes every job that is not running. Returns their number.
    ///
    /// # Errors
    /// [`ClientError::Store`]; the jobs before it are deleted.
    pub async fn clear_all_jobs(&self) -> Result<u64> {
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
                let page = store.jobs().list(&query).await?;
                for job in &page.items {
                    let outcome = store.jobs().delete(&job.id, self.job.kept()).await?;
                    deleted += u64::from(outcome == DeleteOutcome::Deleted);
                }
                match page.next {
                    Some(next) => query.cursor = Some(next),
                    None => break,
                }
            }
        }
        self.audit().note("job.clear", counted(deleted, "job", "jobs")).await;
        Ok(deleted)
    }
}

impl JobClient<'_> {
    /// Stops a job without a record of it.
    pub(super) async fn stop_one(self, id: &JobId) -> Result<bool> {
        let wrong = |status: &str| ClientError::wrong_state("stop", id, status);
        let (store, by) = (self.client.of(id)?, self.client.author.signature());
        let mut outcome = store.jobs().stop_by(id, self.client.job.kept(), None, &by).await?;
        // It may be of a batch whose submission is decided, and not made.
        if outcome == StopOutcome::Missing && store.batches().finish(self.client.job.kept()).await?
        {
            outcome = store.jobs().stop_by(id, self.client.job.kept(), None, &by).await?;
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
    pub async fn retry(self, id: &JobId) -> Result<JobStatus> {
        let state = self.retry_one(id, &Map::new()).await?;
        self.client.audit().note("job.retry", id).await;
        Ok(state)
    }

    /// Retries a job without a record of it.
    pub(super) async fn retry_one(
        self,
        id: &JobId,
        changes: &Map<String, Value>,
    ) -> Result<JobStatus> {
        let corrections = self.corrections(id, changes).await?;
        moved("retry", id, self.client.of(id)?.jobs().retry_corrected(id, &corrections).await?)
    }

    /// Returns a job as these changes would leave it, for further checks. Nothing is stored.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] for a change that is not legal.
    pub async fn corrected(self, job: &Job, changes: &Map<String, Value>) -> Result<Job> {
        let mut job = job.corrected(changes)?;
        let used = job.spec.uses.clone();
        // The parameters of a version that is no longer kept cannot be checked.
        if let Some(used) = used
            && let Some(script) = self.client.store.published_scripts().get(&used).await?
        {
            script.give_to(&mut job.spec)?;
        }
        job.spec.check(&self.client.job.bounds())?;
        Ok(job)
    }

    pub(super) async fn corrections(
        self,
        id: &JobId,
        changes: &Map<String, Value>,
    ) -> Result<Corrections> {
        if changes.is_empty() {
            return Ok(Corrections::new());
        }
        let job = self.client.get_job(id).await?;
        Ok(job.corrections_to(&self.corrected(&job, changes).await?))
    }

    /// Resumes the failed part of a graph: retries a job if it failed, and all its dependents that failed because a
    /// prerequisite did. With changes the job itself is retried however it ended. Returns each with its new state, the
    /// job itself first, or the reason why a dependent stays as it is. It is not recorded.
    pub(super) async fn retry_tree(
        self,
        id: &JobId,
        changes: &Map<String, Value>,
    ) -> Result<Vec<ChangedJob>> {
        let corrections = self.corrections(id, changes).await?;
        let graph = self.client.of(id)?.jobs().retry_with_dependents(id, &corrections).await?;
        let own = moved("retry", id, graph.outcome)?;
        let retried = std::iter::once((id.clone(), own)).chain(graph.retried);
        let retried = retried.map(|(id, status)| (id, Ok(status.to_string())));
        let stay = graph.stay.into_iter().map(|(id, why)| {
            let why = moved("retry", &id, why).map(|status| status.to_string());
            (id, why)
        });
        Ok(retried.chain(stay).collect())
    }

    /// Deletes a job without a record of it.
    pub(super) async fn delete_one(self, id: &JobId) -> Result<()> {
        match self.client.of(id)?.jobs().delete(id, self.client.job.kept()).await? {
            DeleteOutcome::Deleted => Ok(()),
            DeleteOutcome::Missing => Err(ClientError::NoSuchJob(id.clone())),
            DeleteOutcome::Running => {
                Err(ClientError::wrong_state("delete", id, "started; stop it first"))
            }
        }
    }

    /// Changes the priority, the group, the earliest time or settings of a job that has not started. Returns its
    /// state. A job that moves to another queue goes to its end.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::WrongState`] if it has started, an actor is about to start
    /// it, or its queue is too long to take it out.
    pub async fn edit(self, id: &JobId, values: &JobValues) -> Result<JobStatus> {
        let state = self.edit_one(id, values).await?;
        self.client.audit().note("job.edit", with_fields(id, &values.changes)).await;
        Ok(state)
    }

    /// Changes a job without a record of it.
    pub(super) async fn edit_one(self, id: &JobId, values: &JobValues) -> Result<JobStatus> {
        let wrong = |status: &str| ClientError::wrong_state("edit", id, status);
        if let Some(group) = &values.place.group {
            self.stays_within_bounds(id, group.as_ref()).await?;
        }
        let mut edit = values.place.clone();
        edit.corrections = self.corrections(id, &values.changes).await?;
        match self.client.of(id)?.jobs().edit(id, &edit).await? {
            EditOutcome::Edited(status) => Ok(status),
            EditOutcome::Refused(status) => Err(wrong(&format!(
                "{status}; only a job that has not started can be changed: hero job clone {id}"
            ))),
            EditOutcome::Taken => Err(wrong("about to start")),
            EditOutcome::LongQueue(queue) => {
                Err(wrong(&format!("in the middle of {queue}, which is too long to be searched")))
            }
            EditOutcome::Illegal => Err(wrong("without a legal target")),
            EditOutcome::Missing => Err(ClientError::NoSuchJob(id.clone())),
        }
    }

    /// Refuses a group beside `where`, and one beyond the bounds of the token that submitted a job: no actor there would
    /// run it.
    async fn stays_within_bounds(self, id: &JobId, group: Option<&Group>) -> Result<()> {
        let job = self.client.get_job(id).await?;
        if group.is_some() && job.spec.r#where.is_some() {
            let why =
                "cannot stand beside the job's `where`: hero job clone submits a copy with another";
            return Err(InvalidJob::new("group", why).into());
        }
        let Some(bounds) = &job.bounds else { return Ok(()) };
        let script_type = job.spec.script_type.as_ref().map(ScriptType::as_str);
        let Some(why) = bounds.outside(script_type, group.map(Group::as_str)) else {
            return Ok(());
        };
        let why = format!(
            "would take the job beyond the bounds of the token that submitted it: {why}; hero job clone {id} submits \
             a copy without them"
        );
        Err(InvalidJob::new("group", why).into())
    }

    /// Stops a job, and the jobs below it that have not ended. A job that was told to stop submits no more jobs.
    /// Returns what became of each; a job below it that has ended or is gone is left out. The first may have ended.
    pub(super) async fn stop_tree(self, id: &JobId) -> Result<Vec<ChangedJob>> {
        let mut told = Vec::new();
        let mut left = VecDeque::from([id.clone()]);
        let mut seen = 0;
        while let Some(job) = left.pop_front() {
            seen += 1;
            match self.stop_one(&job).await {
                Ok(true) => told.push((job.clone(), Ok("stopped".to_owned()))),
                Ok(false) => told.push((job.clone(), Ok(TOLD.to_owned()))),
                Err(ClientError::NoSuchJob(_)) if job != *id => continue,
                Err(ClientError::WrongState { .. }) => {}
                Err(error) => return Err(error),
            }
            // After its stop: from then on it gets no more.
            let room = DESCENDANTS_MAX.saturating_sub(seen + left.len());
            left.extend(self.children(&job).await?.into_iter().take(room));
        }
        Ok(told)
    }

    /// Returns the jobs that the script of a job has submitted; none if it is gone.
    pub async fn children(self, id: &JobId) -> Result<Vec<JobId>> {
        Ok(self.client.of(id)?.jobs().children(id).await?)
    }

    /// Returns a copy of a job with a new id, without its unique key, its time and its signature, and with these changes:
    /// members named as the fields of the hash, where null takes one away. It is not submitted.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::Invalid`] if the job or a change is not legal.
    pub async fn clone_of(self, id: &JobId, changes: &Map<String, Value>) -> Result<Job> {
        let mut without: Vec<&str> = OF_ONE_JOB.to_vec();
        let job = self.client.get_job(id).await?;
        if let Some(used) = &job.spec.uses {
            let names_another = changes.get("uses").is_some_and(|uses| !uses.is_null());
            if names_another {
                // The script that is named instead gives its own.
                without.extend(["script", "script_digest", "script_type", "extension"]);
            } else if changes.contains_key("uses")
                || changes.contains_key("script")
                || self.client.store.published_scripts().get(used).await?.is_none()
            {
                without.extend(["uses", "script_digest"]);
            }
        }
        Ok(job.copy_with(changes, &without)?)
    }
}

impl JobClient<'_> {
    /// Sends an event with a value of JSON, or none, to a job. Returns whether the job waited for it; if not, it is stored
    /// for the next wait of the job.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::Invalid`] for a name or a value that is not legal;
    /// [`ClientError::WrongState`] if the job has ended, has had this event, no longer waits for it, keeps too many, or
    /// waits for it from others.
    pub async fn tell(self, id: &JobId, event: &str, data: Option<&str>) -> Result<bool> {
        let status = match self.try_tell(id, event, data).await? {
            TellOutcome::Told => return Ok(true),
            TellOutcome::Kept => return Ok(false),
            TellOutcome::Missing => return Err(ClientError::NoSuchJob(id.clone())),
            TellOutcome::Twice => {
                format!(
                    "told {event} already; it can be told that again once it waits for it again"
                )
            }
            TellOutcome::Missed => format!(
                "past its wait for {event}, which ended by its time; it can be told that once it waits for it again"
            ),
            TellOutcome::Forbidden => format!(
                "waiting for {event} from others than {}: hero job show {id} names them",
                self.client.author.who
            ),
            TellOutcome::Full => "full of events that it has not waited for".to_owned(),
            TellOutcome::Refused(status) => status.to_string(),
            TellOutcome::Illegal => "without a legal target".to_owned(),
        };
        Err(ClientError::wrong_state("tell", id, status))
    }

    /// Sends an event to a job as [`JobClient::tell`] does. Returns whether the job got it, it is stored for the next wait, or why not.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] for a name or a value that is not legal; [`ClientError::Store`].
    pub async fn try_tell(
        self,
        id: &JobId,
        event: &str,
        data: Option<&str>,
    ) -> Result<TellOutcome> {
        check_event(event).map_err(|why| InvalidJob::new("event", why))?;
        let data = data.map(event_data).transpose();
        let data = data.map_err(|why| InvalidJob::new("data", why))?;
        let told = self.event_json(event, data);
        let outcome =
            self.client.of(id)?.jobs().tell(id, (event, &told), &self.client.author.names).await?;
        if matches!(outcome, TellOutcome::Told | TellOutcome::Kept) {
            self.client.audit().note("job.tell", format!("{id} ({event})")).await;
        }
        Ok(outcome)
    }

    /// Returns the event as JSON, with who tells it and from where. The value is as it was written, with all digits of
    /// its numbers.
    fn event_json(self, event: &str, data: Option<String>) -> String {
        let by = &self.client.author;
        let (who, from, through) = (bounded(&by.who), bounded(&by.from), by.through);
        let data = data.unwrap_or_else(|| "null".to_owned());
        let rest = json!({ "event": event, "who": who, "from": from, "through": through });
        format!("{{\"data\":{data},{}", &rest.to_string()[1..])
    }
}
