//! Progress bar of a job; draws nothing unless standard error is a terminal.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};

use serde_json::json;

use super::api::{ApiMethods, JobLog};
use super::output;
use crate::error::Error;
use crate::proto::job::{JobId, JobOutput};
use crate::proto::text::escape;
use crate::store::LogLine;

/// The length of the bar without percentage and text.
const BAR_CHARS: usize = 24;
/// Goes to the start of the line, clears it, and lets the terminal cut off the text at its edge.
pub(super) const BEGIN: &str = "\r\u{1b}[K\u{1b}[?7l";
/// Lets the terminal wrap lines again.
pub(super) const END: &str = "\u{1b}[?7h";

/// The live view of a job while a person waits for its end.
pub(super) struct View<'a> {
    pub(super) log: JobLog<'a>,
    /// Shows log lines too, not only progress.
    lines: bool,
    /// The latest lines of the output, shown if the job fails: the output of a finished job is its result.
    pub(super) output: OutputLines,
    seen: OutputLines,
    /// The output that went to standard output as it came; `None` if it has to wait for the end.
    printed: Option<Printed>,
    bar: Bar,
}

/// The output of a running job that was printed.
#[derive(Debug, Default)]
pub(super) struct Printed {
    text: String,
    /// True once the log does not have the output as it is.
    has_ended: bool,
    /// Leaves control characters as they are at a terminal.
    raw: bool,
}

impl Printed {
    /// The shortest line that the log may have split.
    const SPLIT_BYTES: usize = 16 * 1024 - 4;

    /// Prints a line. Returns false if it has to wait for the end of the job.
    fn print(&mut self, line: &str) -> bool {
        // Of bytes that are not UTF-8 the log has escapes.
        let is_exact =
            line.len() < Self::SPLIT_BYTES && !line.contains("\\x") && !line.starts_with("[hero: ");
        self.has_ended =
            self.has_ended || !is_exact || output::of_job(format!("{line}\n"), self.raw).is_err();
        if !self.has_ended {
            self.text.push_str(line);
            self.text.push('\n');
        }
        !self.has_ended
    }

    /// Returns the rest of an output; all of it if something else was printed, such as the standard output of
    /// a script that reports its output in another way.
    pub(super) fn rest_of(&self, output: JobOutput) -> JobOutput {
        let bytes = output.as_bytes();
        let mut rest = bytes;
        for line in self.text.lines() {
            let Some(after) = rest.strip_prefix(line.as_bytes()) else { return output };
            let end = after.strip_prefix(b"\r\n").or_else(|| after.strip_prefix(b"\n"));
            match end {
                Some(after) => rest = after,
                None if after.is_empty() => rest = after,
                None => return output,
            }
        }
        JobOutput::from(rest.to_vec())
    }
}

impl<'a> View<'a> {
    pub(super) fn of_lines(api: &'a ApiMethods, id: &JobId) -> Self {
        Self::new(api.log(id, None), true, Bar::new())
    }

    fn new(log: JobLog<'a>, lines: bool, bar: Bar) -> Self {
        let (output, seen) = (OutputLines::default(), OutputLines::default());
        Self { log, lines, output, seen, printed: None, bar }
    }

    /// Prints the output of the job as it comes.
    pub(super) fn printing(self, raw: bool) -> Self {
        Self { printed: Some(Printed { raw, ..Printed::default() }), ..self }
    }

    /// Returns the latest lines that were shown, and the output that was printed.
    pub(super) fn into_seen(self) -> (String, Printed) {
        (Vec::from(self.seen.lines).join("\n"), self.printed.unwrap_or_default())
    }

    /// A view of the progress alone, from now on; `None` without a terminal.
    pub(super) async fn of_progress(
        api: &'a ApiMethods,
        id: &JobId,
    ) -> Result<Option<Self>, Error> {
        let mut bar = Bar::new();
        if !bar.is_seen {
            return Ok(None);
        }
        let place = LogLine::place_before(api.now().await?);
        let job = api.call("job.get", json!({ "id": id })).await?;
        if let Some(fraction) = job["progress"].as_f64() {
            bar.tell(fraction, job["progress_text"].as_str().unwrap_or_default());
        }
        Ok(Some(Self::new(api.log(id, Some(place)), false, bar)))
    }

    /// Shows the next lines; `false` at the end of the log.
    pub(super) async fn show_some(&mut self) -> bool {
        let Ok(Some(lines)) = self.log.next().await else { return false };
        for LogLine { line, progress, output: is_output, .. } in lines {
            if let Some(fraction) = progress {
                self.bar.show(fraction, &line);
            } else if self.lines && is_output {
                self.bar.clear();
                if !self.printed.as_mut().is_some_and(|printed| printed.print(&line)) {
                    self.output.push(line);
                }
            } else if self.lines {
                self.bar.clear();
                if let Some(printed) = self.printed.as_mut().filter(|_| begins_attempt(&line)) {
                    // The output of the job comes from its last attempt.
                    *printed = Printed { raw: printed.raw, ..Printed::default() };
                }
                output::log_note(&line);
                self.seen.push(line);
            }
        }
        if self.lines {
            self.bar.show_unfinished(self.log.unfinished());
        }
        self.bar.draw();
        true
    }
}

/// Returns true for the line of the log before a further attempt.
fn begins_attempt(line: &str) -> bool {
    line.starts_with("attempt ") && line.contains(" begins")
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

    pub(super) fn show(self) {
        self.lines.iter().for_each(|line| output::log_note(line));
    }
}

/// A bar in the last line of the terminal. Dropping it clears the line.
#[derive(Debug)]
pub(super) struct Bar {
    is_seen: bool,
    latest: Option<(f64, String)>,
    /// The text after the last line of the log, which is drawn instead; empty if there is none.
    unfinished: String,
    is_drawn: bool,
}

impl Bar {
    pub(super) fn new() -> Self {
        Self {
            is_seen: io::stderr().is_terminal(),
            latest: None,
            unfinished: String::new(),
            is_drawn: false,
        }
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

    fn show_unfinished(&mut self, text: &str) {
        if self.unfinished != text {
            self.clear();
            text.clone_into(&mut self.unfinished);
        }
    }

    fn draw(&mut self) {
        let shown = match &self.latest {
            _ if !self.unfinished.is_empty() => escape(&self.unfinished),
            Some((fraction, text)) => drawn(*fraction, text),
            None => return,
        };
        if self.is_seen && !self.is_drawn {
            let _ = write!(io::stderr().lock(), "{BEGIN}{shown}{END}");
            self.is_drawn = true;
        }
    }

    pub(super) fn clear(&mut self) {
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
    fn rest_of_an_output_follows_what_was_printed() {
        for (printed, output, rest) in [
            ("", "a\nb", "a\nb"),
            ("a\n", "a\nb", "b"),
            ("a\nb\n", "a\r\nb", ""),
            ("a\nb\n", "a\nb\n\n", "\n"),
            ("a\n", "ab", "ab"),
            ("progress\n", "{\"answer\":42}", "{\"answer\":42}"),
        ] {
            let printed = Printed { text: printed.to_owned(), ..Printed::default() };
            let found = printed.rest_of(output.to_owned().into());
            assert_eq!(found.as_bytes(), rest.as_bytes(), "{output}");
        }
        let printed = Printed { text: "a\n".to_owned(), has_ended: true, raw: false };
        let found = printed.rest_of(JobOutput::from(b"a\n\xff".to_vec()));
        assert_eq!(found.as_bytes(), b"\xff");
    }

    #[test]
    fn bar_escapes_its_text() {
        assert_eq!(drawn(0.25, "reading"), "[######                  ]  25 % reading");
        assert_eq!(drawn(1.0, ""), "[########################] 100 %");
        assert_eq!(drawn(7.0, ""), drawn(1.0, ""));
        assert_eq!(drawn(0.999, "a\u{1b}[2J"), "[####################### ]  99 % a\\u{1b}[2J");
    }
}
