//! What scripts reach beyond their own machine, as doors that whoever runs an engine opens: an
//! engine itself knows no Redis.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use crate::config::OsisConfig;
use crate::proto::guest::Told;
use crate::proto::object::{Answer, Ask, Context, ObjectError};

/// What lies outside of an engine. Without its parts scripts run all the same, and the functions
/// that need them fail.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    /// `[osis]`.
    pub osis: OsisConfig,
    /// The objects that scripts of `osis` keep.
    pub objects: Option<Arc<dyn Objects>>,
    /// The Redis that scripts of `sal` may use.
    pub redis: Option<Arc<dyn GuestRedis>>,
}

/// A Redis for scripts, which is not Hero's own.
pub trait GuestRedis: Debug + Send + Sync {
    /// Begins to run a command, and returns at once; as [`Objects::ask`].
    fn run(&self, words: Vec<Vec<u8>>) -> Receiver<Result<Told, String>>;

    /// Whether a key is one of Hero's own, which no script gets at.
    fn is_own(&self, key: &[u8]) -> bool;
}

/// The objects that scripts keep.
pub trait Objects: Debug + Send + Sync {
    /// Begins to answer, and returns at once. The answer arrives later, or its sender is dropped
    /// if there will be none; nobody minds if nobody waits for it any more.
    fn ask(&self, context: &Context, ask: Ask) -> Receiver<Result<Answer, ObjectError>>;
}
