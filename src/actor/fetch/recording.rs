//! Records: the ends of jobs, gathered while one batch is being written, and the log lines of
//! running jobs. An end is kept until Redis has said what became of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tracing::{error, warn};

use super::action::Action;
use super::held_replies::{HeldReplies, ReplyEnd};
use super::pending::Pending;
use crate::actor::boot::Boot;
use crate::actor::log_buffer::LogBuffer;
use crate::actor::running_job::RunningJob;
use crate::failpoint;
use crate::proto::job::{FILES_NOT_KEPT, FileName, JobId, NamedFiles, OUTPUT_FILES};
use crate::proto::target::ScriptType;
use crate::proto::text::escape;
use crate::store::{AttemptEnd, Counts, LogEntry, Recorded, RefusedLines, StoreError, Verdict};

const BATCH_LEN_MAX: usize = 256;
/// With this many ends waiting, no job is claimed: Redis is slower than the scripts.
const BACKED_UP_LEN: usize = 1024;
/// The time that log lines gather before they are written.
const LOG_LATENCY: Duration = Duration::from_millis(50);
/// The shortest time between two warnings about refused log lines.
const WARN_INTERVAL: Duration = Duration::from_secs(30);

type RunningJobs = HashMap<JobId, Arc<RunningJob>>;

/// An end, and the last lines of its job's log.
pub(super) struct UnrecordedEnd {
    ending: AttemptEnd,
    lines: Vec<LogEntry>,
    files: NamedFiles,
    /// Lines that Redis refused.
    missing: u64,
}

/// The ends that are not known to be recorded.
#[derive(Default)]
struct Endings {
    waiting: Vec<UnrecordedEnd>,
    /// The ids of the batch under way.
    under_way: Vec<JobId>,
}

type RecordEnd = (Vec<UnrecordedEnd>, Vec<RefusedLines>, Result<Vec<Recorded>, StoreError>);
type FlushEnd = (Vec<(JobId, u64, Vec<LogEntry>)>, Result<Vec<RefusedLines>, StoreError>);

pub(super) enum RecordingEnd {
    Recorded(RecordEnd),
    Flushed(FlushEnd),
    Replied(ReplyEnd),
}

/// The ends and log lines of one boot, on their way to Redis.
pub(super) struct Recording {
    boot: Arc<Boot>,
    endings: Endings,
    /// When log lines of running jobs have to be written.
    flush_at: Option<Instant>,
    /// When refused log lines were last warned about.
    warned_at: Option<Instant>,
    record: Pending<RecordEnd>,
    flush: Pending<FlushEnd>,
    pub(super) replies: HeldReplies,
}

impl Recording {
    pub(super) fn new(boot: &Arc<Boot>) -> Self {
        Self {
            boot: Arc::clone(boot),
            endings: Endings::default(),
            flush_at: None,
            warned_at: None,
            record: Pending::default(),
            flush: Pending::default(),
            replies: HeldReplies::new(&boot.store),
        }
    }

    /// Adds the end of an attempt, which its job and the time of its claim name.
    pub(super) fn add(
        &mut self,
        (id, claimed_at): (JobId, u64),
        script_type: ScriptType,
        (verdict, counts): (Verdict, Counts),
        log: &LogBuffer,
    ) {
        let used = log.entries().used_fields();
        let ending = AttemptEnd { id, claimed_at, script_type, verdict, used, counts };
        let lines = log.take_rest();
        let mut entries = log.entries();
        let (files, missing) = (std::mem::take(&mut entries.files), entries.missing);
        self.endings.waiting.push(UnrecordedEnd { ending, lines, files, missing });
    }

    /// Returns whether Redis is slower than the scripts.
    pub(super) fn is_backed_up(&self) -> bool {
        self.endings.waiting.len().max(self.replies.waiting.len()) >= BACKED_UP_LEN
    }

    pub(super) fn is_recording(&self) -> bool {
        self.record.is_active()
    }

    pub(super) fn is_flushing(&self) -> bool {
        self.flush.is_active()
    }

    /// Returns the jobs whose end is not known to be recorded.
    pub(super) fn ids(&self) -> impl Iterator<Item = &JobId> {
        self.endings.ids()
    }

    pub(super) fn holds(&self, id: &JobId) -> bool {
        self.endings.holds(id)
    }

    pub(super) fn log_written(&mut self) {
        let due = Instant::now() + LOG_LATENCY;
        self.flush_at = Some(self.flush_at.map_or(due, |at| at.min(due)));
    }

    /// Returns when [`Recording::begin_flush`] has something to do.
    pub(super) fn flush_due(&self) -> Option<Instant> {
        self.flush_at.filter(|_| !self.flush.is_active())
    }

    /// Starts to record a batch of ends. Lines that are being written come first: the log of an ended job may have some
    /// of them.
    pub(super) fn begin(&mut self) {
        if self.is_recording() || self.is_flushing() || self.endings.waiting.is_empty() {
            return;
        }
        let mut batch = self.endings.take_batch();
        let boot = Arc::clone(&self.boot);
        self.record.start(async move {
            let mut refused = Vec::new();
            let recorded = record(&boot, &mut batch, &mut refused).await;
            (batch, refused, recorded)
        });
    }

    /// Starts to write the log lines of running jobs, if that is due.
    pub(super) fn begin_flush(&mut self, now: Instant, running: &RunningJobs) {
        if self.flush_due().is_none_or(|due| now < due) {
            return;
        }
        self.flush_at = None;
        let mut lines = Vec::new();
        for (id, run) in running {
            let (entries, later) = run.log.take(now);
            self.flush_at = self.flush_at.into_iter().chain(later).min();
            if !entries.is_empty() {
                lines.push((id.clone(), run.claimed_at, entries));
            }
        }
        self.boot.log_places.retain(|id| running.contains_key(id) || self.endings.holds(id));
        if !lines.is_empty() {
            let boot = Arc::clone(&self.boot);
            self.flush.start(async move {
                let logs = lines.iter().map(|(id, at, lines)| (id, *at, lines.as_slice()));
                let written = boot.append_logs(&logs.collect::<Vec<_>>()).await;
                (lines, written)
            });
        }
    }

    pub(super) async fn next(&mut self) -> RecordingEnd {
        tokio::select! {
            end = self.record.next() => RecordingEnd::Recorded(end),
            end = self.flush.next() => RecordingEnd::Flushed(end),
            end = self.replies.under_way.next() => RecordingEnd::Replied(end),
        }
    }

    pub(super) fn done(&mut self, end: RecordingEnd, running: &RunningJobs) -> Action {
        match end {
            RecordingEnd::Recorded((batch, refused, Ok(recorded))) => {
                self.warn_of_refused(&refused);
                let count = self.endings.recorded(&batch, &recorded);
                let held = batch.iter().zip(&recorded).filter(|(_, of)| **of == Recorded::Held);
                self.replies.add(held.map(|(ended, _)| ended.ending.id.clone()));
                self.boot.health.done.fetch_add(count, Ordering::Relaxed);
                Action::RedisAnswered
            }
            RecordingEnd::Recorded((batch, refused, Err(error))) => {
                self.warn_of_refused(&refused);
                self.endings.failed(batch, &error);
                Action::RedisFailed("recording how jobs ended", error)
            }
            RecordingEnd::Replied(end) => self.replies.done(end),
            RecordingEnd::Flushed((_, Ok(refused))) => {
                self.warn_of_refused(&refused);
                for RefusedLines { id, lines, .. } in refused {
                    match running.get(&id) {
                        Some(run) => run.log.refused(lines),
                        None => self.endings.add_missing(&id, lines),
                    }
                }
                Action::RedisAnswered
            }
            RecordingEnd::Flushed((lines, Err(error))) => {
                if error.is_outage() {
                    for (id, _, lines) in lines {
                        match running.get(&id) {
                            Some(run) => run.log.put_back(lines),
                            None => self.endings.put_lines_back(&id, lines),
                        }
                    }
                    self.flush_at = Some(Instant::now());
                }
                Action::RedisFailed("writing logs of jobs", error)
            }
        }
    }

    /// Warns of refused log lines, now and then.
    fn warn_of_refused(&mut self, refused: &[RefusedLines]) {
        let Some(RefusedLines { id, reason, .. }) = refused.first() else { return };
        if self.warned_at.is_none_or(|at| at.elapsed() >= WARN_INTERVAL) {
            self.warned_at = Some(Instant::now());
            warn!(job_id = %id, jobs = refused.len(), "redis refuses lines of jobs' logs, which are dropped: {reason}");
        }
    }
}

impl UnrecordedEnd {
    /// The end, with the number of its missing log lines.
    fn ending(&self) -> AttemptEnd {
        let mut ending = self.ending.clone();
        if self.missing > 0 {
            ending.used.push(("log_missing", self.missing.to_string()));
        }
        ending
    }
}

impl Endings {
    fn ids(&self) -> impl Iterator<Item = &JobId> {
        let waiting = self.waiting.iter().map(|ended| &ended.ending.id);
        self.under_way.iter().chain(waiting)
    }

    fn holds(&self, id: &JobId) -> bool {
        self.ids().any(|own| own == id)
    }

    fn take_batch(&mut self) -> Vec<UnrecordedEnd> {
        let len = self.waiting.len().min(BATCH_LEN_MAX);
        let batch: Vec<UnrecordedEnd> = self.waiting.drain(..len).collect();
        self.under_way = batch.iter().map(|ended| ended.ending.id.clone()).collect();
        batch
    }

    /// Takes the answer to a batch. Returns how many of its ends are recorded.
    fn recorded(&mut self, batch: &[UnrecordedEnd], recorded: &[Recorded]) -> u64 {
        self.under_way.clear();
        let mut count = 0;
        for (UnrecordedEnd { ending: AttemptEnd { id, .. }, .. }, recorded) in
            batch.iter().zip(recorded)
        {
            match recorded {
                Recorded::Recorded | Recorded::Held | Recorded::Before => count += 1,
                Recorded::Lost => {
                    warn!(job_id = %id, "the end of job {id} is not recorded: another boot owns it");
                }
                Recorded::Failed(reason) => {
                    error!(job_id = %id, "cannot record how job {id} ended: {reason}");
                }
            }
        }
        count
    }

    /// Takes a batch back that Redis did not get, before the ends that came since.
    fn failed(&mut self, batch: Vec<UnrecordedEnd>, error: &StoreError) {
        self.under_way.clear();
        if error.is_outage() {
            self.waiting.splice(0..0, batch);
        }
    }

    fn put_lines_back(&mut self, id: &JobId, lines: Vec<LogEntry>) {
        if let Some(ended) = self.waiting.iter_mut().find(|ended| ended.ending.id == *id) {
            ended.lines.splice(0..0, lines);
        }
    }

    fn add_missing(&mut self, id: &JobId, lines: u64) {
        if let Some(ended) = self.waiting.iter_mut().find(|ended| ended.ending.id == *id) {
            ended.missing += lines;
        }
    }
}

async fn record(
    boot: &Boot,
    batch: &mut [UnrecordedEnd],
    refused: &mut Vec<RefusedLines>,
) -> Result<Vec<Recorded>, StoreError> {
    for ended in batch.iter_mut().filter(|ended| !ended.files.is_empty()) {
        keep_files(boot, ended).await?;
    }
    // The log is complete before the reply reports the end.
    let logs = batch.iter().map(|UnrecordedEnd { ending, lines, .. }| {
        (&ending.id, ending.claimed_at, lines.as_slice())
    });
    *refused = boot.append_logs(&logs.collect::<Vec<_>>()).await?;
    for ended in batch.iter_mut() {
        ended.lines.clear();
        let own = refused.iter().filter(|refused| refused.id == ended.ending.id);
        ended.missing += own.map(|refused| refused.lines).sum::<u64>();
    }
    let endings: Vec<AttemptEnd> = batch.iter().map(UnrecordedEnd::ending).collect();
    failpoint::reached(failpoint::BEFORE_FINISH);
    let retention = boot.settings().job.kept();
    let recorded = boot.store.attempts().finish(&boot.id, retention, &endings).await;
    failpoint::reached(failpoint::AFTER_FINISH);
    recorded
}

/// Stores the files of an attempt before its end is recorded. If Redis has no room for them, the log
/// says so.
async fn keep_files(boot: &Boot, ended: &mut UnrecordedEnd) -> Result<(), StoreError> {
    let attempt = (&ended.ending.id, ended.ending.claimed_at);
    match boot.store.files().keep(&boot.id, attempt, &ended.files).await {
        Ok(true) => {
            let names: Vec<&str> = ended.files.keys().map(FileName::as_str).collect();
            let names = serde_json::json!(names).to_string();
            ended.ending.used.push((OUTPUT_FILES, names));
        }
        // Nor will its end be recorded.
        Ok(false) => {}
        Err(error @ StoreError::Unreachable { .. }) => return Err(error),
        Err(error) => {
            let line = format!("the files of HERO_OUTPUT_DIR are not kept: {error}");
            let used = &mut ended.ending.used;
            used.retain(|(field, _)| *field != FILES_NOT_KEPT);
            used.push((FILES_NOT_KEPT, escape(&line)));
            ended.lines.push(LogEntry::Line { fd: 2, line, output: false });
        }
    }
    ended.files = NamedFiles::new();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> JobId {
        format!("j{number}").parse().expect("legal")
    }

    fn ended(number: usize) -> UnrecordedEnd {
        let verdict = Verdict::Finished { output: "".into(), exit_code: None };
        let script_type = "osis".parse().expect("legal");
        let ending = AttemptEnd {
            id: id(number),
            claimed_at: 0,
            script_type,
            verdict,
            used: Vec::new(),
            counts: Vec::new(),
        };
        UnrecordedEnd { ending, lines: vec![line("last")], files: NamedFiles::new(), missing: 0 }
    }

    fn line(line: &str) -> LogEntry {
        LogEntry::Line { fd: 1, line: line.to_owned(), output: false }
    }

    fn away() -> StoreError {
        StoreError::Unreachable {
            address: "here".to_owned(),
            reason: "away".to_owned(),
            sent: true,
        }
    }

    fn waiting(endings: &Endings) -> Vec<JobId> {
        endings.waiting.iter().map(|ended| ended.ending.id.clone()).collect()
    }

    #[test]
    fn batch_is_bounded_and_the_rest_waits() {
        let mut endings = Endings::default();
        endings.waiting.extend((0..=BATCH_LEN_MAX).map(ended));
        assert_eq!(endings.take_batch().len(), BATCH_LEN_MAX);
        assert_eq!(endings.under_way.len(), BATCH_LEN_MAX);
        assert_eq!(waiting(&endings), [id(BATCH_LEN_MAX)]);
    }

    #[test]
    fn batch_that_redis_did_not_get_is_recorded_before_later_ends() {
        let mut endings = Endings::default();
        endings.waiting.extend([ended(1), ended(2)]);
        let batch = endings.take_batch();
        endings.waiting.push(ended(3));
        endings.failed(batch, &away());
        assert_eq!(waiting(&endings), [id(1), id(2), id(3)]);
        assert!(endings.under_way.is_empty());
    }

    #[test]
    fn only_ends_that_stand_are_counted() {
        let mut endings = Endings::default();
        endings.waiting.extend((1..=4).map(ended));
        let batch = endings.take_batch();
        let failed = Recorded::Failed("no".to_owned());
        let recorded = [Recorded::Recorded, Recorded::Before, Recorded::Lost, failed];
        assert_eq!(endings.recorded(&batch, &recorded), 2);
        assert!(endings.under_way.is_empty() && endings.waiting.is_empty());
    }

    #[test]
    fn lines_of_a_job_that_ended_meanwhile_come_before_its_last() {
        let mut endings = Endings::default();
        endings.waiting.push(ended(1));
        endings.put_lines_back(&id(1), vec![line("first")]);
        assert_eq!(endings.waiting[0].lines, [line("first"), line("last")]);
    }
}
