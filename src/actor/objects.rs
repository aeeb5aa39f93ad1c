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

/// Makes a call on the runtime, and returns where its answer comes.
fn answer_of<T: Send + 'static>(
    runtime: &Handle,
    call: impl Future<Output = T> + Send + 'static,
) -> Receiver<T> {
    let (sender, answer) = sync_channel(1);
    runtime.spawn(async move {
        // A stopped job has dropped the receiver.
        let _ = sender.try_send(call.await);
    });
    answer
}

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
        let (store, config, context) =
            (self.store.clone(), Arc::clone(&self.config), context.clone());
        answer_of(&self.runtime, async move { store.objects(&context, ask, &config).await })
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
        let redis = self.redis.clone();
        answer_of(&self.runtime, async move {
            redis.run(&words).await.map_err(|error| error.to_string())
        })
    }

    fn is_own(&self, key: &[u8]) -> bool {
        self.own.iter().any(|own| own.is_own(key))
    }
}
