//! Carries the calls of scripts to their objects, and to the Redis that they may use, between their
//! threads and the async runtime.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use tokio::runtime::Handle;

use crate::config::OsisConfig;
use crate::engine::{ObjectStore, ScriptRedis};
use crate::proto::keys::Keys;
use crate::proto::object::{Answer, Ask, Context, ObjectError};
use crate::proto::script_reply::RedisReply;
use crate::store::{ExternalRedis, Store};

/// The objects of scripts, in Redis. The thread of the script waits for an answer; the runtime does
/// not wait for the script.
#[derive(Clone)]
pub struct RedisObjects {
    store: Store,
    config: Arc<OsisConfig>,
    runtime: Handle,
}

impl RedisObjects {
    /// Keeps objects in the namespace of a store. Calls run on `runtime`.
    pub fn new(store: Store, config: OsisConfig, runtime: Handle) -> Self {
        Self { store, config: Arc::new(config), runtime }
    }
}

impl std::fmt::Debug for RedisObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RedisObjects({})", self.store.address())
    }
}

impl ObjectStore for RedisObjects {
    fn ask(&self, context: &Context, ask: Ask) -> Receiver<Result<Answer, ObjectError>> {
        let (sender, answer) = sync_channel(1);
        let (store, config, context) =
            (self.store.clone(), Arc::clone(&self.config), context.clone());
        self.runtime.spawn(async move {
            let answer = store.objects(&context, ask, &config).await;
            // A stopped job has dropped the receiver.
            let _ = sender.try_send(answer);
        });
        answer
    }
}

/// The Redis that scripts may use, as `sal.redis_url` names it.
#[derive(Clone)]
pub struct ScriptRedisClient {
    redis: ExternalRedis,
    own: Vec<Keys>,
    runtime: Handle,
}

impl ScriptRedisClient {
    /// Runs commands on `runtime`. Keys of the namespaces `own` are rejected.
    pub fn new(redis: ExternalRedis, own: Vec<Keys>, runtime: Handle) -> Self {
        Self { redis, own, runtime }
    }
}

impl std::fmt::Debug for ScriptRedisClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScriptRedisClient")
    }
}

impl ScriptRedis for ScriptRedisClient {
    fn run(&self, words: Vec<Vec<u8>>) -> Receiver<Result<RedisReply, String>> {
        let (sender, answer) = sync_channel(1);
        let redis = self.redis.clone();
        self.runtime.spawn(async move {
            let reply = redis.run(&words).await.map_err(|error| error.to_string());
            // A stopped job has dropped the receiver.
            let _ = sender.try_send(reply);
        });
        answer
    }

    fn is_own(&self, key: &[u8]) -> bool {
        self.own.iter().any(|own| own.is_own(key))
    }
}
