//! Stores and looks up log records: the messages of the template `Logger`, and of the key `log`.

use serde_json::Value;

use crate::amqp::logs::{Beside, LogCollection};
use crate::amqp::message::{AmqpMessage, MessageFailure};
use crate::proto::text::shown;

/// The routing keys, and the operations that each serves.
const OPERATIONS: [(&str, &[&str]); 3] =
    [("log", &["write"]), ("rec.read", &["fetch", "read"]), ("rec.write", &["write", "delete"])];

pub(super) async fn serve(
    logs: &LogCollection,
    message: &AmqpMessage,
) -> Result<Value, MessageFailure> {
    let (key, operation) = (message.key.as_str(), message.operation.as_str());
    let known = OPERATIONS.into_iter().find(|(known, _)| *known == key);
    // A route may give log records any other key.
    if let Some((_, operations)) = known.filter(|(_, operations)| !operations.contains(&operation))
    {
        let known = operations.join(", ");
        let reason = format!("{key} has no operation `{}`; it has {known}", shown(operation));
        return Err(MessageFailure::lasting("unknown_operation", reason));
    }
    let beside = Beside {
        id: message.message_id.as_deref(),
        root: message.root.as_deref(),
        chain: message.chain.as_deref(),
    };
    logs.serve(operation, &message.data, beside).await
}
