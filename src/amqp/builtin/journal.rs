//! Writes log events to the journal of this machine.

use serde_json::{Value, json};
use tracing::info;

use crate::amqp::message::AmqpMessage;
use crate::proto::text::shown;

pub(super) fn serve(message: &AmqpMessage) -> Value {
    let text = |name: &str| message.data.get(name).and_then(Value::as_str).unwrap_or_default();
    let (level, said) = (shown(text("level")), shown(text("message")));
    let root = shown(message.root.as_deref().unwrap_or_default());
    info!(root, "log event: {level}: {said}");
    json!({ "journal": true })
}
