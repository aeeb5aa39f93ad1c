//! The parts of Hero that answer a message without a job, one file each.

mod ping;

use super::message::{Answer, Failure, Message};
use crate::config::BuiltInName;

/// The built-ins of one process.
#[derive(Debug, Clone, Default)]
pub struct BuiltIns {}

impl BuiltIns {
    /// Serves a message.
    pub async fn serve(&self, name: BuiltInName, message: &Message) -> Answer {
        let served = match name {
            BuiltInName::Ping => Ok(ping::serve(message)),
            other => {
                let reason = format!("the built-in {} is not configured", other.as_str());
                Err(Failure::lasting("not_configured", reason))
            }
        };
        served.into()
    }
}
