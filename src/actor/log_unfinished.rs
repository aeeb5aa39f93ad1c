//! The text at the end of a running job's log that has no line end yet, such as a progress bar or a question.
//! It stands in the hash of the job while it lasts, and is no line of the log. Pure.

use std::time::{Duration, Instant};

use crate::store::LogEntry;

/// The time that a text stands without a line end before it is shown.
const SHOWN_AFTER: Duration = Duration::from_millis(200);
/// The shortest time between two writes while no line comes.
const WRITE_EVERY: Duration = Duration::from_millis(250);
/// The longest text that is shown, in characters: the end of a longer one.
const CHARS_MAX: usize = 1000;

/// The unfinished line of one job, of the stream that was written last.
#[derive(Debug, Default)]
pub(super) struct UnfinishedLine {
    standing: Option<StandingText>,
    /// The text in the hash of the job; empty if there is none.
    shown: String,
    /// The earliest time of the next write while no line comes.
    next_at: Option<Instant>,
    /// The writer knows that it has to look.
    is_awaited: bool,
}

#[derive(Debug)]
struct StandingText {
    fd: u8,
    text: String,
    /// The begin of its line.
    since: Instant,
    /// The text is not in the hash.
    is_news: bool,
}

impl UnfinishedLine {
    /// Takes the text that stands in a stream; empty once its line has ended. Returns whether the writer must
    /// be reported.
    pub(super) fn set(&mut self, fd: u8, text: &str, now: Instant) -> bool {
        let before = self.standing.take_if(|standing| !text.is_empty() || standing.fd == fd);
        if text.is_empty() {
            return before.is_some() && !self.shown.is_empty();
        }
        let before = before.filter(|before| before.fd == fd);
        let since = before.as_ref().map_or(now, |before| before.since);
        let is_news = before.is_none_or(|before| before.is_news || before.text != text);
        self.standing = Some(StandingText { fd, text: text.to_owned(), since, is_news });
        is_news && !std::mem::replace(&mut self.is_awaited, true)
    }

    /// Adds to the lines that are written now what makes the hash right: no text of theirs before them, and the
    /// text after them. Standard output is shown from `live_at` on. Returns the time of the next look.
    pub(super) fn add_to(
        &mut self,
        lines: &mut Vec<LogEntry>,
        now: Instant,
        live_at: Instant,
        hide: impl Fn(&str) -> String,
    ) -> Option<Instant> {
        let has_lines = !lines.is_empty();
        if has_lines && !self.shown.is_empty() {
            lines.insert(0, self.cleared());
        }
        self.is_awaited = false;
        let Some(standing) = &mut self.standing else {
            if !self.shown.is_empty() {
                lines.push(self.cleared());
            }
            return None;
        };
        if !standing.is_news && !has_lines {
            return None;
        }
        let begin = standing.since + SHOWN_AFTER;
        let begin = if standing.fd == 1 { begin.max(live_at) } else { begin };
        let due = self.next_at.filter(|_| !has_lines).map_or(begin, |next| begin.max(next));
        if due > now {
            self.is_awaited = true;
            // The shown text is of a line that has ended.
            if begin > now && !self.shown.is_empty() {
                lines.push(self.cleared());
            }
            return Some(due);
        }
        standing.is_news = false;
        let text = end_of(&hide(&standing.text));
        if text != self.shown {
            self.next_at = Some(now + WRITE_EVERY);
            self.shown.clone_from(&text);
            lines.push(LogEntry::Unfinished { text });
        }
        None
    }

    /// Adds to the last lines of a job what removes the text from its hash.
    pub(super) fn end(&mut self, lines: &mut Vec<LogEntry>) {
        self.standing = None;
        if !self.shown.is_empty() {
            lines.insert(0, self.cleared());
        }
    }

    fn cleared(&mut self) -> LogEntry {
        self.shown.clear();
        LogEntry::Unfinished { text: String::new() }
    }
}

fn end_of(text: &str) -> String {
    match text.char_indices().rev().nth(CHARS_MAX) {
        Some((at, first)) => format!("…{}", &text[at + first.len_utf8()..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfinished(text: &str) -> LogEntry {
        LogEntry::Unfinished { text: text.to_owned() }
    }

    /// Returns the text to write at a time, in milliseconds after the start, and when the next look is due.
    fn at(
        line: &mut UnfinishedLine,
        start: Instant,
        ms: u64,
        mut lines: Vec<LogEntry>,
    ) -> (Vec<LogEntry>, Option<u64>) {
        let now = start + Duration::from_millis(ms);
        let next = line.add_to(&mut lines, now, start, str::to_owned);
        let next = next.map(|next| next.duration_since(start).as_millis());
        (lines, next.map(|ms| u64::try_from(ms).expect("small")))
    }

    #[test]
    fn text_is_shown_after_a_while_and_its_line_takes_its_place() {
        let (mut line, start) = (UnfinishedLine::default(), Instant::now());
        assert!(line.set(2, "Continue? ", start), "the writer is told once");
        assert!(!line.set(2, "Continue? [y/N]", start));
        assert_eq!(at(&mut line, start, 50, vec![]), (vec![], Some(200)));
        assert_eq!(at(&mut line, start, 200, vec![]).0, [unfinished("Continue? [y/N]")]);
        assert_eq!(at(&mut line, start, 900, vec![]), (vec![], None), "nothing is written again");
        line.set(2, "", start);
        let whole = LogEntry::output("Continue? [y/N] y");
        let (written, next) = at(&mut line, start, 901, vec![whole.clone()]);
        assert_eq!((written, next), (vec![unfinished(""), whole], None));
    }

    #[test]
    fn writes_of_a_moving_bar_keep_their_distance() {
        let (mut line, start) = (UnfinishedLine::default(), Instant::now());
        let mut writes = 0;
        for ms in (0..10_000).step_by(10) {
            line.set(2, &format!("{ms}"), start + Duration::from_millis(ms));
            writes += at(&mut line, start, ms, vec![]).0.len();
        }
        assert!((38..=41).contains(&writes), "{writes}");
    }

    #[test]
    fn text_stays_below_the_lines_of_the_other_stream() {
        let (mut line, start) = (UnfinishedLine::default(), Instant::now());
        line.set(2, "10%", start);
        at(&mut line, start, 200, vec![]);
        let other = LogEntry::output("a");
        let (written, _) = at(&mut line, start, 210, vec![other.clone()]);
        assert_eq!(written, [unfinished(""), other, unfinished("10%")]);
        let mut last = Vec::new();
        line.end(&mut last);
        assert_eq!(last, [unfinished("")]);
    }

    #[test]
    fn long_text_is_its_end() {
        assert_eq!(end_of("short"), "short");
        let cut = end_of(&format!("{}é", "x".repeat(5000)));
        assert!(cut.starts_with("…x") && cut.ends_with('é'));
        assert_eq!(cut.chars().count(), CHARS_MAX + 1);
    }
}
