//! The live log of a job: a capped stream of lines.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use redis::RedisResult;
use redis::streams::StreamRangeReply;

use super::attempts::millis;
use super::connection::Blocking;
use super::store_error::describe;
use super::text::{stream_text, written_at};
use super::{JobStore, LogStore, Result, Store, StoreError};
use crate::proto::job::{BootId, JobId, JobStatus};
use crate::proto::text::counted;

/// The maximum number of lines of one log; older ones are dropped.
const LINES_MAX: usize = 100_000;
/// The descriptor where children report progress; marks progress in the stream.
const PROGRESS_FD: u8 = 3;
const READING: &str = "reading the log of a job";
/// The field of a running job with the text after the last line of its log.
const UNFINISHED_LINE: &str = "unfinished_line";

/// An entry that an actor writes into a log.
#[derive(Debug, Clone, PartialEq)]
pub enum LogEntry {
    /// A line of a stream: 1 for standard output, 2 for standard error.
    Line {
        fd: u8,
        /// The text, without its line end.
        line: String,
        /// True for a line of the job's output.
        output: bool,
    },
    /// The progress of the job, which goes to its hash as well.
    Progress {
        /// From 0 to 1.
        fraction: f64,
        /// The current step; may be empty.
        text: String,
    },
    /// The text after the last line without a line end yet, which goes to the hash alone; empty if there is none.
    Unfinished { text: String },
    /// The number of lines so far that Redis refused.
    Missing { lines: u64 },
}

impl LogEntry {
    /// A line of the job's output.
    pub fn output(line: impl Into<String>) -> Self {
        Self::Line { fd: 1, line: line.into(), output: true }
    }
}

/// The lines of one job's log that Redis refused; they are dropped.
#[derive(Debug)]
pub struct RefusedLines {
    pub id: JobId,
    pub lines: u64,
    /// The key, and the error of Redis.
    pub reason: String,
}

#[derive(Debug, Default)]
pub struct AppendedLogs {
    pub refused: Vec<RefusedLines>,
    /// The last entry that Redis took of each log.
    pub last: HashMap<JobId, String>,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LogLine {
    /// Its position in the stream, to continue after it: `MILLISECONDS-NUMBER`.
    pub id: String,
    /// 1 for standard output, 2 for standard error, 3 for progress.
    pub fd: u8,
    /// The text, without its line end.
    pub line: String,
    /// The progress from 0 to 1, if this is an entry about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// True for a line of the job's output, which has it as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output: bool,
}

impl LogLine {
    /// The time when it was written, by Redis's clock.
    pub fn time(&self) -> Option<Timestamp> {
        written_at(&self.id)
    }

    /// The position before all lines of this time or later, by Redis's clock.
    pub fn place_before(time: Timestamp) -> String {
        match time.as_millisecond() {
            ms @ 1.. => format!("{}-{}", ms - 1, u64::MAX),
            _ => "0-0".to_owned(),
        }
    }
}

impl Store {
    /// The time of Redis's clock, in whole milliseconds.
    pub async fn now(&self) -> Result<Timestamp> {
        const DOING: &str = "asking redis for the time";
        let (s, us): (i64, i64) = self.link.query(DOING, &redis::cmd("TIME")).await?;
        let ms = s.saturating_mul(1000).saturating_add(us / 1000);
        Timestamp::from_millisecond(ms).map_err(|_| StoreError::unexpected(DOING))
    }
}

impl LogStore<'_> {
    /// Appends to the logs of jobs that `boot` runs, in one round trip. `keep` is the TTL of a log
    /// after its last line. Redis may refuse lines, because its memory is full or the key has the wrong type: nothing else
    /// depends on a log.
    ///
    /// # Errors
    /// [`StoreError`]; nothing was written.
    pub async fn append<'a>(
        self,
        boot: &BootId,
        entries: impl IntoIterator<Item = (&'a JobId, &'a LogEntry)>,
        keep: Duration,
    ) -> Result<AppendedLogs> {
        let mut pipeline = redis::pipe();
        if self.store.keys.namespace().is_hash_tag() {
            // While a slot is being moved, a part could be written, and then all of it again.
            pipeline.atomic();
        }
        // For each command that may be refused: its job, and the lines that are lost with it.
        let mut sent: Vec<(&JobId, u64)> = Vec::new();
        let (mut loaded, mut is_empty) = (false, true);
        for (id, entry) in entries {
            is_empty = false;
            if let LogEntry::Unfinished { text } = entry {
                let fields = [(UNFINISHED_LINE, text.as_str())];
                self.add_fields(&mut pipeline, &mut loaded, boot, id, &fields);
                continue;
            }
            let log = self.store.keys.log(id);
            let is_first = sent.last().is_none_or(|(last, _)| *last != id);
            let command = pipeline.cmd("XADD").arg(&log).arg("MAXLEN").arg("~").arg(LINES_MAX);
            command.arg("*").arg("fd");
            sent.push((id, u64::from(matches!(entry, LogEntry::Line { .. }))));
            match entry {
                LogEntry::Line { fd, line, output } => {
                    command.arg(fd).arg("line").arg(line);
                    if *output {
                        command.arg("output").arg(1);
                    }
                }
                LogEntry::Missing { lines } => {
                    let one = "line of this log is missing: redis refused it";
                    let more = "lines of this log are missing: redis refused them";
                    let line = counted(*lines, one, more);
                    command.arg(2).arg("line").arg(line);
                }
                LogEntry::Progress { fraction, text } => {
                    let fraction = ((fraction * 10_000.0).round() / 10_000.0).to_string();
                    command.arg(PROGRESS_FD).arg("line").arg(text);
                    command.arg("progress").arg(&fraction);
                    let fields = [("progress", fraction.as_str()), ("progress_text", text)];
                    self.add_fields(&mut pipeline, &mut loaded, boot, id, &fields);
                }
                LogEntry::Unfinished { .. } => {}
            }
            if is_first {
                pipeline.cmd("PEXPIRE").arg(&log).arg(millis(keep)).ignore();
            }
        }
        if is_empty {
            return Ok(AppendedLogs::default());
        }
        let doing = "writing the log of a job";
        let answers: Vec<RedisResult<String>> =
            self.store.link.pipeline(doing, pipeline.ignore_errors()).await?;
        self.appended(doing, sent.into_iter().zip(answers))
    }

    /// Adds the call that writes fields of the hash of a running job.
    fn add_fields(
        self,
        pipeline: &mut redis::Pipeline,
        loaded: &mut bool,
        boot: &BootId,
        id: &JobId,
        fields: &[(&str, &str)],
    ) {
        // A pipeline cannot load a script that Redis has forgotten, so it carries this short one, once.
        if !std::mem::replace(loaded, true) {
            pipeline.load_script(&self.store.scripts.progress).ignore();
        }
        let mut script = self.store.scripts.progress.prepare_invoke();
        script.arg(boot.as_str()).arg(id.as_str());
        for (name, value) in fields {
            script.arg(*name).arg(*value);
        }
        pipeline.invoke_script(&script).ignore();
    }

    /// Returns what became of the entries. Any other failure than a refused line is one of the whole call.
    fn appended<'a>(
        self,
        doing: &'static str,
        answers: impl Iterator<Item = ((&'a JobId, u64), RedisResult<String>)>,
    ) -> Result<AppendedLogs> {
        let AppendedLogs { mut refused, mut last } = AppendedLogs::default();
        for ((id, lines), answer) in answers {
            let error = match answer {
                Ok(entry) => {
                    last.insert(id.clone(), entry);
                    continue;
                }
                Err(error) => error,
            };
            let said = StoreError::new(&self.store.address(), doing, &error);
            if said.is_transient() && error.code() != Some("OOM") {
                return Err(said);
            }
            if let Some(last) = refused.last_mut().filter(|last| last.id == *id) {
                last.lines += lines;
            } else {
                let reason = format!("{}: {}", self.store.keys.log(id), describe(&error));
                refused.push(RefusedLines { id: id.clone(), lines, reason });
            }
        }
        Ok(AppendedLogs { refused, last })
    }

    /// Reads up to `limit` lines of a log after the one named, or from the start.
    pub async fn read(self, id: &JobId, after: Option<&str>, limit: usize) -> Result<Vec<LogLine>> {
        let from = after.map_or_else(|| "-".to_owned(), |after| format!("({after}"));
        let arguments = (self.store.keys.log(id), from, "+", "COUNT", limit);
        let reply: StreamRangeReply = self.store.link.command(READING, "XRANGE", arguments).await?;
        Ok(reply.ids.into_iter().map(log_line).collect())
    }

    /// Reads the last `limit` lines of a log before a given line, or before its end, the oldest first.
    pub async fn read_before(
        self,
        id: &JobId,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<LogLine>> {
        let end = before.map_or_else(|| "+".to_owned(), |line| format!("({line}"));
        let arguments = (self.store.keys.log(id), end, "-", "COUNT", limit);
        let reply: StreamRangeReply =
            self.store.link.command(READING, "XREVRANGE", arguments).await?;
        Ok(reply.ids.into_iter().rev().map(log_line).collect())
    }

    /// Reads the last line of each of these logs, in one round trip; empty without one.
    pub async fn last_lines(self, ids: &[&JobId]) -> Result<Vec<String>> {
        let last = |id: &&JobId| ("XREVRANGE", (self.store.keys.log(id), "+", "-", "COUNT", 1));
        let found: Vec<Option<StreamRangeReply>> = self.store.link.each(READING, ids, last).await?;
        let line = |of: Option<StreamRangeReply>| Some(log_line(of?.ids.pop()?).line);
        Ok(found.into_iter().map(|of| line(of).unwrap_or_default()).collect())
    }

    /// Waits up to `timeout` for lines of a log after the one named, on a connection of its own.
    pub async fn follow(
        self,
        connection: &mut Blocking,
        id: &JobId,
        after: Option<&str>,
        timeout: Duration,
    ) -> Result<Vec<LogLine>> {
        let (doing, after) = ("following the log of a job", after.unwrap_or("0"));
        let entries = connection.follow(doing, self.store.keys.log(id), after, timeout).await?;
        Ok(entries.into_iter().map(log_line).collect())
    }
}

impl JobStore<'_> {
    /// Reads the state of a job, the text after the last line of its log while it runs, and the time of its creation.
    /// `None` if the job does not exist, or its status is illegal.
    pub async fn state_and_unfinished(
        self,
        id: &JobId,
    ) -> Result<Option<(JobStatus, String, Option<Timestamp>)>> {
        const FIELDS: [&str; 3] = ["status", UNFINISHED_LINE, "created_at"];
        let doing = "reading the state of a job";
        let of = self.store.link.fields(doing, self.store.keys.job(id), &FIELDS).await?;
        Ok(of.parsed("status").map(|status| {
            let text = of.text(UNFINISHED_LINE).filter(|_| status == JobStatus::Started);
            (status, text.unwrap_or_default().to_owned(), of.parsed("created_at"))
        }))
    }
}

fn log_line(entry: redis::streams::StreamId) -> LogLine {
    let fd = entry.get::<u8>("fd").filter(|fd| matches!(fd, 2 | 3)).unwrap_or(1);
    let line = stream_text(&entry, "line");
    // A foreign program may have written anything.
    let progress = entry.get::<f64>("progress").filter(|fraction| (0.0..=1.0).contains(fraction));
    let progress = progress.filter(|_| fd == PROGRESS_FD);
    let output = fd == 1 && entry.get::<String>("output").is_some_and(|flag| flag == "1");
    LogLine { fd, line, progress, output, id: entry.id }
}
