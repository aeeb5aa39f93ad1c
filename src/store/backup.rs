//! The reading side of a backup: the indexes that name every job, and copies of single keys. Each call
//! reads a bounded part, and one job in one step.

use std::collections::{BTreeSet, HashMap};

use redis::Value;

use super::cron_marks::CronEnds;
use super::newest::whole;
use super::text::{Legal, read};
use super::{BackupStore, NotifySnapshot, Result, Store, StoreError};
use crate::proto::backup::{
    Bytes, CronCopy, DeadCopy, GraphCopy, GraphJobsCopy, IndexesCopy, JobCopy, LimitCopy, LogCopy,
    NotifyCopy,
};
use crate::proto::cron::CronName;
use crate::proto::graph::GraphJobOutcome;
use crate::proto::job::{JobId, JobStatus};
use crate::proto::notification::NotifyMessage;
use crate::proto::object::{Context, Field, ObjectType};
use crate::proto::queue::Queue;
use crate::proto::target::{Priority, ScriptType};

/// The largest hash of a job that is copied, in bytes.
const JOB_SIZE_MAX: u64 = 64 << 20;
/// The log entries that one call returns, in bytes.
const LOG_BYTES: usize = 256 << 10;
/// The log entries of one further call.
const LOG_ENTRIES: usize = 50;

const DOING: &str = "backing up jobs";
const COPYING_GRAPHS: &str = "backing up graphs";
const COPYING_NOTIFICATIONS: &str = "backing up notifications";

/// The entries of one line of notifications.
const MESSAGES: usize = 20;
const EVENTS: usize = 100;
const FAILING: usize = 500;

/// Ids of messages, each with when it is due in us since 1970.
type DueIds = Vec<(String, f64)>;

/// An index or a list that names jobs.
#[derive(Debug, Clone)]
pub struct BackupIndex {
    key: String,
    queue: Option<Queue>,
    /// True for a work list: it names also the jobs that a foreign program pushed.
    is_list: bool,
    /// The score where the next page begins.
    from: f64,
    /// The entries before it that the page skips.
    skip: usize,
}

impl BackupIndex {
    fn new(key: String, queue: Option<Queue>, is_list: bool) -> Self {
        Self { key, queue, is_list, from: f64::NEG_INFINITY, skip: 0 }
    }
}

/// A copy of a job, with the first part of its log.
#[derive(Debug, Clone, PartialEq)]
pub struct CopiedJob {
    pub job: JobCopy,
    pub log: LogCopy,
    /// The last entry that the log had, if the first part is not all.
    pub log_until: Option<String>,
}

impl BackupStore<'_> {
    /// Returns all indexes that name jobs, in the order of a job's life.
    pub async fn indexes(self) -> Result<Vec<BackupIndex>> {
        let mut indexes = Vec::new();
        for status in JobStatus::ALL {
            if status == JobStatus::Dispatched {
                for queue in self.queues().await? {
                    let of = |key, is_list| BackupIndex::new(key, Some(queue.clone()), is_list);
                    indexes.push(of(self.store.keys.ready(&queue), false));
                    indexes.push(of(self.store.keys.held(&queue), false));
                    let lists = self.store.keys.work_as_read(&queue).into_iter();
                    indexes.extend(lists.map(|list| of(list, true)));
                }
                continue;
            }
            let keys = self.store.jobs().indexes(status, None).await?.into_iter();
            indexes.extend(keys.map(|key| BackupIndex::new(key, None, false)));
        }
        Ok(indexes)
    }

    /// Returns the queues that may hold jobs, also those that only a foreign program may have pushed into.
    async fn queues(self) -> Result<BTreeSet<Queue>> {
        let mut queues: BTreeSet<Queue> = self.store.jobs().queues().await?.into_iter().collect();
        for target in self.store.queues().known_targets().await? {
            let of = |priority| Queue { target: target.clone(), priority };
            queues.extend(Priority::ALL.map(of));
        }
        Ok(queues)
    }

    /// Reads the next page of an index; an entry may come twice. An empty page is the end.
    pub async fn page(self, index: &mut BackupIndex, limit: usize) -> Result<Vec<JobId>> {
        let mut command = redis::cmd(if index.is_list { "LRANGE" } else { "ZRANGEBYSCORE" });
        command.arg(&index.key);
        if index.is_list {
            command.arg(index.skip).arg(index.skip + limit - 1);
        } else {
            // Redis reads `-inf` as Rust writes it.
            command.arg(format!("{:.0}", index.from)).arg("+inf").arg("WITHSCORES");
            command.arg("LIMIT").arg(index.skip).arg(limit);
        }
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors().add_command(command);
        let answer: Vec<Value> = self.store.link.pipeline(DOING, &pipeline).await?;
        let answer = answer.into_iter().next();
        // A key of another type names no jobs.
        let entries: Vec<(Vec<u8>, f64)> = if index.is_list {
            let ids: Vec<Vec<u8>> = answer.and_then(read).unwrap_or_default();
            ids.into_iter().map(|id| (id, index.from)).collect()
        } else {
            answer.and_then(read).unwrap_or_default()
        };
        let last = entries.last().map_or(index.from, |(_, score)| *score);
        if index.is_list || last <= index.from {
            index.skip += entries.len();
        } else {
            index.skip = entries.iter().rev().take_while(|(_, score)| *score >= last).count();
            index.from = last;
        }
        let legal = |(id, _): (Vec<u8>, f64)| String::from_utf8(id).ok()?.parse().ok();
        Ok(entries.into_iter().filter_map(legal).collect())
    }

    /// Copies jobs that an index names, each in one step, all in one round trip. `None` for a job that
    /// does not exist any more.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::Failed`] if a hash is too large.
    pub async fn jobs(self, ids: &[JobId], index: &BackupIndex) -> Result<Vec<Option<CopiedJob>>> {
        let queue = index.queue.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut pipeline = redis::pipe();
        pipeline.load_script(&self.store.scripts.backup_job).ignore();
        for id in ids {
            let mut script = self.store.scripts.backup_job.prepare_invoke();
            script.arg(id.as_str()).arg(&queue).arg(JOB_SIZE_MAX).arg(LOG_BYTES);
            pipeline.invoke_script(&script);
        }
        let answers: Vec<Value> = self.store.link.pipeline(DOING, &pipeline).await?;
        let copy = |(id, answer): (&JobId, Value)| match answer {
            Value::Array(parts) if parts.is_empty() => Ok(None),
            Value::Array(parts) => {
                copied(id, parts).map(Some).ok_or_else(|| StoreError::unexpected(DOING))
            }
            Value::Int(size) => {
                let why = format!("job {id} has {size} bytes, more than {JOB_SIZE_MAX}; delete it");
                Err(StoreError::failed(DOING, why))
            }
            _ => Err(StoreError::unexpected(DOING)),
        };
        ids.iter().zip(answers).map(copy).collect()
    }

    /// Copies further entries of a log, after one entry and up to another.
    pub async fn log(self, id: &JobId, after: &str, until: &str) -> Result<LogCopy> {
        let arguments = (self.store.keys.log(id), format!("({after}"), until, "COUNT", LOG_ENTRIES);
        let entries = log_entries(self.store.link.command(DOING, "XRANGE", arguments).await?);
        Ok(LogCopy { id: id.clone(), entries })
    }

    /// Copies the state of a periodic job; `None` if it has none.
    pub async fn cron(self, name: &CronName) -> Result<Option<CronCopy>> {
        type Hash = Vec<(String, Vec<u8>)>;
        let key = self.store.keys.cron(name);
        let mut pipeline = redis::pipe();
        pipeline.cmd("HGETALL").arg(&key).cmd("PTTL").arg(&key);
        pipeline.cmd("HGETALL").arg(self.store.keys.cron_ended(name));
        let (fields, ttl, ends): (Hash, i64, Hash) =
            self.store.read_at_once("backing up periodic jobs", &pipeline).await?;
        let Ok(ttl_ms) = u64::try_from(ttl) else { return Ok(None) };
        let copied = |hash: Hash| hash.into_iter().map(|(name, value)| (name, value.into()));
        let fields = copied(fields).collect();
        let ends = copied(ends).filter(|(name, _)| CronEnds::is_of_end(name)).collect();
        Ok(Some(CronCopy { name: name.clone(), fields, ends, ttl_ms }))
    }

    /// Copies the starts under each limit that holds jobs.
    pub async fn limits(self) -> Result<Vec<LimitCopy>> {
        const DOING: &str = "backing up limits";
        let names: Vec<String> =
            self.store.link.command(DOING, "ZRANGE", (self.store.keys.limits(), 0, -1)).await?;
        let mut limits = Vec::new();
        for name in names {
            let key = self.store.keys.limit_starts(&name);
            let mut pipeline = redis::pipe();
            pipeline.cmd("ZRANGE").arg(&key).arg(0).arg(-1).arg("WITHSCORES");
            pipeline.cmd("PTTL").arg(&key);
            let (starts, ttl): (Vec<(String, f64)>, i64) =
                self.store.read_at_once(DOING, &pipeline).await?;
            let Ok(ttl_ms) = u64::try_from(ttl) else { continue };
            let starts = starts.into_iter().map(|(start, at)| (start, whole(at))).collect();
            limits.push(LimitCopy { name, starts, ttl_ms });
        }
        Ok(limits)
    }

    /// Copies the dead letters of each script type that has some.
    pub async fn dead(self) -> Result<Vec<DeadCopy>> {
        let types = self.store.jobs().types().await?;
        let list = |of| ("LRANGE", (self.store.keys.dead(of), 0, -1));
        let lists = self.store.link.each("backing up dead letters", &types, list).await?;
        let copy = |(script_type, list): (ScriptType, Option<Legal<JobId>>)| DeadCopy {
            script_type,
            ids: list.map(|Legal(ids)| ids).unwrap_or_default(),
        };
        let copies = types.into_iter().zip(lists).map(copy);
        Ok(copies.filter(|copy| !copy.ids.is_empty()).collect())
    }

    /// Copies the names of the complete indexes on objects of a type.
    pub async fn object_indexes(
        self,
        context: &Context,
        object_type: &ObjectType,
    ) -> Result<IndexesCopy> {
        let (doing, key) =
            ("backing up indexes of objects", self.store.keys.object_indexes(context, object_type));
        let states: Vec<(String, String)> = self.store.link.command(doing, "HGETALL", key).await?;
        let ready = states.into_iter().filter(|(_, state)| state == "ready");
        let fields: Vec<Field> = ready.filter_map(|(field, _)| field.parse().ok()).collect();
        Ok(IndexesCopy { context: context.text(), object_type: object_type.clone(), fields })
    }

    /// Copies a graph or batch without its jobs. `None` if it is gone.
    pub async fn graph(self, id: &JobId) -> Result<Option<GraphCopy>> {
        let key = self.store.keys.graph(id);
        let mut pipeline = redis::pipe();
        pipeline.cmd("HGETALL").arg(&key).cmd("PTTL").arg(&key);
        let (fields, ttl): (Vec<(String, Vec<u8>)>, i64) =
            self.store.read_at_once(COPYING_GRAPHS, &pipeline).await?;
        let Ok(ttl_ms) = u64::try_from(ttl) else { return Ok(None) };
        let fields = fields.into_iter().map(|(name, value)| (name, value.into())).collect();
        Ok(Some(GraphCopy { id: id.clone(), fields, ttl_ms }))
    }

    /// Copies some jobs of a graph, those after a score; empty at the end.
    pub async fn graph_jobs(self, id: &JobId, after: Option<u64>) -> Result<GraphJobsCopy> {
        // In the order of a job's life, so that none is missed.
        const ORDER: [GraphJobOutcome; 4] = [
            GraphJobOutcome::Waiting,
            GraphJobOutcome::Finished,
            GraphJobOutcome::Failed,
            GraphJobOutcome::Cancelled,
        ];
        let members =
            self.store.graphs().members(id, &ORDER, after, Store::GRAPHS_PER_PAGE_MAX).await?;
        let jobs = members.into_iter().map(|member| (member.id, member.score)).collect();
        Ok(GraphJobsCopy { id: id.clone(), jobs })
    }

    /// Copies events of this shard that are in no message yet, oldest first, after `after`. Empty at the end.
    pub async fn events(self, look: &NotifySnapshot, after: Option<&str>) -> Result<NotifyCopy> {
        let from =
            after.map_or_else(|| look.unread_of(self.store.shard), |after| format!("({after}"));
        let arguments = (self.store.keys.notify_events(), from, "+", "COUNT", EVENTS);
        let events =
            log_entries(self.store.link.command(COPYING_NOTIFICATIONS, "XRANGE", arguments).await?);
        Ok(NotifyCopy { events, ..NotifyCopy::default() })
    }

    /// Copies the names of jobs of this shard of which the last one failed.
    pub async fn failing(self) -> Result<Vec<NotifyCopy>> {
        let all: Vec<(Vec<u8>, Vec<u8>)> = self
            .store
            .link
            .command(COPYING_NOTIFICATIONS, "HGETALL", self.store.keys.notify_failing())
            .await?;
        let all: Vec<(Bytes, Bytes)> =
            all.into_iter().map(|(name, at)| (name.into(), at.into())).collect();
        let copy = |failing: &[(Bytes, Bytes)]| NotifyCopy {
            failing: failing.to_vec(),
            ..NotifyCopy::default()
        };
        Ok(all.chunks(FAILING).map(copy).collect())
    }

    /// Copies the undelivered messages, which are on the home shard.
    pub async fn messages(self) -> Result<Vec<NotifyCopy>> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("HGETALL").arg(self.store.keys.notify_messages());
        pipeline.cmd("ZRANGE").arg(self.store.keys.notify_due()).arg(0).arg(-1).arg("WITHSCORES");
        let (mut texts, due): (HashMap<String, Vec<u8>>, DueIds) =
            self.store.read_at_once(COPYING_NOTIFICATIONS, &pipeline).await?;
        let read = |(id, due_us): (String, f64)| {
            let message: NotifyMessage = serde_json::from_slice(&texts.remove(&id)?).ok()?;
            let due = std::time::Duration::try_from_secs_f64(due_us / 1e6).unwrap_or_default();
            Some((super::attempts::millis(due), message))
        };
        let messages: Vec<(u64, NotifyMessage)> = due.into_iter().filter_map(read).collect();
        let copy = |messages: &[(u64, NotifyMessage)]| NotifyCopy {
            messages: messages.to_vec(),
            ..NotifyCopy::default()
        };
        Ok(messages.chunks(MESSAGES).map(copy).collect())
    }
}

impl Store {
    /// The maximum number of jobs of one call of [`BackupStore::jobs`], as each may be large.
    pub const BACKUP_JOBS_MAX: usize = 16;
}

/// Reads the answer of `backup_job.lua`.
fn copied(id: &JobId, parts: Vec<Value>) -> Option<CopiedJob> {
    let [hash, ttl, queue, order, pending, log_ttl, log_last, log]: [Value; 8] =
        parts.try_into().ok()?;
    let hash: Vec<Vec<u8>> = read(hash)?;
    let field = |pair: &[Vec<u8>]| {
        (String::from_utf8_lossy(&pair[0]).into_owned(), Bytes::from(pair[1].clone()))
    };
    let rest = |ttl: Value| read::<i64>(ttl).map(|ms| u64::try_from(ms).ok());
    let text = |value: Value| read::<String>(value).filter(|text| !text.is_empty());
    let job = JobCopy {
        id: id.clone(),
        fields: hash.chunks_exact(2).map(field).collect(),
        queue: text(queue),
        order: text(order).and_then(|score| score.parse().ok()).map(whole),
        pending: read(pending)?,
        ttl_ms: rest(ttl)?,
        log_ttl_ms: rest(log_ttl)?,
    };
    let log = LogCopy { id: id.clone(), entries: log_entries(read(log)?) };
    let log_until =
        text(log_last).filter(|last| log.entries.last().is_none_or(|(copied, _)| copied != last));
    Some(CopiedJob { job, log, log_until })
}

pub(super) fn log_entries(entries: Vec<(String, Vec<Vec<u8>>)>) -> Vec<(String, Vec<Bytes>)> {
    let bytes = |fields: Vec<Vec<u8>>| fields.into_iter().map(Bytes::from).collect();
    entries.into_iter().map(|(id, fields)| (id, bytes(fields))).collect()
}
