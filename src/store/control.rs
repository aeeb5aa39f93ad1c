//! Blocking pops, and control messages for actors.

use std::collections::BTreeSet;
use std::time::Duration;

use redis::Value;
use serde_json::json;

use super::attempts::{kept, millis};
use super::connection::{Blocking, Waker};
use super::{ActorStore, JobStore, Result, StoreError};
use crate::proto::job::{BootId, JobId, Retention};
use crate::proto::message::Control;
use crate::proto::target::{ActorId, ScriptType};
use crate::proto::word_table::words;

/// An entry from a blocking pop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Woken {
    pub list: String,
    /// The unchecked entry.
    pub entry: Vec<u8>,
}

/// Control messages for types and groups that were handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandedOn {
    pub messages: u64,
    /// Messages stay in their lists for foreign actors.
    pub are_left: bool,
}

words! {
    /// The answer to a stop.
    StopOutcome, "answer", "a word of stop.lua";
    /// It had not started, and is `error` now.
    Stopped = "stopped",
    /// It runs; its actor has been notified.
    Requested = "requested",
    /// The boot that asked runs it itself.
    Own = "yours",
    /// It runs, but its hash names no actor that could be notified.
    Unowned = "unowned",
    Ended = "ended",
    Missing = "missing",
}

impl JobStore<'_> {
    /// Stops a job: at once if it has not started, else by its actor. `asking` is the boot of an actor that asks.
    pub async fn stop(
        self,
        id: &JobId,
        retention: impl Into<Retention>,
        asking: Option<&BootId>,
    ) -> Result<StopOutcome> {
        self.stop_by(id, retention, asking, "").await
    }

    /// Stops a job for a person or program as well, whose name its hash then has.
    pub async fn stop_by(
        self,
        id: &JobId,
        retention: impl Into<Retention>,
        asking: Option<&BootId>,
        by: &str,
    ) -> Result<StopOutcome> {
        const DOING: &str = "stopping a job";
        let message = Control::Stop { job_id: id.clone() }.to_json();
        let asking = asking.map_or("", BootId::as_str);
        let arguments = (id.as_str(), kept(retention), message, asking, "stopped", by);
        let word: String =
            self.store.run_for_caller(DOING, Some(id), &self.store.scripts.stop, arguments).await?;
        StoreError::or_parsed(DOING, &word)
    }

    pub async fn some_exist(self, keys: &[String]) -> Result<bool> {
        let found: u64 = self.store.link.command("looking for work", "EXISTS", keys).await?;
        Ok(found > 0)
    }

    /// Returns which of these keys are no lists.
    pub async fn not_lists(self, keys: &[String]) -> Result<Vec<String>> {
        let mut pipeline = redis::pipe();
        for key in keys {
            pipeline.cmd("TYPE").arg(key);
        }
        let types: Vec<String> =
            self.store.link.pipeline("reading types of keys", &pipeline).await?;
        let of_wrong_type = |of: &str| of != "list" && of != "none";
        let found = keys.iter().zip(types).filter(|(_, of)| of_wrong_type(of));
        Ok(found.map(|(key, _)| key.clone()).collect())
    }

    /// Passes on an entry that a blocking pop took and this process does not need: the token of a wake list goes to
    /// another actor, a control message back to its list. Calling again is safe.
    pub async fn pass_on(self, woken: &Woken) -> Result<()> {
        let doing = "passing on a wake-up";
        if let Some(target) = self.store.keys.target_of_wake(&woken.list) {
            return self
                .store
                .run_script(doing, &self.store.scripts.wake, target.to_string())
                .await;
        }
        let arguments = (&woken.list, woken.entry.as_slice());
        self.store.link.command::<Value>(doing, "LPUSH", arguments).await.map(drop)
    }

    /// Wakes a command that blocks on another connection. What it popped in the same instant still reaches it.
    pub async fn wake(self, waker: &Waker) -> Result<()> {
        let Some(client_id) = waker.client_id() else {
            return Ok(());
        };
        let (doing, arguments) = ("waking a waiting connection", ("UNBLOCK", client_id));
        self.store.link.command::<Value>(doing, "CLIENT", arguments).await.map(drop)
    }
}

impl ActorStore<'_> {
    pub async fn send(self, actor: &ActorId, message: &Control) -> Result<()> {
        let list = self.store.keys.control(actor);
        let doing = "sending a control message";
        self.push_for(doing, &list, &message.to_json(), CONTROL_TTL_SECS).await
    }

    /// Returns whether a live process takes the control messages of an actor.
    pub async fn is_listening(self, actor: &ActorId) -> Result<bool> {
        // The open connection of a process that was killed just now may take one message.
        for _ in 0..2 {
            match self.takes_message(actor).await {
                Ok(true) => {}
                // A list of a wrong type is taken from by nobody.
                Ok(false) | Err(StoreError::Failed { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Sends a message without an effect, and takes it back if nobody took it.
    async fn takes_message(self, actor: &ActorId) -> Result<bool> {
        const DOING: &str = "looking for a live actor";
        let list = self.store.keys.control(actor);
        let message = json!({ "cmd": "wake", "from": JobId::random() }).to_string();
        self.push_for(DOING, &list, &message, CONTROL_TTL_SECS).await?;
        tokio::time::sleep(LISTENS_WITHIN).await;
        let left: u64 = self.store.link.command(DOING, "LREM", (&list, 0, &message)).await?;
        Ok(left == 0)
    }

    /// Appends an entry to a list, which then expires after this time.
    async fn push_for(
        self,
        doing: &'static str,
        list: &str,
        entry: &str,
        ttl_s: u64,
    ) -> Result<()> {
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        pipeline.cmd("RPUSH").arg(list).arg(entry).ignore();
        pipeline.cmd("LTRIM").arg(list).arg(-CONTROL_LEN_MAX).arg(-1).ignore();
        pipeline.cmd("EXPIRE").arg(list).arg(ttl_s).ignore();
        self.store.link.pipeline(doing, &pipeline).await
    }

    /// Takes the messages that wait for an actor, the oldest first.
    pub async fn take_messages(self, actor: &ActorId) -> Result<Vec<Vec<u8>>> {
        let arguments = (self.store.keys.control(actor), MESSAGES_TAKEN_MAX);
        let taken: Option<Vec<Vec<u8>>> =
            self.store.link.command("reading control messages", "LPOP", arguments).await?;
        Ok(taken.unwrap_or_default())
    }

    /// Hands control messages for types and groups to each of their live actors. Stops that no actor
    /// hears of are done at once. With `types`, it does so for these alone, and unless a supervisor is live.
    pub async fn fan_out(
        self,
        lease: Duration,
        retention: impl Into<Retention>,
        types: Option<&BTreeSet<&ScriptType>>,
    ) -> Result<HandedOn> {
        let condition = if types.is_some() { "unsupervised" } else { "" };
        let types: Vec<&str> = types.into_iter().flatten().map(|of| of.as_str()).collect();
        let arguments = (millis(lease), MESSAGES_PER_STEP, condition, kept(retention), types);
        let (doing, script) = ("handing on control messages", &self.store.scripts.fan_out);
        let (messages, left): (u64, u64) = self.store.run_script(doing, script, arguments).await?;
        Ok(HandedOn { messages, are_left: left > 0 })
    }

    /// Answers a ping into the list it names. Returns true if it is a reply list of this namespace.
    pub async fn pong(self, reply_to: &str, text: &str) -> Result<bool> {
        if !self.store.keys.is_reply(reply_to) {
            return Ok(false);
        }
        self.push_for("answering a ping", reply_to, text, REPLY_TTL_SECS).await?;
        Ok(true)
    }
}

/// The time that a live actor needs to take a control message: it waits for them all the time.
const LISTENS_WITHIN: Duration = Duration::from_millis(300);
/// The control messages for types that one call hands on.
const MESSAGES_PER_STEP: usize = 100;
const MESSAGES_TAKEN_MAX: usize = 500;
const CONTROL_LEN_MAX: i64 = 10_000;
const CONTROL_TTL_SECS: u64 = 86_400;
const REPLY_TTL_SECS: u64 = 60;

impl Blocking {
    /// Waits for the first entry of the first list that has one, and takes it out. `None` if
    /// `timeout` passed or the connection was woken.
    ///
    /// # Errors
    /// [`StoreError`]; an entry popped while the connection was lost is in no list any more.
    pub async fn pop(&mut self, lists: &[String], timeout: Duration) -> Result<Option<Woken>> {
        let mut command = redis::cmd("BLPOP");
        command.arg(lists).arg(format!("{:.3}", timeout.as_secs_f64().max(0.001)));
        let popped: Option<(String, Vec<u8>)> =
            self.query("waiting for work", &command, timeout).await?;
        Ok(popped.map(|(list, entry)| Woken { list, entry }))
    }
}
