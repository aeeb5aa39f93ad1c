//! Migration: legacy queues beside Hero's own, tasks of rhailib that become jobs, and the state of
//! both.

use std::collections::BTreeMap;
use std::time::Duration;

use super::attempts::{kept, millis};
use super::connection::Blocking;
use super::text::{BytePair, lossy_pairs};
use super::{LegacyStore, Result, Store, StoreError};
use crate::proto::job::{JobId, JobStatus, Retention};
use crate::proto::keys::Keys;
use crate::proto::legacy::{LegacyQueue, RhailibCircle};
use crate::proto::shard::Shard;
use crate::proto::target::ActorId;

/// The notes on a queue or a circle.
type Seen = BTreeMap<String, String>;

/// The result of one sweep over legacy queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LegacySweep {
    /// Jobs that old workers have started.
    pub started: u64,
    /// Jobs that they have ended.
    pub ended: u64,
    /// Jobs that they popped and lost, back in their queues.
    pub put_back: u64,
    /// True if another sweep may find more at once.
    pub more: bool,
}

/// The tasks taken from a circle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TasksTaken {
    /// Ids taken from its list.
    pub ids: u64,
    pub made: u64,
    /// Tasks that wait for their details.
    pub late: u64,
    /// Some that were dropped or refused, each with the reason.
    pub told: Vec<(String, String)>,
}

/// The state of a legacy queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyState {
    pub queue: LegacyQueue,
    pub depth: u64,
    /// Ids in the stop queue of its worker.
    pub stops: u64,
    /// Jobs of its type that foreign actors run.
    pub foreign_running: u64,
    /// The time since an older program was last seen to have pushed.
    pub pushed_ago: Option<Duration>,
    /// The time since an old worker was last seen to have popped.
    pub popped_ago: Option<Duration>,
    /// The time since the first sample.
    pub watched: Option<Duration>,
    /// The time since the last sample.
    pub sampled_ago: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircleState {
    pub circle: RhailibCircle,
    pub depth: u64,
    /// Tasks that wait for their details.
    pub late: u64,
    /// The time since ids were last taken.
    pub pushed_ago: Option<Duration>,
    /// The numbers of tasks taken, dropped, refused, doubled.
    pub counts: BTreeMap<String, u64>,
}

/// Returns the time since a noted one, in milliseconds since the epoch; `now` is the answer of TIME.
fn ago(noted: Option<&String>, (s, us): (u64, u64)) -> Option<Duration> {
    let ms: u64 = noted?.parse().ok()?;
    Some(Duration::from_millis((s * 1000 + us / 1000).saturating_sub(ms)))
}

impl Store {
    /// Serves legacy queues too. Only the home shard has some: another stays as it is.
    ///
    /// # Errors
    /// [`StoreError::Settings`] if one has an illegal name.
    pub fn with_legacy_queues(self, legacy: &[LegacyQueue]) -> Result<Self> {
        if legacy.is_empty() || self.shard != Shard::HOME {
            return Ok(self);
        }
        let keys = Keys::clone(&self.keys).with_legacy_queues(legacy).map_err(|name| {
            let form = Keys::LEGACY_FORM;
            StoreError::Settings(format!(
                "the legacy queue `{}` must be one of {form}",
                name.escape_debug()
            ))
        })?;
        Ok(self.with_keys(keys))
    }

    pub const TASKS_MAX: u64 = 200;
}

impl<'a> LegacyStore<'a> {
    /// The legacy queues that an actor takes from, after its own, without those that a pattern stands for.
    pub fn lists(self, actor: &ActorId) -> Vec<String> {
        let own = self.store.keys.legacy().iter().filter(|queue| queue.is_for(actor));
        own.filter(|queue| !queue.is_pattern()).map(|queue| queue.legacy.clone()).collect()
    }

    pub fn queues(self) -> &'a [LegacyQueue] {
        self.store.keys.legacy()
    }

    /// Notes starts and ends of jobs by old workers.
    pub async fn recover(self, retention: impl Into<Retention>) -> Result<LegacySweep> {
        const PER_QUEUE: usize = 500;
        const GRACE: Duration = Duration::from_secs(2);
        let arguments = (kept(retention), PER_QUEUE, millis(GRACE));
        let (started, ended, put_back, more) = self
            .store
            .run_script("tending legacy queues", &self.store.scripts.recover_legacy, arguments)
            .await?;
        Ok(LegacySweep { started, ended, put_back, more })
    }

    /// Serves the stop queues of older clients: stops jobs that wait or that an actor of Hero runs,
    /// and leaves others to their old workers. Returns the number of requests served.
    pub async fn serve_stops(self, retention: Retention) -> Result<u64> {
        const PER_QUEUE: usize = 100;
        let mut done = 0;
        for queue in &self.found_queues(self.store.keys.legacy()).await? {
            let list = self.store.keys.legacy_stops(queue);
            let ids: Vec<Vec<u8>> = self
                .store
                .link
                .command("reading a stop queue", "LRANGE", (&list, 0, PER_QUEUE - 1))
                .await?;
            for id in ids {
                if self.serve_stop(&id, retention).await? {
                    let arguments = (&list, 0, id);
                    self.store
                        .link
                        .command::<u64>("clearing a stop queue", "LREM", arguments)
                        .await?;
                    done += 1;
                }
            }
        }
        Ok(done)
    }

    /// Returns true if the request was served. A job of an old worker is left alone.
    async fn serve_stop(self, id: &[u8], retention: Retention) -> Result<bool> {
        let Some(id) = std::str::from_utf8(id).ok().and_then(|id| id.parse::<JobId>().ok()) else {
            return Ok(true);
        };
        let (status, boot) = self.status_and_boot(&id, "reading the state of a job").await?;
        let status = status.map(|status| status.to_lowercase());
        if status.as_deref() == Some(JobStatus::Started.as_str()) && boot.is_none() {
            return Ok(false);
        }
        let outcome = self.store.jobs().stop(&id, retention, None).await?;
        // If the copy is gone from the legacy queue, an old worker has the job.
        Ok(outcome != super::StopOutcome::Requested || boot.is_some())
    }

    /// Notes a push to a legacy queue, unless it is a copy of Hero's. Returns the job that an older client pushed.
    pub async fn note_push(self, list: &str, entry: &[u8]) -> Result<Option<JobId>> {
        let doing = "noting a push of an older client";
        let id = std::str::from_utf8(entry).ok().and_then(|id| id.parse::<JobId>().ok());
        if let Some(id) = &id
            && self
                .store
                .link
                .command::<bool>(doing, "HEXISTS", (self.store.keys.job(id), "legacy"))
                .await?
        {
            return Ok(None);
        }
        self.note_seen(list, "pushed_at", doing).await?;
        Ok(id)
    }

    /// Notes that an old worker has taken a job, if it has.
    pub async fn note_pop(self, list: &str, id: &JobId) -> Result<()> {
        let doing = "noting a pop of an old worker";
        let (status, boot) = self.status_and_boot(id, doing).await?;
        let status = status.and_then(|status| status.parse().ok());
        let has_begun =
            matches!(status, Some(JobStatus::Started | JobStatus::Finished | JobStatus::Error));
        if has_begun && boot.is_none() {
            self.note_seen(list, "popped_at", doing).await?;
        }
        Ok(())
    }

    async fn status_and_boot(
        self,
        id: &JobId,
        doing: &'static str,
    ) -> Result<(Option<String>, Option<String>)> {
        self.store
            .link
            .command(doing, "HMGET", (self.store.keys.job(id), "status", "boot_id"))
            .await
    }

    async fn note_seen(self, list: &str, what: &str, doing: &'static str) -> Result<()> {
        let arguments =
            (self.store.keys.seen(list), what, self.store.now().await?.as_millisecond());
        self.store.link.command::<i64>(doing, "HSET", arguments).await.map(drop)
    }

    /// Makes jobs of the tasks that wait in a circle.
    pub async fn take_tasks(self, circle: &RhailibCircle) -> Result<TasksTaken> {
        /// The time within which the details of a task must appear.
        const PATIENCE: Duration = Duration::from_mins(1);
        let names = (circle.circle.as_str(), circle.script_type.as_str());
        let (doing, arguments) =
            ("taking tasks of rhailib", (names, Store::TASKS_MAX, millis(PATIENCE)));
        let (ids, made, late, told): (u64, u64, u64, Vec<BytePair>) =
            self.store.run_script(doing, &self.store.scripts.take_tasks, arguments).await?;
        Ok(TasksTaken { ids, made, late, told: lossy_pairs(told) })
    }

    /// The state of legacy queues, served or not.
    pub async fn states(self, queues: &[LegacyQueue]) -> Result<Vec<LegacyState>> {
        let mut states = Vec::with_capacity(queues.len());
        for queue in queues {
            let mut pipeline = redis::pipe();
            pipeline.cmd("LLEN").arg(&queue.legacy);
            pipeline.cmd("LLEN").arg(self.store.keys.legacy_stops(queue));
            pipeline
                .cmd("ZCARD")
                .arg(self.store.keys.index(JobStatus::Started, &queue.script_type));
            pipeline.cmd("HGETALL").arg(self.store.keys.seen(&queue.legacy));
            pipeline.cmd("TIME");
            let (depth, stops, foreign_running, seen, now): (u64, u64, u64, Seen, (u64, u64)) =
                self.store.link.pipeline("reading a legacy queue", &pipeline).await?;
            states.push(LegacyState {
                queue: queue.clone(),
                depth,
                stops,
                foreign_running,
                pushed_ago: ago(seen.get("pushed_at"), now),
                popped_ago: ago(seen.get("popped_at"), now),
                watched: ago(seen.get("since"), now),
                sampled_ago: ago(seen.get("sampled_at"), now),
            });
        }
        Ok(states)
    }

    pub async fn circle_states(self, circles: &[RhailibCircle]) -> Result<Vec<CircleState>> {
        let mut states = Vec::with_capacity(circles.len());
        for circle in circles {
            let mut pipeline = redis::pipe();
            pipeline.cmd("LLEN").arg(Keys::tasks(&circle.circle));
            pipeline.cmd("ZCARD").arg(self.store.keys.late_tasks(&circle.circle));
            pipeline.cmd("HGETALL").arg(self.store.keys.seen(circle.circle.as_str()));
            pipeline.cmd("TIME");
            let (depth, late, mut seen, now): (u64, u64, Seen, (u64, u64)) =
                self.store.link.pipeline("reading a circle", &pipeline).await?;
            let pushed_ago = ago(seen.remove("pushed_at").as_ref(), now);
            let counts =
                seen.into_iter().filter_map(|(name, n)| Some((name, n.parse().ok()?))).collect();
            states.push(CircleState { circle: circle.clone(), depth, late, pushed_ago, counts });
        }
        Ok(states)
    }

    /// Replaces patterns by the queues that a supervisor has found for them.
    pub async fn found_queues(self, queues: &[LegacyQueue]) -> Result<Vec<LegacyQueue>> {
        let (patterns, mut found): (Vec<LegacyQueue>, Vec<LegacyQueue>) =
            queues.iter().cloned().partition(LegacyQueue::is_pattern);
        if patterns.is_empty() {
            return Ok(found);
        }
        for key in self.older_lists().await? {
            let is_new = found.iter().all(|queue| queue.legacy != key);
            if is_new && self.store.keys.is_legacy_queue(&key) {
                found.extend(patterns.iter().find_map(|pattern| pattern.with_key(&key)));
            }
        }
        Ok(found)
    }

    /// Replaces patterns by the circles that a supervisor has found for them.
    pub async fn found_circles(self, circles: &[RhailibCircle]) -> Result<Vec<RhailibCircle>> {
        let (patterns, mut found): (Vec<RhailibCircle>, Vec<RhailibCircle>) =
            circles.iter().cloned().partition(|circle| circle.circle.is_pattern());
        if patterns.is_empty() {
            return Ok(found);
        }
        for key in self.older_lists().await? {
            let Some(name) = Keys::circle_of(&key) else { continue };
            if found.iter().all(|circle| circle.circle != name) {
                found.extend(patterns.iter().find_map(|pattern| pattern.with_name(&name)));
            }
        }
        Ok(found)
    }

    /// Returns the lists of older programs that have entries and are none of these, each with its
    /// length; without it where the user of Redis may not read it.
    pub async fn other_older_lists(
        self,
        queues: &[LegacyQueue],
        circles: &[RhailibCircle],
    ) -> Result<Vec<(String, Option<u64>)>> {
        let mut others = Vec::new();
        for key in self.older_lists().await? {
            let is_known = queues.iter().any(|queue| queue.legacy == key)
                || circles.iter().any(|circle| Keys::tasks(&circle.circle) == key);
            if is_known {
                continue;
            }
            match self
                .store
                .link
                .command::<u64>("reading a list of older programs", "LLEN", &key)
                .await
            {
                // A key of another type is no list of theirs.
                Ok(0) | Err(StoreError::Failed { .. }) => {}
                Ok(length) => others.push((key, Some(length))),
                Err(StoreError::NotPermitted { .. }) => others.push((key, None)),
                Err(error) => return Err(error),
            }
        }
        others.sort();
        Ok(others)
    }

    async fn older_lists(self) -> Result<Vec<String>> {
        let (doing, key) = ("reading the lists of older programs", self.store.keys.older());
        let keys: Vec<Vec<u8>> = self.store.link.command(doing, "HKEYS", key).await?;
        Ok(keys.into_iter().filter_map(|key| String::from_utf8(key).ok()).collect())
    }
}

impl Blocking {
    /// Waits until a list has an entry, and leaves it for other readers.
    pub async fn peek(&mut self, list: &str, timeout: Duration) -> Result<Option<Vec<u8>>> {
        let timeout_s = format!("{:.3}", timeout.as_secs_f64().max(0.001));
        let mut command = redis::cmd("BLMOVE");
        command.arg(list).arg(list).arg("LEFT").arg("LEFT").arg(timeout_s);
        self.query("waiting for older programs", &command, timeout).await
    }
}
