//! A snapshot of the namespace, which all pages share.

mod bounded;
mod reader;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::parts::ShownState;
use crate::client::{ClientError, MachineDocument, PeriodicJobDocument, machines_of};
use crate::proto::job::{JobEnd, JobStatus};
use crate::proto::labels::label;
use crate::rpc::ApiService;
use crate::store::{JobCounts, SeenActor};
use crate::view::{LatestJobs, Minute, Snapshot};

pub(super) use reader::SnapshotReader;

/// The jobs in a list of the latest.
pub(super) const LATEST: usize = 5;
/// The jobs that are read for such a list: a visitor may see a part of them only.
const LATEST_READ: usize = 20;

/// A snapshot of the namespace, or the part of it that a visitor may see.
#[derive(Clone)]
pub(super) struct SiteSnapshot {
    pub(super) snapshot: Snapshot,
    /// The numbers of jobs. `None` for a visitor with bounds: nothing counts the jobs of a part.
    counts: Option<JobCounts>,
    /// True if the numbers of script types and queues count only the visitor's jobs.
    is_whole: bool,
    pub(super) latest: LatestJobs,
    /// The number of periodic jobs, if the visitor sees all, and of limits.
    pub(super) periodic_jobs: Option<u64>,
    pub(super) limits: u64,
    /// True if brokers are configured, which store log records.
    pub(super) has_records: bool,
    /// The periodic jobs that are due next.
    pub(super) due: Arc<[PeriodicJobDocument]>,
    /// The actors that were seen on machines, also those that are not live.
    pub(super) seen: Arc<[SeenActor]>,
    /// The machines that have actors beyond the bounds of the visitor too, who may not change them.
    pub(super) beyond: BTreeSet<String>,
}

impl SiteSnapshot {
    async fn read(service: &ApiService, slow: &SlowPart) -> Result<Self, ClientError> {
        let (client, config) = (&service.client, service.config());
        let address = service.address.to_string();
        Ok(Self {
            snapshot: Snapshot::read_beside(client, address, slow.minutes.clone()).await?,
            latest: LatestJobs::read(client, LATEST_READ).await?,
            counts: Some(client.jobs().count().await?),
            limits: config.limits.len() as u64,
            has_records: !config.amqp.url.is_empty(),
            periodic_jobs: Some(slow.number),
            due: slow.due.clone(),
            seen: slow.seen.clone(),
            beyond: BTreeSet::new(),
            is_whole: true,
        })
    }

    /// Returns the machines that actors live on, or were seen on, by host name.
    pub(super) fn machines(&self) -> Vec<MachineDocument> {
        machines_of(&self.seen, &self.snapshot.actors, |_, _| true)
    }

    pub(super) fn live_machines(&self) -> usize {
        let actors = self.snapshot.actors.iter();
        let machines = actors.filter_map(|of| label(&of.presence.labels, "machine"));
        machines.collect::<BTreeSet<_>>().len()
    }

    /// Returns the number of jobs in a state; `None` if nothing counts them.
    pub(super) fn count(&self, state: ShownState) -> Option<u64> {
        let queues = || self.snapshot.queues.iter().map(|(queue, _)| queue);
        let held: u64 = queues().map(|queue| queue.held).sum();
        let Some(counts) = &self.counts else {
            return match state {
                ShownState::Held => self.is_whole.then_some(held),
                ShownState::Queued => {
                    self.is_whole.then(|| queues().map(|queue| queue.depth).sum())
                }
                _ => None,
            };
        };
        match state {
            ShownState::Held => Some(held),
            ShownState::Cancelled => counts.of_ends(&[JobEnd::Cancelled, JobEnd::Replaced]),
            // The held ones are dispatched too.
            ShownState::Queued => Some(counts.of_state(JobStatus::Dispatched).saturating_sub(held)),
            ShownState::Error => counts.of_ends(&JobEnd::FAILURES),
            state => Some(counts.of_state(state.stored())),
        }
    }

    /// Returns the number of all jobs, if something counts them.
    pub(super) fn jobs(&self) -> Option<u64> {
        Some(self.counts.as_ref()?.all())
    }

    /// Returns the number of dead letters, if something counts them.
    pub(super) fn dead(&self) -> Option<u64> {
        self.is_whole.then(|| self.snapshot.types.iter().map(|of| of.dead).sum())
    }
}

/// The parts that change slowly: the periodic jobs that are due next, the number of all, the samples, and the actors that
/// were seen.
#[derive(Clone)]
struct SlowPart {
    number: u64,
    due: Arc<[PeriodicJobDocument]>,
    minutes: Arc<[Minute]>,
    seen: Arc<[SeenActor]>,
}

impl SlowPart {
    async fn read(service: &ApiService) -> Result<Self, ClientError> {
        let (client, config) = (&service.client, service.config());
        let now = client.system().now().await?;
        let of_files = tokio::task::spawn_blocking(move || config.crontab()).await;
        let mut table = client.cron().crontab(&of_files.unwrap_or_default()).await?;
        let number = table.entries.len() as u64;
        let soonest = move || {
            table.entries.sort_by_cached_key(|entry| {
                entry.schedule.next_after(now).unwrap_or(Timestamp::MAX)
            });
            table.entries.truncate(LATEST);
            table
        };
        let soonest = tokio::task::spawn_blocking(soonest).await.unwrap_or_default();
        let due = client.cron().documents(&soonest).await?.into();
        let minutes = Minute::read(client).await?;
        let seen = client.actors().seen().await?.into();
        Ok(Self { number, due, minutes, seen })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::view::snapshot::tests::healthy_snapshot;

    fn counts() -> JobCounts {
        let mut counts = JobCounts::default();
        for (status, number) in &mut counts.states {
            *number = match status {
                JobStatus::Dispatched => 3,
                JobStatus::Error => 2,
                _ => 0,
            };
        }
        for (end, number) in &mut counts.ends {
            *number = u64::from([JobEnd::Failed, JobEnd::Replaced].contains(end));
        }
        counts
    }

    /// A snapshot of a namespace with one queue, at the start of 2026.
    pub(in crate::web) fn site_snapshot() -> SiteSnapshot {
        SiteSnapshot {
            snapshot: healthy_snapshot(),
            latest: LatestJobs::default(),
            counts: Some(counts()),
            is_whole: true,
            periodic_jobs: None,
            limits: 0,
            has_records: false,
            due: Vec::new().into(),
            seen: Vec::new().into(),
            beyond: BTreeSet::new(),
        }
    }

    #[test]
    fn cancelled_and_held_jobs_are_counted_apart() {
        let mut snapshot = site_snapshot();
        snapshot.snapshot.queues[0].0.held = 1;
        assert_eq!(snapshot.count(ShownState::Queued), Some(2));
        assert_eq!(snapshot.count(ShownState::Held), Some(1));
        assert_eq!(snapshot.count(ShownState::Cancelled), Some(1));
        assert_eq!(snapshot.count(ShownState::Error), Some(1));
        assert_eq!(snapshot.jobs(), Some(5));
        snapshot.counts = Some(JobCounts { unsorted: 1, ..counts() });
        assert_eq!(snapshot.count(ShownState::Error), None, "nobody knows while an upgrade sorts");
    }
}
