//! The state of the namespace that all pages share. It is read at most once a second, however many pages are
//! open.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::error::PageError;
use super::parts::ShownState;
use crate::client::{Client, ClientError, Overview, PeriodicJobDocument, SampleDocument};
use crate::config::Config;
use crate::proto::job::JobStatus;
use crate::store::{JobSummary, ListQuery, PresenceOf};

/// The jobs in a list of the latest.
const LATEST: usize = 5;
/// The parts that change slowly are read once in this time.
const SLOW_FRESH: Duration = Duration::from_secs(5);
/// A snapshot is used for so long.
const FRESH: Duration = Duration::from_secs(1);

/// The state of the namespace at one moment.
pub(super) struct SiteSnapshot {
    /// Redis's time.
    pub(super) at: Timestamp,
    /// The time that Redis took for one answer.
    pub(super) redis_took: Duration,
    pub(super) overview: Overview,
    /// The live actors by name.
    pub(super) actors: Vec<PresenceOf>,
    /// The jobs of each stored state.
    counts: Vec<(JobStatus, u64)>,
    /// The jobs that failed last, and those that started last.
    pub(super) failed: Vec<JobSummary>,
    pub(super) running: Vec<JobSummary>,
    /// The last hour, the oldest minute first. Empty without samples.
    pub(super) minutes: Arc<[Minute]>,
    /// The number of periodic jobs, and of limits.
    pub(super) periodic_jobs: Option<u64>,
    pub(super) limits: u64,
    /// The periodic jobs that are due next.
    pub(super) due: Arc<[PeriodicJobDocument]>,
}

/// The jobs of about a minute.
pub(super) struct Minute {
    pub(super) length: Duration,
    pub(super) submitted: u64,
    pub(super) finished: u64,
    pub(super) failed: u64,
    /// Jobs that ran at its end.
    pub(super) running: u64,
    /// The time below which 95 of 100 attempts waited.
    pub(super) wait_p95: Option<Duration>,
}

impl Minute {
    fn of(sample: &SampleDocument) -> Self {
        let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or_default();
        Self {
            length: seconds(sample.seconds),
            submitted: sample.all.submitted,
            finished: sample.all.finished,
            failed: sample.all.failed,
            running: sample.running,
            wait_p95: sample.all.wait.p95_s.map(seconds),
        }
    }
}

impl SiteSnapshot {
    async fn read(
        client: &Client,
        address: &str,
        config: &Config,
        slow: &SlowPart,
    ) -> Result<Self, ClientError> {
        let began = Instant::now();
        let at = client.now().await?;
        let redis_took = began.elapsed();
        let overview = Overview::read(client, address.to_owned()).await?;
        let actors = client.list_actors(None).await?;
        let counts = client.count_jobs().await?;
        let latest = async |status| {
            let query = ListQuery { status: Some(status), limit: LATEST, ..ListQuery::default() };
            Ok::<_, ClientError>(client.list_jobs(&query).await?.items)
        };
        Ok(Self {
            failed: latest(JobStatus::Error).await?,
            running: latest(JobStatus::Started).await?,
            minutes: slow.minutes.clone(),
            limits: config.limits.len() as u64,
            periodic_jobs: Some(slow.number),
            due: slow.due.clone(),
            at,
            redis_took,
            overview,
            actors,
            counts,
        })
    }

    /// Returns the number of jobs in a state; `None` if nothing counts them.
    pub(super) fn count(&self, state: ShownState) -> Option<u64> {
        let held: u64 = self.overview.queues.iter().map(|(queue, _)| queue.held).sum();
        let of = |status| self.counts.iter().find(|(of, _)| *of == status).map(|(_, n)| *n);
        match state {
            ShownState::Held => Some(held),
            ShownState::Cancelled => None,
            // The held ones are dispatched too.
            ShownState::Queued => {
                of(JobStatus::Dispatched).map(|number| number.saturating_sub(held))
            }
            state => of(state.stored()),
        }
    }

    /// Returns the number of all jobs.
    pub(super) fn jobs(&self) -> u64 {
        self.counts.iter().map(|(_, number)| *number).sum()
    }

    /// Returns the number of dead letters.
    pub(super) fn dead(&self) -> u64 {
        self.overview.types.iter().map(|of| of.dead).sum()
    }
}

/// The parts that change slowly: the periodic jobs that are due next, the number of all, and the samples.
#[derive(Clone)]
struct SlowPart {
    number: u64,
    due: Arc<[PeriodicJobDocument]>,
    minutes: Arc<[Minute]>,
}

impl SlowPart {
    async fn read(client: &Client, config: &Arc<Config>) -> Result<Self, ClientError> {
        let (now, config) = (client.now().await?, config.clone());
        let soonest = move || {
            let mut table = config.crontab();
            let number = table.entries.len() as u64;
            table.entries.sort_by_cached_key(|entry| {
                entry.schedule.next_after(now).unwrap_or(Timestamp::MAX)
            });
            table.entries.truncate(LATEST);
            (number, table)
        };
        let (number, table) = tokio::task::spawn_blocking(soonest).await.unwrap_or_default();
        let due = client.periodic_job_documents(&table).await?.into();
        let minutes = client.samples().await?.samples.iter().map(Minute::of).collect();
        Ok(Self { number, due, minutes })
    }
}

/// Reads snapshots, one at a time.
#[derive(Default)]
pub(super) struct SiteSnapshots {
    reading: tokio::sync::Mutex<()>,
    last: Mutex<Option<(Instant, Arc<SiteSnapshot>)>>,
    /// True after a change by a visitor.
    is_old: AtomicBool,
    /// Read less often, as it reads files.
    slow: tokio::sync::Mutex<Option<(Instant, SlowPart)>>,
    /// The first failure since the last answer of Redis.
    away_since: Mutex<Option<Timestamp>>,
}

impl SiteSnapshots {
    /// Returns a snapshot that is fresh.
    pub(super) async fn get(
        &self,
        client: &Client,
        address: &str,
        config: &Arc<Config>,
    ) -> Result<Arc<SiteSnapshot>, PageError> {
        if let Some(fresh) = self.fresh() {
            return Ok(fresh);
        }
        let _one = self.reading.lock().await;
        // Another reader may have been faster.
        if let Some(fresh) = self.fresh() {
            return Ok(fresh);
        }
        self.is_old.store(false, Ordering::Relaxed);
        let read = async {
            let slow = self.slow_part(client, config).await?;
            SiteSnapshot::read(client, address, config, &slow).await
        };
        match read.await {
            Ok(snapshot) => {
                let snapshot = Arc::new(snapshot);
                *lock(&self.last) = Some((Instant::now(), snapshot.clone()));
                *lock(&self.away_since) = None;
                Ok(snapshot)
            }
            Err(error) => Err(self.away(error)),
        }
    }

    async fn slow_part(
        &self,
        client: &Client,
        config: &Arc<Config>,
    ) -> Result<SlowPart, ClientError> {
        let mut last = self.slow.lock().await;
        if let Some((_, due)) = last.as_ref().filter(|(read, _)| read.elapsed() < SLOW_FRESH) {
            return Ok(due.clone());
        }
        let due = SlowPart::read(client, config).await?;
        *last = Some((Instant::now(), due.clone()));
        Ok(due)
    }

    /// Returns the last snapshot, however old it is.
    pub(super) fn last(&self) -> Option<Arc<SiteSnapshot>> {
        lock(&self.last).as_ref().map(|(_, snapshot)| snapshot.clone())
    }

    /// Makes the next call read again.
    pub(super) fn forget(&self) {
        self.is_old.store(true, Ordering::Relaxed);
    }

    fn fresh(&self) -> Option<Arc<SiteSnapshot>> {
        let last = lock(&self.last);
        let (read, snapshot) = last.as_ref()?;
        let is_fresh = read.elapsed() < FRESH && !self.is_old.load(Ordering::Relaxed);
        is_fresh.then(|| snapshot.clone())
    }

    fn away(&self, error: ClientError) -> PageError {
        let since = *lock(&self.away_since).get_or_insert_with(Timestamp::now);
        let mut page = PageError::from(error);
        let since = since.strftime("%H:%M:%S");
        page.text =
            format!("{} It has not answered since {since} UTC. Hero tries again.", page.text);
        page
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::client::overview::tests::overview;

    /// A snapshot of a namespace with one queue, at the start of 2026.
    pub(in crate::web) fn snapshot() -> SiteSnapshot {
        SiteSnapshot {
            at: "2026-01-31T13:00:00Z".parse().expect("a time"),
            redis_took: Duration::from_micros(200),
            overview: overview(),
            actors: Vec::new(),
            counts: vec![(JobStatus::Dispatched, 3), (JobStatus::Error, 2)],
            failed: Vec::new(),
            running: Vec::new(),
            minutes: Vec::new().into(),
            periodic_jobs: None,
            limits: 0,
            due: Vec::new().into(),
        }
    }

    #[test]
    fn cancelled_jobs_are_not_counted_and_held_ones_apart() {
        let snapshot = snapshot();
        assert_eq!(snapshot.count(ShownState::Queued), Some(3));
        assert_eq!(snapshot.count(ShownState::Cancelled), None);
        assert_eq!(snapshot.jobs(), 5);
    }
}
