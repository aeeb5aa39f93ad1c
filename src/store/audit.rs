//! Records of changes that people and programs make: a capped stream.

use std::time::Duration;

use super::attempts::millis;
use super::text::written_at;
use super::{AuditStore, Result};
use crate::proto::audit::{AUDIT_DAYS, AUDIT_LEN_MAX, AuditRecord, Author, bounded};

/// An entry of the stream: its place, then names and values of fields, which another program may have written.
type Entry = (String, Vec<Vec<u8>>);

const RECORDS_PER_READ: usize = 1000;

impl AuditStore<'_> {
    pub async fn add(self, by: &Author, what: &str, to: &str) -> Result<()> {
        let kept = millis(Duration::from_secs(AUDIT_DAYS * 24 * 3600));
        let record = (bounded(&by.who), what, bounded(to), bounded(&by.from), by.through);
        let (doing, arguments) = ("recording a change", (AUDIT_LEN_MAX, kept, record));
        self.store.run_script::<u8>(doing, &self.store.scripts.audit, arguments).await.map(drop)
    }

    /// Reads the wanted ones of the latest records, the newest first. It is one call of a bounded length.
    pub async fn latest(self, wanted: impl Fn(&AuditRecord) -> bool) -> Result<Vec<AuditRecord>> {
        let page = self.page("+", 0).await?;
        Ok(page.iter().map(record).filter(wanted).collect())
    }

    async fn page(self, until: &str, since_ms: u64) -> Result<Vec<Entry>> {
        let arguments = (self.store.keys.audit(), until, since_ms, "COUNT", RECORDS_PER_READ);
        self.store.link.command("reading the audit", "XREVRANGE", arguments).await
    }

    /// Reads records after a time and until another (ms since 1970), the newest first, until `limit` are `wanted`.
    pub async fn list(
        self,
        since_ms: u64,
        until_ms: Option<u64>,
        limit: usize,
        wanted: impl Fn(&AuditRecord) -> bool,
    ) -> Result<Vec<AuditRecord>> {
        let mut until = until_ms.map_or_else(|| "+".to_owned(), |ms| ms.to_string());
        let mut records = Vec::new();
        loop {
            let page = self.page(&until, since_ms).await?;
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
    AuditRecord {
        at: written_at(id).map(|at| format!("{at:.3}")).unwrap_or_default(),
        who: text("who"),
        what: text("what"),
        to: text("to"),
        from: text("from"),
        through: text("through"),
    }
}
