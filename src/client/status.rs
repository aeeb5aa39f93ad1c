//! The state of Redis, of the supervisors, of every script type, and of limits.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use futures_util::future::join_all;
use jiff::Timestamp;

use super::documents::LimitDocument;
use super::stats::add;
use super::{JobClient, QueueClient, Result, StatsClient, SystemClient};
use crate::config::{LimitConfig, LimitName};
use crate::proto::message::SupervisorPresence;
use crate::proto::queue::Queue;
use crate::proto::shard::{Shard, ShardCount};
use crate::proto::target::ScriptType;
use crate::store::{
    BrokerPresence, EmptiedRedis, JobCounts, QueueState, RedisState, Store, StoreError, TypeState,
};

#[derive(Debug, Clone)]
pub struct ShardServer {
    pub shard: Shard,
    /// The address of Redis, without a password.
    pub address: String,
    pub redis: RedisState,
}

impl SystemClient<'_> {
    /// Returns the state of Redis, as far as its user may read it. `asks_config` reads `appendfsync`
    /// and `save` as a user of an access control list too; if that is forbidden, Redis logs it.
    pub async fn redis_state(self, asks_config: bool) -> Result<RedisState> {
        Ok(self.client.store.redis().state(asks_config).await?)
    }

    /// Waits for an answer of each server; also of one that refuses writes, where PING may be an error.
    pub async fn answers(self) -> Result<()> {
        self.client.shards.each(Store::now).await?;
        Ok(())
    }

    /// Returns true unless a server is known to refuse every write.
    pub async fn accepts_writes(self) -> Result<bool> {
        let states = self.client.shards.each(|store| store.redis().state(false)).await?;
        Ok(!states.iter().any(RedisState::refuses_writes))
    }

    /// Returns why Redis does not tell this login of jobs that programs push; `None` if it does.
    pub async fn receives_push_notifications(self) -> Result<Option<String>> {
        Ok(self.client.store.redis().receives_push_notifications().await?)
    }

    /// Returns the shards with the state of their servers; none if there is only one shard.
    pub async fn shard_servers(self) -> Result<Vec<ShardServer>> {
        if self.client.shards.count() == ShardCount::ONE {
            return Ok(Vec::new());
        }
        let states = self.client.shards.each(|store| store.redis().state(false)).await?;
        let server = |(store, redis): (&Store, RedisState)| ShardServer {
            shard: store.shard(),
            address: store.address().to_string(),
            redis,
        };
        Ok(self.client.shards.all().iter().zip(states).map(server).collect())
    }

    /// Returns the shards that do not answer, with the reasons.
    pub async fn shards_away(self) -> Vec<(Shard, StoreError)> {
        let pings = join_all(self.client.shards.all().iter().map(Store::ping)).await;
        let shards = self.client.shards.all().iter().map(Store::shard);
        shards.zip(pings).filter_map(|(shard, answer)| Some((shard, answer.err()?))).collect()
    }

    /// Lists the live supervisors by unit and host. A process that serves several shards is one supervisor.
    pub async fn supervisors(self) -> Result<Vec<SupervisorPresence>> {
        let of_shards = self.client.shards.each(|store| store.supervisors().list()).await?;
        let process = |of: &SupervisorPresence| (of.unit.clone(), of.hostname.clone(), of.pid);
        Ok(merged(of_shards, process, |known, of| {
            // A failing duty of one shard is not hidden by the others.
            if known.redis == "ok" {
                known.redis = of.redis;
            }
        }))
    }

    /// Lists the brokers of RabbitMQ by unit and host, including brokers of the last day whose heartbeat is late.
    /// None without a configuration of RabbitMQ.
    pub async fn brokers(self) -> Result<Vec<BrokerPresence>> {
        match &self.client.broker_scope {
            Some(scope) => Ok(self.client.store.brokers().list(scope).await?),
            None => Ok(Vec::new()),
        }
    }

    /// Counts the jobs of every script type that ever had a job or an actor.
    pub async fn types(self) -> Result<Vec<TypeState>> {
        let of_shards = self.client.shards.each(|store| store.stats().type_states()).await?;
        Ok(merged(of_shards, |of| of.script_type.clone(), |known, of| known.add(&of)))
    }

    /// Returns the last loss of all keys on a shard, if it was in the last day before `now`.
    pub async fn emptied(self, now: Timestamp) -> Result<Option<EmptiedRedis>> {
        let of_shards = self.client.shards.each(|store| store.redis().emptied(now)).await?;
        Ok(of_shards.into_iter().flatten().max_by_key(|of| of.at))
    }

    /// Returns the number of spans of traces that no receiver got, by service.
    pub async fn dropped_spans(self) -> Result<BTreeMap<String, u64>> {
        let mut all = BTreeMap::new();
        self.client
            .shards
            .each(|store| store.stats().dropped_spans())
            .await?
            .iter()
            .for_each(|of| add(&mut all, of));
        Ok(all)
    }

    /// Lists the limits of a configuration, the values that they count separately, and the serial lanes of
    /// actors, each with the jobs that run under it and that it holds. Of limits that count separately only
    /// the values that have running or held jobs are listed, of at most 10 000 running jobs. Each shard counts for
    /// itself; of those beside the home shard only limits in use are listed.
    pub async fn limits(
        self,
        limits: &BTreeMap<LimitName, LimitConfig>,
    ) -> Result<Vec<LimitDocument>> {
        let of_shards = self.client.shards.each(|store| store.limits().states(limits)).await?;
        let of_name = |name: &str| limits.iter().find(|(of, _)| of.as_str() == name);
        let has_several = self.client.shards.count() != ShardCount::ONE;
        let mut documents = Vec::new();
        for (store, states) in self.client.shards.all().iter().zip(of_shards) {
            for state in states {
                let is_used = state.running > 0 || state.held > 0 || state.started > 0;
                if store.shard() != Shard::HOME && !is_used {
                    continue;
                }
                let limit = of_name(&state.name).map(|(_, limit)| limit);
                let shard = has_several.then_some(store.shard().number());
                documents.push(LimitDocument { shard, ..LimitDocument::of(state, limit) });
            }
        }
        documents.sort_by(|a, b| (&a.name, &a.value, a.shard).cmp(&(&b.name, &b.value, b.shard)));
        Ok(documents)
    }
}

impl JobClient<'_> {
    pub async fn count(self) -> Result<JobCounts> {
        let of_shards = self.client.shards.each(|store| store.jobs().count()).await?;
        Ok(of_shards.iter().fold(JobCounts::default(), JobCounts::and))
    }
}

impl QueueClient<'_> {
    /// Lists every queue that may hold jobs or is paused, and these others, by name.
    pub async fn list_with(
        self,
        others: impl IntoIterator<Item = Queue>,
    ) -> Result<Vec<QueueState>> {
        let others: BTreeSet<Queue> = others.into_iter().collect();
        let of_shards =
            self.client.shards.each(|store| store.queues().states(others.clone())).await?;
        Ok(merged(of_shards, |of| of.queue.clone(), |known, of| known.add(&of)))
    }
}

impl StatsClient<'_> {
    /// Returns the counters of several script types, in their order.
    pub async fn counters_of(self, types: &[ScriptType]) -> Result<Vec<BTreeMap<String, u64>>> {
        let mut of_shards =
            self.client.shards.each(|store| store.stats().counters_of(types)).await?.into_iter();
        let mut all = of_shards.next().unwrap_or_default();
        for (sum, of) in of_shards.flat_map(|of| of.into_iter().enumerate()) {
            add(&mut all[sum], &of);
        }
        Ok(all)
    }
}

/// Returns the entries of all shards in the order of their keys; entries of one key become one by `add`.
pub(super) fn merged<K: Ord, T>(
    of_shards: Vec<Vec<T>>,
    key: impl Fn(&T) -> K,
    add: impl Fn(&mut T, T),
) -> Vec<T> {
    let mut all: BTreeMap<K, T> = BTreeMap::new();
    for of in of_shards.into_iter().flatten() {
        match all.entry(key(&of)) {
            Entry::Occupied(mut known) => add(known.get_mut(), of),
            Entry::Vacant(new) => drop(new.insert(of)),
        }
    }
    all.into_values().collect()
}
