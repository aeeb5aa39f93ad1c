//! The work of a message on one connection.

use serde_json::{Map, Value, json};
use sqlx::mysql::{MySqlConnection, MySqlRow};
use sqlx::{Connection as _, Executor as _, Row as _};

use super::error::Broken;
use super::shape::Shapes;
use super::statement::{RowChange, RowFetch, RowKey, Statement};
use super::value::{SqlValue, from_column};
use crate::amqp::message::MessageFailure;
use crate::config::{ColumnType, SqlName};

pub(super) enum SqlWork {
    RowFetch(RowFetch),
    /// In one transaction.
    Changes {
        changes: Vec<Named>,
        ledger: Option<LedgerEntry>,
    },
}

/// The entry of a message in the ledger: the changes of a message that has one are made once.
pub(super) struct LedgerEntry {
    pub(super) ledger: SqlName,
    pub(super) message_id: String,
    pub(super) digest: String,
}

/// A change, and its name in messages: `write to Person`.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) change: RowChange,
}

impl SqlWork {
    pub(super) async fn run(
        self,
        connection: &mut MySqlConnection,
        doing: &str,
        size_max: u64,
        shapes: &Shapes,
    ) -> Result<Value, Broken> {
        match self {
            Self::RowFetch(fetch) => fetch_rows(connection, &fetch, doing, size_max).await,
            Self::Changes { changes, ledger } => {
                let mut transaction =
                    connection.begin().await.map_err(|error| Broken::of(doing, &error))?;
                match make(&mut transaction, &changes, ledger.as_ref(), doing, shapes).await {
                    Ok(results) => {
                        let done = transaction.commit().await;
                        done.map_err(|error| Broken::of(doing, &error)).map(|()| results)
                    }
                    Err(broken) => {
                        let undone = transaction.rollback().await.is_ok();
                        let leaves_connection = broken.leaves_connection && undone;
                        Err(Broken { leaves_connection, ..broken })
                    }
                }
            }
        }
    }
}

/// Makes changes and returns their results. For a message that is in the ledger, returns the results
/// from there and changes nothing.
async fn make(
    connection: &mut MySqlConnection,
    changes: &[Named],
    ledger: Option<&LedgerEntry>,
    doing: &str,
    shapes: &Shapes,
) -> Result<Value, Broken> {
    if let Some(entry) = ledger
        && let Some(results) = entry.claim(connection).await?
    {
        return Ok(results);
    }
    let mut results = Vec::with_capacity(changes.len());
    for Named { name, change } in changes {
        shapes.check(connection, name, &change.table, &change.written).await?;
        let done = change.statement.query().execute(&mut *connection).await;
        let done = done.map_err(|error| Broken::of(name, &error))?;
        let (rows, number) = (done.rows_affected(), done.last_insert_id());
        results.push(result_of(change.key.as_ref(), rows, number));
    }
    let results = Value::Array(results);
    if let Some(entry) = ledger {
        let kept = entry.keep(connection, &results).await;
        kept.map_err(|error| Broken::of(doing, &error))?;
    }
    Ok(results)
}

impl LedgerEntry {
    /// Enters the message, or returns the results that it has there. Waits while another transaction
    /// serves the same message.
    async fn claim(&self, connection: &mut MySqlConnection) -> Result<Option<Value>, Broken> {
        let doing = format!("entering the message into the ledger {}", self.ledger);
        let id = SqlValue::Bytes(self.message_id.as_bytes().to_vec());
        let sql = format!("INSERT INTO `{}` (id) VALUES (?)", self.ledger);
        let enter = Statement { sql, values: vec![id.clone()] };
        let Err(error) = enter.query().execute(&mut *connection).await else { return Ok(None) };
        let entered = Broken::of(&doing, &error);
        if entered.failure.code != "exists" {
            return Err(entered);
        }
        // Reads the committed state of now, not of the transaction's start.
        let sql = format!("SELECT result FROM `{}` WHERE id = ? LOCK IN SHARE MODE", self.ledger);
        let look = Statement { sql, values: vec![id] };
        let row = connection.fetch_one(look.query()).await;
        let row = row.map_err(|error| Broken::of(&doing, &error))?;
        let text: Option<&[u8]> = row.try_get_unchecked(0).unwrap_or_default();
        let kept: Value = serde_json::from_slice(text.unwrap_or_default()).unwrap_or_default();
        self.results_of(kept).map(Some)
    }

    /// Returns the results that the ledger has kept of this very message.
    fn results_of(&self, mut kept: Value) -> Result<Value, Broken> {
        // An entry without a digest is one of an earlier version.
        let Some(digest) = kept.get("digest").and_then(Value::as_str) else { return Ok(kept) };
        if digest == self.digest {
            return Ok(kept["results"].take());
        }
        let message = format!(
            "another message with this id is in the ledger {}; each message needs an id of its own",
            self.ledger
        );
        Err(MessageFailure::lasting("id_reused", message).into())
    }

    async fn keep(
        &self,
        connection: &mut MySqlConnection,
        results: &Value,
    ) -> Result<(), sqlx::Error> {
        let sql = format!("UPDATE `{}` SET result = ? WHERE id = ?", self.ledger);
        let id = SqlValue::Bytes(self.message_id.as_bytes().to_vec());
        let kept = json!({ "digest": self.digest, "results": results }).to_string();
        let keep = Statement { sql, values: vec![SqlValue::Text(kept), id] };
        keep.query().execute(&mut *connection).await.map(drop)
    }
}

fn result_of(key: Option<&RowKey>, rows: u64, number: u64) -> Value {
    match key {
        None => json!({ "rows": rows }),
        Some(RowKey::Given(key)) => json!({ "key": key }),
        Some(RowKey::Numbered(name)) => {
            json!({ "key": Map::from_iter([(name.to_string(), number.into())]) })
        }
        Some(RowKey::Unknown) => json!({ "key": null }),
    }
}

/// Reads the rows of a page: `{"rows": […], "next": OFFSET or null}`.
async fn fetch_rows(
    connection: &mut MySqlConnection,
    fetch: &RowFetch,
    doing: &str,
    size_max: u64,
) -> Result<Value, Broken> {
    let read = connection.fetch_all(fetch.statement.query()).await;
    let read = read.map_err(|error| Broken::of(doing, &error))?;
    let has_next = read.len() > fetch.limit;
    let (mut rows, mut size) = (Vec::new(), 0);
    let mut is_cut = false;
    for row in read.iter().take(fetch.limit) {
        let row = row_of(row, &fetch.columns).map_err(|column| {
            let message = format!(
                "{doing}: the value of {column} has not its declared type; correct \
                 [amqp.relational.table]"
            );
            MessageFailure::lasting("database", message)
        })?;
        size += row.to_string().len() as u64;
        if size > size_max {
            is_cut = true;
            break;
        }
        rows.push(row);
    }
    if is_cut && rows.is_empty() {
        let message = format!(
            "{doing}: one row is larger than {size_max} bytes, which amqp.relational.result_size_max \
             allows; name fewer columns"
        );
        return Err(MessageFailure::lasting("refused", message).into());
    }
    let next = (has_next || is_cut).then(|| fetch.offset + rows.len() as u64);
    Ok(json!({ "rows": rows, "next": next }))
}

/// Converts a row; the error is the column that cannot be.
fn row_of(row: &MySqlRow, columns: &[(SqlName, ColumnType)]) -> Result<Value, String> {
    let mut object = Map::new();
    for (place, (name, of)) in columns.iter().enumerate() {
        let wrong = || name.to_string();
        let bytes: Option<&[u8]> = row.try_get_unchecked(place).map_err(|_| wrong())?;
        let value = match bytes {
            None => Value::Null,
            Some(bytes) => from_column(*of, bytes).ok_or_else(wrong)?,
        };
        object.insert(name.to_string(), value);
    }
    Ok(Value::Object(object))
}
