//! The objects of scripts, from the threads that run them to Redis and back.

use std::sync::Arc;

use crossbeam_channel::{Receiver, bounded};
use tokio::runtime::Handle;

use crate::config::OsisConfig;
use crate::engine::Objects;
use crate::proto::object::{Answer, Ask, Context, ObjectError};
use crate::store::Store;

/// Hands what a script asks to the async runtime. The script's own thread waits, the runtime never
/// does.
#[derive(Clone)]
pub struct RedisObjects {
    store: Store,
    config: Arc<OsisConfig>,
    runtime: Handle,
}

impl RedisObjects {
    /// The objects in the namespace of a store, asked for on this runtime.
    pub fn new(store: Store, config: OsisConfig, runtime: Handle) -> Self {
        Self { store, config: Arc::new(config), runtime }
    }
}

impl std::fmt::Debug for RedisObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RedisObjects({})", self.store.address())
    }
}

impl Objects for RedisObjects {
    fn ask(&self, context: &Context, ask: Ask) -> Receiver<Result<Answer, ObjectError>> {
        let (sender, answer) = bounded(1);
        let (store, config, context) =
            (self.store.clone(), Arc::clone(&self.config), context.clone());
        self.runtime.spawn(async move {
            let answer = store.objects(&context, ask, &config).await;
            // Nobody may wait any more: the job was stopped.
            let _ = sender.try_send(answer);
        });
        answer
    }
}
