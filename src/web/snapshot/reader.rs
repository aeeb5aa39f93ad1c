//! Reads the state for all pages: one task, once a second, while pages are open. A page does not wait for
//! the task: it shows the latest state that was read.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::web_error::{PageError, PageResult};
use super::{SiteSnapshot, SlowPart};
use crate::client::ClientError;
use crate::rpc::ApiService;
use crate::store::StoreError;

/// The time between two readings.
const PERIOD: Duration = Duration::from_secs(1);
/// A reading that takes long is followed by a pause of so many times its length, up to the limit: it may have waited
/// for a Redis that stood still.
const PAUSE_TIMES: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// The parts that change slowly are read once in this time.
const SLOW_PERIOD: Duration = Duration::from_secs(5);
/// The oldest reading that is served.
const AGE_MAX: Duration = Duration::from_secs(5);
/// The longest time that a page waits for a reading.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Nothing is read once no page was asked for in this time.
const IDLE: Duration = Duration::from_secs(3);

/// The last reading of the state, and the task that reads the next.
#[derive(Clone)]
pub(in crate::web) struct SnapshotReader(Arc<ReaderParts>);

struct ReaderParts {
    service: ApiService,
    last: watch::Sender<Option<Reading>>,
    looks: Mutex<PageVisits>,
    /// Ends the pause before the next reading.
    changed: Notify,
    /// The first failure since the last answer of Redis.
    away_since: Mutex<Option<Timestamp>>,
}

struct Reading {
    began: Instant,
    result: Result<Arc<SiteSnapshot>, PageError>,
}

impl Reading {
    /// Returns true if it may be served after a change that a visitor made.
    fn serves(&self, changed: Instant) -> bool {
        let most = if self.result.is_ok() { AGE_MAX } else { PERIOD };
        self.began >= changed && self.began.elapsed() < most
    }
}

/// The visits of pages, and the task that reads for them.
struct PageVisits {
    /// The time of the last visit, and of the last change by a visitor.
    at: Instant,
    changed: Instant,
    task: Option<JoinHandle<()>>,
}

impl SnapshotReader {
    pub(in crate::web) fn new(service: ApiService) -> Self {
        let now = Instant::now();
        Self(Arc::new(ReaderParts {
            service,
            last: watch::Sender::new(None),
            looks: Mutex::new(PageVisits { at: now, changed: now, task: None }),
            changed: Notify::new(),
            away_since: Mutex::default(),
        }))
    }

    /// Returns the last reading, at most [`AGE_MAX`] old and read after the last change by a visitor.
    pub(in crate::web) async fn get(&self) -> PageResult<Arc<SiteSnapshot>> {
        let changed = self.look();
        let mut readings = self.0.last.subscribe();
        let serves =
            |last: &Option<Reading>| last.as_ref().is_some_and(|last| last.serves(changed));
        let found = timeout(WAIT_MAX, readings.wait_for(serves)).await;
        let found = found.ok().and_then(Result::ok);
        let result = found.as_ref().and_then(|last| last.as_ref()).map(|last| last.result.clone());
        result.unwrap_or_else(|| {
            let text = format!("Redis has not answered within {} s.", WAIT_MAX.as_secs());
            Err(PageError::away(text))
        })
    }

    /// Returns the last reading that did not fail, however old it is.
    pub(in crate::web) fn last(&self) -> Option<Arc<SiteSnapshot>> {
        self.0.last.borrow().as_ref()?.result.clone().ok()
    }

    /// Makes the next page wait for a new reading, after a change by a visitor.
    pub(in crate::web) fn forget(&self) {
        lock(&self.0.looks).changed = Instant::now();
        self.0.changed.notify_one();
    }

    /// Notes a visit, and lets a task read. Returns the time of the last change.
    fn look(&self) -> Instant {
        let mut looks = lock(&self.0.looks);
        looks.at = Instant::now();
        if looks.task.as_ref().is_none_or(JoinHandle::is_finished) {
            looks.task = Some(tokio::spawn(self.clone().read_on()));
        }
        looks.changed
    }

    /// Reads until pages are visited no more.
    async fn read_on(self) {
        let mut slow = None;
        loop {
            let began = Instant::now();
            let result = self.read(&mut slow).await.map(Arc::new);
            let result = result.map_err(|error| self.away(error));
            if result.is_ok() {
                *lock(&self.0.away_since) = None;
            }
            // A wait for a Redis that does not answer is no cost of the reading.
            let is_read = result.is_ok();
            self.0.last.send_replace(Some(Reading { began, result }));
            let took = if is_read { began.elapsed() } else { Duration::ZERO };
            let pause = (took * PAUSE_TIMES).min(PAUSE_MAX);
            let pause = pause.max(PERIOD.saturating_sub(began.elapsed()));
            let _ = timeout(pause, self.0.changed.notified()).await;
            if self.leaves() {
                return;
            }
        }
    }

    async fn read(
        &self,
        slow: &mut Option<(Instant, SlowPart)>,
    ) -> Result<SiteSnapshot, ClientError> {
        let service = &self.0.service;
        let changed = lock(&self.0.looks).changed;
        let part = match slow {
            Some((read, part)) if read.elapsed() < SLOW_PERIOD && *read >= changed => part.clone(),
            _ => {
                let began = Instant::now();
                slow.insert((began, SlowPart::read(service).await?)).1.clone()
            }
        };
        SiteSnapshot::read(service, &part).await
    }

    /// Returns true if pages are visited no more; the task then ends.
    fn leaves(&self) -> bool {
        let mut looks = lock(&self.0.looks);
        let is_idle = looks.at.elapsed() >= IDLE;
        if is_idle {
            looks.task = None;
        }
        is_idle
    }

    fn away(&self, error: ClientError) -> PageError {
        let since = *lock(&self.0.away_since).get_or_insert_with(Timestamp::now);
        let is_silent = matches!(error, ClientError::Store(StoreError::Unreachable { .. }));
        let lacks = if is_silent { "It has not answered" } else { "No page could be read" };
        let mut page = PageError::from(error);
        let since = since.strftime("%H:%M:%S");
        page.text = format!("{} {lacks} since {since} UTC. Hero tries again.", page.text);
        page
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
