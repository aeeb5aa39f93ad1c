//! Deferred work of the supervisor: the looks for all of it in one call, as most of the time there is none; due jobs, dependents
//! beyond one step, jobs that others need beyond their retention, that did not start within their time, or that are late.

use std::collections::BTreeSet;
use std::time::Duration;

use super::attempts::kept;
use super::backoff::from_now;
use super::text::Legal;
use super::{JobNote, Result, ScheduleStore, StoreError};
use crate::proto::job::{BootId, JobId, Retention};
use crate::proto::text::text_of;
use crate::proto::word_table::words;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatched {
    /// Jobs that were due and are in their queues now.
    pub jobs: usize,
    /// The time until the next is due, if one is scheduled.
    pub next: Option<Duration>,
    /// Notes on the first hundred jobs.
    pub notes: Vec<JobNote>,
}

impl ScheduleStore<'_> {
    /// Dispatches due jobs, up to `limit`. Ends those that name no queue, as another program changed them.
    pub async fn dispatch_due(
        self,
        limit: usize,
        retention: impl Into<Retention>,
    ) -> Result<Dispatched> {
        let arguments = (limit, kept(retention));
        let (jobs, next_us, notes): (usize, i64, Vec<JobNote>) = self
            .store
            .run_script("dispatching due jobs", &self.store.scripts.dispatch_due, arguments)
            .await?;
        Ok(Dispatched { jobs, next: from_now(next_us), notes })
    }

    /// Makes one step that was left because one call may not do more: tells dependents of an ended job, or
    /// registers a job at its prerequisites. Returns true if there was one.
    pub async fn settle(self, retention: impl Into<Retention>) -> Result<bool> {
        self.settle_one(&kept(retention)).await
    }

    /// Ends those jobs of a stopped graph or batch that have not started.
    pub async fn finish_stop(self, graph: &JobId, retention: impl Into<Retention>) -> Result<()> {
        let (retention, is_left) = (kept(retention), (self.store.keys.graph(graph), "stopping"));
        while self.store.link.command::<bool>("reading graphs", "HEXISTS", is_left.clone()).await?
            && self.settle_one(&retention).await?
        {}
        Ok(())
    }

    /// Notifies as many dependents as an actor may before it goes on; the supervisor notifies the others.
    pub(super) async fn settle_some(self, retention: &str) -> Result<()> {
        const STEPS: usize = 8;
        for _ in 0..STEPS {
            if !self.settle_one(retention).await? {
                break;
            }
        }
        Ok(())
    }

    /// Takes notes on jobs that ended before any actor had them, up to `limit`, oldest first.
    pub async fn take_notes(self, limit: usize) -> Result<Vec<JobNote>> {
        let notes: Option<Vec<Vec<u8>>> = self
            .store
            .link
            .command("taking notes on jobs", "LPOP", (self.store.keys.notes(), limit))
            .await?;
        // They are gone from Redis: a note with other bytes than text must not take the others with it.
        let read = |note: &Vec<u8>| JobNote::from_json(&String::from_utf8_lossy(note));
        Ok(notes.iter().flatten().filter_map(read).collect())
    }

    async fn settle_one(self, retention: &str) -> Result<bool> {
        let arguments = (retention, BootId::random().as_str().to_owned());
        self.store.run_script("telling dependents", &self.store.scripts.settle, arguments).await
    }
}

/// The result of a check of jobs that are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedJobs {
    pub jobs: usize,
    pub ended: usize,
    /// The time until the next look, if there is a job to look at.
    pub next: Option<Duration>,
}

/// The result of a look at jobs that are expected to have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLate {
    /// The number of entries that it looked at.
    pub looked_at: usize,
    /// The jobs that have not ended within their time.
    pub late: Vec<String>,
    /// The jobs with an attempt that runs for long.
    pub slow: Vec<String>,
    /// The time until the next look, if there is a job to look at.
    pub next: Option<Duration>,
}

impl ScheduleStore<'_> {
    /// Checks up to `limit` ended jobs that would expire: one that another may need stays. Calling again is safe.
    pub async fn keep_awaited(self, limit: usize) -> Result<CheckedJobs> {
        let (jobs, next_us): (usize, i64) = self
            .store
            .run_script(
                "keeping the outputs that jobs wait for",
                &self.store.scripts.keep_awaited,
                limit,
            )
            .await?;
        Ok(CheckedJobs { jobs, ended: 0, next: from_now(next_us) })
    }

    /// Ends jobs that did not start within their time, up to `limit`. Calling again is safe.
    pub async fn expire_jobs(
        self,
        limit: usize,
        retention: impl Into<Retention>,
    ) -> Result<CheckedJobs> {
        let (doing, arguments) =
            ("ending jobs that did not start in time", (limit, kept(retention)));
        let (jobs, ended, next_us): (usize, usize, i64) =
            self.store.run_script(doing, &self.store.scripts.expire_jobs, arguments).await?;
        Ok(CheckedJobs { jobs, ended, next: from_now(next_us) })
    }

    /// Finds up to `limit` jobs, and attempts, that have not ended by the time expected. Calling again is safe.
    pub async fn find_late(self, limit: usize) -> Result<FoundLate> {
        let (looked_at, next_us, late, slow): (usize, i64, Vec<String>, Vec<String>) = self
            .store
            .run_script("finding late and slow jobs", &self.store.scripts.find_late, limit)
            .await?;
        Ok(FoundLate { looked_at, late, slow, next: from_now(next_us) })
    }
}

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
    /// A scheduled job is due soon. [`ScheduleStore::plan`] tells when instead.
    Scheduled = "scheduled",
    /// The periodic jobs have changed. [`ScheduleStore::plan`] tells their revision instead.
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

impl ScheduleStore<'_> {
    pub async fn plan(self) -> Result<Outlook> {
        let (revision, next_us, Legal(words)): (Vec<u8>, i64, _) = self
            .store
            .invoke("looking for work", &self.store.scripts.look.prepare_invoke())
            .await?;
        Ok(Outlook {
            work: words.into_iter().collect(),
            next_due: from_now(next_us),
            cron_revision: Some(text_of(&revision)).filter(|revision| !revision.is_empty()),
        })
    }

    /// Returns the time until the first lease of a boot ends, if it is not renewed, `None` without boots; and the time
    /// by Redis's clock, `None` if the leases cannot be read.
    pub async fn next_lease_end(self) -> Result<(Option<Duration>, Option<Duration>)> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("ZRANGE").arg(self.store.keys.boots()).arg(0).arg(0).arg("WITHSCORES");
        pipeline.cmd("TIME");
        let asked = self.store.link.pipeline("looking for leases that end", &pipeline).await;
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
