//! The parts of Hero that answer a message without a job, one file each.

mod journal;
mod logger;
mod objects;
mod ping;
mod tell;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::logs::{LogCollection, LogPurge, PurgedLogs};
use super::message::{AmqpMessage, MessageAnswer, MessageFailure};
use super::relational::Relational;
use super::route::LOG_KEY;
use crate::client::Client;
use crate::config::{AmqpConfig, BuiltInName, ConfigError, OsisConfig};
use objects::RecObjects;

/// The built-ins of one process.
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
        let served = match (name, &self.logs) {
            (BuiltInName::Ping, _) => Ok(ping::serve(message)),
            (BuiltInName::Tell, _) => tell::serve(&self.client, message).await,
            (BuiltInName::Journal, _) => Ok(journal::serve(message)),
            (BuiltInName::Objects, _) => self.objects.serve(message).await,
            (BuiltInName::Logger, Some(logs)) => logger::serve(logs, message).await,
            (BuiltInName::Logger, None) if message.key == LOG_KEY => Ok(journal::serve(message)),
            (BuiltInName::Relational, _) => self.change_rows(message).await,
            (BuiltInName::Logger, None) => {
                let reason = format!("the built-in {} is not configured", name.as_str());
                Err(MessageFailure::lasting("not_configured", reason))
            }
        };
        served.into()
    }

    async fn change_rows(&self, message: &AmqpMessage) -> Result<Value, MessageFailure> {
        let Some(relational) = &self.relational else {
            let reason = "rel.* needs a database: set amqp.relational.url, or give it a route";
            return Err(MessageFailure::lasting("not_configured", reason));
        };
        relational.serve(message).await
    }
}
