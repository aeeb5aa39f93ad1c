//! The parts of Hero that answer a message without a job, one file each.

mod logger;
mod ping;
mod relational;

use std::sync::Arc;

use super::logs::LogCollection;
use super::message::{Answer, Failure, Message};
use super::relational::Relational;
use crate::client::Client;
use crate::config::{AmqpConfig, BuiltInName, ConfigError, OsisConfig};

/// The built-ins of one process.
#[derive(Debug, Clone, Default)]
pub struct BuiltIns {
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
            logs: LogCollection::new(client.clone(), &config.logs, osis),
            relational: relational.transpose()?,
        })
    }

    /// Serves a message.
    pub async fn serve(&self, name: BuiltInName, message: &Message) -> Answer {
        let served = match (name, &self.logs) {
            (BuiltInName::Ping, _) => Ok(ping::serve(message)),
            (BuiltInName::Logger, Some(logs)) => logger::serve(logs, message).await,
            (BuiltInName::Relational, _) => {
                relational::serve(self.relational.as_deref(), message).await
            }
            (other, _) => {
                let reason = format!("the built-in {} is not configured", other.as_str());
                Err(Failure::lasting("not_configured", reason))
            }
        };
        served.into()
    }
}
