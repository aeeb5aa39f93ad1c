//! What scripts reach beyond their own machine, as doors that whoever runs an engine opens: an
//! engine itself knows no Redis.

use std::fmt::Debug;
use std::sync::Arc;

use crossbeam_channel::Receiver;

use crate::config::OsisConfig;
use crate::proto::object::{Answer, Ask, Context, ObjectError};

/// What lies outside of an engine. Without its parts scripts run all the same, and the functions
/// that need them fail.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    /// `[osis]`.
    pub osis: OsisConfig,
    /// The objects that scripts of `osis` keep.
    pub objects: Option<Arc<dyn Objects>>,
}

/// The objects that scripts keep.
pub trait Objects: Debug + Send + Sync {
    /// Begins to answer, and returns at once. The answer arrives later, or its sender is dropped
    /// if there will be none; nobody minds if nobody waits for it any more.
    fn ask(&self, context: &Context, ask: Ask) -> Receiver<Result<Answer, ObjectError>>;
}
