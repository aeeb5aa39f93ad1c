//! RabbitMQ: the ends of jobs that were messages and are to be answered, orders to brokers, and their presence. Each broker
//! notes its state with its heartbeat.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::backoff::micros;
use super::text::Legal;
use super::{BrokerStore, Result, StoreError};
use crate::proto::job::{JobId, JobStatus};
use crate::proto::text::text_of;
use crate::proto::word_table::words;

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

words! {
    /// The result of [`BrokerStore::attach_repeat`].
    Attached, "answer", "a word of amqp_attach.lua";
    /// It is answered with the job.
    Yes = "ok",
    /// The state of the job has changed; nothing was written.
    Changed = "changed",
    /// Too many wait already; nothing was written.
    Full = "full",
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
    pub exit_code: Option<i32>,
}

const GONE_AFTER: Duration = Duration::from_secs(15);
/// The time that the state of a broker that is gone is kept.
const KEPT: Duration = Duration::from_hours(24);

/// The state of one process with the role `broker`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BrokerPresence {
    pub unit: String,
    pub host: String,
    pub pid: u32,
    /// The node of the matrix whose brokers it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The dispatchers that it should have, and those that consume.
    pub dispatchers: u64,
    /// See `dispatchers`.
    pub consuming: u64,
    /// The messages that are being served.
    pub in_work: u64,
    /// The messages since its start, by routing key and end: `job`, `done`, `retried`, `dead`.
    pub messages: BTreeMap<String, BTreeMap<String, u64>>,
    /// Answers that were published, and those that were dropped.
    pub answers: u64,
    /// See `answers`.
    pub answers_dropped: u64,
    /// Log events that wait in its spool.
    pub spooled: u64,
    /// Log events that are neither published nor kept.
    pub log_events_lost: u64,
    /// The seconds since the last of these was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_ago_s: Option<u64>,
    /// The dead letters in RabbitMQ, by the queue that has them, of the queues that it consumes.
    pub dead_letters: BTreeMap<String, u64>,
    /// The seconds since RabbitMQ, Redis or MariaDB went away, by name.
    pub outages: BTreeMap<String, u64>,
    /// When this was noted, in microseconds of Redis's clock.
    pub at_us: i64,
    /// The seconds since then.
    pub seen_ago_s: u64,
    /// False if its heartbeat is late.
    pub is_alive: bool,
}

impl BrokerPresence {
    /// Returns its name: `{unit}@{host}`.
    pub fn name(&self) -> String {
        format!("{}@{}", self.unit, self.host)
    }

    /// Returns the number of messages with this end.
    pub fn ended(&self, end: &str) -> u64 {
        self.messages.values().filter_map(|ends| ends.get(end)).sum()
    }
}

impl BrokerStore<'_> {
    /// Takes up to `limit` ended jobs to answer. A job that is not answered within `lease` is taken again.
    pub async fn take_ends(self, scope: &str, limit: usize, lease: Duration) -> Result<TakenEnds> {
        let (doing, arguments) = ("taking ended jobs of messages", (scope, limit, micros(lease)));
        let (till, Legal(ids)) =
            self.store.run_script(doing, &self.store.scripts.amqp_take, arguments).await?;
        Ok(TakenEnds { till, ids })
    }

    /// Notes that the messages of jobs were answered; with `again`, that they may be taken again after
    /// this time.
    ///
    /// # Errors
    /// [`StoreError`]; they are taken again after their lease.
    pub async fn answered(
        self,
        scope: &str,
        taken: &TakenEnds,
        ids: &[JobId],
        again: Option<Duration>,
    ) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let again = again.map_or("done".to_owned(), |wait| wait.as_micros().to_string());
        let ids: Vec<&str> = ids.iter().map(JobId::as_str).collect();
        let (doing, arguments) = ("noting answered messages", (scope, &taken.till, again, ids));
        self.store
            .run_script::<u64>(doing, &self.store.scripts.amqp_answered, arguments)
            .await
            .map(drop)
    }

    /// Reads the end of a job that was a message; `None` if it is gone, was no message, or has not ended.
    pub async fn message_end(self, id: &JobId) -> Result<Option<MessageEnd>> {
        let (end, fields) = self.store.jobs().outcome_with(id, &["message", "exit_code"]).await?;
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
    pub fn bell(self, scope: &str) -> String {
        self.store.keys.amqp_bell(scope)
    }

    /// Requests the shutdown of the brokers of a node, or of all nodes.
    pub async fn end(self, scope: &str, node: Option<&str>) -> Result<()> {
        let (doing, arguments) = ("telling brokers to end", (scope, node.unwrap_or("*")));
        self.store
            .run_script::<String>(doing, &self.store.scripts.amqp_shutdown, arguments)
            .await
            .map(drop)
    }

    /// Returns when the brokers of a node, or of all, were last asked to end, in us of Redis's clock; else 0.
    pub async fn ended_us(self, scope: &str, node: Option<&str>) -> Result<i64> {
        let (doing, key) = ("reading orders to brokers", self.store.keys.amqp_shutdown(scope));
        let orders: BTreeMap<String, i64> = self.store.link.command(doing, "HGETALL", key).await?;
        let own = orders.iter().filter(|(of, _)| *of == "*" || Some(of.as_str()) == node);
        Ok(own.map(|(_, at)| *at).max().unwrap_or(0))
    }

    /// Notes how many log events wait in the spool of a unit on a machine.
    pub async fn note_spooled(self, scope: &str, place: &str, number: u64) -> Result<()> {
        const DOING: &str = "noting the log events of a spool";
        let key = self.store.keys.amqp_spool(scope);
        if number == 0 {
            return self.store.link.command(DOING, "HDEL", (&key, place)).await;
        }
        self.store.link.command::<()>(DOING, "HSET", (&key, place, number)).await?;
        self.store.link.command(DOING, "EXPIRE", (&key, SPOOL_TTL.as_secs())).await
    }

    /// Returns how many log events wait in the spool of each unit, by `{unit}@{machine}`.
    pub async fn spooled(self, scope: &str) -> Result<BTreeMap<String, u64>> {
        let doing = "reading the numbers of log events in spools";
        self.store.link.command(doing, "HGETALL", self.store.keys.amqp_spool(scope)).await
    }

    /// Reads the job of a message; `None` if it does not exist.
    pub async fn message_job(self, id: &JobId) -> Result<Option<MessageJob>> {
        let doing = "reading the job of a message";
        let of =
            self.store.link.fields(doing, self.store.keys.job(id), &["status", "message"]).await?;
        let message = of.text("message").unwrap_or_default().to_owned();
        Ok(of.text("status").map(|status| MessageJob { status: status.to_owned(), message }))
    }

    /// Notes that a repeat of a message is to be answered with it, if its newest job has this status and
    /// the next attempt does not exist. `chain` names all attempts, `asked` is the repeat.
    pub async fn attach_repeat(
        self,
        scope: &str,
        chain: &str,
        (job, status): (&JobId, &str),
        next: &JobId,
        asked: &str,
    ) -> Result<Attached> {
        const DOING: &str = "noting a repeat of a message";
        let ids = (job.as_str(), status, next.as_str());
        let arguments = (scope, chain, ids, asked, REPEATS_MAX, REPEATS_TTL.as_secs());
        let word: String =
            self.store.run_script(DOING, &self.store.scripts.amqp_attach, arguments).await?;
        StoreError::or_parsed(DOING, &word)
    }

    /// Returns the repeats of a message that wait for its answer.
    pub async fn repeats(self, scope: &str, chain: &str) -> Result<Vec<String>> {
        let arguments = (self.store.keys.amqp_repeats(scope, chain), 0, -1);
        self.store.link.command("reading the repeats of a message", "LRANGE", arguments).await
    }

    /// Forgets the repeats of a message, which were answered.
    pub async fn drop_repeats(self, scope: &str, chain: &str) -> Result<()> {
        let key = self.store.keys.amqp_repeats(scope, chain);
        self.store.link.command("forgetting the repeats of a message", "DEL", key).await
    }

    /// Notes the state of a broker, at the time of Redis.
    pub async fn note(self, scope: &str, presence: &BrokerPresence) -> Result<()> {
        const DOING: &str = "noting the state of a broker";
        let document = serde_json::to_string(presence).unwrap_or_default();
        let arguments = (scope, presence.name(), document, KEPT.as_secs());
        self.store
            .run_script::<u64>(DOING, &self.store.scripts.amqp_appear, arguments)
            .await
            .map(drop)
    }

    /// Forgets the state of a broker that ends in order.
    pub async fn forget(self, scope: &str, name: &str) -> Result<()> {
        let arguments = (self.store.keys.amqp_brokers(scope), name);
        self.store.link.command("forgetting the state of a broker", "HDEL", arguments).await
    }

    /// Returns the state of each broker of a scope, by name.
    pub async fn list(self, scope: &str) -> Result<Vec<BrokerPresence>> {
        let (doing, key) = ("reading the state of brokers", self.store.keys.amqp_brokers(scope));
        let found: BTreeMap<String, String> =
            self.store.link.command(doing, "HGETALL", key).await?;
        let now_us = self.store.now().await?.as_microsecond();
        let gone_us = i64::try_from(GONE_AFTER.as_micros()).unwrap_or(i64::MAX);
        let parsed = found.values().filter_map(|document| {
            let (at_us, document) = document.split_once(' ')?;
            let mut presence: BrokerPresence = serde_json::from_str(document).ok()?;
            presence.at_us = at_us.parse().ok()?;
            let age_us = now_us.saturating_sub(presence.at_us).max(0);
            presence.seen_ago_s = u64::try_from(age_us / 1_000_000).unwrap_or_default();
            presence.is_alive = age_us < gone_us;
            Some(presence)
        });
        Ok(parsed.collect())
    }
}
