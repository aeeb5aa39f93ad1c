//! A duty: one task that a supervisor repeats for as long as it runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tracing::{debug, info, warn};

use super::clock_watch::ClockWatch;
use super::deliveries::PendingDeliveries;
use super::whole_crontab::WholeCrontab;
use crate::config::{
    ActorConfig, Crontab, JobConfig, NotifyConfig, OsisConfig, ScriptFiles, SupervisorConfig,
};
use crate::proto::job::{Retention, TypeTimes};
use crate::proto::message::RECOVERING;
use crate::proto::notification::NotifyName;
use crate::proto::report::{redis_away, redis_refuses};
use crate::proto::shard::Shard;
use crate::proto::target::{Fallback, ScriptType};
use crate::proto::text::counted;
use crate::proto::units::brief;
use crate::store::{
    Backoff, Outage, Outlook, Recovered, RedisState, Shards, Store, StoreError, WorkKind,
};
use crate::trace::Tracer;
use crate::view::HealthRules;

/// The shortest time between two warnings of one duty.
const WARN_INTERVAL: Duration = Duration::from_secs(30);
/// The longest wait for work to be seen, as a multiple of the sweep interval.
const UNSEEN_FACTOR: u32 = 30;

/// The configuration of a supervisor. Each round of a duty uses the latest.
#[derive(Debug, Clone)]
pub struct SupervisorSettings {
    pub supervisor: SupervisorConfig,
    pub job: JobConfig,
    /// `[actor]`, for the lease of actors.
    pub actor: ActorConfig,
    /// `[osis]`, for the declared indexes.
    pub osis: OsisConfig,
    /// The farthest that jobs of a script type may fall back unless they say; only the types where
    /// they may.
    pub fallbacks: BTreeMap<ScriptType, Fallback>,
    /// The times that jobs of a script type have unless they say.
    pub times: Arc<TypeTimes>,
    pub notify: Arc<BTreeMap<NotifyName, NotifyConfig>>,
    /// `api.public_url`, for links in messages.
    pub public_url: Option<String>,
    /// The rules by which problems are reported.
    pub health: HealthRules,
    pub crontab: Arc<Crontab>,
    /// The scripts of files, which it publishes.
    pub scripts: Arc<ScriptFiles>,
    /// The digest of the configuration that they are from.
    pub digest: String,
    /// When they were read.
    pub read_at: Timestamp,
}

/// One round of a duty: its means, and the settings of this round.
#[derive(Clone)]
pub(super) struct Round {
    /// The name of the duty in log messages.
    pub(super) name: &'static str,
    /// The store of its shard.
    pub(super) store: Store,
    /// The stores of the whole system.
    pub(super) system: Shards,
    pub(super) tracer: Option<Tracer>,
    pub(super) settings: Arc<SupervisorSettings>,
    pub(super) counts: Arc<DutyCounts>,
}

impl Round {
    pub(super) fn sweep(&self) -> Duration {
        self.settings.supervisor.sweep_interval
    }

    /// Returns a multiple of the sweep interval.
    pub(super) fn pause(&self, factor: u32) -> Duration {
        self.sweep().saturating_mul(factor)
    }

    /// Returns the pause of a duty that no job waits for.
    pub(super) fn long_pause(&self) -> Duration {
        self.pause(5)
    }

    pub(super) fn kept(&self) -> Retention {
        self.settings.job.kept()
    }

    /// Returns the pause of a duty that rests until a look finds work of this kind: at least `pause`. A duty
    /// that is never told of it has its next round after 30 sweep intervals all the same.
    pub(super) fn until(&self, work: WorkKind, pause: Duration) -> Next {
        Next::Seen { work, pause, at_latest: self.pause(UNSEEN_FACTOR).max(pause) }
    }

    /// Returns the pause of a duty whose next work is due after this time, unless a look finds some before.
    pub(super) fn until_due(&self, work: WorkKind, next: Option<Duration>) -> Next {
        Next::due(work, next, self.sweep(), self.pause(UNSEEN_FACTOR))
    }
}

/// The time of the next round of a duty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    After(Duration),
    /// After a pause, as soon as a look has found work.
    Seen {
        work: WorkKind,
        pause: Duration,
        at_latest: Duration,
    },
}

impl Next {
    /// After a sweep interval, as soon as a look has found work; when the next is due, also if no look finds it.
    fn due(work: WorkKind, next: Option<Duration>, sweep: Duration, unseen: Duration) -> Self {
        let next = next.unwrap_or(Duration::MAX);
        Self::Seen { work, pause: next.min(sweep), at_latest: next.min(unseen) }
    }

    /// At once if there is more to do, else then.
    pub(super) fn unless_more(self, is_more: bool) -> Self {
        if is_more { Self::After(Duration::ZERO) } else { self }
    }

    async fn wait(self, outlook: &watch::Sender<Outlook>) {
        match self {
            Self::After(pause) => tokio::time::sleep(pause).await,
            Self::Seen { work, pause, at_latest } => {
                tokio::time::sleep(pause).await;
                let mut seen = outlook.subscribe();
                let is_there = seen.wait_for(|outlook| outlook.work.contains(&work));
                drop(tokio::time::timeout(at_latest.saturating_sub(pause), is_there).await);
            }
        }
    }
}

/// The counters of all duties of one shard, for the status line.
#[derive(Debug, Default)]
pub(super) struct DutyCounts {
    /// The shard, if the supervisor serves several.
    shard: Option<Shard>,
    /// Rounds of all duties, which show that they make progress.
    pub(super) rounds: AtomicU64,
    /// The outage of Redis, until a heartbeat is answered again.
    outage: Outage,
    /// Since when the supervisor waits until Redis first answers.
    awaited: Mutex<Option<Instant>>,
    /// A call found Redis away.
    pub(super) redis_lost: Notify,
    /// The duties that fail though Redis answers, each with its name and error as text.
    failing: Mutex<BTreeMap<&'static str, String>>,
    /// The state of Redis, as of the last check of what it keeps.
    redis: Mutex<Option<RedisState>>,
    /// True while the memory of Redis is nearly full.
    pub(super) memory_full: AtomicBool,
    pub(super) clock: ClockWatch,
    /// The work that the latest look has found.
    pub(super) outlook: watch::Sender<Outlook>,
    /// When the next look is due: the duties may rest until then.
    look_due: Mutex<Option<Instant>>,
    /// The periodic jobs of files and of Redis, as last read.
    pub(super) crontab: WholeCrontab,
    /// The scripts of files that were published last.
    pub(super) scripts: Mutex<Option<Arc<ScriptFiles>>>,
    pub(super) deliveries: PendingDeliveries,
    /// Scheduled jobs dispatched.
    pub(super) dispatched: AtomicU64,
    /// Firings of periodic jobs.
    pub(super) fired: AtomicU64,
    /// Control messages forwarded.
    pub(super) forwarded: AtomicU64,
    /// Jobs put back into their queues.
    recovered: AtomicU64,
}

impl DutyCounts {
    /// Counts nothing yet: Redis has not answered. `shard` is set if the supervisor serves several.
    pub(super) fn of(shard: Option<Shard>) -> Self {
        Self { shard, awaited: Mutex::new(Some(Instant::now())), ..Self::default() }
    }

    /// Notes that Redis has answered for the first time.
    pub(super) fn begin(&self) {
        *self.awaited.lock() = None;
    }

    /// Returns ` on shard 3` of a supervisor that serves several, else nothing.
    pub(super) fn of_shard(&self) -> String {
        self.shard.map(|shard| format!(" on shard {shard}")).unwrap_or_default()
    }

    /// Counts and logs the result of a recovery.
    pub(super) fn note(&self, duty: &'static str, found: Recovered) {
        let Recovered { boots, put_back, given_up, foreign, orphans, notes, .. } = found;
        self.recovered.fetch_add(put_back, Ordering::Relaxed);
        for note in &notes {
            warn!(job_id = %note.job_id, script_type = %note.script_type, "{note}");
        }
        if boots + put_back + given_up > 0 {
            warn!(boots, put_back, given_up, foreign, orphans, "{duty}");
        } else if foreign + orphans > 0 {
            info!(foreign, orphans, "{duty}");
        }
    }

    /// Notes that Redis did not answer a call, or does not serve. Logs it once in an outage.
    pub(super) fn redis_failed(&self, doing: &str, error: &StoreError) {
        let is_new = self.outage.since().is_none();
        debug!("{doing}: {error}");
        let of_shard = self.of_shard();
        if self.outage.failed_by(Instant::now(), error) {
            warn!("{error}; all duties{of_shard} wait, trying again");
        } else if let Some(lasted) = self.outage.lasts(Instant::now()) {
            let lasted = brief(lasted);
            warn!("redis{of_shard} has not served for {lasted}: {error}; trying again");
        }
        if is_new {
            self.redis_lost.notify_one();
        }
    }

    /// Notes that Redis answered a heartbeat, and does not refuse the login of another connection.
    pub(super) fn redis_answered(&self) {
        if let Some(lasted) = self.outage.over(Instant::now()) {
            info!("redis{} is back after {:.1} s", self.of_shard(), lasted.as_secs_f64());
        }
    }

    /// Returns when Redis stopped answering, if it does not answer.
    pub(super) fn redis_away_since(&self) -> Option<Instant> {
        self.outage.since().or(*self.awaited.lock())
    }

    /// Notes that the duty that looks for work rests for this time.
    pub(super) fn rests_for(&self, pause: Duration) {
        *self.look_due.lock() = Instant::now().checked_add(pause);
    }

    /// Returns whether the next look is not due, or late by less than this. Then no duty has to make a round.
    pub(super) fn may_rest(&self, late: Duration) -> bool {
        self.look_due.lock().is_some_and(|due| due.elapsed() < late)
    }

    /// Returns a duty that fails though Redis answers, and its error; the recovery of jobs before others.
    pub(super) fn trouble(&self) -> Option<String> {
        let failing = self.failing.lock();
        failing.get(RECOVERING).or_else(|| failing.values().next()).cloned()
    }

    /// Notes the state of Redis. Returns true if what it keeps of the jobs is known to have changed.
    pub(super) fn note_redis_state(&self, now: &RedisState) -> bool {
        let before = self.redis.lock().replace(now.clone());
        before.is_some_and(|before| {
            before.keeps() != now.keeps() || before.dangers() != now.dangers()
        })
    }

    /// Returns what is wrong with the duties, or with a Redis that answers, if something is.
    fn wrong(&self) -> Option<String> {
        let wrong = match self.trouble() {
            Some(trouble) => format!("failing: {trouble}"),
            None if self.memory_full.load(Ordering::Relaxed) => {
                "redis ok, but its memory is nearly full".to_owned()
            }
            None => match &*self.redis.lock() {
                Some(state) if state.is_durable() == Some(false) => {
                    format!("redis ok, but it may forget jobs: it keeps {}", state.keeps())
                }
                _ => return None,
            },
        };
        Some(match self.shard {
            Some(shard) => format!("shard {shard}: {wrong}"),
            None => wrong,
        })
    }
}

/// Returns the status line for systemd: the sums over all shards, and the first thing that is wrong.
pub(super) fn status(shards: &[Arc<DutyCounts>]) -> String {
    let sum = |of: fn(&DutyCounts) -> &AtomicU64| -> u64 {
        shards.iter().map(|counts| of(counts).load(Ordering::Relaxed)).sum()
    };
    let away = shards.iter().filter_map(|counts| counts.redis_away_since());
    let away: Vec<Duration> = away.map(|since| since.elapsed()).collect();
    let refused = shards.iter().filter(|counts| counts.outage.is_refused()).count();
    let redis = redis_refuses(refused, shards.len())
        .or_else(|| redis_away(&away, shards.len()))
        .or_else(|| shards.iter().find_map(|counts| counts.wrong()));
    format!(
        "{} dispatched, {} fired, {} recovered, {} forwarded, {}",
        counted(sum(|of| &of.dispatched), "scheduled job", "scheduled jobs"),
        counted(sum(|of| &of.fired), "periodic job", "periodic jobs"),
        sum(|of| &of.recovered),
        counted(sum(|of| &of.forwarded), "control message", "control messages"),
        redis.as_deref().unwrap_or("redis ok")
    )
}

/// Repeats a duty until the task is dropped; a failed round is retried with backoff. `after_outage` is its pause after
/// an outage of Redis: meanwhile actors do what they could not do during it.
pub(super) async fn repeat<F>(
    means: Round,
    settings: watch::Receiver<Arc<SupervisorSettings>>,
    after_outage: Duration,
    duty: fn(Round) -> F,
) where
    F: Future<Output = Result<Next, StoreError>>,
{
    let Round { name, store, counts, .. } = &means;
    let mut backoff = Backoff::default();
    let mut away = false;
    let mut warned_at: Option<Instant> = None;
    loop {
        counts.rounds.fetch_add(1, Ordering::Relaxed);
        if away && store.ping().await.is_ok() {
            away = false;
            tokio::time::sleep(after_outage).await;
        }
        let round = Round { settings: Arc::clone(&settings.borrow()), ..means.clone() };
        let next = match duty(round).await {
            Ok(next) => {
                backoff.succeeded();
                counts.failing.lock().remove(name);
                next
            }
            Err(error) if error.is_outage() => {
                away = true;
                counts.redis_failed(name, &error);
                Next::After(backoff.failed())
            }
            Err(error) => {
                let failure = failure(name, &error);
                let is_new = counts.failing.lock().insert(name, failure.clone()).is_none();
                if error.is_access_refused() {
                    // Every round fails in the same way until the list is changed: one line says what it lacks.
                    if is_new {
                        warn!("{failure}; {}", lacking(store).await);
                    }
                } else if warned_at.is_none_or(|at: Instant| at.elapsed() >= WARN_INTERVAL) {
                    warned_at = Some(Instant::now());
                    warn!("{failure}; trying again");
                } else {
                    debug!("{failure}");
                }
                Next::After(backoff.failed())
            }
        };
        next.wait(&counts.outlook).await;
    }
}

/// Returns the duty and its error, which may name the duty itself.
fn failure(name: &str, error: &StoreError) -> String {
    let text = error.to_string();
    if text.starts_with(name) { text } else { format!("{name}: {text}") }
}

/// Returns what the access list of Redis must permit in addition.
async fn lacking(store: &Store) -> String {
    let refused = store.redis().refused_keys().await.unwrap_or_default();
    let keys: Vec<String> = refused.iter().map(|pattern| format!("~{pattern}")).collect();
    let list = "hero-acl.conf of this version has the whole line";
    if keys.is_empty() {
        format!("the access list of its user lacks a command: {list}")
    } else {
        format!("the access list of its user lacks {}: {list}", keys.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::shard::ShardCount;

    #[tokio::test]
    async fn duty_rests_until_its_work_is_seen_but_not_for_ever() {
        let outlook = watch::Sender::new(Outlook::default());
        let until =
            |at_latest| Next::Seen { work: WorkKind::Queues, pause: Duration::ZERO, at_latest };
        until(Duration::from_millis(1)).wait(&outlook).await;

        let seen = |work| Outlook { work: [work].into(), ..Outlook::default() };
        let rests = until(Duration::from_hours(1));
        let tell = async {
            outlook.send_replace(seen(WorkKind::Limits));
            tokio::task::yield_now().await;
            outlook.send_replace(seen(WorkKind::Queues));
        };
        tokio::join!(rests.wait(&outlook), tell);
        // Its work is there already.
        rests.wait(&outlook).await;
    }

    #[test]
    fn duty_has_its_next_round_when_its_work_is_due_though_no_poll_finds_it() {
        let [sweep, unseen] = [1, 30].map(Duration::from_secs);
        let due = |next| match Next::due(WorkKind::Scheduled, next, sweep, unseen) {
            Next::Seen { pause, at_latest, .. } => (pause, at_latest),
            Next::After(_) => panic!("it never looks"),
        };
        assert_eq!(due(Some(Duration::ZERO)), (Duration::ZERO, Duration::ZERO));
        assert_eq!(due(Some(2 * sweep)), (sweep, 2 * sweep));
        assert_eq!((due(Some(2 * unseen)), due(None)), ((sweep, unseen), (sweep, unseen)));
    }

    #[test]
    fn duties_may_rest_until_the_next_poll_is_late() {
        let counts = DutyCounts::default();
        assert!(!counts.may_rest(Duration::from_hours(1)), "no look was made");
        counts.rests_for(Duration::from_hours(1));
        assert!(counts.may_rest(Duration::from_nanos(1)));
        counts.rests_for(Duration::ZERO);
        assert!(counts.may_rest(Duration::from_hours(1)) && !counts.may_rest(Duration::ZERO));
    }

    #[test]
    fn status_says_that_redis_is_not_durable() {
        let counts = Arc::new(DutyCounts::default());
        let said = || status(std::slice::from_ref(&counts));
        assert!(said().ends_with(", redis ok"), "{}", said());
        let forgets = RedisState { appends: Some(false), ..RedisState::default() };
        assert!(!counts.note_redis_state(&forgets), "the first state is no change");
        assert!(said().ends_with("may forget jobs: it keeps snapshots at most (appendonly no)"));
        let keeps = RedisState { appends: Some(true), ..RedisState::default() };
        assert!(counts.note_redis_state(&keeps) && !counts.note_redis_state(&keeps));
        assert!(said().ends_with(", redis ok"), "{}", said());
    }

    #[test]
    fn status_of_several_shards_has_their_sums_and_names_the_one_in_trouble() {
        let of = |number: u16, fired| {
            let shard = ShardCount::new(4).and_then(|count| count.shard(number));
            let counts = DutyCounts::of(shard);
            counts.fired.store(fired, Ordering::Relaxed);
            Arc::new(counts)
        };
        let shards = [of(0, 2), of(3, 1)];
        assert!(status(&shards).contains("3 periodic jobs fired"), "{}", status(&shards));
        shards[0].begin();
        assert!(status(&shards).ends_with(", redis of 1 of 2 shards away for 0 s"));
        shards[1].begin();
        assert!(status(&shards).ends_with(", redis ok"), "{}", status(&shards));
        let forgets = RedisState { appends: Some(false), ..RedisState::default() };
        shards[1].note_redis_state(&forgets);
        assert!(status(&shards).contains(", shard 3: redis ok, but it may"), "{}", status(&shards));
    }
}
