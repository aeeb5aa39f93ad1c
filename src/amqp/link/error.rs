//! The errors of RabbitMQ as sentences.

use crate::error::{Error, Exit};

/// The reason why RabbitMQ did not do something, mostly in its own words. No `address` has a password; `doing` is the
/// operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    #[error("{0}")]
    Settings(String),
    #[error("RabbitMQ at {address} {reason}")]
    Unreachable { address: String, reason: String },
    #[error("RabbitMQ at {address} denies {doing}: {reason}; check the user and its permissions")]
    NotPermitted { address: String, doing: String, reason: String },
    /// The vhost does not exist, or its user may not enter it.
    #[error(
        "RabbitMQ at {address} has no vhost `{vhost}` for this user: {reason}; create it with \
         `rabbitmqctl add_vhost` and `rabbitmqctl set_permissions`"
    )]
    NoVhost { address: String, vhost: String, reason: String },
    #[error(
        "{doing}: it exists with other arguments: {reason}; `hero amqp check` lists the \
         differences. Arguments of a queue cannot change: set the configuration back, or let the \
         queue run empty and delete it with `rabbitmqctl delete_queue`"
    )]
    OtherArguments { doing: String, reason: String },
    #[error("{doing}: {reason}")]
    Missing { doing: String, reason: String },
    #[error("no queue takes the key `{key}` of the exchange `{exchange}`")]
    Unroutable { exchange: String, key: String },
    #[error("a queue of the key `{key}` is full and rejects messages")]
    Rejected { key: String },
    #[error("RabbitMQ at {address} takes no messages, as it lacks memory or disk")]
    Blocked { address: String },
    /// Another connection has a queue for itself.
    #[error("{doing}: {reason}")]
    Locked { doing: String, reason: String },
    /// RabbitMQ ended the channel or the consumer.
    #[error("{doing}: {reason}")]
    Ended { doing: String, reason: String },
}

impl LinkError {
    /// Returns true if the same call may succeed later without a change of the configuration.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Ended { .. }
                | Self::Rejected { .. }
                | Self::Locked { .. }
                | Self::Blocked { .. }
        )
    }
}

impl From<LinkError> for Error {
    fn from(error: LinkError) -> Self {
        let exit = match &error {
            LinkError::Settings(_) | LinkError::OtherArguments { .. } => Exit::Config,
            LinkError::NotPermitted { .. } | LinkError::NoVhost { .. } => Exit::NotPermitted,
            LinkError::Missing { .. } => Exit::NotFound,
            LinkError::Unroutable { .. } => Exit::Data,
            _ => Exit::Unavailable,
        };
        Self::new(exit, error.to_string())
    }
}
