//! How far a job has come, as a bar on a terminal; nothing where standard error is none.

use std::io::{self, IsTerminal, Write};

use super::output;
use super::table::escape;
use crate::client::{Client, ClientError, LogFollower};
use crate::proto::job::JobId;
use crate::store::LogLine;

/// The length of the bar itself.
const BAR_CHARS: usize = 24;
/// How wide a terminal is that does not say so.
const USUAL_WIDTH: usize = 80;

/// What a person sees of a job who waits for its end.
pub(super) struct View {
    /// What has been logged.
    pub(super) log: LogFollower,
    /// Whether its lines are shown, and not only the progress.
    pub(super) lines: bool,
    pub(super) bar: Bar,
}

impl View {
    /// One of the progress alone, from now on; none where nobody would see it.
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
        Ok(Some(Self { log: client.follow_job_logs_after(id, place), lines: false, bar }))
    }

    /// Shows what comes next; `false` if there is no more.
    pub(super) async fn show_some(&mut self) -> bool {
        let Ok(Some(lines)) = self.log.next().await else { return false };
        for LogLine { line, progress, .. } in lines {
            if let Some(fraction) = progress {
                self.bar.show(fraction, &line);
            } else if self.lines {
                self.bar.clear();
                output::note(&line);
            }
        }
        self.bar.draw();
        true
    }
}

/// A bar in the last line of the terminal. It goes when it is dropped.
#[derive(Debug)]
pub(super) struct Bar {
    is_seen: bool,
    /// What it shows.
    latest: Option<(f64, String)>,
    is_drawn: bool,
}

impl Bar {
    /// One that shows nothing yet.
    pub(super) fn new() -> Self {
        Self { is_seen: io::stderr().is_terminal(), latest: None, is_drawn: false }
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
            // Back to the start of the line, and what is behind its new end away.
            let _ = write!(io::stderr().lock(), "\r{}\u{1b}[K", drawn(*fraction, text, width()));
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

fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0).unwrap_or(USUAL_WIDTH)
}

/// `[######      ]  25 % reading`, in one line of a terminal so wide.
fn drawn(fraction: f64, text: &str, width: usize) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 100")]
    let percent = (fraction.clamp(0.0, 1.0) * 100.0).floor() as usize;
    let full = BAR_CHARS * percent / 100;
    let bar = format!("[{:BAR_CHARS$}] {percent:3} % {}", "#".repeat(full), escape(text));
    // The last column stays free: a terminal may go on to the next line behind it.
    bar.chars().take(width.saturating_sub(1)).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fits_its_terminal_and_moves_no_cursor() {
        assert_eq!(drawn(0.25, "reading", 80), "[######                  ]  25 % reading");
        assert_eq!(drawn(1.0, "", 80), "[########################] 100 %");
        assert_eq!(drawn(7.0, "", 80), drawn(1.0, "", 80));
        assert_eq!(drawn(0.999, "a\u{1b}[2J", 80), "[####################### ]  99 % a\\u{1b}[2J");
        for width in [0, 1, 10, 40] {
            assert!(drawn(0.5, &"long ".repeat(50), width).chars().count() <= width, "{width}");
        }
    }
}
