//! The steps of a sequence: each is done to the store and to the model, and both must answer the
//! same.
//!
//! No step waits. Where the store goes by Redis's clock, a step writes the time it needs into the
//! very entry the store will look at: the end of a lease, the due time of a schedule, the mark of
//! a sweep, the time when a foreign actor's job is looked at next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use hero::client::JobBuilder;
use hero::proto::job::{JobEnd, JobId, JobStatus};
use hero::proto::queue::Queue;
use hero::store::{
    Appearance, AttemptEnd, DeleteOutcome, EditOutcome, JobEdit, PresenceOf, Recorded, Renewal,
    RetryOutcome, StopOutcome, Submitted, Verdict,
};
use jiff::Timestamp;

use super::expressions::{self, EXPRESSIONS};
use super::legal;
use super::reference::{self, CRASH_LIMIT, End, Job, Model, Retried};
use crate::support::{Life, RETENTION, World, keys};

const LEASE: Duration = Duration::from_hours(1);
const UNITS: [&str; 4] = ["osis-default-1", "osis-default-2", "osis-io-1", "sal-default-1"];
/// The targets of jobs: type, group, instance.
const TARGETS: [(&str, Option<&str>, Option<u16>); 6] = [
    ("osis", None, None),
    ("osis", Some("io"), None),
    ("osis", None, Some(1)),
    ("osis", Some("io"), Some(1)),
    ("sal", None, None),
    ("sal", Some("default"), Some(1)),
];
/// The most jobs at a time.
pub(super) const JOBS_MAX: usize = 60;
const FAR: &str = "1000000000000000";

/// The store, the model, and what the steps remember.
pub(super) struct Walk {
    pub(super) world: World,
    pub(super) model: Model,
    rng: Rng,
    lives: Vec<Life>,
    /// Lives whose lease was lost: they may write nothing.
    ghosts: Vec<Life>,
    began: Timestamp,
    names: u64,
    times: u64,
}

impl Walk {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            // Half of them as the default is, with no event log.
            world: World::new().with_events(seed.is_multiple_of(2)),
            model: Model::default(),
            rng: Rng::with_seed(seed),
            lives: Vec::new(),
            ghosts: Vec::new(),
            began: Timestamp::now(),
            names: 0,
            times: 0,
        }
    }

    /// Does one step, and says which.
    pub(super) async fn step(&mut self) -> String {
        match self.rng.u8(..100) {
            0..16 => self.submit().await,
            16..20 => self.start().await,
            20..40 => self.claim().await,
            40..46 => self.submit_child().await,
            46..48 => self.keep_state().await,
            48..56 => self.finish().await,
            56..58 => self.tell().await,
            58..61 => self.requeue().await,
            61..64 => self.stop().await,
            64 => self.correct().await,
            65..69 => self.retry().await,
            69..72 => self.delete().await,
            72..75 => self.pop(),
            75..78 => self.take_as_a_stranger(),
            78..82 => self.end_as_a_stranger(),
            82..85 => self.appear().await,
            85..88 => self.lose_lease(),
            88..96 => self.sweep().await,
            96 => self.pause().await,
            97 if self.rng.bool() => self.age_expression(),
            97 => self.push_garbage(),
            98 => self.expire(),
            _ => self.disturb().await,
        }
    }

    pub(super) fn any_job(&mut self, wanted: impl Fn(&Job) -> bool) -> Option<String> {
        let ids: Vec<&String> =
            self.model.jobs.iter().filter(|(_, job)| wanted(job)).map(|(id, _)| id).collect();
        self.rng.choice(ids).cloned()
    }

    pub(super) fn choice<T>(&mut self, of: Vec<T>) -> Option<T> {
        self.rng.choice(of)
    }

    /// A live life or, now and then, a life that lost its lease.
    pub(super) fn any_life(&mut self) -> Option<Life> {
        let ghost = !self.ghosts.is_empty() && self.rng.u8(..8) == 0;
        let from = if ghost { &self.ghosts } else { &self.lives };
        self.rng.choice(from).cloned()
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("j{}", self.names)
    }

    /// A time far ahead, later than all before.
    pub(super) fn time(&mut self) -> (u64, Timestamp) {
        self.times += 1;
        let ahead = Duration::from_secs(3600 + 1000 * self.times);
        (self.times, self.began + ahead)
    }

    async fn submit(&mut self) -> String {
        if self.model.jobs.len() >= JOBS_MAX {
            return self.expire();
        }
        let id = if self.rng.u8(..30) == 0 {
            self.any_job(|_| true).unwrap_or_default()
        } else {
            self.name()
        };
        if id.is_empty() {
            return "submit nothing".to_owned();
        }
        let (script_type, group, instance) = TARGETS[self.rng.usize(..TARGETS.len())];
        let priority = [1, 1, 0, 2][self.rng.usize(..4)];
        let mut builder = JobBuilder::new(script_type, "1").id(&id).priority(priority);
        if let Some(group) = group {
            builder = builder.group(group);
        }
        if let Some(instance) = instance {
            builder = builder.instance(instance);
        }
        if (group, instance) == (None, None) && self.rng.bool() {
            builder = builder.r#where(EXPRESSIONS[self.rng.usize(..EXPRESSIONS.len())].0);
        }
        let mut unique = None;
        if self.rng.u8(..5) == 0 {
            let key = format!("key {}", self.rng.u8(..4));
            builder = builder.unique_key(&key);
            unique = Some(key);
        }
        let replaces = unique.is_some() && self.rng.bool();
        if replaces {
            builder = builder.on_duplicate("replace");
        }
        let mut prerequisites = BTreeSet::new();
        for _ in 0..[0, 0, 0, 1, 2][self.rng.usize(..5)] {
            let known = self.any_job(|_| true).filter(|known| *known != id);
            prerequisites.insert(known.unwrap_or_else(|| "nobody".to_owned()));
        }
        let mut after_any = BTreeSet::new();
        for _ in 0..[0, 0, 0, 1, 2][self.rng.usize(..5)] {
            after_any.extend(self.any_job(|_| true).filter(|known| *known != id));
        }
        for prerequisite in &prerequisites {
            builder = builder.after(prerequisite);
        }
        for prerequisite in &after_any {
            builder = builder.after_any(prerequisite);
        }
        let mut run_at = None;
        if self.rng.u8(..5) == 0 {
            let (place, time) = self.time();
            builder = builder.run_at(time);
            run_at = Some(place);
        }
        let start = self.rng.u8(..6) > 0;
        let job = builder.build().expect("a legal job");
        let queue = job.spec.queue().expect("a typed job has a queue").to_string();
        let entry = Job {
            unique,
            replaces,
            run_at,
            prerequisites: prerequisites.into_iter().collect(),
            after_any: after_any.into_iter().collect(),
            ..Job::new(script_type, &queue)
        };
        let said = format!("submit {id} to {queue}, start: {start}, {entry:?}");
        let expected = self.model.submit(&id, entry, start);
        let answers =
            self.world.store.jobs().submit(&[job], start, RETENTION).await.expect("redis answers");
        let answer = match &answers[0] {
            Submitted::Accepted(status) => reference::Submitted::Accepted(*status),
            Submitted::Exists => reference::Submitted::Exists,
            Submitted::Duplicate(holder) => {
                reference::Submitted::Duplicate(holder.as_ref().expect("seen").to_string())
            }
            Submitted::UnknownPrerequisite(id) => {
                reference::Submitted::UnknownPrerequisite(id.clone())
            }
            Submitted::BrokenQueue(key) => panic!("{key} is broken"),
        };
        assert_eq!(answer, expected, "{said}");
        said
    }

    async fn start(&mut self) -> String {
        let Some(id) = self.any_job(|job| job.status == JobStatus::Created) else {
            return "start nothing".to_owned();
        };
        let answer =
            self.world.store.jobs().start(&legal(&id), RETENTION).await.expect("redis answers");
        let expected = match self.model.start(&id) {
            None => RetryOutcome::Missing,
            Some(Ok(status)) => RetryOutcome::Moved(status),
            Some(Err(status)) => RetryOutcome::Refused(status),
        };
        assert_eq!(answer, expected, "start {id}");
        format!("start {id}: {answer:?}")
    }

    async fn claim(&mut self) -> String {
        let Some(life) = self.any_life() else { return "claim for nobody".to_owned() };
        let queues = expressions::queues_of(&self.world, &life).await;
        let names: Vec<String> = queues.iter().map(ToString::to_string).collect();
        let matched: BTreeSet<String> =
            names.iter().filter_map(|name| expressions::target_of(name)).collect();
        assert_eq!(matched, self.model.matched_queues(&life), "what {} matches", life.actor);
        let wanted = self.rng.usize(..4);
        let expected =
            self.model.claim(life.boot.as_str(), life.actor.script_type.as_str(), &names, wanted);
        let claimed =
            self.world.claim_from(&life, &queues, (wanted, 0)).await.expect("redis answers");
        let ids: Vec<&str> = claimed.attempts.iter().map(|attempt| attempt.id.as_str()).collect();
        let fenced = !self.model.leases.contains_key(life.boot.as_str());
        let said = format!("claim {wanted} for {}, fenced {fenced}: {ids:?}", life.actor);
        assert_eq!(ids, expected, "{said}");
        assert_eq!(claimed.fenced, fenced, "{said}");
        for list in &claimed.unadopted {
            self.world.adopt(list).await;
            let queue = self.world.store.keys().queue_of_work(list).expect("a work list");
            self.model.adopt(&queue.to_string());
        }
        said
    }

    async fn finish(&mut self) -> String {
        let Some(life) = self.any_life() else { return "finish for nobody".to_owned() };
        let boot = life.boot.as_str();
        let own = self.model.running.get(boot).cloned().unwrap_or_default();
        let mut endings: Vec<(String, End)> = Vec::new();
        for _ in 0..=self.rng.usize(..3) {
            // Mostly its own; at times a job that it had, or never had.
            let any = if own.is_empty() || self.rng.u8(..6) == 0 {
                self.any_job(|_| true)
            } else {
                self.rng.choice(&own).cloned()
            };
            let end = match self.rng.u8(..7) {
                0 => End::Error,
                1 => End::Dead,
                2 => End::Retry(self.time().0),
                3 | 4 => {
                    let wait = self.any_wait(any.as_deref().unwrap_or_default());
                    End::Wait(self.time().0, wait)
                }
                _ => End::Finished,
            };
            endings.extend(any.map(|id| (id, end)));
        }
        let request: Vec<AttemptEnd> = endings
            .iter()
            .map(|(id, end)| self.world.ending(&life, legal(id), self.verdict(end)))
            .collect();
        let answers = self
            .world
            .store
            .attempts()
            .finish(&life.boot, RETENTION, &request)
            .await
            .expect("redis answers");
        let expected = self.model.finish(boot, &endings);
        let said = format!("finish for {}: {endings:?}: {answers:?}", life.actor);
        let answers: Vec<reference::Recorded> = answers
            .into_iter()
            .map(|answer| match answer {
                Recorded::Recorded | Recorded::Held => reference::Recorded::Stands,
                Recorded::Before => reference::Recorded::Before,
                Recorded::Lost => reference::Recorded::Lost,
                Recorded::Failed(reason) => panic!("{said}: {reason}"),
            })
            .collect();
        assert_eq!(answers, expected, "{said}");
        said
    }

    fn verdict(&self, end: &End) -> Verdict {
        let (error, exit_code) = ("no".to_owned(), Some(1));
        match end {
            End::Finished => Verdict::Finished { output: "out".into(), exit_code: None },
            End::Error => Verdict::Error { error, exit_code, dead: false },
            End::Dead => Verdict::Error { error, exit_code, dead: true },
            End::Retry(place) => Verdict::Retry { error, exit_code, delay: self.delay(*place) },
            End::Wait(place, wait) => {
                Verdict::Wait { wait: wait.text(), exit_code, delay: self.delay(*place) }
            }
        }
    }

    /// Returns the time from now to a place in the order of times.
    fn delay(&self, place: u64) -> Duration {
        let time = self.began + Duration::from_secs(3600 + 1000 * place);
        time.duration_since(Timestamp::now()).try_into().expect("a time ahead")
    }

    /// Returns true once in so many times.
    pub(super) fn chance(&mut self, of: u8) -> bool {
        self.rng.u8(..of) == 0
    }

    /// Pauses a queue, lets one go on, or empties one.
    async fn pause(&mut self) -> String {
        let names: Vec<String> = self.model.lists.keys().cloned().collect();
        let Some(name) = self.rng.choice(names) else { return "no queue to pause".to_owned() };
        let queue: Queue = name.parse().expect("a legal queue");
        if self.rng.u8(..4) == 0 {
            let purged =
                self.world.store.queues().purge(&queue, RETENTION).await.expect("redis answers");
            assert_eq!(purged, self.model.purge(&name), "purge {name}");
            return format!("purge {name}: {purged}");
        }
        let queues = [queue];
        let news = if self.model.paused.contains(&name) {
            self.model.paused.remove(&name);
            self.world.store.queues().resume(&queues).await
        } else {
            self.model.paused.insert(name.clone());
            self.world.store.queues().pause(&queues).await
        };
        assert_eq!(news.expect("redis answers"), [true]);
        format!("pause {name}: {}", self.model.paused.contains(&name))
    }

    async fn requeue(&mut self) -> String {
        let Some(life) = self.any_life() else { return "requeue for nobody".to_owned() };
        let mut ids = self.model.running.get(life.boot.as_str()).cloned().unwrap_or_default();
        ids.retain(|_| self.rng.bool());
        let jobs: Vec<(JobId, Option<Queue>)> = ids
            .iter()
            .map(|id| {
                let queue = self.model.jobs[id].queue.parse().expect("a legal queue");
                (legal(id), self.rng.bool().then_some(queue))
            })
            .collect();
        let answer = self.world.give_back(&life, &jobs).await;
        assert_eq!(answer, self.model.requeue(life.boot.as_str(), &ids), "requeue {ids:?}");
        format!("requeue {ids:?}")
    }

    async fn stop(&mut self) -> String {
        let Some(id) = self.any_job(|_| true) else { return "stop nothing".to_owned() };
        let answer = self
            .world
            .store
            .jobs()
            .stop(&legal(&id), RETENTION, None)
            .await
            .expect("redis answers");
        let expected = match self.model.stop(&id) {
            "stopped" => StopOutcome::Stopped,
            "requested" => StopOutcome::Requested,
            "unowned" => StopOutcome::Unowned,
            "ended" => StopOutcome::Ended,
            _ => StopOutcome::Missing,
        };
        assert_eq!(answer, expected, "stop {id}");
        format!("stop {id}: {answer:?}")
    }

    /// Gives a job a new timeout. One that has started keeps the one that it runs with.
    async fn correct(&mut self) -> String {
        let Some(id) = self.any_job(|_| true) else { return "correct nothing".to_owned() };
        let (status, before) = (self.model.jobs[&id].status, self.world.field(&id, "timeout"));
        let timeout = Some(self.rng.u32(1..1000).to_string());
        let edit =
            JobEdit { corrections: vec![("timeout", timeout.clone())], ..JobEdit::default() };
        let answer = self.world.store.jobs().edit(&legal(&id), &edit).await.expect("redis answers");
        let has_started = status.is_terminal() || status == JobStatus::Started;
        let expected = if has_started {
            (EditOutcome::Refused(status), before)
        } else {
            (EditOutcome::Edited(status), timeout)
        };
        assert_eq!((answer, self.world.field(&id, "timeout")), expected, "correct {id}");
        format!("correct {id} in {status}")
    }

    async fn retry(&mut self) -> String {
        let Some(id) =
            self.any_job(|job| job.status.is_terminal()).or_else(|| self.any_job(|_| true))
        else {
            return "retry nothing".to_owned();
        };
        if self.rng.bool() {
            let graph =
                self.world.store.jobs().retry_with_dependents(&legal(&id), &Vec::new()).await;
            let graph = graph.expect("redis answers");
            let (expected, dependents) = self.model.retry_with_dependents(&id);
            assert_eq!(retried(&graph.outcome), expected, "retry {id} with dependents");
            let answer: Vec<&str> = graph.retried.iter().map(|(id, _)| id.as_str()).collect();
            assert_eq!(answer, dependents, "retry {id} with dependents");
            return format!("retry {id} with dependents: {expected:?}, {dependents:?}");
        }
        let answer = self.world.store.jobs().retry(&legal(&id)).await.expect("redis answers");
        assert_eq!(retried(&answer), self.model.retry(&id), "retry {id}");
        format!("retry {id}: {answer:?}")
    }

    async fn delete(&mut self) -> String {
        let Some(id) = self.any_job(|_| true) else { return "delete nothing".to_owned() };
        let answer =
            self.world.store.jobs().delete(&legal(&id), RETENTION).await.expect("redis answers");
        let expected = match self.model.delete(&id) {
            "deleted" => DeleteOutcome::Deleted,
            "running" => DeleteOutcome::Running,
            _ => DeleteOutcome::Missing,
        };
        assert_eq!(answer, expected, "delete {id}");
        format!("delete {id}: {answer:?}")
    }

    /// The head of some list, taken out of it as a pop does.
    fn popped(&mut self, wanted: impl Fn(&Model, &str) -> bool) -> Option<(String, String)> {
        let model = &self.model;
        let heads: Vec<(String, String)> = model
            .lists
            .iter()
            .filter_map(|(queue, list)| Some((queue.clone(), list.front()?.clone())))
            .filter(|(_, id)| wanted(model, id))
            .collect();
        let (queue, id) = self.rng.choice(heads)?;
        let popped = self.world.redis.pop(&keys::work(&queue));
        assert_eq!(popped, id, "the head of {queue}");
        self.model.lists.get_mut(&queue).expect("it has a head").pop_front();
        Some((queue, id))
    }

    /// A pop by a foreign actor that dies before it starts the job.
    fn pop(&mut self) -> String {
        let Some((queue, id)) = self.popped(|_, _| true) else { return "pop nothing".to_owned() };
        format!("pop {id} from {queue}")
    }

    /// An actor that speaks only the public protocol takes a job.
    fn take_as_a_stranger(&mut self) -> String {
        let waits = |model: &Model, id: &str| {
            model.jobs.get(id).is_some_and(|job| job.status == JobStatus::Dispatched)
        };
        let Some((queue, id)) = self.popped(waits) else {
            return "a stranger takes nothing".to_owned();
        };
        self.world.redis.set_job(&id, "status started");
        let job = self.model.jobs.get_mut(&id).expect("it waits");
        (job.status, job.boot) = (JobStatus::Started, None);
        format!("a stranger takes {id} from {queue}")
    }

    fn end_as_a_stranger(&mut self) -> String {
        let Some(id) = self.any_job(Job::is_foreign) else {
            return "a stranger ends nothing".to_owned();
        };
        let (status, field) = if self.rng.bool() {
            (JobStatus::Finished, "output")
        } else {
            (JobStatus::Error, "error")
        };
        self.world.redis.set_job(&id, &format!("status {status} {field} theirs"));
        self.model.jobs.get_mut(&id).expect("it runs").status = status;
        format!("a stranger ends {id} as {status}")
    }

    async fn appear(&mut self) -> String {
        let unit = UNITS[self.rng.usize(..UNITS.len())];
        let life = Life::of(unit);
        // Its predecessor died or was paused: its presence tells its jobs.
        let place = self.lives.iter().position(|other| other.actor == life.actor);
        let replaced = place.map(|place| self.lives.swap_remove(place));
        let held: Option<String> = self.world.redis.get(&keys().presence(&life.actor));
        let appearance = self
            .world
            .store
            .actors()
            .appear(&life.actor, &life.presence(), LEASE, held.as_deref())
            .await
            .expect("redis answers");
        assert_eq!(appearance, Appearance::Taken, "{unit} appears");
        self.model.leases.insert(life.boot.to_string(), false);
        self.lives.push(life);
        self.ghosts.extend(replaced);
        format!("{unit} appears")
    }

    /// The lease of a life runs out. It notices only when a supervisor has.
    fn lose_lease(&mut self) -> String {
        let held: Vec<String> = self.model.leases.keys().cloned().collect();
        let Some(boot) = self.rng.choice(held) else { return "no lease to lose".to_owned() };
        self.world.redis.put(&keys().boots(), 1, &boot);
        self.model.leases.insert(boot.clone(), true);
        format!("the lease of {boot} runs out")
    }

    async fn sweep(&mut self) -> String {
        match self.rng.u8(..9) {
            0 | 1 => self.sweep_due().await,
            2 | 3 => self.sweep_boots().await,
            4 => self.sweep_pops().await,
            5 => self.sweep_fresh_pops().await,
            6 => self.sweep_foreign().await,
            7 => self.sweep_the_rest().await,
            _ => self.beat().await,
        }
    }

    async fn sweep_due(&mut self) -> String {
        let scheduled: Vec<String> = self
            .model
            .jobs
            .iter()
            .filter(|(_, job)| job.status == JobStatus::Scheduled && !job.due)
            .map(|(id, _)| id.clone())
            .collect();
        for id in scheduled {
            if self.rng.bool() {
                let job = self.model.jobs.get_mut(&id).expect("it is scheduled");
                job.due = true;
                let key = keys::index("scheduled", &job.script_type);
                self.world.redis.run(&format!("ZINCRBY {key} -{FAR} {id}"));
            }
        }
        let found =
            self.world.store.schedule().dispatch_due(1000, RETENTION).await.expect("redis answers");
        let dispatched = found.jobs;
        assert_eq!(dispatched, self.model.dispatch_due());
        format!("{dispatched} due jobs are dispatched")
    }

    async fn sweep_boots(&mut self) -> String {
        // One by one, so that the order of found boots is known.
        let mut out: Vec<String> = self
            .model
            .leases
            .iter()
            .filter(|(_, out)| **out)
            .map(|(boot, _)| boot.clone())
            .collect();
        out.sort();
        for (place, boot) in out.iter().enumerate() {
            self.world.redis.put(&keys().boots(), place as u64 + 1, boot);
        }
        let recovered = self
            .world
            .store
            .recovery()
            .boots(None, Duration::ZERO, CRASH_LIMIT, RETENTION)
            .await
            .expect("answers");
        assert_eq!(recovered.boots, self.model.recover_boots() as u64);
        let (ghosts, lives) = std::mem::take(&mut self.lives)
            .into_iter()
            .partition(|life| out.iter().any(|boot| boot == life.boot.as_str()));
        self.lives = lives;
        let mut ghosts: Vec<Life> = ghosts;
        self.ghosts.append(&mut ghosts);
        format!("{} dead boots are recovered", recovered.boots)
    }

    /// Two sweeps with the grace between them.
    async fn sweep_pops(&mut self) -> String {
        self.sweep_fresh_pops().await;
        let marks = keys().marks();
        let all: Vec<(String, String)> = self.world.redis.ask(&format!("HGETALL {marks}"));
        for (queue, mark) in all {
            let Some((since, head)) = mark.split_once(' ') else { continue };
            let since: u64 = since.parse().expect("a mark holds a time");
            let aged = format!("{} {head}", since - 3_000_000);
            self.world.redis.set_field(&marks, &queue, aged);
        }
        self.world.store.recovery().pops(RETENTION).await.expect("redis answers");
        let before = self.model.ready.clone();
        self.model.recover_pops();
        self.take_over_order(&before);
        "foreign pops are recovered".to_owned()
    }

    /// Takes over the order of new entries from Redis: a sweep goes through queues and types in no
    /// defined order. Entries from before keep theirs.
    fn take_over_order(&mut self, before: &BTreeMap<String, Vec<String>>) {
        for (queue, ready) in &mut self.model.ready {
            let known = before.get(queue).map_or(&[][..], Vec::as_slice);
            let real = self.world.redis.members(&keys::ready(queue));
            if differ_in_news_alone(ready, &real, known) {
                *ready = real;
            }
            let real = self.world.work(queue);
            let own = self.model.lists.entry(queue.clone()).or_default();
            if differ_in_news_alone(own.make_contiguous(), &real, known) {
                *own = real.into();
            }
        }
    }

    /// A first sweep only leaves marks: a job that was popped just now may yet start.
    async fn sweep_fresh_pops(&mut self) -> String {
        self.world.redis.delete(&keys().marks());
        self.world.store.recovery().pops(RETENTION).await.expect("redis answers");
        "fresh pops are left alone".to_owned()
    }

    async fn sweep_foreign(&mut self) -> String {
        let mut overdue = BTreeSet::new();
        let known: Vec<String> = self
            .model
            .indexes
            .iter()
            .filter(|((status, _), _)| *status == JobStatus::Started)
            .flat_map(|(_, ids)| ids.iter().cloned())
            .collect();
        for id in known {
            let job = &self.model.jobs[&id];
            self.world.redis.put(&keys::index("started", &job.script_type), 1, &id);
            if self.rng.bool() {
                self.world.redis.set_job(&id, "started_at 2020-01-31T12:00:00.000Z");
                overdue.insert(id);
            }
        }
        self.world
            .store
            .recovery()
            .foreign(LEASE, LEASE, CRASH_LIMIT, RETENTION)
            .await
            .expect("redis answers");
        let before = self.model.ready.clone();
        self.model.recover_foreign(&overdue);
        self.take_over_order(&before);
        format!("jobs of strangers are looked after, overdue {overdue:?}")
    }

    /// Sweeps that find nothing in an orderly world.
    async fn sweep_the_rest(&mut self) -> String {
        let orphans = self.world.store.recovery().orphans().await.expect("redis answers");
        assert_eq!(orphans.orphans, 0, "there are no orphans");
        assert!(!self.world.store.schedule().settle(RETENTION).await.expect("redis answers"));
        self.world.store.stats().sample(Duration::from_millis(1)).await.expect("redis answers");
        self.model.forget_expressions();
        "orphans, large fan-outs and statistics are looked after".to_owned()
    }

    async fn beat(&mut self) -> String {
        let Some(life) = self.any_life() else { return "nobody beats".to_owned() };
        let presence = [PresenceOf { actor: life.actor.clone(), presence: life.presence() }];
        let held: Option<String> = self.world.redis.get(&keys().presence(&life.actor));
        let taken = held.is_some_and(|held| !held.contains(life.boot.as_str()));
        let kept = self.world.store.actors().heartbeat(&life.boot, LEASE, &presence, &[]).await;
        let kept = kept.expect("redis answers") != Renewal::Lost;
        // Its name may be a successor's by now, that took it for dead.
        let lease = self.model.leases.get_mut(life.boot.as_str()).filter(|_| !taken);
        let expected = lease.map(|out| *out = false);
        assert_eq!(kept, expected.is_some(), "heartbeat of {}", life.actor);
        format!("{} beats: {kept}", life.actor)
    }

    fn push_garbage(&mut self) -> String {
        let queue = ["type:osis", "type:sal", "type:osis:group:io"][self.rng.usize(..3)];
        let list = self.model.lists.entry(queue.to_owned()).or_default();
        let number = self.rng.usize(1..60);
        let garbage: Vec<String> = (0..number).map(|number| format!("nobody-{number}")).collect();
        self.world.redis.push_front(&keys::work(queue), &garbage);
        for id in garbage {
            list.push_front(id);
        }
        format!("{number} garbage ids into {queue}")
    }

    /// Retention ends: Redis drops the hash, and a sweep the rest.
    fn expire(&mut self) -> String {
        let Some(id) = self.any_job(|job| job.status.is_terminal() && job.retained) else {
            return "nothing expires".to_owned();
        };
        let job = &self.model.jobs[&id];
        let (status, script_type) = (job.status, job.script_type.clone());
        self.world.redis.delete(&keys::job(&id));
        self.world.redis.remove(&keys::index(status.as_str(), &script_type), &id);
        for end in JobEnd::ALL {
            self.world.redis.remove(&keys::ended(end, &script_type), &id);
        }
        self.world.redis.run(&format!("LREM {} 0 {id}", keys::dead(&script_type)));
        self.model.expire(&id);
        format!("{id} expires")
    }

    /// Redis forgets its scripts, or drops every connection. Nothing may depend on either.
    async fn disturb(&mut self) -> String {
        if self.rng.bool() {
            self.world.redis.run("SCRIPT FLUSH");
            return "scripts are flushed".to_owned();
        }
        self.world.redis.run("CLIENT KILL TYPE normal SKIPME yes");
        while let Err(error) = self.world.store.ping().await {
            assert!(error.is_transient(), "after lost connections: {error}");
        }
        "connections are dropped".to_owned()
    }
}

/// Returns whether two lists have the same entries, and the known ones in the same order.
fn differ_in_news_alone(model: &[String], real: &[String], known: &[String]) -> bool {
    let sorted = |list: &[String]| {
        let mut list = list.to_vec();
        list.sort();
        list
    };
    let old = |list: &[String]| -> Vec<String> {
        let known = |id: &&String| known.contains(id) || id.starts_with("nobody");
        list.iter().filter(known).cloned().collect()
    };
    sorted(model) == sorted(real) && old(model) == old(real)
}

fn retried(outcome: &RetryOutcome) -> Retried {
    match outcome {
        RetryOutcome::Moved(status) => Retried::Moved(*status),
        RetryOutcome::Missing => Retried::Missing,
        RetryOutcome::Refused(status) => Retried::Refused(*status),
        RetryOutcome::Duplicate(holder) => {
            Retried::Duplicate(holder.as_ref().expect("seen").to_string())
        }
        RetryOutcome::FailedPrerequisite(_) => Retried::FailedPrerequisite,
        RetryOutcome::LostPrerequisite(_) => Retried::LostPrerequisite,
        RetryOutcome::Illegal => panic!("every job has a legal queue"),
    }
}
