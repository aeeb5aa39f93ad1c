//! The stores of all shards of one system.

use std::sync::Arc;

use super::{Store, StoreError};
use crate::config::RedisConfig;
use crate::proto::shard::{Shard, ShardCount};

/// A handle on all shards of one system. Cheap to clone.
#[derive(Clone)]
pub struct Shards(Arc<[Store]>);

impl Shards {
    /// Reads the settings, and changes the store of each shard by `set`. Connects to nothing yet.
    ///
    /// # Errors
    /// [`StoreError::Settings`] if a URL or the password file cannot be used.
    pub fn open(
        config: &RedisConfig,
        set: impl Fn(Store) -> Result<Store, StoreError>,
    ) -> Result<Self, StoreError> {
        let open = |shard: Shard| {
            let store = Store::open(&config.of_shard(shard))?;
            set(Store { shard, ..store })
        };
        config.shard_count().shards().map(open).collect::<Result<_, _>>().map(Self)
    }

    /// The number of shards.
    pub fn count(&self) -> ShardCount {
        u16::try_from(self.0.len()).ok().and_then(ShardCount::new).unwrap_or_default()
    }

    /// The home shard, which alone has what belongs to no job: periodic jobs, tokens, objects, messages of
    /// RabbitMQ, legacy queues.
    pub fn home(&self) -> &Store {
        &self.0[0]
    }

    /// The stores, that of the home shard first.
    pub fn all(&self) -> &[Store] {
        &self.0
    }

    /// Returns the store of a shard of this system.
    pub fn at(&self, shard: Shard) -> &Store {
        self.0.get(usize::from(shard.number())).unwrap_or_else(|| self.home())
    }

    /// Returns the store that has, or would have, a job or graph: its id tells it.
    ///
    /// # Errors
    /// [`StoreError::Settings`] if the id tells a shard that is not there.
    pub fn of(&self, id: &str) -> Result<&Store, StoreError> {
        let shard = self.count().shard_of(id);
        shard.map(|shard| self.at(shard)).map_err(|error| StoreError::Settings(error.to_string()))
    }
}

impl From<Store> for Shards {
    /// A system with one shard.
    fn from(store: Store) -> Self {
        Self(Arc::new([store]))
    }
}
