//! The stores of all shards of one system.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::{Result, Store};
use crate::config::RedisConfig;
use crate::proto::shard::{NoSuchShard, Shard, ShardCount};

/// A handle on all shards of one system. Cheap to clone.
#[derive(Clone)]
pub struct Shards(Arc<[Store]>);

impl Shards {
    /// Reads the settings, and changes the store of each shard by `set`. Connects to nothing yet.
    ///
    /// # Errors
    /// [`StoreError::Settings`](super::StoreError::Settings) if a URL or the password file cannot be used.
    pub fn open(config: &RedisConfig, set: impl Fn(Store) -> Result<Store>) -> Result<Self> {
        let open = |shard: Shard| {
            let store = Store::open(&config.of_shard(shard))?;
            set(Store { shard, ..store })
        };
        config.shard_count().shards().map(open).collect::<Result<_, _>>().map(Self)
    }

    pub fn count(&self) -> ShardCount {
        u16::try_from(self.0.len()).ok().and_then(ShardCount::new).unwrap_or_default()
    }

    /// The home shard, which has what belongs to no job: periodic jobs, tokens, objects, RabbitMQ, legacy queues.
    pub fn home(&self) -> &Store {
        &self.0[0]
    }

    /// The stores, the home shard's first.
    pub fn all(&self) -> &[Store] {
        &self.0
    }

    pub fn at(&self, shard: Shard) -> &Store {
        self.0.get(usize::from(shard.number())).unwrap_or_else(|| self.home())
    }

    /// Returns the store that has, or would have, a job or graph: its id tells it.
    ///
    /// # Errors
    /// [`NoSuchShard`] if the id names a shard that is not there.
    pub fn of(&self, id: &str) -> Result<&Store, NoSuchShard> {
        self.count().shard_of(id).map(|shard| self.at(shard))
    }

    #[must_use]
    pub fn map(&self, change: impl Fn(Store) -> Store) -> Self {
        Self(self.0.iter().cloned().map(change).collect())
    }

    /// Takes other addresses or another login of the same shards, or reads the files again that the same settings
    /// name.
    ///
    /// # Errors
    /// [`StoreError::Settings`](super::StoreError::Settings) if the settings of a shard cannot be used.
    pub fn change_login(&self, config: &RedisConfig) -> Result<()> {
        self.0.iter().try_for_each(|store| store.change_login(&config.of_shard(store.shard())))
    }

    /// Asks all shards at the same time. Returns the answers in the order of the shards.
    ///
    /// # Errors
    /// The first error of a shard: there is no answer with a part of the shards.
    pub async fn each<'a, T, A>(&'a self, ask: impl FnMut(&'a Store) -> A) -> Result<Vec<T>>
    where
        A: Future<Output = Result<T>>,
    {
        try_join_all(self.0.iter().map(ask)).await
    }
}

impl From<Store> for Shards {
    /// A system with one shard.
    fn from(store: Store) -> Self {
        Self(Arc::new([store]))
    }
}
