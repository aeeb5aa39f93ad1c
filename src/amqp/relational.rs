//! `rel.*`: rows of declared tables in a MariaDB.
//!
//! A message names a template, which is a declared table, and an operation. `statement` makes SQL of
//! it, `value` converts values by the declared types, `pool` has the connections, `run` does the work.

mod error;
mod pool;
mod run;
mod shape;
mod statement;
mod value;

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use self::error::failure;
use self::pool::SqlPool;
use self::run::{LedgerEntry, Named, SqlWork};
use self::shape::Shapes;
use super::message::{AmqpMessage, MessageFailure, PAGE_MAX, data_of};
use crate::config::{ConfigError, RelationalConfig, TableConfig};
use crate::proto::text::{did_you_mean, nearest, shown};

/// The routing keys, and the operations that each serves.
const OPERATIONS: [(&str, &[&str]); 3] = [
    ("rel.read", &["fetch", "read"]),
    ("rel.write", &["write", "update", "delete"]),
    ("rel.obj", &["bulk"]),
];
/// The maximum number of changes of one `bulk`.
const CHANGES_MAX: usize = PAGE_MAX;

pub struct Relational {
    config: RelationalConfig,
    pool: SqlPool,
    shapes: Shapes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BulkData {
    changes: Vec<BulkChange>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BulkChange {
    operation: String,
    /// Defaults to the template of the message.
    template: Option<String>,
    data: Value,
}

impl Relational {
    /// Creates the server of a legal configuration. It connects with its first message.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`] if the password cannot be read.
    pub fn new(config: &RelationalConfig) -> Result<Self, ConfigError> {
        let pool = SqlPool::new(config)?;
        Ok(Self { config: config.clone(), pool, shapes: Shapes::default() })
    }

    /// Serves one message. Takes at most the configured timeout.
    ///
    /// # Errors
    /// [`MessageFailure`]: `invalid_message`, `unknown_template`, `unknown_operation`, `exists`, `id_reused`, `refused`,
    /// `denied`, `database`; these may pass: `unavailable`, `conflict`, `timeout`.
    pub async fn serve(&self, message: &AmqpMessage) -> Result<Value, MessageFailure> {
        let AmqpMessage { key, operation, template, data, .. } = message;
        // It serves no other key, not even by a route.
        if !OPERATIONS.iter().any(|(known, _)| known == key) {
            let reason = format!("{key} is no key of tables");
            return Err(MessageFailure::lasting("unknown_operation", reason));
        }
        message.check_operation(&OPERATIONS)?;
        match operation.as_str() {
            "fetch" | "read" => {
                let doing = format!("fetching from {}", shown(template));
                let fetch = statement::fetch(self.table(template)?, data)?;
                self.within_time(&doing, SqlWork::RowFetch(fetch)).await
            }
            "bulk" => {
                let changes = self.bulk(template, data)?;
                let work = SqlWork::Changes { changes, ledger: self.entry(message) };
                let results = self.within_time("making changes", work).await?;
                Ok(json!({ "results": results }))
            }
            _ => {
                let change = self.change(operation, template, data)?;
                let doing = change.name.clone();
                let work = SqlWork::Changes { changes: vec![change], ledger: self.entry(message) };
                let results = self.within_time(&doing, work).await?;
                Ok(results.get(0).cloned().unwrap_or_default())
            }
        }
    }

    fn entry(&self, message: &AmqpMessage) -> Option<LedgerEntry> {
        let (ledger, message_id) = (self.config.ledger.clone()?, message.message_id.clone()?);
        Some(LedgerEntry { ledger, message_id, digest: message.digest() })
    }

    fn table(&self, template: &str) -> Result<&TableConfig, MessageFailure> {
        self.config.tables.get(template).ok_or_else(|| {
            let near = nearest(template, self.config.tables.keys().map(String::as_str));
            let hint = did_you_mean(near);
            let message = format!(
                "unknown template `{}`{hint}; templates of rel.* are declared in \
                 [amqp.relational.table]",
                shown(template)
            );
            MessageFailure::lasting("unknown_template", message)
        })
    }

    fn change(
        &self,
        operation: &str,
        template: &str,
        data: &Value,
    ) -> Result<Named, MessageFailure> {
        let table = self.table(template)?;
        let change = match operation {
            "write" => statement::write(table, data)?,
            "update" => statement::update(table, data)?,
            "delete" => statement::delete(table, data)?,
            other => {
                let message = format!("a bulk has no operation `{}`", shown(other));
                return Err(MessageFailure::lasting("unknown_operation", message));
            }
        };
        Ok(Named { name: format!("{operation} of {template}"), change })
    }

    fn bulk(&self, template: &str, data: &Value) -> Result<Vec<Named>, MessageFailure> {
        let data: BulkData = data_of("bulk", data)?;
        if !(1..=CHANGES_MAX).contains(&data.changes.len()) {
            let message = format!("`changes` of a bulk must be from 1 to {CHANGES_MAX}");
            return Err(MessageFailure::invalid(message));
        }
        let each = data.changes.iter().enumerate().map(|(place, change)| {
            let template = change.template.as_deref().unwrap_or(template);
            let named = self.change(&change.operation, template, &change.data);
            let named = named.map_err(|failure| MessageFailure {
                message: format!("changes[{place}]: {}", failure.message),
                ..failure
            })?;
            Ok(Named { name: format!("changes[{place}], {}", named.name), ..named })
        });
        each.collect()
    }

    /// Does the work on a connection. A connection that has timed out, or is in doubt, is closed; MariaDB then
    /// undoes uncommitted changes.
    async fn within_time(&self, doing: &str, work: SqlWork) -> Result<Value, MessageFailure> {
        let timeout = self.config.timeout;
        let deadline = Instant::now() + timeout;
        let lease = timeout_at(deadline, self.pool.lease()).await;
        let mut lease = lease
            .map_err(|_| timed_out(doing, "no connection to MariaDB was free", timeout))?
            .map_err(|error| failure(doing, &error))?;
        let size_max = self.config.result_size_max;
        let run = work.run(&mut lease.connection, doing, size_max, &self.shapes);
        let done = timeout_at(deadline, run).await;
        let done = done.map_err(|_| timed_out(doing, "MariaDB has not answered", timeout))?;
        if done.as_ref().err().is_none_or(|broken| broken.leaves_connection) {
            lease.give_back();
        }
        done.map_err(|broken| broken.failure)
    }
}

fn timed_out(doing: &str, why: &str, timeout: Duration) -> MessageFailure {
    MessageFailure::passing("timeout", format!("{doing}: {why} within {} ms", timeout.as_millis()))
}
