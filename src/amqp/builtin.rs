//! The parts of Hero that answer a message without a job.

mod objects;
mod tell;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::info;

use super::logs::{LogCollection, LogPurge, PurgedLogs, RecordProperties};
use super::message::{AmqpMessage, MessageAnswer, MessageFailure};
use super::relational::Relational;
use super::route::LOG_KEY;
use crate::client::Client;
use crate::config::{AmqpConfig, BuiltInName, ConfigError, OsisConfig};
use crate::proto::text::shown;
use objects::RecObjects;

/// The routing keys of log records, and the operations that each serves.
const LOGGER_OPERATIONS: [(&str, &[&str]); 3] =
    [("log", &["write"]), ("rec.read", &["fetch", "read"]), ("rec.write", &["write", "delete"])];

#[derive(Clone)]
pub struct BuiltIns {
    client: Client,
    objects: RecObjects,
    logs: Option<LogCollection>,
    relational: Option<Arc<Relational>>,
}

impl BuiltIns {
    /// Creates the built-ins of a legal configuration. They connect with their first message.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`] if the password of MariaDB cannot be read.
    pub fn new(
        client: &Client,
        config: &AmqpConfig,
        osis: &OsisConfig,
    ) -> Result<Self, ConfigError> {
        let relational = &config.relational;
        let relational = relational.is_on().then(|| Relational::new(relational).map(Arc::new));
        Ok(Self {
            client: client.clone(),
            objects: RecObjects::new(client.clone(), osis.clone(), &config.context, config.scope()),
            logs: LogCollection::new(client.clone(), &config.logs, osis),
            relational: relational.transpose()?,
        })
    }

    /// Deletes all log records of before now.
    pub async fn purge_logs(&self) -> Result<PurgedLogs, MessageFailure> {
        let Some(logs) = &self.logs else {
            return Ok(PurgedLogs { deleted: 0, is_complete: true });
        };
        let before = Some(Timestamp::now().to_string());
        logs.purge(&LogPurge { before, root: None }).await
    }

    pub async fn serve(&self, name: BuiltInName, message: &AmqpMessage) -> MessageAnswer {
        let not_configured = |reason| Err(MessageFailure::lasting("not_configured", reason));
        match (name, &self.logs) {
            (BuiltInName::Ping, _) => Ok(pong(message)),
            (BuiltInName::Tell, _) => tell::serve(&self.client, message).await,
            (BuiltInName::Journal, _) => Ok(write_to_journal(message)),
            (BuiltInName::Objects, _) => self.objects.serve(message).await,
            (BuiltInName::Logger, Some(logs)) => log(logs, message).await,
            (BuiltInName::Logger, None) if message.key == LOG_KEY => Ok(write_to_journal(message)),
            (BuiltInName::Relational, _) => {
                if let Some(relational) = &self.relational {
                    return relational.serve(message).await;
                }
                let reason = "rel.* needs a database: set amqp.relational.url, or give it a route";
                not_configured(reason.to_owned())
            }
            (BuiltInName::Logger, None) => {
                not_configured(format!("the built-in {} is not configured", name.as_str()))
            }
        }
    }
}

/// Answers `ping` with the time of this machine.
fn pong(message: &AmqpMessage) -> Value {
    json!({ "pong": format!("{:.3}", Timestamp::now()), "key": message.key, "data": message.data })
}

/// Writes a log event to the journal of this machine.
fn write_to_journal(message: &AmqpMessage) -> Value {
    let text = |name: &str| message.data.get(name).and_then(Value::as_str).unwrap_or_default();
    let (level, said) = (shown(text("level")), shown(text("message")));
    let root = shown(message.root.as_deref().unwrap_or_default());
    info!(root, "log event: {level}: {said}");
    json!({ "journal": true })
}

/// Stores and looks up log records: the messages of the template `Logger`, and of the key `log`.
async fn log(logs: &LogCollection, message: &AmqpMessage) -> Result<Value, MessageFailure> {
    message.check_operation(&LOGGER_OPERATIONS)?;
    let beside = RecordProperties {
        id: message.message_id.as_deref(),
        root: message.root.as_deref(),
        chain: message.chain.as_deref(),
    };
    logs.serve(&message.operation, &message.data, beside).await
}
