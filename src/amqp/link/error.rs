//! The errors of RabbitMQ as sentences.

use crate::error::{Error, Exit};
use lapin::ErrorKind;

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

/// The end of a connection or a channel, as RabbitMQ says it.
const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;
const RESOURCE_LOCKED: u16 = 405;
const PRECONDITION_FAILED: u16 = 406;
const NOT_ALLOWED: u16 = 530;

pub(super) struct About<'a> {
    pub(super) address: &'a str,
    pub(super) vhost: &'a str,
    pub(super) doing: &'a str,
}

impl About<'_> {
    /// Returns an error of the library as a sentence.
    pub(super) fn error(&self, error: &lapin::Error) -> LinkError {
        let (address, doing) = (self.address.to_owned(), self.doing.to_owned());
        if let ErrorKind::ProtocolError(protocol) = error.kind() {
            let reason = protocol.get_message().to_string();
            return match protocol.get_id() {
                ACCESS_REFUSED => LinkError::NotPermitted { address, doing, reason },
                NOT_ALLOWED => LinkError::NoVhost { address, vhost: self.vhost.to_owned(), reason },
                PRECONDITION_FAILED => LinkError::OtherArguments { doing, reason },
                RESOURCE_LOCKED => LinkError::Locked { doing, reason },
                NOT_FOUND => LinkError::Missing { doing, reason },
                _ => LinkError::Ended { doing, reason },
            };
        }
        let reason = match error.kind() {
            ErrorKind::IOError(error) | ErrorKind::RuntimeShutdownError(error) => {
                format!("cannot be reached: {error}")
            }
            ErrorKind::MissingHeartbeatError => "does not answer its heartbeat".to_owned(),
            _ => format!("closed the connection: {error}"),
        };
        LinkError::Unreachable { address, reason }
    }

    pub(super) fn too_slow(&self) -> LinkError {
        let reason = format!("does not answer: {}", self.doing);
        LinkError::Unreachable { address: self.address.to_owned(), reason }
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
