//! `hero amqp …`: RabbitMQ, and what brokers keep.

mod logs;

use std::process::ExitCode;

use clap::Subcommand;

use super::Global;
use crate::error::Error;

/// Look at what brokers of RabbitMQ keep
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  hero amqp logs --level error --newest-first")]
pub(super) enum AmqpCommand {
    Logs(logs::PrintLogs),
    PurgeLogs(logs::PurgeLogs),
}

impl AmqpCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        match self {
            Self::Logs(logs) => logs.run(global).await,
            Self::PurgeLogs(purge) => purge.run(global).await,
        }
    }
}
