//! Endings on their way to Redis: gathered while one batch is being recorded, sent with the next,
//! and kept until Redis has said what became of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tracing::{error, warn};

use super::Fetch;
use crate::actor::log_buffer::LogBuffer;
use crate::failpoint;
use crate::proto::job::JobId;
use crate::proto::target::ScriptType;
use crate::store::{Ending, LogEntry, Recorded, StoreError, Verdict};

/// Endings of one batch.
const BATCH_LEN_MAX: usize = 256;
/// With this many waiting, nothing new is claimed: Redis is slower than the scripts.
const BACKED_UP_LEN: usize = 1024;

/// One ending, and the last lines of its log.
struct Waiting {
    ending: Ending,
    lines: Vec<LogEntry>,
}

/// What waits to be recorded.
#[derive(Default)]
pub(super) struct Endings {
    waiting: Vec<Waiting>,
    /// Ids of the batch under way.
    under_way: Vec<JobId>,
}

/// A batch that came back.
pub(super) struct Batch {
    waiting: Vec<Waiting>,
    recorded: Result<Vec<Recorded>, StoreError>,
}

/// Log lines of running jobs that came back.
pub(super) struct Flush {
    lines: Vec<(JobId, Vec<LogEntry>)>,
    written: Result<(), StoreError>,
}

impl Endings {
    pub(super) fn add(
        &mut self,
        id: JobId,
        script_type: ScriptType,
        verdict: Verdict,
        log: &LogBuffer,
    ) {
        let ending = Ending { id, script_type, verdict, used: log.used_fields() };
        self.waiting.push(Waiting { ending, lines: log.take_rest() });
    }

    pub(super) fn is_backed_up(&self) -> bool {
        self.waiting.len() >= BACKED_UP_LEN
    }

    /// The jobs whose end is not known to be recorded.
    pub(super) fn ids(&self) -> impl Iterator<Item = &JobId> {
        self.under_way.iter().chain(self.waiting.iter().map(|waiting| &waiting.ending.id))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.under_way.len()
    }

    pub(super) fn holds(&self, id: &JobId) -> bool {
        self.under_way.contains(id) || self.waiting.iter().any(|w| w.ending.id == *id)
    }
}

impl Fetch {
    pub(super) fn begin_recording(&mut self) {
        // While it is being asked which jobs are ours, none may end: it would look forgotten.
        if self.recording.is_some() || self.reconciling.is_some() || self.endings.waiting.is_empty()
        {
            return;
        }
        let number = self.endings.waiting.len().min(BATCH_LEN_MAX);
        let mut waiting: Vec<Waiting> = self.endings.waiting.drain(..number).collect();
        self.endings.under_way = waiting.iter().map(|w| w.ending.id.clone()).collect();
        let life = Arc::clone(&self.life);
        self.recording = Some(Box::pin(async move {
            let recorded = async {
                // The log is whole before anybody who waits for the reply hears of the end.
                append(&life, waiting.iter().map(|w| (&w.ending.id, &w.lines))).await?;
                for waiting in &mut waiting {
                    waiting.lines.clear();
                }
                let endings: Vec<Ending> = waiting.iter().map(|w| w.ending.clone()).collect();
                failpoint::reached(failpoint::BEFORE_FINISH);
                let retention = life.settings().job.kept();
                let recorded = life.store.finish(&life.boot, retention, &endings).await;
                failpoint::reached(failpoint::AFTER_FINISH);
                recorded
            }
            .await;
            Batch { waiting, recorded }
        }));
    }

    pub(super) fn on_recorded(&mut self, batch: Batch) {
        self.endings.under_way.clear();
        match batch.recorded {
            Ok(recorded) => {
                let ids = batch.waiting.iter().map(|waiting| &waiting.ending.id);
                for (id, recorded) in ids.zip(&recorded) {
                    match recorded {
                        Recorded::Recorded | Recorded::Before => {
                            self.life.vitals.done.fetch_add(1, Ordering::Relaxed);
                        }
                        Recorded::Lost => {
                            warn!(job_id = %id, "the job is not ours any more: its end is not recorded");
                        }
                        Recorded::Failed(reason) => {
                            error!(job_id = %id, "cannot record how the job ended: {reason}");
                        }
                    }
                }
                self.redis_answered();
            }
            Err(error) => {
                if error.is_transient() {
                    // In their order, before what has ended since.
                    self.endings.waiting.splice(0..0, batch.waiting);
                }
                self.redis_failed("recording how jobs ended", &error);
            }
        }
    }

    /// Writes the lines of jobs that still run.
    pub(super) fn begin_flushing(&mut self, now: Instant) {
        if self.flushing.is_some() || self.log_due.is_none_or(|due| now < due) {
            return;
        }
        self.log_due = None;
        let mut lines = Vec::new();
        for (id, running) in &self.running {
            let (entries, later) = running.log.take(now);
            self.log_due = self.log_due.into_iter().chain(later).min();
            if !entries.is_empty() {
                lines.push((id.clone(), entries));
            }
        }
        if lines.is_empty() {
            return;
        }
        let life = Arc::clone(&self.life);
        self.flushing = Some(Box::pin(async move {
            let written = append(&life, lines.iter().map(|(id, lines)| (id, lines))).await;
            Flush { lines, written }
        }));
    }

    pub(super) fn on_flushed(&mut self, flush: Flush) {
        match flush.written {
            Ok(()) => self.redis_answered(),
            Err(error) => {
                if error.is_transient() {
                    for (id, lines) in flush.lines {
                        self.put_lines_back(&id, lines);
                    }
                    self.log_due = Some(Instant::now());
                }
                self.redis_failed("writing logs of jobs", &error);
            }
        }
    }

    /// To the job if it still runs, else to its ending.
    fn put_lines_back(&mut self, id: &JobId, lines: Vec<LogEntry>) {
        if let Some(running) = self.running.get(id) {
            running.log.put_back(lines);
        } else if let Some(waiting) = self.endings.waiting.iter_mut().find(|w| w.ending.id == *id) {
            waiting.lines.splice(0..0, lines);
        }
    }
}

async fn append<'a>(
    life: &crate::actor::life::Life,
    logs: impl Iterator<Item = (&'a JobId, &'a Vec<LogEntry>)>,
) -> Result<(), StoreError> {
    let entries = logs.flat_map(|(id, entries)| entries.iter().map(move |entry| (id, entry)));
    let job = &life.settings().job;
    life.store.append_logs(&life.boot, entries, job.retention + job.timeout_max).await
}
