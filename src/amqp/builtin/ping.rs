//! Answers `ping` with the time of this machine.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::amqp::message::AmqpMessage;

pub(super) fn serve(message: &AmqpMessage) -> Value {
    json!({ "pong": format!("{:.3}", Timestamp::now()), "key": message.key, "data": message.data })
}
