//! The collection of log records behind the template `Logger`: objects with indexes on time, level,
//! root and chain.

mod query;
mod record;
mod spool;

pub use query::RecordQuery;
pub use record::{LEVELS, LogRecord, RecordProperties};
pub use spool::{Spool, SpoolBatch};

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::{info, warn};

use self::query::cursor;
use super::message::{MessageFailure, PAGE_MAX, data_of, page_limit};
use crate::client::{Client, ClientError};
use crate::config::{LogsConfig, OsisConfig};
use crate::proto::object::{Answer, Ask, Change, Context, Object, ObjectError, ObjectType, Write};
use crate::proto::text::{counted, shown};
use crate::store::is_about_login;

/// The records that one step of a purge deletes, and the steps of one purge.
const PURGED_PER_STEP: usize = PAGE_MAX;
const STEPS_MAX: usize = 100;
/// The least time between two purges by age of one process.
const PURGE_EVERY_SECONDS: i64 = 3600;

#[derive(Clone)]
pub struct LogCollection {
    client: Client,
    context: Context,
    collection: ObjectType,
    /// Its bounds and indexes.
    objects: OsisConfig,
    /// Older records are deleted; zero for never.
    keep: Duration,
    /// The time of the next purge by age, in seconds since 1970.
    next_purge: Arc<AtomicI64>,
}

/// A page of records in the order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct LogPage {
    pub records: Vec<LogRecord>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<String>,
}

/// The records to delete: of a root, or older than a time, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogPurge {
    pub root: Option<String>,
    /// The time before which they are, in RFC 3339.
    pub before: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgedLogs {
    pub deleted: u64,
    /// False if there are more: one purge has a bound.
    pub is_complete: bool,
}

/// Returns the records chain by chain, by the start of the chains; records without a chain have an empty name.
pub fn chains(records: &[LogRecord]) -> Vec<(&str, Vec<&LogRecord>)> {
    let mut chains: Vec<(&str, Vec<&LogRecord>)> = Vec::new();
    for record in records {
        let chain = record.text("chain");
        match chains.iter_mut().find(|(known, _)| *known == chain) {
            Some((_, of_chain)) => of_chain.push(record),
            None => chains.push((chain, vec![record])),
        }
    }
    chains
}

impl LogCollection {
    /// Creates the collection of a legal configuration; `None` for an illegal one.
    pub fn new(client: Client, config: &LogsConfig, osis: &OsisConfig) -> Option<Self> {
        Some(Self {
            client,
            context: config.context.parse().ok()?,
            collection: LogsConfig::collection()?,
            objects: config.objects(osis),
            keep: config.keep,
            next_purge: Arc::default(),
        })
    }

    /// Serves a message of the template `Logger`, or of the key `log`: `write`, `fetch` or `delete`.
    pub async fn serve(
        &self,
        operation: &str,
        data: &Value,
        beside: RecordProperties<'_>,
    ) -> Result<Value, MessageFailure> {
        match operation {
            "write" => {
                let record = LogRecord::of(data, beside, Timestamp::now())?;
                self.store(&record).await?;
                self.purge_by_age(Timestamp::now());
                Ok(json!({ "id": record.id.as_str() }))
            }
            "fetch" | "read" => {
                let page = self.fetch(&RecordQuery::of(data)?).await?;
                let records: Vec<Value> = page.records.iter().map(LogRecord::document).collect();
                Ok(json!({ "records": records, "next": page.next }))
            }
            "delete" => {
                // Anything else names neither a root nor a time.
                let purge = data.is_object().then(|| data_of("delete", data)).transpose()?;
                let purge: LogPurge = purge.unwrap_or_default();
                let PurgedLogs { deleted, is_complete } = self.purge(&purge).await?;
                Ok(json!({ "deleted": deleted, "complete": is_complete }))
            }
            other => {
                let message = format!(
                    "the template Logger has no operation `{}`; it has write, fetch, delete",
                    shown(other)
                );
                Err(MessageFailure::lasting("unknown_operation", message))
            }
        }
    }

    /// Stores a record. Returns false if one with its id is stored already. If the collection is full,
    /// deletes the oldest records.
    pub async fn store(&self, record: &LogRecord) -> Result<bool, MessageFailure> {
        match self.store_once(record).await {
            Err(ObjectError::Full { max }) => {
                // A twentieth of the collection makes room.
                let oldest = usize::try_from(max / 20).unwrap_or(usize::MAX).max(1);
                let number = PURGED_PER_STEP.min(oldest);
                let oldest = self.find(&RecordQuery::default(), number).await?;
                self.delete(&oldest).await?;
                self.store_once(record).await
            }
            stored => stored,
        }
        .map_err(|error| failure("storing a log record", &error))
    }

    async fn store_once(&self, record: &LogRecord) -> Result<bool, ObjectError> {
        let write = Write {
            object_type: self.collection.clone(),
            id: record.id.clone(),
            // A record that is there stays as it is.
            expected: Some(0),
            change: Change::Set { body: record.fields.clone(), created_ms: None },
        };
        match self.ask(Ask::Write(vec![write])).await {
            Ok(_) => Ok(true),
            Err(ObjectError::Stale { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns a page of the records that meet a query, in the order of time.
    pub async fn fetch(&self, query: &RecordQuery) -> Result<LogPage, MessageFailure> {
        let limit = page_limit(query.limit)?;
        // One more shows if there is a next page.
        let mut records = self.find(query, limit + 1).await?;
        let has_next = records.len() > limit;
        records.truncate(limit);
        let last = records.last().filter(|_| has_next);
        let next = last.map(|record| cursor(&record.id, &record.fields));
        Ok(LogPage { records, next })
    }

    /// Deletes records, the oldest first.
    ///
    /// # Errors
    /// [`MessageFailure`]; earlier deletions stay.
    pub async fn purge(&self, purge: &LogPurge) -> Result<PurgedLogs, MessageFailure> {
        if *purge == LogPurge::default() {
            return Err(MessageFailure::invalid("a purge of log records needs `root` or `before`"));
        }
        let (root, until) = (purge.root.clone(), purge.before.clone());
        let query = RecordQuery { root, until, ..RecordQuery::default() };
        let mut deleted = 0;
        for _ in 0..STEPS_MAX {
            let records = self.find(&query, PURGED_PER_STEP).await?;
            deleted += records.len() as u64;
            self.delete(&records).await?;
            if records.len() < PURGED_PER_STEP {
                return Ok(PurgedLogs { deleted, is_complete: true });
            }
        }
        Ok(PurgedLogs { deleted, is_complete: false })
    }

    /// Begins to delete the records that are too old, at most once in an hour.
    fn purge_by_age(&self, now: Timestamp) {
        let (second, due) = (now.as_second(), self.next_purge.load(Ordering::Relaxed));
        let next = second.saturating_add(PURGE_EVERY_SECONDS);
        let mine =
            self.next_purge.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
        let oldest = now.checked_sub(self.keep).ok().filter(|_| !self.keep.is_zero());
        let (Some(oldest), true) = (oldest, second >= due && mine.is_ok()) else { return };
        let logs = self.clone();
        tokio::spawn(async move {
            let purge = LogPurge { root: None, before: Some(oldest.to_string()) };
            match logs.purge(&purge).await {
                Ok(PurgedLogs { deleted: 0, .. }) => {}
                Ok(PurgedLogs { deleted, .. }) => {
                    let records = counted(deleted, "log record", "log records");
                    info!("deleted {records} from before {oldest}: amqp.logs.keep");
                }
                Err(failure) => warn!("cannot delete log records that are too old: {failure}"),
            }
        });
    }

    async fn find(
        &self,
        query: &RecordQuery,
        limit: usize,
    ) -> Result<Vec<LogRecord>, MessageFailure> {
        let ask = Ask::Find {
            object_type: self.collection.clone(),
            query: query.query()?,
            after: query.place()?,
            limit,
        };
        let found = self.ask(ask).await;
        match found.map_err(|error| failure("looking up log records", &error))? {
            Answer::Objects(objects) => Ok(objects
                .into_iter()
                .map(|Object { id, body, .. }| LogRecord { id, fields: body })
                .collect()),
            _ => Ok(Vec::new()),
        }
    }

    async fn delete(&self, records: &[LogRecord]) -> Result<(), MessageFailure> {
        if records.is_empty() {
            return Ok(());
        }
        let write = |record: &LogRecord| Write {
            object_type: self.collection.clone(),
            id: record.id.clone(),
            expected: None,
            change: Change::Delete,
        };
        let deleted = self.ask(Ask::Write(records.iter().map(write).collect())).await;
        deleted.map(drop).map_err(|error| failure("deleting log records", &error))
    }

    async fn ask(&self, ask: Ask) -> Result<Answer, ObjectError> {
        let answer = self.client.objects().list(&self.context, ask, &self.objects).await;
        answer.map_err(|error| match error {
            ClientError::Object(error) => error,
            other => ObjectError::Unavailable(other.to_string()),
        })
    }
}

fn failure(doing: &str, error: &ObjectError) -> MessageFailure {
    let message = format!("{doing}: {error}");
    match error {
        ObjectError::Unavailable(_) | ObjectError::Building { .. } | ObjectError::Full { .. } => {
            MessageFailure::passing("unavailable", message)
        }
        // Redis refuses the login, which mostly passes: the message waits.
        ObjectError::NotPermitted(reason) if is_about_login(reason) => {
            MessageFailure::passing("denied", message)
        }
        ObjectError::NotPermitted(_) => MessageFailure::lasting("denied", message),
        _ => MessageFailure::lasting("refused", message),
    }
}
