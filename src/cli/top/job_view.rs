//! One job on the screen: its fields, and its log while it grows.

use std::collections::VecDeque;

use crate::cli::job::show::readable;
use crate::cli::terminal_style::TerminalStyle;
use crate::proto::job::{Job, JobId};
use crate::proto::text::{at_terminal, escape, escape_lines};
use crate::store::LogLine;

const LINES_MAX: usize = 2000;

pub(super) struct JobView {
    pub(super) id: JobId,
    /// Its fields as lines; none until it was read.
    pub(super) fields: Vec<String>,
    pub(super) log: VecDeque<String>,
    /// The text after the last line; empty if there is none.
    unfinished: String,
    /// Lines between the end of the log and the last line that is shown. 0 follows the log.
    above_end: usize,
}

impl JobView {
    pub(super) fn new(id: JobId) -> Self {
        Self {
            id,
            fields: Vec::new(),
            log: VecDeque::new(),
            unfinished: String::new(),
            above_end: 0,
        }
    }

    pub(super) fn show(&mut self, job: &Job) {
        let text = escape_lines(&readable(job, None, &job.attempts, TerminalStyle::PLAIN));
        self.fields = text.lines().map(str::to_owned).collect();
    }

    pub(super) fn add(&mut self, lines: Vec<LogLine>, unfinished: &str) {
        self.unfinished = escape(unfinished);
        for line in lines {
            let text = match line.progress {
                Some(fraction) => format!("{:3.0}% {}", fraction * 100.0, line.line),
                None => at_terminal(&line.line).to_owned(),
            };
            self.log.push_back(escape(&text));
            // Who has scrolled up keeps the lines that are shown.
            self.above_end += usize::from(self.above_end > 0);
            if self.log.len() > LINES_MAX {
                self.log.pop_front();
            }
        }
        self.above_end = self.above_end.min(self.log.len());
    }

    /// Scrolls down so many lines.
    pub(super) fn scroll(&mut self, lines: isize) {
        let above_end = self.above_end.saturating_add_signed(lines.saturating_neg());
        self.above_end = above_end.min(self.log.len().saturating_sub(1));
    }

    pub(super) fn follows(&self) -> bool {
        self.above_end == 0
    }

    /// The lines of the log that a window of this height shows, and the text after the last one.
    pub(super) fn log_shown(&self, height: usize) -> impl Iterator<Item = &str> {
        let unfinished = Some(self.unfinished.as_str());
        let unfinished = unfinished.filter(|text| self.follows() && !text.is_empty());
        let height = height - usize::from(unfinished.is_some() && height > 0);
        let end = self.log.len() - self.above_end.min(self.log.len());
        let begin = end.saturating_sub(height);
        self.log
            .range(begin..end.max((begin + height).min(self.log.len())))
            .map(String::as_str)
            .chain(unfinished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view_of(lines: usize) -> JobView {
        let mut view = JobView::new("a".parse().expect("legal"));
        view.add((0..lines).map(line).collect(), "");
        view
    }

    fn line(number: usize) -> LogLine {
        LogLine {
            id: String::new(),
            fd: 1,
            line: number.to_string(),
            progress: None,
            output: false,
        }
    }

    fn shown(view: &JobView) -> Vec<&str> {
        view.log_shown(3).collect()
    }

    #[test]
    fn log_is_followed_until_one_scrolls_up() {
        let mut view = view_of(9);
        assert_eq!(shown(&view), ["6", "7", "8"]);
        view.scroll(-2);
        view.add(vec![line(9)], "");
        assert_eq!(shown(&view), ["4", "5", "6"]);
        view.scroll(isize::MAX);
        assert_eq!(shown(&view), ["7", "8", "9"]);
        view.scroll(isize::MIN);
        assert_eq!(shown(&view), ["0", "1", "2"]);
    }

    #[test]
    fn unfinished_line_stands_below_the_last_line() {
        let mut view = view_of(9);
        view.add(vec![line(9)], "10%\u{1b}");
        assert_eq!(shown(&view), ["8", "9", "10%\\u{1b}"]);
        view.scroll(-1);
        assert_eq!(shown(&view), ["6", "7", "8"]);
        view.scroll(1);
        view.add(Vec::new(), "");
        assert_eq!(shown(&view), ["7", "8", "9"]);
    }

    #[test]
    fn long_log_keeps_its_latest_lines() {
        let view = view_of(LINES_MAX + 5);
        assert_eq!(view.log.front().map(String::as_str), Some("5"));
        assert!(view_of(0).log_shown(3).next().is_none());
    }
}
