//! Stores and looks up log records: the messages of the template `Logger`, and of the key `log`.

use serde_json::Value;

use crate::amqp::logs::{LogCollection, RecordProperties};
use crate::amqp::message::{AmqpMessage, MessageFailure};

/// The routing keys, and the operations that each serves.
const OPERATIONS: [(&str, &[&str]); 3] =
    [("log", &["write"]), ("rec.read", &["fetch", "read"]), ("rec.write", &["write", "delete"])];

pub(super) async fn serve(
    logs: &LogCollection,
    message: &AmqpMessage,
) -> Result<Value, MessageFailure> {
    message.check_operation(&OPERATIONS)?;
    let beside = RecordProperties {
        id: message.message_id.as_deref(),
        root: message.root.as_deref(),
        chain: message.chain.as_deref(),
    };
    logs.serve(&message.operation, &message.data, beside).await
}
