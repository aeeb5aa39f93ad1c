//! A world to act in: a private Redis, a store on it, and a check of every index that holds after
//! each operation.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hero::client::JobBuilder;
use hero::config::{Config, JobConfig};
use hero::proto::error_kind::FailureCause;
use hero::proto::graph::GraphJobOutcome;
use hero::proto::job::{BootId, Job, JobId, JobStatus};
use hero::proto::keys::Keys;
use hero::proto::message::{ActorState, Presence};
use hero::proto::queue::Queue;
use hero::proto::target::{ActorId, ScriptType, SelectorDigest};
use hero::store::{
    Adopted, AdoptionRules, Attempt, AttemptEnd, BootDeath, Claim, ClaimLimits, Claimed, LogEntry,
    Recorded, ReturnedAttempt, Store, StoreError, Submitted, Verdict,
};

use super::{Redis, keys};

/// The retention of ended jobs in these tests.
pub(crate) const RETENTION: Duration = Duration::from_hours(1);
const SIZE_MAX: u64 = 1 << 20;

/// A job of type `osis` with this id, all else at its default.
pub(crate) fn job(id: &str) -> Job {
    JobBuilder::new("osis", "1").id(id).build().expect("a legal job")
}

/// A line of a log.
pub(crate) fn line(fd: u8, line: &str) -> LogEntry {
    LogEntry::Line { fd, line: line.to_owned(), output: false }
}

/// A queue by its name.
pub(crate) fn queue(name: &str) -> Queue {
    name.parse().expect("a legal queue")
}

/// A script type by its name.
pub(crate) fn script_type(name: &str) -> ScriptType {
    name.parse().expect("a legal script type")
}

/// The ids of attempts, in order.
pub(crate) fn ids(attempts: &[Attempt]) -> Vec<&str> {
    attempts.iter().map(|attempt| attempt.id.as_str()).collect()
}

/// One start of an actor.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) boot: BootId,
    pub(crate) actor: ActorId,
}

impl Life {
    /// A new start of the actor that is this unit.
    pub(crate) fn of(unit: &str) -> Self {
        let actor = ActorId::from_unit(unit).expect("a legal unit");
        Self { boot: BootId::random(), actor }
    }

    /// Returns its presence.
    pub(crate) fn presence(&self) -> Presence {
        Presence {
            pid: 7,
            pid_since: None,
            hostname: "here".to_owned(),
            machine: "this one".to_owned(),
            boot_id: Some(self.boot.clone()),
            started_at: "2026-01-31T12:00:00.000Z".to_owned(),
            version: "0".to_owned(),
            capabilities: vec!["osis".to_owned()],
            last_heartbeat: "2026-01-31T12:00:00.000Z".to_owned(),
            beat: String::new(),
            tasks: 4,
            running: 0,
            state: ActorState::Ready,
            holding: None,
            oom_kills: None,
            after_oom_kill: None,
            labels: hero::proto::labels::Labels::new(),
            folders_left: 0,
            load_hundredths: None,
            memory_available: None,
            settings: String::new(),
            settings_at: String::new(),
        }
    }
}

/// A private Redis and a store on it.
pub(crate) struct World {
    pub(crate) redis: Redis,
    pub(crate) store: Store,
    limits: ClaimLimits,
}

impl World {
    /// A new, empty one.
    pub(crate) fn new() -> Self {
        Self::on(Redis::start(), "hero")
    }

    /// The same, with every transition of a job in the event log or not.
    pub(crate) fn with_events(mut self, events: bool) -> Self {
        self.store = self.store.of_jobs(&JobConfig { events, ..JobConfig::default() });
        self
    }

    /// One in a namespace of an own Redis.
    pub(crate) fn on(redis: Redis, namespace: &str) -> Self {
        let store = Store::open(&redis.config(namespace)).expect("settings that lead to redis");
        Self { redis, store, limits: ClaimLimits::default() }
    }

    /// Takes back the jobs of a boot that is known to be dead.
    pub(crate) async fn dies(&self, life: &Life, crash_limit: u32) {
        let gone = Some((&life.boot, BootDeath::Unknown));
        self.store
            .recovery()
            .boots(gone, Duration::ZERO, crash_limit, RETENTION)
            .await
            .expect("recovering");
        self.check();
    }

    /// With these limits, as the configuration writes them, for every claim from now on.
    pub(crate) fn limit(&mut self, text: &str) {
        let config = Config::from_toml("hero.toml".as_ref(), text).expect("a configuration");
        self.limits = ClaimLimits::new(&config.limits);
    }

    /// Submits jobs and sends them on their way; all must be accepted.
    pub(crate) async fn accepts(&self, jobs: &[Job]) -> Vec<JobStatus> {
        let status = |submitted| match submitted {
            Submitted::Accepted(status) => status,
            refused => panic!("a job was refused: {refused:?}"),
        };
        self.submit(jobs).await.into_iter().map(status).collect()
    }

    /// Submits jobs and sends them on their way.
    pub(crate) async fn submit(&self, jobs: &[Job]) -> Vec<Submitted> {
        let submitted = self.store.jobs().submit(jobs, true, RETENTION).await.expect("submitting");
        self.check();
        submitted
    }

    /// Stores jobs without sending them on their way.
    pub(crate) async fn create(&self, jobs: &[Job]) -> Vec<Submitted> {
        let submitted = self.store.jobs().submit(jobs, false, RETENTION).await.expect("creating");
        self.check();
        submitted
    }

    /// Submits a job by its id alone, and claims it.
    pub(crate) async fn started(&self, life: &Life, id: &str) -> JobId {
        self.accepts(&[job(id)]).await;
        let claimed = self.claim(life, 1).await;
        assert_eq!(ids(&claimed.attempts), [id]);
        claimed.attempts[0].id.clone()
    }

    /// Submits a job, claims it, and ends it.
    pub(crate) async fn ended(&self, life: &Life, id: &str, verdict: Verdict) -> JobId {
        let id = self.started(life, id).await;
        assert_eq!(self.finish(life, &id, verdict).await, Recorded::Recorded);
        id
    }

    /// Everything that may be claimed for this actor, up to a number, with what programs have pushed.
    pub(crate) async fn claim(&self, life: &Life, wanted: usize) -> Claimed {
        let claimed = self.claim_unchecked(life, wanted).await;
        self.check();
        claimed
    }

    async fn claim_unchecked(&self, life: &Life, wanted: usize) -> Claimed {
        self.hold_lease(life);
        let mut claimed = self.try_claim(life, wanted).await.expect("claiming");
        while !claimed.unadopted.is_empty() {
            let mut adopted = 0;
            for list in std::mem::take(&mut claimed.unadopted) {
                let found = self.adopt(&list).await;
                adopted += found.jobs + found.removed;
                claimed.skipped += found.skipped.len() as u64;
                claimed.skipped_some.extend(found.skipped);
            }
            if adopted == 0 {
                break;
            }
            let more = self.try_claim(life, wanted - claimed.attempts.len()).await;
            let more = more.expect("claiming");
            claimed.attempts.extend(more.attempts);
            claimed.skipped += more.skipped;
            claimed.skipped_some.extend(more.skipped_some);
            (claimed.more, claimed.unadopted) = (more.more, more.unadopted);
        }
        claimed
    }

    /// Takes one step of the adoption of a list.
    pub(crate) async fn adopt(&self, list: &str) -> Adopted {
        let rules = AdoptionRules {
            retention: RETENTION.into(),
            requeue_by_push: true,
            requeue_after: Duration::ZERO,
        };
        self.store.legacy().adopt(list, rules).await.expect("adopting")
    }

    /// One claim, of a boot that should hold a lease.
    pub(crate) async fn try_claim(
        &self,
        life: &Life,
        wanted: usize,
    ) -> Result<Claimed, StoreError> {
        self.claim_ahead(life, (wanted, 0)).await
    }

    /// One claim of a number of jobs, so many of them ahead.
    pub(crate) async fn claim_ahead(
        &self,
        life: &Life,
        (wanted, ahead): (usize, usize),
    ) -> Result<Claimed, StoreError> {
        self.claim_from(life, &life.actor.queues(), (wanted, ahead)).await
    }

    /// Claims from these queues, without a look at what comes of it.
    pub(crate) async fn claim_from(
        &self,
        life: &Life,
        queues: &[Queue],
        (wanted, ahead): (usize, usize),
    ) -> Result<Claimed, StoreError> {
        let lists: Vec<String> =
            queues.iter().flat_map(|queue| self.store.keys().work_as_read(queue)).collect();
        let claim = Claim {
            boot: &life.boot,
            actor: &life.actor,
            lists: &lists,
            wanted,
            ahead,
            size_max_bytes: SIZE_MAX,
            limits: &self.limits,
        };
        self.store.attempts().claim(&claim).await
    }

    /// Gives jobs that a life runs back to their queues.
    pub(crate) async fn give_back(&self, life: &Life, jobs: &[(JobId, Option<Queue>)]) -> u64 {
        let back = |(id, queue): &(JobId, Option<Queue>)| ReturnedAttempt {
            id: id.clone(),
            claimed_at: self.claimed_at(life, id),
            queue: queue.clone(),
            has_begun: true,
            has_crashed: false,
        };
        let back: Vec<ReturnedAttempt> = jobs.iter().map(back).collect();
        self.store.attempts().requeue(&life.boot, RETENTION, &back).await.expect("giving back")
    }

    /// Claims without a look at the whole world: for tests with very many jobs.
    pub(crate) async fn store_claim(&self, life: &Life, wanted: usize) -> Vec<JobId> {
        let claimed = self.claim_unchecked(life, wanted).await;
        claimed.attempts.into_iter().map(|attempt| attempt.id).collect()
    }

    /// Records that jobs finished, likewise.
    pub(crate) async fn store_finish(&self, life: &Life, jobs: Vec<JobId>) {
        let done = || Verdict::Finished { output: "".into(), exit_code: None };
        let ending = |id| self.ending(life, id, done());
        let endings: Vec<AttemptEnd> = jobs.into_iter().map(ending).collect();
        let recorded =
            self.store.attempts().finish(&life.boot, RETENTION, &endings).await.expect("finishing");
        assert!(recorded.iter().all(|recorded| *recorded == Recorded::Recorded));
    }

    /// Gives a life the lease that its first heartbeat would have given it, unless it has one.
    pub(crate) fn hold_lease(&self, life: &Life) {
        let boots = self.store.keys().boots();
        if self.redis.score(&boots, life.boot.as_str()).is_none() {
            self.set_lease(life, 99_999_999_999_999_999);
        }
    }

    /// Sets the end of a life's lease, in microseconds of Redis's clock.
    pub(crate) fn set_lease(&self, life: &Life, end_us: u64) {
        self.redis.put(&self.store.keys().boots(), end_us, life.boot.as_str());
    }

    /// Returns how the attempt ended that a life runs now.
    pub(crate) fn ending(&self, life: &Life, id: JobId, verdict: Verdict) -> AttemptEnd {
        AttemptEnd {
            claimed_at: self.claimed_at(life, &id),
            id,
            script_type: life.actor.script_type.clone(),
            verdict,
            used: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Returns when a life claimed a job that it runs now; 0 if it runs none of that id.
    pub(crate) fn claimed_at(&self, life: &Life, id: &JobId) -> u64 {
        let running = self.store.keys().running(&life.boot);
        let score: Option<u64> = self.redis.ask(&format!("ZSCORE {running} {id}"));
        score.unwrap_or(0)
    }

    /// Records how the attempt ended that the life runs now.
    pub(crate) async fn finish(&self, life: &Life, id: &JobId, verdict: Verdict) -> Recorded {
        self.finish_claimed(life, id, self.claimed_at(life, id), verdict).await
    }

    /// Records how the attempt ended that was claimed at this time.
    pub(crate) async fn finish_claimed(
        &self,
        life: &Life,
        id: &JobId,
        claimed_at: u64,
        verdict: Verdict,
    ) -> Recorded {
        let ending = [AttemptEnd { claimed_at, ..self.ending(life, id.clone(), verdict) }];
        let recorded =
            self.store.attempts().finish(&life.boot, RETENTION, &ending).await.expect("finishing");
        self.check();
        recorded.into_iter().next().expect("one answer for one ending")
    }

    /// The state of a job, by its hash.
    #[track_caller]
    pub(crate) fn status(&self, id: &str) -> JobStatus {
        let status = self.field(id, "status").unwrap_or_else(|| panic!("there is no job {id}"));
        status.parse().expect("a legal status")
    }

    /// A field of a job's hash.
    #[track_caller]
    pub(crate) fn field(&self, id: &str, name: &str) -> Option<String> {
        let id = id.parse().expect("a legal id");
        self.redis.field(&self.store.keys().job(&id), name)
    }

    /// The start of all keys of a kind; see [`keys::prefix`].
    fn prefix(&self, kind: &str) -> String {
        keys::prefix_in(self.store.keys(), kind)
    }

    /// A work list, head first.
    #[track_caller]
    pub(crate) fn work(&self, name: &str) -> Vec<String> {
        self.redis.list(&self.store.keys().work(&queue(name)))
    }

    /// A counter of a script type.
    #[track_caller]
    pub(crate) fn count(&self, of: &str, what: &str) -> u64 {
        let stats = self.store.keys().stats(&script_type(of));
        self.redis.field(&stats, what).map_or(0, |number| number.parse().expect("a number"))
    }

    /// The keys of the indexes that hold a job.
    #[track_caller]
    pub(crate) fn indexes_of(&self, id: &str) -> Vec<String> {
        self.indexes().remove(id).unwrap_or_default()
    }

    /// Every index that jobs can stand in: for each id, where it stands.
    #[track_caller]
    fn indexes(&self) -> BTreeMap<String, Vec<String>> {
        let mut of: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut link = self.redis.link();
        for kind in ["READY", "HELD", "RUNNING", "INDEX"] {
            // Scheduled jobs whose scripts wait, and ended jobs, stand in another index beside that of their state.
            let beside = ["waits:", "ended:"].map(|of| format!("{}{of}", self.prefix("INDEX")));
            let keys = self.redis.keys(&self.prefix(kind));
            let is_beside = |key: &String| beside.iter().any(|of| key.starts_with(of));
            for key in keys.into_iter().filter(|key| !is_beside(key)) {
                let members: Vec<String> = redis::cmd("ZRANGE")
                    .arg(&key)
                    .arg(0)
                    .arg(-1)
                    .query(&mut link)
                    .expect("an index is a sorted set");
                for id in members {
                    of.entry(id).or_default().push(key.clone());
                }
            }
        }
        of
    }

    /// Checks the whole world: every job of Hero's own stands in exactly the index of its state,
    /// every index holds only such jobs, and each ready index is in the order of its list.
    #[track_caller]
    pub(crate) fn check(&self) {
        let mut indexes = self.indexes();
        let prefix = self.prefix("JOB");
        let keys = self.redis.keys(&prefix);
        let mut pipeline = redis::pipe();
        let names = ["status", "script_type", "group", "instance", "priority", "boot_id"];
        for key in &keys {
            pipeline
                .cmd("HMGET")
                .arg(key)
                .arg(&names)
                .arg("created_at")
                .arg("held_by")
                .arg("where");
        }
        let hashes: Vec<redis::Value> = if keys.is_empty() {
            Vec::new()
        } else {
            pipeline.ignore_errors().query(&mut self.redis.link()).expect("reading jobs")
        };
        for (key, hash) in keys.iter().zip(hashes) {
            let Ok(fields) = redis::from_redis_value::<Vec<Option<Vec<u8>>>>(hash) else {
                continue;
            };
            let fields: Vec<Option<String>> = fields
                .into_iter()
                .map(|field| field.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
                .collect();
            let id = &key[prefix.len()..];
            let stands = indexes.remove(id).unwrap_or_default();
            let foreign = fields[6].is_none() && fields[0].as_deref() == Some("dispatched");
            if !(foreign && stands.is_empty()) {
                assert_stands(self.store.keys(), id, &fields, &stands);
            }
        }
        assert!(indexes.is_empty(), "indexes hold what is no job: {indexes:?}");
        self.check_order();
        self.check_beside();
        self.check_limits();
        self.check_graphs();
    }

    /// Checks that graphs have the outcomes of their jobs.
    #[track_caller]
    fn check_graphs(&self) {
        let prefix = self.prefix("GRAPH_JOBS");
        for key in self.redis.keys(&prefix) {
            for id in self.redis.members(&key) {
                let score: u64 = self.redis.ask(&format!("ZSCORE {key} {id}"));
                let (status, error) = (self.field(&id, "status"), self.field(&id, "error"));
                let may_fail = self.field(&id, "may_fail").is_some();
                let outcome = match (status.as_deref(), error.as_deref()) {
                    // Deleted, or expired.
                    (None, _) => continue,
                    (Some("finished"), _) => GraphJobOutcome::Finished,
                    (Some("error"), Some(text)) if FailureCause::of(text).intended().is_some() => {
                        GraphJobOutcome::Cancelled
                    }
                    (Some("error"), _) if may_fail => GraphJobOutcome::Finished,
                    (Some("error"), _) => GraphJobOutcome::Failed,
                    _ => GraphJobOutcome::Waiting,
                };
                assert_eq!(GraphJobOutcome::of_score(score), Some(outcome), "{id} in {key}");
            }
        }
    }

    /// Running jobs have the places in limits, and a job that a limit holds back is held.
    #[track_caller]
    fn check_limits(&self) {
        let prefix = self.prefix("LIMIT_RUNNING");
        for key in self.redis.keys(&prefix) {
            for id in self.redis.members(&key) {
                let limits = self.field(&id, "limits").unwrap_or_default();
                let has_place = limits.split(' ').any(|name| name == &key[prefix.len()..]);
                assert!(has_place, "{id} has a place in {key} and only {limits}");
                assert_eq!(self.field(&id, "status").as_deref(), Some("started"), "{id} in {key}");
            }
        }
        let (mut by_limit, mut by_queue) = (BTreeSet::new(), BTreeSet::new());
        let prefix = self.prefix("LIMIT_HELD");
        for key in self.redis.keys(&prefix) {
            for entry in self.redis.members(&key) {
                let id = entry.split(' ').nth(1).expect("a queue and an id");
                assert_eq!(self.field(id, "held_by").as_deref(), Some(&key[prefix.len()..]));
                by_limit.insert(entry);
            }
        }
        let prefix = self.prefix("HELD");
        for key in self.redis.keys(&prefix) {
            let queue = &key[prefix.len()..];
            let ids = self.redis.members(&key);
            by_queue.extend(ids.into_iter().map(|id| format!("{queue} {id}")));
        }
        assert_eq!(by_limit, by_queue, "what limits hold back, and what is held");
    }

    /// Checks that unfinished jobs hold the unique keys, and that only waiting jobs have
    /// prerequisites left.
    #[track_caller]
    fn check_beside(&self) {
        for key in self.redis.keys(&self.prefix("UNIQUE")) {
            let holder: String = self.redis.ask_with("GET", &[&key]);
            // It finished, and holds it for a time.
            if holder.starts_with(':') {
                continue;
            }
            let status = self.field(&holder, "status").unwrap_or_default();
            assert!(!["finished", "error"].contains(&status.as_str()), "{holder} holds {key}");
        }
        let prefix = self.prefix("PENDING");
        for key in self.redis.keys(&prefix) {
            let id = &key[prefix.len()..];
            let status = self.field(id, "status");
            let waits = status.as_deref() == Some("waiting_for_prerequisites")
                || status.as_deref() == Some("scheduled") && self.field(id, "wait").is_some();
            assert!(waits, "{key} is left: {status:?}");
        }
    }

    #[track_caller]
    fn check_order(&self) {
        let prefix = self.prefix("READY");
        for key in self.redis.keys(&prefix) {
            let queue = &key[prefix.len()..];
            let kind: String = self.redis.ask(&format!("TYPE {}{queue}", self.prefix("WORK")));
            // Tests break lists on purpose.
            let list = if kind == "list" { self.work(queue) } else { Vec::new() };
            let ready = self.redis.members(&key);
            let in_list: BTreeSet<&String> = list.iter().collect();
            let in_ready: BTreeSet<&String> = ready.iter().collect();
            let list: Vec<&String> = list.iter().filter(|id| in_ready.contains(id)).collect();
            let ready: Vec<&String> = ready.iter().filter(|id| in_list.contains(id)).collect();
            assert_eq!(ready, list, "{key} is not in the order of its list");
        }
    }
}

/// `fields` are the status, the script type, the group, the instance, the priority, the boot, the creation, the limit
/// that holds it and its `where`.
#[track_caller]
fn assert_stands(keys: &Keys, id: &str, fields: &[Option<String>], stands: &[String]) {
    let text = |place: usize| fields[place].clone().unwrap_or_default();
    let status = text(0);
    let expected = match status.as_str() {
        "dispatched" => {
            let target = match (text(2).as_str(), text(3).as_str()) {
                ("", "") if fields[8].is_some() => {
                    format!(":where:{}", SelectorDigest::of_text(&text(8)))
                }
                ("", "") => String::new(),
                (group, "") => format!(":group:{group}"),
                ("", instance) => format!(":group:default:inst:{instance}"),
                (group, instance) => format!(":group:{group}:inst:{instance}"),
            };
            let priority = match text(4).as_str() {
                "" | "1" => String::new(),
                other => format!(":prio:{other}"),
            };
            let queue = queue(&format!("type:{}{target}{priority}", text(1)));
            if fields[7].is_some() { keys.held(&queue) } else { keys.ready(&queue) }
        }
        "started" if !text(5).is_empty() => keys.running(&text(5).parse().expect("a legal boot")),
        _ => {
            let of = if text(1).is_empty() { "unknown".to_owned() } else { text(1) };
            keys.index(status.parse().expect("a legal status"), &script_type(&of))
        }
    };
    assert_eq!(stands, [expected], "job {id} is {status} and stands elsewhere");
}
