//! The last entries that Redis has taken into the logs of running jobs: after a call without an answer, the entries that it
//! has written are not written again.

use std::collections::HashMap;

use parking_lot::Mutex;
use tracing::warn;

use crate::proto::job::JobId;
use crate::store::{LogEntry, Store, StoreError};

/// Entries of the log of one attempt, which its job and the time of its claim name.
pub(super) type AttemptLog<'a> = (&'a JobId, u64, &'a [LogEntry]);

#[derive(Debug, Default)]
pub(super) struct LogPlaces(Mutex<HashMap<JobId, LogPlace>>);

#[derive(Debug)]
struct LogPlace {
    claimed_at: u64,
    /// The last entry that Redis has taken; before the first one the time of the claim.
    last: String,
    /// True after a call without an answer.
    is_unsure: bool,
}

impl LogPlace {
    /// The place after the millisecond of the claim, whose time is in microseconds: an earlier attempt wrote no entry later.
    fn new(claimed_at: u64) -> Self {
        let last = format!("{}-{}", claimed_at / 1000, u64::MAX);
        Self { claimed_at, last, is_unsure: false }
    }
}

impl LogPlaces {
    /// Returns the entries of each log without those that a call without an answer has written: no other program writes to the
    /// log of an attempt.
    pub(super) async fn unwritten<'a>(
        &self,
        store: &Store,
        logs: &[AttemptLog<'a>],
    ) -> Result<Vec<AttemptLog<'a>>, StoreError> {
        let mut unwritten = Vec::with_capacity(logs.len());
        for (id, claimed_at, entries) in logs {
            let mut entries = *entries;
            if let Some(last) = self.unsure_place(id, *claimed_at) {
                let found = match store.logs().read(id, Some(&last), entries.len()).await {
                    // An access list of an older version does not permit it: a line may stand twice, and none is lost.
                    Err(error) if !error.is_outage() => {
                        warn!(job_id = %id, "lines in the log of job {id} may stand twice: {error}");
                        Vec::new()
                    }
                    found => found?,
                };
                if let Some(newest) = found.last() {
                    self.change(id, *claimed_at, |place| place.last.clone_from(&newest.id));
                }
                let mut written = found.len();
                while written > 0 && !entries.is_empty() {
                    // An unfinished line goes to the hash of the job, not to the stream of the log.
                    let is_in_stream = !matches!(entries[0], LogEntry::Unfinished { .. });
                    written -= usize::from(is_in_stream);
                    entries = &entries[1..];
                }
            }
            unwritten.push((*id, *claimed_at, entries));
        }
        Ok(unwritten)
    }

    fn unsure_place(&self, id: &JobId, claimed_at: u64) -> Option<String> {
        let places = self.0.lock();
        let place = places.get(id).filter(|of| of.claimed_at == claimed_at && of.is_unsure)?;
        Some(place.last.clone())
    }

    /// Notes what became of the entries: the last one that Redis has taken of each log, or that there was no answer.
    pub(super) fn note(&self, logs: &[AttemptLog<'_>], last: Option<&HashMap<JobId, String>>) {
        for (id, claimed_at, _) in logs {
            self.change(id, *claimed_at, |place| {
                place.is_unsure = last.is_none();
                if let Some(last) = last.and_then(|last| last.get(*id)) {
                    place.last.clone_from(last);
                }
            });
        }
    }

    fn change(&self, id: &JobId, claimed_at: u64, change: impl FnOnce(&mut LogPlace)) {
        let mut places = self.0.lock();
        let place = places.entry(id.clone()).or_insert_with(|| LogPlace::new(claimed_at));
        if place.claimed_at != claimed_at {
            *place = LogPlace::new(claimed_at);
        }
        change(place);
    }

    pub(super) fn retain(&self, runs: impl Fn(&JobId) -> bool) {
        self.0.lock().retain(|id, _| runs(id));
    }
}
