//! Looks for work of supervisors, all of it in one call: most of the time there is none.

use std::collections::BTreeSet;
use std::time::Duration;

use super::backoff::from_now;
use super::text::Legal;
use super::{Result, Store, StoreError};
use crate::proto::text::text_of;
use crate::proto::word_table::words;

words! {
    /// A kind of work of a supervisor.
    #[derive(PartialOrd, Ord)]
    WorkKind, "kind of work", "a word of look.lua";
    /// Queues are known, or wait for long.
    Queues = "queues",
    Limits = "limits",
    /// Jobs have ended with untold dependents, batches are half committed, or notes wait to be logged.
    Unsettled = "unsettled",
    Objects = "objects",
    /// Keys of a wrong type are noted.
    WrongTypes = "wrong_types",
    /// Control messages for a type wait.
    Control = "control",
    Foreign = "foreign",
    /// Jobs are noted that stand in no index.
    Unindexed = "unindexed",
    /// Ended jobs are kept for others.
    Awaited = "awaited",
    /// Jobs must start within a time.
    Expiring = "expiring",
    /// Jobs or attempts are expected to have ended.
    Expected = "expected",
    /// Jobs are in the indexes that nothing else walks through.
    Orphans = "orphans",
    /// A scheduled job is due soon. [`Store::look`] tells when instead.
    Scheduled = "scheduled",
    /// The periodic jobs have changed. [`Store::look`] tells their revision instead.
    Crontab = "crontab",
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outlook {
    pub work: BTreeSet<WorkKind>,
    /// The time until the first scheduled job is due, if one is scheduled.
    pub next_due: Option<Duration>,
    /// The revision of the periodic jobs in Redis; none before the first.
    pub cron_revision: Option<String>,
}

impl Outlook {
    /// The outlook after a look that failed: every kind of work may be there.
    pub fn unknown() -> Self {
        Self { work: WorkKind::ALL.into(), ..Self::default() }
    }
}

impl Store {
    pub async fn look(&self) -> Result<Outlook> {
        let (revision, next_us, Legal(words)): (Vec<u8>, i64, _) =
            self.invoke("looking for work", &self.scripts.look.prepare_invoke()).await?;
        Ok(Outlook {
            work: words.into_iter().collect(),
            next_due: from_now(next_us),
            cron_revision: Some(text_of(&revision)).filter(|revision| !revision.is_empty()),
        })
    }

    /// Returns the time until the first lease of a boot ends, if it is not renewed, `None` without boots; and the time
    /// by Redis's clock, `None` if the leases cannot be read.
    pub async fn next_lease_end(&self) -> Result<(Option<Duration>, Option<Duration>)> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("ZRANGE").arg(self.keys.boots()).arg(0).arg(0).arg("WITHSCORES");
        pipeline.cmd("TIME");
        let asked = self.link.pipeline("looking for leases that end", &pipeline).await;
        let (first, now): (Vec<(String, f64)>, (u64, u64)) = match asked {
            // A key of a wrong type counts as absent; the sweep for these names it.
            Err(StoreError::Failed { .. }) => return Ok((None, None)),
            asked => asked?,
        };
        let now = Duration::from_secs(now.0) + Duration::from_micros(now.1);
        let end = first.first().map(|(_, end)| Duration::try_from_secs_f64(end / 1e6));
        Ok((end.map(|end| end.unwrap_or_default().saturating_sub(now)), Some(now)))
    }
}
