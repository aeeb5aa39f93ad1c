//! Progress bar of a job; draws nothing unless standard error is a terminal.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};

use super::output;
use crate::client::{Client, ClientError, LogFollower};
use crate::proto::job::JobId;
use crate::proto::text::escape;
use crate::store::LogLine;

/// The length of the bar without percentage and text.
const BAR_CHARS: usize = 24;
/// Goes to the start of the line, clears it, and lets the terminal cut off the text at its edge.
const BEGIN: &str = "\r\u{1b}[K\u{1b}[?7l";
/// Lets the terminal wrap lines again.
const END: &str = "\u{1b}[?7h";

/// The live view of a job while a person waits for its end.
pub(super) struct View {
    /// The job's log.
    pub(super) log: LogFollower,
    /// Shows log lines too, not only progress.
    lines: bool,
    /// The latest lines of the output, shown if the job fails: that of a finished job is its result.
    pub(super) output: OutputLines,
    /// The latest lines that were shown.
    seen: OutputLines,
    bar: Bar,
}

impl View {
    /// A view of all lines.
    pub(super) fn of_lines(client: &Client, id: &JobId) -> Self {
        let (output, seen) = (OutputLines::default(), OutputLines::default());
        Self { log: client.follow_job_logs(id), lines: true, output, seen, bar: Bar::new() }
    }

    /// Returns the latest lines that were shown.
    pub(super) fn into_seen(self) -> String {
        Vec::from(self.seen.lines).join("\n")
    }

    /// A view of the progress alone, from now on; `None` without a terminal.
    pub(super) async fn of_progress(
        client: &Client,
        id: &JobId,
    ) -> Result<Option<Self>, ClientError> {
        let mut bar = Bar::new();
        if !bar.is_seen {
            return Ok(None);
        }
        let place = LogLine::place_before(client.now().await?);
        let job = client.get_job(id).await?;
        if let Some(fraction) = job.extra.get("progress").and_then(|text| text.parse().ok()) {
            bar.show(fraction, job.extra.get("progress_text").map_or("", String::as_str));
            bar.draw();
        }
        Ok(Some(Self {
            log: client.follow_job_logs_after(id, place),
            lines: false,
            output: OutputLines::default(),
            seen: OutputLines::default(),
            bar,
        }))
    }

    /// Shows the next lines; `false` at the end of the log.
    pub(super) async fn show_some(&mut self) -> bool {
        let Ok(Some(lines)) = self.log.next().await else { return false };
        for LogLine { line, progress, output: is_output, .. } in lines {
            if let Some(fraction) = progress {
                self.bar.show(fraction, &line);
            } else if self.lines && is_output {
                self.output.push(line);
            } else if self.lines {
                self.bar.clear();
                output::log_note(&line);
                self.seen.push(line);
            }
        }
        self.bar.draw();
        true
    }
}

/// The latest lines of the output of a job, within a bound.
#[derive(Debug, Default)]
pub(super) struct OutputLines {
    lines: VecDeque<String>,
    bytes: usize,
}

impl OutputLines {
    const BYTES_MAX: usize = 64 * 1024;

    fn push(&mut self, line: String) {
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.bytes > Self::BYTES_MAX
            && let Some(first) = self.lines.pop_front()
        {
            self.bytes -= first.len() + 1;
        }
    }

    /// Shows them as lines of the log.
    pub(super) fn show(self) {
        self.lines.iter().for_each(|line| output::log_note(line));
    }
}

/// A bar in the last line of the terminal. Dropping it clears the line.
#[derive(Debug)]
pub(super) struct Bar {
    is_seen: bool,
    /// The latest fraction and text.
    latest: Option<(f64, String)>,
    is_drawn: bool,
}

impl Bar {
    /// A bar that shows nothing yet.
    pub(super) fn new() -> Self {
        Self { is_seen: io::stderr().is_terminal(), latest: None, is_drawn: false }
    }

    /// Shows a fraction from 0 to 1 and a text.
    pub(super) fn tell(&mut self, fraction: f64, text: &str) {
        self.show(fraction, text);
        self.draw();
    }

    fn show(&mut self, fraction: f64, text: &str) {
        self.latest = Some((fraction, text.to_owned()));
        self.is_drawn = false;
    }

    fn draw(&mut self) {
        if let Some((fraction, text)) = &self.latest
            && self.is_seen
            && !self.is_drawn
        {
            let _ = write!(io::stderr().lock(), "{BEGIN}{}{END}", drawn(*fraction, text));
            self.is_drawn = true;
        }
    }

    fn clear(&mut self) {
        if self.is_drawn {
            let _ = write!(io::stderr().lock(), "\r\u{1b}[K");
            self.is_drawn = false;
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Formats `[######      ]  25 % reading`.
fn drawn(fraction: f64, text: &str) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 100")]
    let percent = (fraction.clamp(0.0, 1.0) * 100.0).floor() as usize;
    let full = BAR_CHARS * percent / 100;
    let bar = format!("[{:BAR_CHARS$}] {percent:3} % {}", "#".repeat(full), escape(text));
    bar.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_escapes_its_text() {
        assert_eq!(drawn(0.25, "reading"), "[######                  ]  25 % reading");
        assert_eq!(drawn(1.0, ""), "[########################] 100 %");
        assert_eq!(drawn(7.0, ""), drawn(1.0, ""));
        assert_eq!(drawn(0.999, "a\u{1b}[2J"), "[####################### ]  99 % a\\u{1b}[2J");
    }
}
