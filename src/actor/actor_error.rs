//! Why an actor process cannot start.

use crate::proto::target::ActorId;
use crate::store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum ActorError {
    #[error(
        "actor {actor} is already running on {host} with pid {pid}; \
         stop that one, or give this one another instance number"
    )]
    IdentityHeld {
        actor: ActorId,
        host: String,
        pid: u32,
        /// The last heartbeat of the other process, if its machine has the name of this one and is another, or was started
        /// again since.
        same_name: Option<String>,
    },
    #[error(
        "actor {actor} is already running with pid {pid} on another machine that is named {host} as well, such as a \
         clone of this one; give one of them another host name, and this actor another instance number"
    )]
    HeldByClone { actor: ActorId, host: String, pid: u32 },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot start the threads that run scripts: {0}")]
    Threads(#[from] std::io::Error),
}
