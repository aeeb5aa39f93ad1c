//! Reads and changes tables of MariaDB: `rel.*`.

use serde_json::Value;

use crate::amqp::message::{AmqpMessage, MessageFailure};
use crate::amqp::relational::Relational;

pub(super) async fn serve(
    relational: Option<&Relational>,
    message: &AmqpMessage,
) -> Result<Value, MessageFailure> {
    let Some(relational) = relational else {
        let reason = "rel.* needs a database: set amqp.relational.url, or give it a route";
        return Err(MessageFailure::lasting("not_configured", reason));
    };
    relational.serve(message).await
}
