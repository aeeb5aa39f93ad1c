//! A snapshot of the namespace, as people and monitoring see it: one reading, and every face takes
//! its numbers from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::minutes::Minute;
use crate::client::{Client, ClientError, ShardServer};
use crate::proto::error_kind::failed_prerequisite;
use crate::proto::job::{JobEnd, JobId, JobStatus};
use crate::proto::labels::Labels;
use crate::proto::message::{ActorState, SupervisorPresence};
use crate::proto::notification::DeliveryRecord;
use crate::proto::pauses::PauseRule;
use crate::proto::queue::Queue;
use crate::proto::shard::Shard;
use crate::proto::target::{ActorId, Group, Priority, ScriptType, Target};
use crate::store::{
    BrokerPresence, EmptiedRedis, FiredCron, JobSummary, ListQuery, PresenceOf, QueueState,
    RedisState, TypeState,
};

#[derive(Debug, Clone)]
pub struct Snapshot {
    pub at: Timestamp,
    /// The time of this machine when it was read.
    pub read: Instant,
    /// The time that Redis took for one answer.
    pub redis_took: Duration,
    /// The difference between the clocks of this machine and of Redis, as far as that answer shows it.
    pub clock_difference: Duration,
    /// The address of Redis, without a password.
    pub address: String,
    /// The state of Redis; with several shards, of the home shard.
    pub redis: RedisState,
    /// All shards, if there are several.
    pub shards: Vec<ShardServer>,
    /// The loss of all keys in the last day.
    pub emptied: Option<EmptiedRedis>,
    /// The keys of the namespace that other programs use, a sentence each.
    pub wrong_types: Vec<String>,
    /// The lists that programs pushed to and nobody serves, each with its length, if it may be read.
    pub unserved: Vec<(String, Option<u64>)>,
    /// The ids that programs pushed within the last minute and whose hashes are not there, each after its list.
    pub ids_without_hash: Vec<(String, String)>,
    pub supervisors: Vec<SupervisorPresence>,
    /// The brokers of RabbitMQ of the last day, if they are configured.
    pub brokers: Vec<BrokerPresence>,
    /// The latest attempt of each notification whose latest attempt failed.
    pub failing_notifications: Vec<DeliveryRecord>,
    /// The periodic jobs that supervisors fire.
    pub periodic_jobs: Vec<FiredCron>,
    /// The live actors by name.
    pub actors: Vec<PresenceOf>,
    /// The actors that have no heartbeat, and have not shut down within the last day, each with its last one.
    pub silent_actors: Vec<(ActorId, Timestamp)>,
    pub actor_counts: BTreeMap<ScriptType, ActorCount>,
    pub pauses: Vec<PauseRule>,
    /// The persons and programs that paused queues, by the names of queues and rules, as far as that is known.
    pub paused_by: BTreeMap<String, String>,
    /// Each queue with the number of ready actors that claim from it.
    pub queues: Vec<(QueueState, u64)>,
    /// The script types, with their jobs counted.
    pub types: Vec<TypeState>,
    /// The last hour, the oldest minute first. Empty without samples.
    pub minutes: Arc<[Minute]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ActorCount {
    pub live: u64,
    /// The number that is not draining.
    pub ready: u64,
    pub draining: u64,
    /// Ready, but they claim no jobs, as their machine is overloaded or full.
    pub holding: u64,
    pub running: usize,
    pub tasks: usize,
}

impl Snapshot {
    /// Reads it. `address` is the address of Redis, without a password.
    pub async fn read(client: &Client, address: String) -> Result<Self, ClientError> {
        let minutes = Minute::read(client).await?;
        Self::read_beside(client, address, minutes).await
    }

    /// Reads it beside the minutes of the last hour, which change only once a minute.
    pub async fn read_beside(
        client: &Client,
        address: String,
        minutes: Arc<[Minute]>,
    ) -> Result<Self, ClientError> {
        let (ours, read) = (Timestamp::now(), Instant::now());
        let at = client.system().now().await?;
        let redis_took = read.elapsed();
        // The answer is of some time in the round trip.
        let later = at.duration_since(ours);
        let clock_difference = match Duration::try_from(later) {
            Ok(ahead) => ahead.saturating_sub(redis_took),
            Err(_) => later.unsigned_abs(),
        };
        let shards = client.system().shard_servers().await?;
        let redis = match shards.first() {
            Some(home) => home.redis.clone(),
            None => client.system().redis_state(false).await?,
        };
        let supervisors = client.system().supervisors().await?;
        let actors = client.actors().list(None).await?;
        let types = client.system().types().await?;
        let others = known_queues(&types, &actors);
        let pauses: Vec<PauseRule> = client.queues().pauses().await?.rules.into_iter().collect();
        let mut queues = with_actors(client.queues().list_with(others).await?, &actors);
        let is_paused = !pauses.is_empty() || queues.iter().any(|(state, _)| state.paused);
        let mut paused_by = BTreeMap::new();
        if is_paused {
            paused_by = client.queues().paused_by().await.unwrap_or_default();
        }
        for (state, _) in &mut queues {
            for wait in [&mut state.oldest_wait, &mut state.held_wait].into_iter().flatten() {
                *wait = without_steps(*wait, at, &supervisors);
            }
        }
        for (state, _) in queues.iter_mut().filter(|(state, _)| state.paused) {
            state.paused_by = paused_by.get(&state.queue.to_string()).cloned();
        }
        // What may not be read, or is a key of another program, is unknown and hides nothing else.
        Ok(Self {
            at,
            read,
            redis_took,
            clock_difference,
            address,
            redis,
            shards,
            emptied: client.system().emptied(at).await.unwrap_or_default(),
            wrong_types: client.system().wrong_types().await?,
            unserved: client.migration().unserved_lists().await.unwrap_or_default(),
            ids_without_hash: client.migration().ids_without_hash().await.unwrap_or_default(),
            brokers: client.system().brokers().await.unwrap_or_default(),
            failing_notifications: client
                .notifications()
                .deliveries(1)
                .await
                .unwrap_or_default()
                .failing,
            periodic_jobs: client.cron().fired(&supervisors).await.unwrap_or_default(),
            silent_actors: client.actors().silent(&actors).await?,
            actor_counts: counted(&actors),
            supervisors,
            actors,
            pauses,
            paused_by,
            queues,
            types,
            minutes,
        })
    }

    /// The servers of the shards, each with its state and its first shard, which is none for the server of the
    /// home shard.
    pub fn servers(&self) -> Vec<(Option<Shard>, &RedisState)> {
        let mut servers = vec![(None, &self.redis)];
        // All nodes of a cluster have the address of the configuration. One without INFO tells no more.
        let server = |of: &ShardServer| of.redis.run_id.as_ref().unwrap_or(&of.address).clone();
        let mut known: BTreeSet<String> = self.shards.first().map(server).into_iter().collect();
        for of in &self.shards {
            if known.insert(server(of)) {
                servers.push((Some(of.shard), &of.redis));
            }
        }
        servers
    }

    /// Returns true if a server refuses every write. Then no daemon can renew its presence there, and that none is live
    /// says nothing.
    pub fn refuses_writes(&self) -> bool {
        self.servers().iter().any(|(_, redis)| redis.refuses_writes())
    }

    pub fn live_brokers(&self) -> impl Iterator<Item = &BrokerPresence> {
        self.brokers.iter().filter(|of| of.is_alive)
    }

    /// The dead letters in each queue of RabbitMQ: several brokers consume one, and the latest to look knows best.
    pub fn amqp_dead_letters(&self) -> BTreeMap<&str, u64> {
        let mut of_brokers: Vec<&BrokerPresence> = self.brokers.iter().collect();
        of_brokers.sort_by_key(|of| of.at_us);
        let queues = of_brokers.into_iter().flat_map(|of| &of.dead_letters);
        queues.map(|(queue, number)| (queue.as_str(), *number)).collect()
    }

    /// The dead letters of the last hour, without those that were retried or deleted since.
    pub fn dead_in_last_hour(&self) -> u64 {
        let died = self.types.iter().filter_map(|of| of.hour).map(|hour| hour.dead).sum::<u64>();
        died.min(self.types.iter().map(|of| of.dead).sum())
    }

    pub fn held(&self, script_type: &ScriptType) -> u64 {
        let of_type = |state: &QueueState| state.queue.target.script_type() == script_type;
        self.queues.iter().filter(|(state, _)| of_type(state)).map(|(state, _)| state.held).sum()
    }
}

/// The jobs that started last, and those that failed last.
#[derive(Debug, Clone, Default)]
pub struct LatestJobs {
    /// The running jobs, the newest first.
    pub running: Vec<JobSummary>,
    /// The jobs that failed, the newest first.
    pub failed: Vec<JobSummary>,
    /// The prerequisites whose failure ended some of those.
    pub prerequisites: Vec<JobSummary>,
}

impl LatestJobs {
    pub async fn read(client: &Client, most: usize) -> Result<Self, ClientError> {
        let list = async |status| {
            let (statuses, ends) = (vec![status], JobEnd::FAILURES.to_vec());
            let query = ListQuery { statuses, ends, limit: most, ..ListQuery::default() };
            client.list_jobs(&query).await.map(|page| page.items)
        };
        let running = list(JobStatus::Started).await?;
        let failed = list(JobStatus::Error).await?;
        let ids: BTreeSet<JobId> = failed.iter().filter_map(prerequisite_of).collect();
        let prerequisites = if ids.is_empty() {
            Vec::new()
        } else {
            client.jobs().summaries(ids.into_iter().collect()).await?
        };
        Ok(Self { running, failed, prerequisites })
    }

    /// Returns the prerequisite whose failure ended a job, if it is known.
    pub fn prerequisite(&self, job: &JobSummary) -> Option<&JobSummary> {
        let id = prerequisite_of(job)?;
        self.prerequisites.iter().find(|known| known.id == id)
    }
}

fn prerequisite_of(job: &JobSummary) -> Option<JobId> {
    failed_prerequisite(job.fields.get("error")?)
}

/// An actor that may claim jobs: its name, its labels unless it claims no queue of an expression, and what counts it.
type Claimant<'a, T> = (&'a ActorId, Option<&'a Labels>, T);

/// The actors that claim from each queue.
pub(super) struct Claims<'a, T> {
    all: Vec<Claimant<'a, T>>,
    /// By the targets that they claim from without an expression.
    by_target: BTreeMap<Target, Vec<T>>,
}

impl<'a, T: Copy> Claims<'a, T> {
    pub(super) fn of(all: impl IntoIterator<Item = Claimant<'a, T>>) -> Self {
        let all: Vec<_> = all.into_iter().collect();
        let mut by_target: BTreeMap<Target, Vec<T>> = BTreeMap::new();
        for (actor, _, of) in &all {
            for target in actor.targets_with(&[]) {
                by_target.entry(target).or_default().push(*of);
            }
        }
        Self { all, by_target }
    }

    pub(super) fn of_queue(&self, state: &QueueState) -> Vec<T> {
        let target = &state.queue.target;
        if target.selector().is_none() {
            return self.by_target.get(target).cloned().unwrap_or_default();
        }
        let selector = state.selector();
        let matches = |(actor, labels, _): &&Claimant<'_, T>| {
            actor.script_type == *target.script_type()
                && labels.zip(selector.as_ref()).is_some_and(|(labels, of)| of.matches(labels))
        };
        self.all.iter().filter(matches).map(|(.., of)| *of).collect()
    }
}

/// Returns the labels of a live actor that claims from queues of expressions too. An actor of another program does not.
pub(super) fn claiming_labels(of: &PresenceOf) -> Option<&Labels> {
    of.presence.boot_id.as_ref().map(|_| &of.presence.labels)
}

/// Returns a wait by Redis's clock without the steps forward that it was set by meanwhile.
fn without_steps(wait: Duration, now: Timestamp, supervisors: &[SupervisorPresence]) -> Duration {
    // Each supervisor has noticed the same step.
    let steps = supervisors.iter().filter_map(|of| of.clock_step.as_ref());
    let Some(step) = steps.max_by_key(|step| step.seconds) else { return wait };
    let since = step.at.parse().map(|at| now.duration_since(at)).unwrap_or_default();
    let since = Duration::try_from(since).unwrap_or_default();
    match u64::try_from(step.seconds) {
        Ok(seconds) if wait > since => wait.saturating_sub(Duration::from_secs(seconds)).max(since),
        _ => wait,
    }
}

/// Counts the ready actors that claim from each queue.
fn with_actors(states: Vec<QueueState>, actors: &[PresenceOf]) -> Vec<(QueueState, u64)> {
    let ready = actors.iter().filter(|of| of.presence.state != ActorState::Draining);
    let claims = Claims::of(ready.map(|of| (&of.actor, claiming_labels(of), ())));
    let with_number = |state: QueueState| {
        let number = claims.of_queue(&state).len() as u64;
        (state, number)
    };
    states.into_iter().map(with_number).collect()
}

/// Returns the queues to show even while they are empty: the queue of every known type, and of every
/// group with an actor, without the queues of each instance and priority.
fn known_queues(types: &[TypeState], actors: &[PresenceOf]) -> BTreeSet<Queue> {
    let of_types = types.iter().map(|of| Target::any(of.script_type.clone()));
    let of_groups = actors
        .iter()
        .filter(|of| of.actor.group != Group::default())
        .map(|of| Target::group(of.actor.script_type.clone(), of.actor.group.clone()));
    let queue = |target| Queue { target, priority: Priority::Normal };
    of_types.chain(of_groups).map(queue).collect()
}

pub fn counted(actors: &[PresenceOf]) -> BTreeMap<ScriptType, ActorCount> {
    let mut counts: BTreeMap<ScriptType, ActorCount> = BTreeMap::new();
    for PresenceOf { actor, presence } in actors {
        let count = counts.entry(actor.script_type.clone()).or_default();
        let is_ready = presence.state != ActorState::Draining;
        count.live += 1;
        count.ready += u64::from(is_ready);
        count.draining += u64::from(!is_ready);
        count.holding += u64::from(is_ready && presence.holding.is_some());
        count.running += presence.running;
        count.tasks += presence.tasks;
    }
    counts
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One supervisor, two actors that are counted alone, and a queue with three jobs.
    pub(crate) fn healthy_snapshot() -> Snapshot {
        let queue = |name: &str, depth, wait_s| QueueState {
            queue: name.parse().expect("legal"),
            selector: None,
            depth,
            held: 0,
            oldest_wait: Some(Duration::from_secs(wait_s)),
            held_wait: None,
            held_by: None,
            type_throughput_per_s: None,
            paused: false,
            paused_by: None,
        };
        let osis: ScriptType = "osis".parse().expect("legal");
        let count = ActorCount { live: 2, ready: 2, running: 1, tasks: 8, ..ActorCount::default() };
        Snapshot {
            at: "2026-01-31T13:00:00Z".parse().expect("a time"),
            read: Instant::now(),
            redis_took: Duration::from_micros(200),
            clock_difference: Duration::ZERO,
            address: "redis://127.0.0.1:6379/0".to_owned(),
            redis: RedisState {
                version: Some("7.0.15".to_owned()),
                role: Some("master".to_owned()),
                memory_used_bytes: 3 << 20,
                memory_max_bytes: 100 << 20,
                eviction_policy: Some("noeviction".to_owned()),
                appends: Some(true),
                ..RedisState::default()
            },
            shards: Vec::new(),
            emptied: None,
            wrong_types: Vec::new(),
            unserved: Vec::new(),
            ids_without_hash: Vec::new(),
            supervisors: vec![SupervisorPresence {
                unit: "supervisor".to_owned(),
                pid: 7,
                hostname: "one".to_owned(),
                started_at: "2026-01-31T12:00:00.000Z".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                last_heartbeat: "2026-01-31T13:00:00.000Z".to_owned(),
                redis: "ok".to_owned(),
                types: Vec::new(),
                cron: None,
                clock_step: None,
                settings: String::new(),
                settings_at: String::new(),
            }],
            brokers: Vec::new(),
            failing_notifications: Vec::new(),
            periodic_jobs: Vec::new(),
            actors: Vec::new(),
            silent_actors: Vec::new(),
            actor_counts: BTreeMap::from([(osis.clone(), count)]),
            pauses: Vec::new(),
            paused_by: BTreeMap::new(),
            queues: vec![(queue("type:osis", 3, 2), 2)],
            types: vec![TypeState {
                script_type: osis,
                waiting: 1,
                scheduled: 4,
                due: 1,
                waits: 1,
                dead: 0,
                hour: None,
            }],
            minutes: [].into(),
        }
    }

    #[test]
    fn each_node_of_a_cluster_that_has_a_shard_is_a_server() {
        let count = crate::proto::shard::ShardCount::new(4).expect("legal");
        let server = |(shard, run_id): (Shard, Option<&str>)| ShardServer {
            shard,
            address: "redis+cluster://one,two".to_owned(),
            redis: RedisState { run_id: run_id.map(str::to_owned), ..RedisState::default() },
        };
        let servers = |run_ids: [Option<&str>; 4]| {
            let shards: Vec<ShardServer> = count.shards().zip(run_ids).map(server).collect();
            let snapshot =
                Snapshot { redis: shards[0].redis.clone(), shards, ..healthy_snapshot() };
            let servers = snapshot.servers().into_iter();
            servers.map(|(shard, _)| shard.map(Shard::number)).collect::<Vec<_>>()
        };
        assert_eq!(servers([Some("a"), Some("b"), Some("a"), Some("c")]), [None, Some(1), Some(3)]);
        assert_eq!(servers([None; 4]), [None]);
    }

    pub(crate) fn presence(unit: &str, state: ActorState) -> PresenceOf {
        PresenceOf {
            actor: ActorId::from_unit(unit).expect("legal"),
            presence: crate::proto::message::Presence {
                pid: 1,
                pid_since: None,
                hostname: String::new(),
                machine: String::new(),
                boot_id: Some(crate::proto::job::BootId::random()),
                started_at: String::new(),
                version: String::new(),
                capabilities: Vec::new(),
                last_heartbeat: String::new(),
                beat: String::new(),
                tasks: 4,
                running: 1,
                state,
                holding: None,
                oom_kills: None,
                after_oom_kill: None,
                labels: crate::proto::labels::Labels::new(),
                folders_left: 0,
                load_hundredths: None,
                memory_available: None,
                settings: String::new(),
                settings_at: String::new(),
            },
        }
    }

    #[test]
    fn wait_has_no_step_forward_of_the_clock_that_it_began_before() {
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        let mut supervisors = healthy_snapshot().supervisors;
        let wait = |seconds, of: &[SupervisorPresence]| {
            without_steps(Duration::from_secs(seconds), now, of).as_secs()
        };
        assert_eq!(wait(3700, &supervisors), 3700);
        let step = |seconds| {
            Some(crate::proto::message::ClockStep {
                at: "2026-01-31T12:59:00Z".to_owned(),
                seconds,
            })
        };
        supervisors[0].clock_step = step(3600);
        assert_eq!(wait(3700, &supervisors), 100, "it began 40 s before the step");
        assert_eq!(wait(3601, &supervisors), 60, "the step was noticed later");
        assert_eq!(wait(59, &supervisors), 59, "it began after the step");
        supervisors[0].clock_step = step(-3600);
        assert_eq!(wait(3700, &supervisors), 3700);
    }

    #[test]
    fn actor_serves_its_own_queue_that_of_its_group_and_that_of_its_type() {
        let actors = [
            presence("osis-io-1", ActorState::Ready),
            presence("osis-default-1", ActorState::Ready),
            presence("osis-default-2", ActorState::Draining),
        ];
        let served = |name: &str| {
            let (mut state, _) = healthy_snapshot().queues[0].clone();
            state.queue = name.parse().expect("legal");
            with_actors(vec![state], &actors)[0].1
        };
        assert_eq!(served("type:osis"), 2);
        assert_eq!(served("type:osis:group:io"), 1);
        assert_eq!(served("type:osis:group:default:inst:1"), 1);
        assert_eq!(served("type:osis:group:default:inst:2"), 0);
        let known: Vec<String> = known_queues(&healthy_snapshot().types, &actors)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(known, ["type:osis", "type:osis:group:io"]);
        let count = counted(&actors)[&actors[0].actor.script_type];
        assert_eq!((count.live, count.ready, count.draining, count.tasks), (3, 2, 1, 12));
    }
}
