//! Why an actor process cannot start.

use crate::proto::target::ActorId;
use crate::store::StoreError;

/// Why an actor process cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ActorError {
    /// Another live process has the name.
    #[error(
        "actor {actor} is already running on {host} with pid {pid}; \
         stop that one, or give this one another instance number"
    )]
    IdentityHeld {
        /// The name.
        actor: ActorId,
        /// The machine of the other process.
        host: String,
        /// The other process.
        pid: u32,
        /// The last heartbeat of the other process, if its machine has the name of this one and is another, or was started
        /// again since.
        same_name: Option<String>,
    },
    /// A live process on another machine with the name of this one has the name.
    #[error(
        "actor {actor} is already running with pid {pid} on another machine that is named {host} as well, such as a \
         clone of this one; give one of them another host name, and this actor another instance number"
    )]
    HeldByClone {
        /// The name.
        actor: ActorId,
        /// The name of both machines.
        host: String,
        /// The other process.
        pid: u32,
    },
    /// A call to Redis failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operating system refuses threads.
    #[error("cannot start the threads that run scripts: {0}")]
    Threads(#[from] std::io::Error),
}
