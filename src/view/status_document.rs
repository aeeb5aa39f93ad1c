//! The state of a namespace as one document: `hero status`, and `system.status` of the API.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_verdict::CheckVerdict;
use super::{ActorCount, HealthRules, Snapshot};
use crate::client::QueueDocument;
use crate::proto::message::SupervisorPresence;
use crate::proto::shard::Shard;
use crate::store::{BrokerPresence, RedisState, TypeState};

/// The state of a namespace.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StatusDocument {
    /// The time of Redis when it was read: RFC 3339, UTC.
    pub at: String,
    /// The rules that pause queues: `*` for all, `type:T:*`, `type:*:group:G:*`, `type:T:group:G:*`.
    pub paused: Vec<String>,
    /// The server of Redis; with several shards, of the home shard.
    pub redis: RedisDocument,
    /// True if a server of Redis refuses every write, so that no daemon can renew its presence.
    pub refuses_writes: bool,
    /// The live supervisors.
    pub supervisors: Vec<SupervisorPresence>,
    /// The brokers of RabbitMQ of the last day; none for a caller with bounds.
    pub brokers: Vec<BrokerPresence>,
    /// The script types with live actors.
    pub actors: Vec<ActorsOfType>,
    /// The queues that hold jobs, are paused or have an actor.
    pub queues: Vec<ServedQueue>,
    /// The script types, with their jobs counted.
    pub types: Vec<JobsOfType>,
    /// All shards, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardDocument>,
    /// The verdict by the thresholds of `[check]`.
    pub check: CheckVerdict,
}

/// A server of Redis, as far as its user may read its state.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RedisDocument {
    /// Its address, without a password.
    pub address: String,
    /// Its version.
    pub version: Option<String>,
    /// `master` or `slave`.
    pub role: Option<String>,
    /// The number of its replicas.
    pub replicas: u64,
    /// The memory in use.
    pub memory_used_bytes: u64,
    /// Its `maxmemory`; 0 for no limit.
    pub memory_max_bytes: u64,
    /// Its `maxmemory-policy`.
    pub eviction_policy: Option<String>,
    /// True if it keeps every write, but for the last second.
    pub durable: Option<bool>,
    /// True if it appends every write to a file.
    pub appends: Option<bool>,
    /// Its `appendfsync`.
    pub fsync: Option<String>,
    /// Its `save`.
    pub save_points: Option<String>,
    /// Dangers for accepted jobs, a sentence each with the remedy.
    pub dangers: Vec<String>,
}

impl RedisDocument {
    fn of(address: &str, redis: &RedisState) -> Self {
        Self {
            address: address.to_owned(),
            version: redis.version.clone(),
            role: redis.role.clone(),
            replicas: redis.replicas,
            memory_used_bytes: redis.memory_used_bytes,
            memory_max_bytes: redis.memory_max_bytes,
            eviction_policy: redis.eviction_policy.clone(),
            durable: redis.is_durable(),
            appends: redis.appends,
            fsync: redis.fsync.clone(),
            save_points: redis.save_points.clone(),
            dangers: redis.dangers(),
        }
    }

    /// Returns the state whose lines [`RedisState::memory`] and [`RedisState::keeps`] are.
    pub fn state(&self) -> RedisState {
        RedisState {
            memory_used_bytes: self.memory_used_bytes,
            memory_max_bytes: self.memory_max_bytes,
            eviction_policy: self.eviction_policy.clone(),
            appends: self.appends,
            fsync: self.fsync.clone(),
            save_points: self.save_points.clone(),
            ..RedisState::default()
        }
    }
}

/// A shard with its server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShardDocument {
    /// Its number.
    pub shard: u16,
    /// True if no shard before it is on the same server.
    pub is_first_of_server: bool,
    #[serde(flatten)]
    pub redis: RedisDocument,
}

/// The live actors of a script type.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ActorsOfType {
    /// The script type.
    pub script_type: String,
    #[serde(flatten)]
    pub count: ActorCount,
}

/// A queue with the number of ready actors that claim from it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServedQueue {
    #[serde(flatten)]
    pub state: QueueDocument,
    /// The ready actors that claim from it.
    pub actors: u64,
}

/// The jobs of a script type, counted.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct JobsOfType {
    #[serde(flatten)]
    pub state: TypeState,
    /// The jobs that limits hold.
    pub held: u64,
}

impl StatusDocument {
    pub fn of(snapshot: &Snapshot, rules: &HealthRules) -> Self {
        let servers = snapshot.servers();
        let is_first =
            |of: Shard| of == Shard::HOME || servers.iter().any(|(first, _)| *first == Some(of));
        let shards = snapshot.shards.iter().map(|of| ShardDocument {
            shard: of.shard.number(),
            is_first_of_server: is_first(of.shard),
            redis: RedisDocument::of(&of.address, &of.redis),
        });
        let actors = snapshot
            .actor_counts
            .iter()
            .map(|(name, count)| ActorsOfType { script_type: name.to_string(), count: *count });
        let queues = snapshot.queues.iter();
        let queues =
            queues.map(|(of, actors)| ServedQueue { state: of.into(), actors: *actors }).collect();
        let types = snapshot.types.iter();
        let types = types
            .map(|of| JobsOfType { state: of.clone(), held: snapshot.held(&of.script_type) })
            .collect();
        Self {
            at: format!("{:.3}", snapshot.at),
            paused: snapshot.pauses.iter().map(ToString::to_string).collect(),
            redis: RedisDocument::of(&snapshot.address, &snapshot.redis),
            refuses_writes: snapshot.refuses_writes(),
            supervisors: snapshot.supervisors.clone(),
            brokers: snapshot.brokers.clone(),
            actors: actors.collect(),
            queues,
            types,
            shards: shards.collect(),
            check: CheckVerdict::of(snapshot, rules),
        }
    }
}
