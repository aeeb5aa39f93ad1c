//! The state of queues, and the expressions of `where` that their jobs have; pause, resume, purge.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use redis::Value;

use super::attempts::kept;
use super::newest::whole;
use super::text::{StoredText, read};
use super::{QueueStore, Result, StoreError};
use crate::proto::job::{JobId, JobStatus, Retention};
use crate::proto::pauses::{PauseRule, Pauses};
use crate::proto::queue::Queue;
use crate::proto::selector::Selector;
use crate::proto::target::{ScriptType, SelectorDigest, Target};

const QUEUES_PER_PAGE: usize = 500;
/// The entries at each end of a list that are compared with its ready index.
const COMPARED: i64 = 500;
/// Entries that one step of a purge removes: so few that others hardly notice.
const PURGED_PER_STEP: u64 = 25;

#[derive(Debug, Clone, PartialEq)]
pub struct QueueState {
    pub queue: Queue,
    /// The expression of `where` that its jobs have, if it is known.
    pub selector: Option<String>,
    pub depth: u64,
    /// Held jobs; they stand in no list.
    pub held: u64,
    /// The wait of the job that was dispatched first and that an actor may claim: no limit holds it.
    pub oldest_wait: Option<Duration>,
    /// The wait of the held job that was dispatched first.
    pub held_wait: Option<Duration>,
    /// The limit that holds that job.
    pub held_by: Option<String>,
    /// Jobs of its type that ended per second, when last sampled; none without a supervisor.
    pub type_throughput_per_s: Option<f64>,
    pub paused: bool,
    /// The person or program that paused it by its name, if that is known.
    pub paused_by: Option<String>,
}

impl QueueState {
    /// Returns the expression of its jobs, unless it is unknown or its text is none.
    pub fn selector(&self) -> Option<Selector> {
        self.selector.as_deref()?.parse().ok()
    }

    pub fn add(&mut self, other: &Self) {
        self.depth += other.depth;
        self.held += other.held;
        self.oldest_wait = self.oldest_wait.max(other.oldest_wait);
        if other.held_wait > self.held_wait {
            (self.held_wait, self.held_by) = (other.held_wait, other.held_by.clone());
        }
        self.type_throughput_per_s = match (self.type_throughput_per_s, other.type_throughput_per_s)
        {
            (Some(own), Some(other)) => Some(own + other),
            (own, other) => own.or(other),
        };
        self.paused |= other.paused;
        if self.selector.is_none() {
            self.selector.clone_from(&other.selector);
        }
    }
}

/// Returns the wait of the first entry of an index.
fn wait(first: &[(String, f64)], now_us: i64) -> Option<Duration> {
    let waited = first.first().map(|(_, score)| now_us - whole(*score));
    waited.map(|us| Duration::from_micros(us.max(0).unsigned_abs()))
}

fn names_of(queues: &[Queue]) -> Vec<String> {
    queues.iter().map(ToString::to_string).collect()
}

impl QueueStore<'_> {
    /// The state of every queue that may hold jobs or is paused, and of these `others`, in the order of their names.
    pub async fn states(self, others: BTreeSet<Queue>) -> Result<Vec<QueueState>> {
        let paused = self.pauses().await?;
        let mut queues = others;
        queues.extend(
            self.store.jobs().queues().await?.into_iter().chain(paused.queues.iter().cloned()),
        );
        let queues: Vec<Queue> = queues.into_iter().collect();
        let mut states = Vec::with_capacity(queues.len());
        for page in queues.chunks(QUEUES_PER_PAGE) {
            let (mut of_page, ready) = self.states_of(page, &paused).await?;
            for (state, ready) in of_page.iter_mut().zip(ready) {
                state.depth = self.depth_of(&state.queue, state.depth, ready).await?;
            }
            self.name_limits(&mut of_page).await?;
            let selectors = self.selectors_of(page).await?;
            for state in &mut of_page {
                let digest = state.queue.target.selector();
                state.selector = digest.and_then(|digest| selectors.get(digest)).cloned();
            }
            states.extend(of_page);
        }
        Ok(states)
    }

    async fn name_limits(self, states: &mut [QueueState]) -> Result<()> {
        const DOING: &str = "listing queues";
        let mut held: Vec<&mut QueueState> = states.iter_mut().filter(|of| of.held > 0).collect();
        let first =
            |state: &&mut QueueState| ("ZRANGE", (self.store.keys.held(&state.queue), 0, 0));
        let firsts: Vec<Option<Vec<StoredText>>> =
            self.store.link.each(DOING, &held, first).await?;
        let ids = firsts.iter().map(|first| first.as_ref()?.first()?.parse::<JobId>().ok());
        let ids: Vec<Option<JobId>> = ids.collect();
        let known = ids.iter().flatten().map(|id| self.store.keys.job(id));
        let limits = self.store.link.each(DOING, known, |job| ("HGET", (job, "held_by"))).await?;
        let mut limits = limits.into_iter();
        for (state, _) in held.iter_mut().zip(ids).filter(|(_, id)| id.is_some()) {
            state.held_by = limits.next().flatten().flatten();
        }
        Ok(())
    }

    async fn states_of(
        self,
        queues: &[Queue],
        paused: &Pauses,
    ) -> Result<(Vec<QueueState>, Vec<u64>)> {
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors().cmd("TIME");
        for queue in queues {
            pipeline.cmd("LLEN").arg(self.store.keys.work(queue));
            pipeline.cmd("ZCARD").arg(self.store.keys.ready(queue));
            pipeline.cmd("ZCARD").arg(self.store.keys.held(queue));
            for index in [self.store.keys.ready(queue), self.store.keys.held(queue)] {
                pipeline.cmd("ZRANGE").arg(index).arg(0).arg(0).arg("WITHSCORES");
            }
            let rate = self.store.keys.rate(queue.target.script_type());
            pipeline.cmd("HGET").arg(rate).arg("per_s");
        }
        let mut answers =
            self.store.link.pipeline::<Vec<Value>>("listing queues", &pipeline).await?.into_iter();
        let unexpected = || StoreError::unexpected("listing queues");
        let now: (i64, i64) = answers.next().and_then(read).ok_or_else(unexpected)?;
        let now_us = now.0 * 1_000_000 + now.1;
        queues
            .iter()
            .map(|queue| {
                // A key of another type holds no entries.
                let depth = answers.next().map(read)?.unwrap_or_default();
                let in_ready: u64 = answers.next().and_then(read)?;
                let held = answers.next().and_then(read)?;
                let ready = wait(&answers.next().and_then(read::<Vec<_>>)?, now_us);
                let held_wait = wait(&answers.next().and_then(read::<Vec<_>>)?, now_us);
                let type_throughput_per_s = answers.next().and_then(read::<Option<f64>>)?;
                let state = QueueState {
                    queue: queue.clone(),
                    selector: None,
                    depth,
                    held,
                    oldest_wait: ready,
                    held_wait,
                    held_by: None,
                    type_throughput_per_s,
                    paused: paused.covers(queue),
                    paused_by: None,
                };
                Some((state, in_ready))
            })
            .collect::<Option<_>>()
            .ok_or_else(unexpected)
    }

    /// The targets known to Redis: of live actors, of queues that hold jobs or are
    /// paused, and every script type that ever had a job or an actor.
    pub async fn known_targets(self) -> Result<BTreeSet<Target>> {
        let mut known: BTreeSet<Target> =
            self.store.jobs().types().await?.into_iter().map(Target::any).collect();
        let queues =
            self.store.jobs().queues().await?.into_iter().chain(self.pauses().await?.queues);
        known.extend(queues.map(|queue| queue.target));
        let actors = self.store.actors().list(None).await?;
        let of_actors = actors.iter().flat_map(|of| of.actor.queues());
        known.extend(of_actors.map(|queue| queue.target));
        Ok(known)
    }

    pub async fn pauses(self) -> Result<Pauses> {
        let names: Vec<StoredText> = self
            .store
            .link
            .command("listing paused queues", "SMEMBERS", self.store.keys.paused())
            .await?;
        let names: Vec<String> = names.into_iter().map(String::from).collect();
        Ok(Pauses::of_names(&names))
    }

    /// Pauses all queues of a rule, also those that come later. Returns true if the rule is new.
    pub async fn pause_by_rule(self, rule: &PauseRule) -> Result<bool> {
        let names = [rule.to_string()];
        let news = self.pause_or_resume("pausing queues", "pause", &names).await?;
        Ok(news.contains(&true))
    }

    /// Ends the pause of all queues of a rule: the rules that pause no others, and the queues that were paused by
    /// their names. Returns the resumed ones.
    pub async fn resume_by_rule(self, rule: &PauseRule) -> Result<Pauses> {
        let Pauses { mut queues, mut rules } = self.pauses().await?;
        queues.retain(|queue| rule.covers(queue));
        rules.retain(|other| rule.includes(other));
        let ended = Pauses { queues, rules };
        // The others are only waked.
        let known =
            self.store.jobs().queues().await?.into_iter().filter(|queue| rule.covers(queue));
        let known = known.map(|queue| queue.to_string());
        let names: Vec<String> = ended.names().into_iter().chain(known).collect();
        self.pause_or_resume("resuming queues", "resume", &names).await?;
        Ok(ended)
    }

    /// Pauses queues: no actor of Hero claims from them until they are resumed. Returns true for each that was not paused.
    pub async fn pause(self, queues: &[Queue]) -> Result<Vec<bool>> {
        self.pause_or_resume("pausing queues", "pause", &names_of(queues)).await
    }

    /// Resumes queues. Returns true for each that was paused.
    pub async fn resume(self, queues: &[Queue]) -> Result<Vec<bool>> {
        self.pause_or_resume("resuming queues", "resume", &names_of(queues)).await
    }

    async fn pause_or_resume(
        self,
        doing: &'static str,
        what: &str,
        names: &[String],
    ) -> Result<Vec<bool>> {
        self.store.run_script(doing, &self.store.scripts.pause, (what, names)).await
    }

    /// Ends every job that waits in a queue in `error`, as a stop does; jobs dispatched meanwhile
    /// stay. Returns the number of ended jobs.
    ///
    /// # Errors
    /// [`StoreError`], with the jobs before it ended.
    pub async fn purge(self, queue: &Queue, retention: impl Into<Retention>) -> Result<u64> {
        let retention = kept(retention);
        let (mut purged, mut still_to_go) = (0, None);
        loop {
            let most = still_to_go.unwrap_or(PURGED_PER_STEP).min(PURGED_PER_STEP);
            if most == 0 {
                return Ok(purged);
            }
            let arguments = (queue.to_string(), most, &retention);
            let (ended, taken_out, left): (u64, u64, u64) = self
                .store
                .run_script("purging a queue", &self.store.scripts.purge, arguments)
                .await?;
            purged += ended;
            // Only the entries of the first step: clients may continue to submit.
            still_to_go = Some(still_to_go.map_or(left, |number| number.saturating_sub(taken_out)));
            if left == 0 {
                return Ok(purged);
            }
        }
    }

    /// Returns the number of jobs that wait in a queue: the length of its ready index, and the jobs that programs pushed, as
    /// far as they stand at the ends of its list. The list has entries of jobs that were stopped or deleted until a sweep
    /// removes them, and the index lacks what programs pushed until it is adopted: neither length alone is the number.
    async fn depth_of(self, queue: &Queue, list: u64, ready: u64) -> Result<u64> {
        const DOING: &str = "counting the jobs of a queue";
        if list <= ready {
            return Ok(list);
        }
        let entries = self.store.keys.work(queue);
        let front: Vec<StoredText> =
            self.store.link.command(DOING, "LRANGE", (&entries, 0, COMPARED - 1)).await?;
        let back: Vec<StoredText> =
            self.store.link.command(DOING, "LRANGE", (&entries, -COMPARED, -1)).await?;
        let ids: HashSet<String> = front.into_iter().chain(back).map(String::from).collect();
        let ids: Vec<JobId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        let index = self.store.keys.ready(queue);
        let score = |id: &JobId| ("ZSCORE", (index.clone(), id.to_string()));
        let scores: Vec<Option<Option<f64>>> = self.store.link.each(DOING, &ids, score).await?;
        let others = ids.iter().zip(scores).filter(|(_, score)| *score == Some(None));
        let others: Vec<&JobId> = others.map(|(id, _)| id).collect();
        let states = self.store.jobs().states(DOING, others.iter().copied()).await?;
        let is_waiting = |state: &&_| **state == Some(JobStatus::Dispatched);
        let pushed = states.iter().filter(is_waiting).count() as u64;
        // Without a stale entry at its ends, a list has none: programs push faster than they are adopted.
        let all = if pushed == others.len() as u64 && pushed > 0 { list } else { ready + pushed };
        Ok(all.min(list))
    }
}

const READING: &str = "reading the expressions of jobs";

const PER_PAGE: usize = 1000;

/// The expressions of a type that were used since a time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsedSelectors {
    pub texts: BTreeMap<SelectorDigest, String>,
    /// The number of all expressions of the type.
    pub number: usize,
    /// The time of the latest use, in µs.
    pub until_us: u64,
}

impl QueueStore<'_> {
    /// Returns the expressions of a type that were used at this time or later.
    pub async fn selectors(self, script_type: &ScriptType, since_us: u64) -> Result<UsedSelectors> {
        let key = self.store.keys.selectors_used(script_type);
        let mut found = UsedSelectors::default();
        let mut from_us = since_us;
        loop {
            let mut pipeline = redis::pipe();
            pipeline.cmd("ZCARD").arg(&key);
            pipeline.cmd("ZRANGEBYSCORE").arg(&key).arg(from_us).arg("+inf").arg("WITHSCORES");
            pipeline.arg("LIMIT").arg(0).arg(PER_PAGE);
            let (number, used): (usize, Vec<(StoredText, u64)>) =
                self.store.link.pipeline(READING, &pipeline).await?;
            found.number = number;
            let is_last = used.len() < PER_PAGE;
            // What is used meanwhile moves to the end: a place by rank would leave others out.
            let last_us = used.last().map_or(from_us, |(_, at)| *at);
            from_us = if last_us > from_us || is_last { last_us } else { from_us + 1 };
            let digests = used.into_iter().filter_map(|(of, _)| of.parse().ok());
            let digests: Vec<SelectorDigest> = digests.collect();
            found.texts.extend(self.texts_of(script_type, &digests).await?);
            if is_last {
                found.until_us = from_us;
                return Ok(found);
            }
        }
    }

    /// Returns the expressions of those queues that have one and are known.
    pub(super) async fn selectors_of(
        self,
        queues: &[Queue],
    ) -> Result<BTreeMap<SelectorDigest, String>> {
        let mut of_types: BTreeMap<&ScriptType, Vec<SelectorDigest>> = BTreeMap::new();
        for target in queues.iter().map(|queue| &queue.target) {
            if let Some(digest) = target.selector() {
                of_types.entry(target.script_type()).or_default().push(digest.clone());
            }
        }
        let mut texts = BTreeMap::new();
        for (script_type, digests) in of_types {
            texts.extend(self.texts_of(script_type, &digests).await?);
        }
        Ok(texts)
    }

    async fn texts_of(
        self,
        script_type: &ScriptType,
        digests: &[SelectorDigest],
    ) -> Result<BTreeMap<SelectorDigest, String>> {
        if digests.is_empty() {
            return Ok(BTreeMap::new());
        }
        let fields: Vec<&str> = digests.iter().map(SelectorDigest::as_str).collect();
        let arguments = (self.store.keys.selectors(script_type), fields);
        let texts: Vec<Option<StoredText>> =
            self.store.link.command(READING, "HMGET", arguments).await?;
        let known = digests.iter().zip(texts);
        Ok(known.filter_map(|(of, text)| Some((of.clone(), String::from(text?)))).collect())
    }
}
