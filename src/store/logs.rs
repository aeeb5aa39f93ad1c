//! The live log of a job: a capped stream of lines.

use std::time::Duration;

use redis::streams::{StreamRangeReply, StreamReadReply};

use super::attempts::millis;
use super::link::Blocking;
use super::{Store, StoreError};
use crate::proto::job::JobId;

/// Most lines that one log keeps; older ones go first.
const LINES_MAX: usize = 100_000;

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LogLine {
    /// Its place in the stream, to go on reading after it: `MILLISECONDS-NUMBER`.
    pub id: String,
    /// 1 for standard output, 2 for standard error.
    pub fd: u8,
    /// The text, without its line end.
    pub line: String,
}

impl Store {
    /// Appends lines to the logs of jobs, in one round trip. `keep` is how long a log outlives
    /// its last line.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn append_logs<'a>(
        &self,
        lines: impl IntoIterator<Item = (&'a JobId, u8, &'a str)>,
        keep: Duration,
    ) -> Result<(), StoreError> {
        let mut pipeline = redis::pipe();
        let mut last: Option<&JobId> = None;
        for (id, fd, line) in lines {
            let log = self.keys.log(id);
            pipeline
                .cmd("XADD")
                .arg(&log)
                .arg("MAXLEN")
                .arg("~")
                .arg(LINES_MAX)
                .arg("*")
                .arg("fd")
                .arg(fd)
                .arg("line")
                .arg(line)
                .ignore();
            if last != Some(id) {
                pipeline.cmd("PEXPIRE").arg(&log).arg(millis(keep)).ignore();
                last = Some(id);
            }
        }
        if last.is_none() {
            return Ok(());
        }
        self.link.pipeline::<()>("writing the log of a job", &pipeline).await
    }

    /// Reads up to `limit` lines of a log after the one named, or from the start.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn read_log(
        &self,
        id: &JobId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<LogLine>, StoreError> {
        let from = after.map_or_else(|| "-".to_owned(), |after| format!("({after}"));
        let mut command = redis::cmd("XRANGE");
        command.arg(self.keys.log(id)).arg(from).arg("+").arg("COUNT").arg(limit);
        let reply: StreamRangeReply = self.link.query("reading the log of a job", &command).await?;
        Ok(reply.ids.into_iter().map(log_line).collect())
    }

    /// Waits up to `timeout` for lines of a log after the one named, on a connection of its own.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn follow_log(
        &self,
        connection: &mut Blocking,
        id: &JobId,
        after: Option<&str>,
        timeout: Duration,
    ) -> Result<Vec<LogLine>, StoreError> {
        const LINES_PER_READ: usize = 1000;
        let mut command = redis::cmd("XREAD");
        command
            .arg("COUNT")
            .arg(LINES_PER_READ)
            .arg("BLOCK")
            .arg(millis(timeout))
            .arg("STREAMS")
            .arg(self.keys.log(id))
            .arg(after.unwrap_or("0"));
        let reply: Option<StreamReadReply> =
            connection.query("following the log of a job", &command, timeout).await?;
        Ok(reply
            .into_iter()
            .flat_map(|reply| reply.keys)
            .flat_map(|key| key.ids)
            .map(log_line)
            .collect())
    }
}

fn log_line(entry: redis::streams::StreamId) -> LogLine {
    let fd = entry.get::<u8>("fd").filter(|fd| *fd == 2).unwrap_or(1);
    let line = entry.get::<Vec<u8>>("line").unwrap_or_default();
    LogLine { fd, line: String::from_utf8_lossy(&line).into_owned(), id: entry.id }
}
