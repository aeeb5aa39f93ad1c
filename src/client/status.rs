//! The state of Redis, of the supervisors and of every script type.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use futures_util::future::join_all;
use jiff::Timestamp;

use super::{Client, ClientError};
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

impl Client {
    /// Returns the state of Redis, as far as its user may read it. `asks_config` reads `appendfsync`
    /// and `save` as a user of an access control list too; if that is forbidden, Redis logs it.
    pub async fn redis_state(&self, asks_config: bool) -> Result<RedisState, ClientError> {
        Ok(self.store.redis_state(asks_config).await?)
    }

    /// Waits for an answer of each server; also of one that refuses writes, where PING may be an error.
    ///
    /// # Errors
    /// [`ClientError::Store`] if one does not answer.
    pub async fn answers(&self) -> Result<(), ClientError> {
        self.shards.each(Store::now).await?;
        Ok(())
    }

    /// Returns true unless a server is known to refuse every write.
    pub async fn accepts_writes(&self) -> Result<bool, ClientError> {
        let states = self.shards.each(|store| store.redis_state(false)).await?;
        Ok(!states.iter().any(RedisState::refuses_writes))
    }

    /// Returns why Redis does not tell this login of jobs that programs push; `None` if it does.
    pub async fn receives_push_notifications(&self) -> Result<Option<String>, ClientError> {
        Ok(self.store.receives_push_notifications().await?)
    }

    /// Returns the shards with the state of their servers; none if there is only one shard.
    pub async fn shard_servers(&self) -> Result<Vec<ShardServer>, ClientError> {
        if self.shards.count() == ShardCount::ONE {
            return Ok(Vec::new());
        }
        let states = self.shards.each(|store| store.redis_state(false)).await?;
        let server = |(store, redis): (&Store, RedisState)| ShardServer {
            shard: store.shard(),
            address: store.address().to_string(),
            redis,
        };
        Ok(self.shards.all().iter().zip(states).map(server).collect())
    }

    /// Returns the shards that do not answer, with the reasons.
    pub async fn shards_away(&self) -> Vec<(Shard, StoreError)> {
        let pings = join_all(self.shards.all().iter().map(Store::ping)).await;
        let shards = self.shards.all().iter().map(Store::shard);
        shards.zip(pings).filter_map(|(shard, answer)| Some((shard, answer.err()?))).collect()
    }

    /// Lists the live supervisors by unit and host. A process that serves several shards is one supervisor.
    pub async fn list_supervisors(&self) -> Result<Vec<SupervisorPresence>, ClientError> {
        let of_shards = self.shards.each(Store::supervisors).await?;
        let mut live: Vec<SupervisorPresence> = Vec::new();
        for of in of_shards.into_iter().flatten() {
            let known = live.iter_mut().find(|known| {
                known.unit == of.unit && known.hostname == of.hostname && known.pid == of.pid
            });
            match known {
                // A failing duty of one shard is not hidden by the others.
                Some(known) if known.redis == "ok" => known.redis = of.redis,
                Some(_) => {}
                None => live.push(of),
            }
        }
        live.sort_by(|a, b| (&a.unit, &a.hostname, a.pid).cmp(&(&b.unit, &b.hostname, b.pid)));
        Ok(live)
    }

    /// Lists the brokers of RabbitMQ by unit and host, including brokers of the last day whose heartbeat is late.
    /// None without a configuration of RabbitMQ.
    pub async fn list_brokers(&self) -> Result<Vec<BrokerPresence>, ClientError> {
        match &self.broker_scope {
            Some(scope) => Ok(self.store.brokers(scope).await?),
            None => Ok(Vec::new()),
        }
    }

    /// Counts the jobs of every script type that ever had a job or an actor.
    pub async fn list_types(&self) -> Result<Vec<TypeState>, ClientError> {
        let mut types: BTreeMap<ScriptType, TypeState> = BTreeMap::new();
        for of in self.shards.each(Store::type_states).await?.into_iter().flatten() {
            match types.entry(of.script_type.clone()) {
                Entry::Occupied(mut known) => known.get_mut().add(&of),
                Entry::Vacant(new) => drop(new.insert(of)),
            }
        }
        Ok(types.into_values().collect())
    }

    /// Returns the last loss of all keys on a shard, if it was in the last day before `now`.
    pub async fn emptied(&self, now: Timestamp) -> Result<Option<EmptiedRedis>, ClientError> {
        let of_shards = self.shards.each(|store| store.emptied(now)).await?;
        Ok(of_shards.into_iter().flatten().max_by_key(|of| of.at))
    }

    /// Counts the jobs of each state and end.
    pub async fn count_jobs(&self) -> Result<JobCounts, ClientError> {
        let of_shards = self.shards.each(Store::count_jobs).await?;
        Ok(of_shards.iter().fold(JobCounts::default(), JobCounts::and))
    }

    /// Lists every queue that may hold jobs or is paused, and these others, by name.
    pub async fn list_queues_with(
        &self,
        others: impl IntoIterator<Item = Queue>,
    ) -> Result<Vec<QueueState>, ClientError> {
        let others: BTreeSet<Queue> = others.into_iter().collect();
        let of_shards = self.shards.each(|store| store.queue_states(others.clone())).await?;
        let mut queues: BTreeMap<Queue, QueueState> = BTreeMap::new();
        for of in of_shards.into_iter().flatten() {
            match queues.entry(of.queue.clone()) {
                Entry::Occupied(mut known) => known.get_mut().add(&of),
                Entry::Vacant(new) => drop(new.insert(of)),
            }
        }
        Ok(queues.into_values().collect())
    }

    /// Returns the counters of several script types, in their order.
    pub async fn counters_of(
        &self,
        types: &[ScriptType],
    ) -> Result<Vec<BTreeMap<String, u64>>, ClientError> {
        let mut of_shards = self.shards.each(|store| store.counters_of(types)).await?.into_iter();
        let mut all = of_shards.next().unwrap_or_default();
        for (sum, of) in of_shards.flat_map(|of| of.into_iter().enumerate()) {
            for (name, number) in of {
                *all[sum].entry(name).or_default() += number;
            }
        }
        Ok(all)
    }

    /// Returns the number of spans of traces that no receiver got, by service.
    pub async fn dropped_spans(&self) -> Result<BTreeMap<String, u64>, ClientError> {
        let mut all = BTreeMap::new();
        for (service, number) in self.shards.each(Store::dropped_spans).await?.into_iter().flatten()
        {
            *all.entry(service).or_default() += number;
        }
        Ok(all)
    }
}
