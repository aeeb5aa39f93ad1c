//! Records of changes that people and programs make: a capped stream.

use std::time::Duration;

use super::attempts::millis;
use super::{Store, StoreError};
use crate::proto::audit::{AUDIT_DAYS, AUDIT_LEN_MAX, AuditRecord, Author, bounded};

/// An entry of the stream: its place, then names and values of fields, which another program may have written.
type Entry = (String, Vec<Vec<u8>>);

/// The records that one call reads.
const RECORDS_PER_READ: usize = 1000;

impl Store {
    /// Adds a record of a change.
    pub async fn add_audit(&self, by: &Author, what: &str, to: &str) -> Result<(), StoreError> {
        let mut script = self.scripts.audit.prepare_invoke();
        let kept = Duration::from_secs(AUDIT_DAYS * 24 * 3600);
        script.arg(AUDIT_LEN_MAX).arg(millis(kept));
        script.arg(bounded(&by.who)).arg(what).arg(bounded(to)).arg(bounded(&by.from));
        script.arg(by.through);
        self.invoke::<u8>("recording a change", &script).await.map(drop)
    }

    /// Reads the wanted ones of the latest records, the newest first. It is one call of a bounded length.
    pub async fn latest_audit(
        &self,
        wanted: impl Fn(&AuditRecord) -> bool,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        let arguments = (self.keys.audit(), "+", "-", "COUNT", RECORDS_PER_READ);
        let page: Vec<Entry> =
            self.link.command("reading the audit", "XREVRANGE", arguments).await?;
        Ok(page.iter().map(record).filter(wanted).collect())
    }

    /// Reads records, the newest first, of those after a time and until another in milliseconds since 1970, until
    /// `limit` of them are `wanted`.
    pub async fn audit(
        &self,
        since_ms: u64,
        until_ms: Option<u64>,
        limit: usize,
        wanted: impl Fn(&AuditRecord) -> bool,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        let mut until = until_ms.map_or_else(|| "+".to_owned(), |ms| ms.to_string());
        let mut records = Vec::new();
        loop {
            let arguments = (self.keys.audit(), &until, since_ms, "COUNT", RECORDS_PER_READ);
            let page: Vec<Entry> =
                self.link.command("reading the audit", "XREVRANGE", arguments).await?;
            let Some(last) = page.last().map(|(id, _)| id.clone()) else { break };
            let is_last = page.len() < RECORDS_PER_READ;
            records.extend(page.iter().map(record).filter(&wanted));
            if is_last || records.len() >= limit {
                break;
            }
            until = format!("({last}");
        }
        records.truncate(limit);
        Ok(records)
    }
}

fn record((id, fields): &Entry) -> AuditRecord {
    let text = |name: &str| {
        let mut pairs = fields.chunks_exact(2);
        let pair = pairs.find(|pair| pair[0] == name.as_bytes());
        pair.map(|pair| String::from_utf8_lossy(&pair[1]).into_owned()).unwrap_or_default()
    };
    let ms = id.split('-').next().and_then(|ms| ms.parse().ok()).unwrap_or_default();
    let at = jiff::Timestamp::from_millisecond(ms).map(|at| format!("{at:.3}")).unwrap_or_default();
    AuditRecord {
        at,
        who: text("who"),
        what: text("what"),
        to: text("to"),
        from: text("from"),
        through: text("through"),
    }
}
