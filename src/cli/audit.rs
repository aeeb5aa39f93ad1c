//! `hero audit`: lists the changes that people and programs made.

use clap::Args;
use serde_json::json;

use super::Global;
use super::answer::NoResults;
use super::table::TextTable;
use super::time::{PastZone, local_text, local_zone};
use crate::error::Error;
use crate::proto::audit::AuditRecord;
use crate::rpc::results::AuditList;

/// List who stopped, retried, changed, deleted, paused, purged or drained what, from where and when
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero audit --since yesterday\n  \
                        hero audit --who ann --what job.stop\n  \
                        journalctl HERO_AUDIT=1   # the same in the journal of a machine\n\n\
                        Changes by commands, the API, the page, agents and webhooks, kept for 90 days, at most 20 000.")]
pub(super) struct Audit {
    /// Only changes since then: 24h (ago), 09:00, yesterday 18:00, friday, 2026-12-24, or RFC 3339
    #[arg(long, value_name = "DURATION|TIME")]
    since: Option<String>,
    /// Only changes until then
    #[arg(long, value_name = "DURATION|TIME")]
    until: Option<String>,
    #[command(flatten)]
    zone: PastZone,
    /// Only changes by those whose name contains this text
    #[arg(long, value_name = "TEXT")]
    who: Option<String>,
    /// Only this change, such as job.stop, or all changes of one noun, such as queue
    #[arg(long, value_name = "WORD")]
    what: Option<String>,
    /// The maximum number of changes, the latest
    #[arg(long, default_value_t = 100, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=20_000))]
    limit: u32,
}

impl Audit {
    pub(super) async fn run(self, global: &Global) -> Result<(), Error> {
        let methods = global.methods()?;
        let now = methods.now().await?;
        let params = json!({
            "since": self.zone.read_given("--since", self.since.as_ref(), now)?.map(|of| of.to_string()),
            "until": self.zone.read_given("--until", self.until.as_ref(), now)?.map(|of| of.to_string()),
            "who": self.who,
            "what": self.what,
            "limit": self.limit,
        });
        let (document, list) = methods.typed::<AuditList>("audit.list", params).await?;
        let none = NoResults::new("change is recorded")
            .by("of", self.what.as_ref())
            .by("by", self.who.as_ref())
            .by("since", self.since.as_ref())
            .by("until", self.until.as_ref());
        global.list(|| document, || table(&list.records), none)
    }
}

fn table(records: &[AuditRecord]) -> TextTable<'_, AuditRecord> {
    let zone = local_zone();
    TextTable::of(records)
        .column("WHEN", &|of| local_text(&of.at, &zone))
        .column("WHO", &|of| of.who.clone())
        .column("WHAT", &|of| of.what.clone())
        .column("?~FROM", &|of| of.from.clone())
        .column("?BY", &|of| of.through.clone())
        .column("!TO", &|of| of.to.clone())
}
