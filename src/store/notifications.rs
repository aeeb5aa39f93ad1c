//! Notifications: reads the events that scripts write, and keeps the messages that tell them until they are
//! delivered. The messages are on the home shard; each shard has events of its own. And the problems of queues and periodic
//! jobs that last, as supervisors have told them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use redis::streams::{StreamId, StreamRangeReply};

use super::attempts::millis;
use super::text::written_at;
use super::{NotificationStore, Result};
use crate::proto::notification::{
    DeliveryRecord, MessagePlan, NotifyEvent, NotifyMessage, NotifyName, NotifyState, ProblemMark,
    ProblemSteps,
};
use crate::proto::shard::Shard;

/// The time for which supervisors want events after they have last said so.
const WANTED_FOR_MS: u64 = 7 * 24 * 3_600_000;
/// The length of the stream, as in `notify.lua`.
const EVENTS_LEN_MAX: usize = 20_000;
/// The time for which a name is not reported again.
const WANTED_AGAIN_MS: u64 = 24 * 3_600_000;

#[derive(Debug, Default)]
pub struct NotifySnapshot {
    /// The time by Redis's clock, in ms since 1970.
    pub now_ms: u64,
    pub states: BTreeMap<NotifyName, NotifyState>,
    pub undelivered: usize,
    /// The number of deliveries of each notification, failures and attempts that are repeated, by `NAME STATE`.
    pub counts: BTreeMap<String, u64>,
    revision: String,
    /// The place up to which the events of each shard are read.
    read: HashMap<String, String>,
}

#[derive(Debug, Default)]
pub struct ReadEvents {
    /// The events, each with its place: unique among all shards.
    pub events: Vec<(String, NotifyEvent)>,
    /// The place up to which they are read; `None` if there was none.
    pub until: Option<String>,
    /// The field of the state that has it.
    field: String,
}

/// The word by which scripts know that the events of jobs which name a notification are wanted.
pub fn wanted_if_named(kind: &str) -> String {
    format!("{kind} named")
}

/// Returns the field of the state that has the place up to which the events of a shard are read.
fn read_field(shard: Shard) -> String {
    format!("read:{}", shard.number())
}

impl NotifySnapshot {
    /// Returns the start of the events of a shard that are not read, as XRANGE takes it.
    pub(super) fn unread_of(&self, shard: Shard) -> String {
        self.read.get(&read_field(shard)).map_or_else(|| "-".to_owned(), |read| format!("({read}"))
    }
}

impl NotificationStore<'_> {
    pub async fn look(self) -> Result<NotifySnapshot> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("TIME");
        pipeline.cmd("HGETALL").arg(self.store.keys.notify_state());
        pipeline.cmd("HLEN").arg(self.store.keys.notify_messages());
        let ((s, us), state, undelivered): ((u64, u64), HashMap<String, Vec<u8>>, usize) =
            self.store.link.pipeline("reading the state of notifications", &pipeline).await?;
        let mut look = NotifySnapshot {
            now_ms: s * 1000 + us / 1000,
            undelivered,
            revision: "0".to_owned(),
            ..NotifySnapshot::default()
        };
        for (field, value) in state {
            let text = String::from_utf8_lossy(&value).into_owned();
            if field == "revision" {
                look.revision = text;
            } else if field.starts_with("read:") {
                look.read.insert(field, text);
            } else if let Some(of) = field.strip_prefix("count:") {
                look.counts.insert(of.to_owned(), text.parse().unwrap_or_default());
            } else if let Some(Ok(name)) = field.strip_prefix("to:").map(str::parse) {
                look.states.insert(name, serde_json::from_str(&text).unwrap_or_default());
            }
        }
        Ok(look)
    }

    /// Reads up to `limit` events of this shard that are not read, and says which kinds are wanted from now on.
    pub async fn events(
        self,
        look: &NotifySnapshot,
        wanted: &[String],
        limit: usize,
    ) -> Result<ReadEvents> {
        let field = read_field(self.store.shard);
        let from = look.unread_of(self.store.shard);
        let mut pipeline = redis::pipe();
        let events = pipeline.cmd("XRANGE").arg(self.store.keys.notify_events());
        events.arg(from).arg("+").arg("COUNT").arg(limit);
        pipeline.cmd("HGETALL").arg(self.store.keys.notify_wanted());
        let (entries, told): (StreamRangeReply, HashMap<String, u64>) =
            self.store.link.pipeline("reading events for notifications", &pipeline).await?;
        let soon = look.now_ms + WANTED_FOR_MS - WANTED_AGAIN_MS;
        let untold = wanted.iter().filter(|word| told.get(*word).is_none_or(|until| *until < soon));
        let untold: Vec<&String> = untold.collect();
        if !untold.is_empty() {
            self.want_events(&untold, look.now_ms + WANTED_FOR_MS).await?;
        }
        let until = entries.ids.last().map(|entry| entry.id.clone());
        let events = entries.ids.iter().filter_map(|entry| self.event(entry)).collect();
        Ok(ReadEvents { events, until, field })
    }

    async fn want_events(self, words: &[&String], until_ms: u64) -> Result<()> {
        let mut pipeline = redis::pipe();
        let set = pipeline.cmd("HSET").arg(self.store.keys.notify_wanted());
        for word in words {
            set.arg(*word).arg(until_ms);
        }
        set.ignore();
        let expire = pipeline.cmd("PEXPIRE").arg(self.store.keys.notify_wanted());
        expire.arg(WANTED_FOR_MS).ignore();
        self.store.link.pipeline("asking for events", &pipeline).await
    }

    fn event(self, entry: &StreamId) -> Option<(String, NotifyEvent)> {
        let at = written_at(&entry.id).map(|at| format!("{at:.3}")).unwrap_or_default();
        let fields = entry.map.iter().map(|(name, value)| {
            (name.as_str(), redis::from_redis_value_ref(value).unwrap_or_default())
        });
        let place = match self.store.shard.number() {
            0 => entry.id.clone(),
            shard => format!("s{shard}-{}", entry.id),
        };
        Some((place, NotifyEvent::read(at, fields)?))
    }

    /// Returns the messages of these ids, each with when it is due in ms since 1970.
    pub async fn messages(self, ids: &[String]) -> Result<Vec<(NotifyMessage, u64)>> {
        const DOING: &str = "reading messages of notifications";
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let texts: Vec<Option<Vec<u8>>> = self
            .store
            .link
            .command(DOING, "HMGET", (self.store.keys.notify_messages(), ids))
            .await?;
        let score = |id: &String| ("ZSCORE", (self.store.keys.notify_due(), id.clone()));
        let scores: Vec<Option<Option<f64>>> = self.store.link.each(DOING, ids, score).await?;
        let messages = texts.into_iter().zip(scores).filter_map(|(text, score)| {
            let message = serde_json::from_slice(&text?).ok()?;
            // Whole, as it was written.
            let due = Duration::try_from_secs_f64((score?? / 1e3).round()).ok()?;
            Some((message, due.as_secs()))
        });
        Ok(messages.collect())
    }

    /// Writes what one step has decided, and how far it has read. Returns false if another supervisor was first.
    pub async fn plan(
        self,
        look: &NotifySnapshot,
        plan: &MessagePlan,
        read: &[ReadEvents],
    ) -> Result<bool> {
        let mut script = self.store.scripts.notify_plan.prepare_invoke();
        let read = read.iter().filter_map(|of| Some((of.field.clone(), of.until.clone()?)));
        let states = plan.states.iter().map(|(name, state)| {
            (format!("to:{name}"), serde_json::to_string(state).unwrap_or_default())
        });
        let fields: Vec<(String, String)> = read.chain(states).collect();
        script.arg(&look.revision).arg(fields.len()).arg(fields);
        for planned in plan.messages.values() {
            let text = serde_json::to_string(&planned.message).unwrap_or_default();
            script.arg(&planned.message.id).arg(planned.due_ms);
            script.arg(if planned.is_new { "new" } else { "join" }).arg(text);
        }
        self.store.invoke("planning notifications", &script).await
    }

    /// Takes up to `limit` messages that are due. Others may take them once the lease is over.
    pub async fn take(self, limit: usize, lease: Duration) -> Result<Vec<NotifyMessage>> {
        let (doing, arguments) = ("taking messages of notifications", (limit, millis(lease)));
        let texts: Vec<Vec<u8>> =
            self.store.run_script(doing, &self.store.scripts.notify_take, arguments).await?;
        Ok(texts.iter().filter_map(|text| serde_json::from_slice(text).ok()).collect())
    }

    /// Records what became of an attempt to deliver a message. Returns false if another supervisor recorded its end.
    pub async fn done(
        self,
        message: &NotifyMessage,
        record: &DeliveryRecord,
        again_ms: Option<u64>,
    ) -> Result<bool> {
        let text = |json: Result<String, _>| json.unwrap_or_default();
        let mut script = self.store.scripts.notify_done.prepare_invoke();
        script.arg(&message.id).arg(message.to.as_str()).arg(&record.state);
        script.arg(text(serde_json::to_string(record)));
        if message.is_test() {
            script.arg("test");
        } else if let Some(wait_ms) = again_ms {
            script.arg(wait_ms).arg(text(serde_json::to_string(message)));
        }
        self.store.invoke("recording a delivery", &script).await
    }

    /// Asks for a test of a notification. Returns the id of its message.
    pub async fn test(self, name: &NotifyName) -> Result<String> {
        let mut command = redis::cmd("XADD");
        command
            .arg(self.store.keys.notify_events())
            .arg("MAXLEN")
            .arg("~")
            .arg(EVENTS_LEN_MAX)
            .arg("*");
        command.arg("event").arg("test").arg("name").arg("a test of this notification");
        command.arg("notify").arg(serde_json::json!([name]).to_string());
        let place: String =
            self.store.link.query("asking for a test of a notification", &command).await?;
        Ok(format!("{name}-{place}"))
    }

    /// Lists the latest ends of deliveries, the newest first, and the notifications whose last attempt failed.
    pub async fn deliveries(
        self,
        limit: usize,
    ) -> Result<(Vec<DeliveryRecord>, Vec<DeliveryRecord>)> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("LRANGE").arg(self.store.keys.notify_recent()).arg(0).arg(limit.max(1) - 1);
        pipeline.cmd("HGETALL").arg(self.store.keys.notify_trouble());
        let (recent, trouble): (Vec<Vec<u8>>, BTreeMap<String, Vec<u8>>) =
            self.store.link.pipeline("reading deliveries of notifications", &pipeline).await?;
        let read = |text: &Vec<u8>| serde_json::from_slice(text).ok();
        Ok((recent.iter().filter_map(read).collect(), trouble.values().filter_map(read).collect()))
    }
}

/// The field that has the time of the latest judgement.
const JUDGED: &str = "judged";

/// The snapshots of two supervisors differ by less.
const AHEAD_MAX_MS: u64 = 60_000;

/// The marks of all problems that last.
#[derive(Debug, Default)]
pub struct ProblemMarks {
    /// The marks by kind and subject.
    pub marks: BTreeMap<String, ProblemMark>,
    /// The time of the snapshot that was judged last, in ms since 1970; empty if there was none.
    judged: String,
}

impl ProblemMarks {
    /// Returns whether a snapshot is newer than the one that was judged last. One of the future is of before Redis's clock was
    /// set back.
    pub fn is_before(&self, now_ms: u64) -> bool {
        let is_before = |judged: u64| judged < now_ms || judged > now_ms + AHEAD_MAX_MS;
        self.judged.parse().map_or(true, is_before)
    }
}

impl NotificationStore<'_> {
    pub async fn problem_marks(self) -> Result<ProblemMarks> {
        let (doing, key) =
            ("reading the problems that are told", self.store.keys.notify_problems());
        let fields: HashMap<String, Vec<u8>> =
            self.store.link.command(doing, "HGETALL", key).await?;
        let mut marks = ProblemMarks::default();
        for (field, value) in fields {
            if field == JUDGED {
                marks.judged = String::from_utf8_lossy(&value).into_owned();
            } else {
                marks.marks.insert(field, serde_json::from_slice(&value).unwrap_or_default());
            }
        }
        Ok(marks)
    }

    /// Writes what was decided of a snapshot, and its events. Returns false if another has judged since `read`.
    pub async fn tell_problems(
        self,
        read: &ProblemMarks,
        now_ms: u64,
        steps: &ProblemSteps,
    ) -> Result<bool> {
        let mut script = self.store.scripts.notify_problems.prepare_invoke();
        script.arg(&read.judged).arg(now_ms).arg(steps.marks.len());
        for (key, mark) in &steps.marks {
            let text = mark.as_ref().map(serde_json::to_string);
            script.arg(key).arg(text.and_then(Result::ok).unwrap_or_default());
        }
        for event in &steps.events {
            let fields = event.problem_fields();
            script.arg(fields.len());
            for (name, value) in fields {
                script.arg(name).arg(value);
            }
        }
        self.store.invoke("telling problems", &script).await
    }
}
