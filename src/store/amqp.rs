//! Jobs that were messages of RabbitMQ: those that ended and are to be answered, orders to brokers, and
//! the reasons of dead letters.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Store, StoreError};
use crate::proto::job::{JobId, JobStatus};
use crate::proto::text::text_of;

/// The maximum number of repeats of one message that wait for its answer, and the time that they are kept.
const REPEATS_MAX: usize = 100;
const REPEATS_TTL: Duration = Duration::from_hours(7 * 24);
/// The time that the number of log events in a spool is kept after it was last noted.
const SPOOL_TTL: Duration = Duration::from_hours(7 * 24);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageJob {
    pub status: String,
    /// Its message, JSON; empty if it has none.
    pub message: String,
}

/// The result of [`Store::attach_repeat`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attached {
    /// It is answered with the job.
    Yes,
    /// The state of the job has changed; nothing was written.
    Changed,
    /// Too many wait already; nothing was written.
    Full,
}

/// Ended jobs that this process is to answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TakenEnds {
    /// The time in microseconds until which they are taken.
    till: String,
    pub ids: Vec<JobId>,
}

/// The end of a job that was a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageEnd {
    /// Its message, JSON.
    pub message: String,
    /// True if it finished, and its output can be read.
    pub is_finished: bool,
    /// Its output, or the error.
    pub text: String,
    /// The exit code of its process.
    pub exit_code: Option<i32>,
}

impl Store {
    /// Takes up to `limit` ended jobs to answer. A job that is not answered within `lease` is taken again.
    pub async fn take_amqp_ends(
        &self,
        scope: &str,
        limit: usize,
        lease: Duration,
    ) -> Result<TakenEnds, StoreError> {
        const DOING: &str = "taking ended jobs of messages";
        let mut script = self.scripts.amqp_take.prepare_invoke();
        let lease_us = u64::try_from(lease.as_micros()).unwrap_or(u64::MAX);
        script.arg(scope).arg(limit).arg(lease_us);
        let (till, ids): (String, Vec<String>) = self.invoke(DOING, &script).await?;
        let ids = ids.iter().filter_map(|id| id.parse().ok()).collect();
        Ok(TakenEnds { till, ids })
    }

    /// Notes that the messages of jobs were answered; with `again`, that they may be taken again after
    /// this time.
    ///
    /// # Errors
    /// [`StoreError`]; they are taken again after their lease.
    pub async fn amqp_answered(
        &self,
        scope: &str,
        taken: &TakenEnds,
        ids: &[JobId],
        again: Option<Duration>,
    ) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut script = self.scripts.amqp_answered.prepare_invoke();
        let again = again.map_or("done".to_owned(), |wait| wait.as_micros().to_string());
        script.arg(scope).arg(&taken.till).arg(again);
        for id in ids {
            script.arg(id.as_str());
        }
        self.invoke::<u64>("noting answered messages", &script).await?;
        Ok(())
    }

    /// Reads the end of a job that was a message; `None` if the job is gone, was no message, or has not
    /// ended.
    pub async fn message_end(&self, id: &JobId) -> Result<Option<MessageEnd>, StoreError> {
        let (end, fields) = self.outcome_with(id, &["message", "exit_code"]).await?;
        let mut fields = fields.into_iter().map(|field| field.map(|bytes| text_of(&bytes)));
        let (message, exit_code) = (fields.next().flatten(), fields.next().flatten());
        let (is_finished, text) = match end {
            Some((JobStatus::Finished, Ok(output))) => (true, output),
            Some((JobStatus::Finished, Err(error))) => {
                let text = format!("the job finished, but its output cannot be read: {error}");
                (false, Some(text.into_bytes()))
            }
            Some((JobStatus::Error, Ok(error))) => (false, error),
            _ => return Ok(None),
        };
        let text = text.map(|text| text_of(&text)).unwrap_or_default();
        let exit_code = exit_code.and_then(|code| code.parse().ok());
        Ok(message.map(|message| MessageEnd { message, is_finished, text, exit_code }))
    }

    /// Returns the list that has an entry while there is something to answer.
    pub fn amqp_bell(&self, scope: &str) -> String {
        self.keys.amqp_bell(scope)
    }

    /// Tells the brokers of a node, or of all nodes, to end.
    pub async fn end_brokers(&self, scope: &str, node: Option<&str>) -> Result<(), StoreError> {
        let mut script = self.scripts.amqp_shutdown.prepare_invoke();
        script.arg(scope).arg(node.unwrap_or("*"));
        self.invoke::<String>("telling brokers to end", &script).await?;
        Ok(())
    }

    /// Returns when the brokers of a node, or of all, were last asked to end, in microseconds of Redis's
    /// clock; 0 if they were not.
    pub async fn brokers_ended_us(
        &self,
        scope: &str,
        node: Option<&str>,
    ) -> Result<i64, StoreError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.keys.amqp_shutdown(scope));
        let orders: BTreeMap<String, i64> =
            self.link.query("reading orders to brokers", &command).await?;
        let own = orders.iter().filter(|(of, _)| *of == "*" || Some(of.as_str()) == node);
        Ok(own.map(|(_, at)| *at).max().unwrap_or(0))
    }

    /// Notes how many log events wait in the spool of a unit on a machine.
    pub async fn note_spooled(
        &self,
        scope: &str,
        place: &str,
        number: u64,
    ) -> Result<(), StoreError> {
        const DOING: &str = "noting the log events of a spool";
        let key = self.keys.amqp_spool(scope);
        if number == 0 {
            return self.link.query(DOING, redis::cmd("HDEL").arg(&key).arg(place)).await;
        }
        self.link.query::<()>(DOING, redis::cmd("HSET").arg(&key).arg(place).arg(number)).await?;
        self.link.query(DOING, redis::cmd("EXPIRE").arg(&key).arg(SPOOL_TTL.as_secs())).await
    }

    /// Returns how many log events wait in the spool of each unit, by `{unit}@{machine}`.
    pub async fn spooled(&self, scope: &str) -> Result<BTreeMap<String, u64>, StoreError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.keys.amqp_spool(scope));
        self.link.query("reading the numbers of log events in spools", &command).await
    }

    /// Reads the job of a message; `None` if it does not exist.
    pub async fn message_job(&self, id: &JobId) -> Result<Option<MessageJob>, StoreError> {
        let arguments = (self.keys.job(id), "status", "message");
        let (status, message): (Option<String>, Option<Vec<u8>>) =
            self.link.command("reading the job of a message", "HMGET", arguments).await?;
        let message = message.map(|bytes| text_of(&bytes)).unwrap_or_default();
        Ok(status.map(|status| MessageJob { status, message }))
    }

    /// Notes that a repeat of a message is to be answered with it, if its newest job has this status and
    /// the next attempt does not exist. `chain` names all attempts, `asked` is the repeat.
    pub async fn attach_repeat(
        &self,
        scope: &str,
        chain: &str,
        (job, status): (&JobId, &str),
        next: &JobId,
        asked: &str,
    ) -> Result<Attached, StoreError> {
        let mut script = self.scripts.amqp_attach.prepare_invoke();
        script.arg(scope).arg(chain).arg(job.as_str()).arg(status).arg(next.as_str()).arg(asked);
        script.arg(REPEATS_MAX).arg(REPEATS_TTL.as_secs());
        let answer: String = self.invoke("noting a repeat of a message", &script).await?;
        Ok(match answer.as_str() {
            "ok" => Attached::Yes,
            "full" => Attached::Full,
            _ => Attached::Changed,
        })
    }

    /// Returns the repeats of a message that wait for its answer.
    pub async fn repeats(&self, scope: &str, chain: &str) -> Result<Vec<String>, StoreError> {
        let mut command = redis::cmd("LRANGE");
        command.arg(self.keys.amqp_repeats(scope, chain)).arg(0).arg(-1);
        self.link.query("reading the repeats of a message", &command).await
    }

    /// Forgets the repeats of a message, which were answered.
    pub async fn drop_repeats(&self, scope: &str, chain: &str) -> Result<(), StoreError> {
        let mut command = redis::cmd("DEL");
        command.arg(self.keys.amqp_repeats(scope, chain));
        self.link.query("forgetting the repeats of a message", &command).await
    }
}
