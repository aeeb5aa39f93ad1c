//! Tells jobs the events that their scripts wait for, where a route asks for it.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::amqp::message::{AmqpMessage, MessageFailure};
use crate::client::{Client, ClientError};
use crate::proto::audit::Author;
use crate::proto::job::JobId;
use crate::proto::text::shown;
use crate::store::TellOutcome;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventFor {
    id: String,
    event: String,
    #[serde(default)]
    data: Value,
}

/// Sends the event of a message to its job. A second delivery of it changes nothing. A message has no name that a wait
/// could ask for by `who`.
pub(super) async fn serve(client: &Client, message: &AmqpMessage) -> Result<Value, MessageFailure> {
    let given = EventFor::deserialize(&message.data)
        .map_err(|error| MessageFailure::invalid(format!("the data of an event: {error}")))?;
    let id: JobId = given.id.parse().map_err(|_| {
        MessageFailure::invalid(format!("`{}` is no id of a job", shown(&given.id)))
    })?;
    let author = Author {
        who: format!("a message with the key {}", message.key),
        from: message.queue.clone(),
        through: "RabbitMQ",
        names: Vec::new(),
    };
    let client = client.clone().as_author(author);
    let data = (!given.data.is_null()).then(|| given.data.to_string());
    let refused = |why: &str| Err(MessageFailure::lasting("refused", format!("job {id} {why}")));
    match client
        .jobs()
        .try_tell(&id, &given.event, data.as_deref())
        .await
        .map_err(|error| failure(&error))?
    {
        TellOutcome::Told => Ok(json!({ "id": id, "result": "told" })),
        TellOutcome::Kept => Ok(json!({ "id": id, "result": "kept" })),
        TellOutcome::Twice => Ok(json!({ "id": id, "result": "twice" })),
        TellOutcome::Missed => {
            refused("no longer waits for this event: its wait ended by its time")
        }
        TellOutcome::Missing => {
            Err(MessageFailure::lasting("not_found", format!("no such job: {id}")))
        }
        TellOutcome::Forbidden => refused("waits for this event from named callers alone"),
        TellOutcome::Full => refused("is full of events that it has not waited for"),
        TellOutcome::Refused(status) => refused(&format!("is {status}")),
        TellOutcome::Illegal => refused("has no legal target"),
    }
}

fn failure(error: &ClientError) -> MessageFailure {
    let text = error.to_string();
    match error {
        ClientError::Invalid(_) => MessageFailure::invalid(text),
        _ => MessageFailure::passing("unavailable", text),
    }
}
