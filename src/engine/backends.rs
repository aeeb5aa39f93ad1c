//! The services that scripts call through the process that runs them: an engine itself knows no Redis.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use crate::config::OsisConfig;
use crate::proto::object::{Answer, Ask, Context, ObjectError};
use crate::proto::script_reply::RedisReply;

/// The services of an engine. Scripts run without them as well; functions that need a missing one fail.
#[derive(Debug, Clone, Default)]
pub struct Backends {
    pub osis: OsisConfig,
    /// The stored objects of `osis` scripts; `None` where no store is connected, as when a script is only checked.
    pub objects: Option<Arc<dyn ObjectStore>>,
    /// The Redis that `sal` scripts may use.
    pub redis: Option<Arc<dyn ScriptRedis>>,
}

/// A Redis for scripts, which is not Hero's own.
pub trait ScriptRedis: Debug + Send + Sync {
    /// Starts a command and returns at once; as [`ObjectStore::ask`].
    fn run(&self, words: Vec<Vec<u8>>) -> Receiver<Result<RedisReply, String>>;

    /// Returns true for a key of Hero itself, which no script may access.
    fn is_own(&self, key: &[u8]) -> bool;
}

/// The stored objects of scripts.
pub trait ObjectStore: Debug + Send + Sync {
    /// Starts a request and returns at once. The answer arrives later; the sender is dropped if
    /// there will be no answer. The caller may drop the receiver.
    fn ask(&self, context: &Context, ask: Ask) -> Receiver<Result<Answer, ObjectError>>;
}
