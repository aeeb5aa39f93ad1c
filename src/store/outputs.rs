//! Large outputs, each under a key of its own: a script of Redis that carries one stops Redis for a millisecond
//! per MiB and copy, a plain command for some microseconds. So an actor stages the output and its reply by plain
//! commands, and the script that records the end only renames the keys. Here every reader finds an output,
//! wherever it is: other programs write theirs into the hash.

use std::time::Duration;

use redis::Value;

use super::{JobStore, Result, StoreError};
use crate::proto::job::{BootId, Job, JobId, JobOutput, JobStatus, ReplyFormat};
use crate::proto::message::Reply;

/// The largest output in the hash of a job, unless the configuration says otherwise.
pub(super) const INLINE_MAX: u64 = 64 << 10;
/// The time that a staged output waits for the record of its end.
const STAGED_TTL: Duration = Duration::from_mins(1);
/// The prefix of the ids of jobs that were tasks of rhailib, which get their outputs from a script.
const TASK_JOB: &str = "rhai-";

/// The limit on reads of one job that changes meanwhile.
pub(super) const READS_MAX: usize = 3;

/// The state of a job and, where it is terminal, its output or error.
pub type Outcome = (JobStatus, Option<Vec<u8>>);

impl JobStore<'_> {
    /// Returns whether an output gets a key of its own. Older programs know only the hash and its copies.
    pub(super) fn is_apart(self, id: &JobId, output: &JobOutput) -> bool {
        output.as_bytes().len() as u64 > self.store.output_inline_max
            && self.store.keys.legacy().is_empty()
            && !id.as_str().starts_with(TASK_JOB)
    }

    /// Stages the output of an attempt, and the reply with it in this format if one is wanted. Both expire
    /// unless the end of the attempt is recorded. Calling again is safe.
    pub(super) async fn stage_apart(
        self,
        (id, boot, claimed_at): (&JobId, &BootId, u64),
        output: &JobOutput,
        reply: Option<ReplyFormat>,
    ) -> Result<()> {
        let ttl_s = STAGED_TTL.as_secs();
        let key = self.store.keys.staged_output(id, boot, claimed_at);
        let mut staging = redis::pipe();
        // All of it has its expiry, or nothing is staged.
        staging.atomic().cmd("SET").arg(key).arg(output.as_bytes()).arg("EX").arg(ttl_s);
        if let Some(format) = reply {
            let key = self.store.keys.staged_reply(id, boot, claimed_at);
            staging.cmd("DEL").arg(&key).cmd("RPUSH").arg(&key);
            match format {
                ReplyFormat::Json => staging.arg(Reply::json_of(id, output)),
                ReplyFormat::Plain => staging.arg(output.as_bytes()),
            };
            staging.cmd("EXPIRE").arg(&key).arg(ttl_s);
        }
        self.store.link.pipeline::<Value>("storing a large output", &staging).await?;
        Ok(())
    }

    /// Reads the state of a job and, where terminal, its output or error. `None` if it is missing or its status illegal.
    pub async fn outcome(self, id: &JobId) -> Result<Option<Outcome>> {
        match self.outcome_with(id, &[]).await?.0 {
            Some((status, bytes)) => Ok(Some((status, bytes?))),
            None => Ok(None),
        }
    }

    /// Does the same. A job that has not ended pushes a reply at its end, also if its submitter wanted none.
    pub async fn outcome_or_reply(self, id: &JobId) -> Result<Option<Outcome>> {
        let mut asking = redis::pipe();
        asking.cmd("HDEL").arg(self.store.keys.job(id)).arg("reply").ignore();
        asking.add_command(self.outcome_command(id, &[]));
        match self.store.link.pipeline::<(Fields,)>("asking for the reply of a job", &asking).await
        {
            Ok((fields,)) if is_named(&fields) => self.outcome(id).await,
            Ok((fields,)) => Ok(read_outcome(fields).0),
            // Without the permission to write, the end is found in the hash.
            Err(StoreError::Failed { .. }) => self.outcome(id).await,
            Err(error) => Err(error),
        }
    }

    /// Reads the state of a job. `None` if the job does not exist, or its status is illegal.
    pub async fn state(self, id: &JobId) -> Result<Option<JobStatus>> {
        let status: Option<String> =
            self.store.link.command(READING, "HGET", (self.store.keys.job(id), "status")).await?;
        Ok(status.and_then(|status| status.parse().ok()))
    }

    /// Reads the states of jobs in one round trip, each as [`JobStore::state`] does.
    pub(super) async fn states(
        self,
        doing: &'static str,
        ids: impl IntoIterator<Item = &JobId>,
    ) -> Result<Vec<Option<JobStatus>>> {
        let status = |id| ("HGET", (self.store.keys.job(id), "status"));
        let words: Vec<Option<String>> = self.store.link.each(doing, ids, status).await?;
        Ok(words.into_iter().map(|word| word?.parse().ok()).collect())
    }

    /// Reads the outcome of a job, and further fields as they were at the same time. The inner error reports why the
    /// output of a finished job cannot be read.
    pub(super) async fn outcome_with(
        self,
        id: &JobId,
        more: &[&str],
    ) -> Result<(Option<EndOfJob>, Fields)> {
        let command = self.outcome_command(id, more);
        let mut fields: Fields = self.store.link.query(READING, &command).await?;
        let key = self.store.keys.output(id);
        for _ in 0..READS_MAX {
            if !is_named(&fields) {
                let (outcome, more) = read_outcome(fields);
                return Ok((outcome.map(|(status, bytes)| (status, Ok(bytes))), more));
            }
            // Not in a transaction: a Redis whose memory is full refuses even reading transactions. The
            // output is from the hash if the hash is the same before and after.
            let mut reading = redis::pipe();
            reading.cmd("GET").arg(&key).add_command(command.clone());
            let output = match self.store.link.pipeline(READING_OUTPUT, &reading).await {
                Ok((Some(output), now)) if now == fields => Ok(Some(output)),
                Ok((None, now)) if now == fields => {
                    let reason = format!("key {key} is gone, though the job has not expired");
                    Err(StoreError::failed(READING_OUTPUT, reason))
                }
                Ok((_, now)) => {
                    fields = now;
                    continue;
                }
                Err(error) if error.is_outage() => return Err(error),
                Err(error) => Err(error),
            };
            return Ok((Some((JobStatus::Finished, output)), read_outcome(fields).1));
        }
        let reason = format!("job {id} changes while it is read");
        Err(StoreError::not_serving(&self.store.address(), reason))
    }

    /// Reads the outputs in the hashes of jobs of one shard, of each that is not longer than `bytes_max`: `None` for a
    /// longer one, and for one under a key of its own. It is empty where there is none.
    pub async fn short_outputs(
        self,
        ids: &[&JobId],
        bytes_max: u64,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        const DOING: &str = "reading outputs of jobs";
        let mut sizes = redis::pipe();
        for id in ids {
            sizes.cmd("HSTRLEN").arg(self.store.keys.job(id)).arg("output");
            sizes.cmd("HEXISTS").arg(self.store.keys.job(id)).arg("output_key");
        }
        let sizes: Vec<(u64, bool)> = match ids {
            [] => Vec::new(),
            _ => self.store.link.pipeline(DOING, &sizes).await?,
        };
        let is_read = |size: &(u64, bool)| (1..=bytes_max).contains(&size.0);
        let read = ids.iter().zip(&sizes).filter(|(_, size)| is_read(size)).map(|(id, _)| *id);
        let output = |id| ("HGET", (self.store.keys.job(id), "output"));
        let mut outputs = self.store.link.each(DOING, read, output).await?.into_iter();
        let text = |size: &(u64, bool)| match size {
            size if is_read(size) => Some(outputs.next().flatten().unwrap_or_default()),
            (0, false) => Some(Vec::new()),
            _ => None,
        };
        Ok(sizes.iter().map(text).collect())
    }

    fn outcome_command(self, id: &JobId, more: &[&str]) -> redis::Cmd {
        let mut command = redis::cmd("HMGET");
        command.arg(self.store.keys.job(id)).arg(&OUTCOME_FIELDS).arg(more);
        command
    }

    /// Adds the output that the hash of a job only names. Returns false if the job has changed meanwhile.
    pub(super) async fn add_output(self, job: &mut Job) -> Result<bool> {
        const NAMED: &str = "output_key";
        let is_whole = job.status != JobStatus::Finished || job.output.is_some();
        if is_whole || !job.extra.contains_key(NAMED) {
            return Ok(true);
        }
        match self.outcome(&job.id).await {
            Ok(Some((status, output))) if status == job.status => {
                job.extra.remove(NAMED);
                job.output = output.map(JobOutput::from);
                Ok(true)
            }
            Ok(_) => Ok(false),
            // The rest of the job is worth to be seen.
            Err(StoreError::Failed { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

const READING: &str = "reading the state of a job";
const READING_OUTPUT: &str = "reading the output of a job";

/// The fields of the hash that an outcome is read from. The last two change with every run.
const OUTCOME_FIELDS: [&str; 6] =
    ["status", "output", "error", "output_key", "updated_at", "attempt"];

pub(super) type Fields = Vec<Option<Vec<u8>>>;

/// The outcome of a job; its output may be unreadable.
pub(super) type EndOfJob = (JobStatus, Result<Option<Vec<u8>>>);

fn status_of(fields: &Fields) -> Option<JobStatus> {
    str::from_utf8(fields.first()?.as_deref()?).ok()?.parse().ok()
}

/// Returns whether the hash only names the output.
fn is_named(fields: &Fields) -> bool {
    matches!(&fields[..], [_, None, _, Some(_), ..])
        && status_of(fields) == Some(JobStatus::Finished)
}

/// Returns the outcome as far as it stands in the hash, and the further fields.
fn read_outcome(mut fields: Fields) -> (Option<Outcome>, Fields) {
    let more = fields.split_off(OUTCOME_FIELDS.len().min(fields.len()));
    let Some(status) = status_of(&fields) else { return (None, more) };
    let bytes = match status {
        JobStatus::Finished => fields.swap_remove(1),
        JobStatus::Error => fields.swap_remove(2),
        _ => None,
    };
    (Some((status, bytes)), more)
}
