//! The log of a job: as a pane of the page, and as text.

use std::fmt::Write as _;

use serde::Deserialize;

use super::super::doc::JobDoc;
use super::super::parts::given;
use super::super::prelude::*;
use super::attempts::ShownAttempt;
use crate::client::Client;
use crate::proto::job::{JobId, JobStatus};
use crate::proto::text::at_terminal;
use crate::store::LogLine;

/// The number of lines in the pane.
pub(super) const LINES_SHOWN: usize = 500;
/// The longest line in the pane, in characters.
const LINE_MAX: usize = 4_000;

/// The part of a log that a visitor looks at; the end of it if both are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(in crate::web) struct LogView {
    /// The text that its lines have.
    find: String,
    /// The id of the line before which it ends.
    before: String,
}

impl LogView {
    /// Returns true if the pane shows the end of the log, which is kept current.
    pub(super) fn is_end(&self) -> bool {
        self.find.trim().is_empty() && self.before.is_empty()
    }

    pub(super) async fn lines(&self, client: &Client, id: &JobId) -> PageResult<Vec<LogLine>> {
        if !self.before.is_empty() && !is_place(&self.before) {
            return Err(PageError::wrong("Give before as the id of a line."));
        }
        let (before, find) = (given(&self.before), self.find.trim());
        Ok(client.logs().before(id, before, find, LINES_SHOWN).await?)
    }

    /// Returns the address of the pane with the lines before a line.
    fn address(&self, links: &SiteLinks, job: &JobDoc, before: &str) -> String {
        links.with(&page_of("jobs", job.id()), &[("find", self.find.trim()), ("before", before)])
            + "#logh"
    }
}

/// Returns true if a text is the id of a line: two numbers.
pub(super) fn is_place(text: &str) -> bool {
    let is_number = |part: &str| part.parse::<u64>().is_ok();
    text.split_once('-').is_some_and(|(time, number)| is_number(time) && is_number(number))
}

/// Returns the class of a line, its mark and the meaning of the mark.
fn origin(line: &LogLine) -> (&'static str, &'static str, &'static str) {
    match line.fd {
        1 => ("o", "1", "standard output"),
        2 => ("e", "2", "standard error"),
        _ => ("p", "▸", "progress"),
    }
}

fn text_of(line: &LogLine) -> String {
    match line.progress {
        Some(share) => format!("{:.0} %  {}", share * 100.0, line.line),
        None => at_terminal(&line.line).to_owned(),
    }
}

/// Returns the lines, and a rule where an attempt begins; each with its id.
pub(super) fn rows(
    lines: &[LogLine],
    attempts: &[ShownAttempt],
    find: &str,
) -> Vec<(String, Markup)> {
    let first = lines.first().and_then(LogLine::time);
    // The attempt of the first line begins before it.
    let before =
        attempts.iter().filter(|of| first.is_some_and(|first| of.started <= first)).count();
    let mut rest = attempts.iter().enumerate().skip(before.saturating_sub(1)).peekable();
    let mut rows = Vec::with_capacity(lines.len() + attempts.len());
    for line in lines {
        let at = line.time();
        while let Some((place, attempt)) =
            rest.next_if(|(_, attempt)| at.is_some_and(|at| attempt.started <= at))
        {
            rows.push(rule(place, attempt));
        }
        rows.push(row(line, find));
    }
    rows
}

fn rule(place: usize, attempt: &ShownAttempt) -> (String, Markup) {
    let id = format!("attempt-{place}");
    let number = attempt.number.map_or_else(String::new, |number| format!(" {number}"));
    let actor = if attempt.actor.is_empty() { "" } else { ", " };
    let text = html! { li.sep #(id) { "Attempt" (number) (actor) (attempt.actor) } };
    (id, text)
}

fn row(line: &LogLine, find: &str) -> (String, Markup) {
    let id = format!("L{}", line.id);
    let (class, mark, meaning) = origin(line);
    let text = text_of(line);
    let cut: String = text.chars().take(LINE_MAX).collect();
    let is_cut = cut.len() < text.len();
    let row = html! {
        li #(id) class=(class) {
            @if let Some(at) = line.time() {
                time datetime=(format!("{at:.3}")) title=(format!("{at:.3}")) data-clock="ms" {
                    (at.strftime("%H:%M:%S.%3f"))
                }
            } @else { time {} }
            i title=(meaning) { (mark) }
            span { (marked(&cut, find)) @if is_cut { "…" } }
        }
    };
    (id, row)
}

/// Returns a line with the text that was searched for marked where it stands first.
fn marked(line: &str, find: &str) -> Markup {
    let place = line.to_ascii_lowercase().find(&find.to_ascii_lowercase());
    match place.filter(|_| !find.is_empty()) {
        None => html! { (line) },
        Some(start) => {
            let (before, rest) = line.split_at(start);
            let (found, after) = rest.split_at(find.len());
            html! { (before) mark { (found) } (after) }
        }
    }
}

pub(super) fn pane(
    links: &SiteLinks,
    job: &JobDoc,
    view: &LogView,
    log: &[LogLine],
    attempts: &[ShownAttempt],
) -> Markup {
    let is_running = !job.status().is_terminal() && view.is_end();
    let own = links.job(job.id());
    html! {
        section {
            div.bar {
                h2 #logh { "Log " (count_of(log)) }
                form.log-find action={ (own) "#logh" } role="search" aria-label="Search the log" {
                    input type="search" name="find" value=(view.find.trim()) size="14"
                        placeholder="Search the log" aria-label="Text in the log";
                    button { "Search" }
                    @if !view.is_end() { a href={ (own) "#logh" } { "Whole log" } }
                }
                a.dl href={ (own) "/log" } { "Download" }
                button.plain type="button" data-toggle=".log" data-class="only" aria-pressed="false" {
                    "Standard error only"
                }
                button.plain type="button" data-toggle=".log" data-class="nowrap" aria-pressed="false" {
                    "Do not wrap"
                }
                @if is_running { button.plain #follow type="button" aria-pressed="true" { "Follow" } }
            }
            div.log role="log" aria-labelledby="logh" aria-live="off" tabindex="0" {
                @if log.len() >= LINES_SHOWN {
                    p.more { a href=(view.address(links, job, &log[0].id)) { "Earlier lines" } }
                }
                ol #log-lines {
                    @for (_, row) in rows(log, attempts, view.find.trim()) { (row) }
                }
                @if view.is_end() { (unfinished(job)) }
                @if view.is_end() { (nothing(job, log)) }
                @else if log.is_empty() { p.empty { "No line has this text." } }
                @if !view.before.is_empty() {
                    p.more { a href=(view.address(links, job, "")) { "Latest lines" } }
                }
            }
        }
    }
}

/// Returns the text after the last line of a running job, which has no line end yet.
pub(super) fn unfinished(job: &JobDoc) -> Markup {
    let text = if job.status() == JobStatus::Started { job.text("unfinished_line") } else { "" };
    let cut: String = text.chars().take(LINE_MAX).collect();
    html! {
        ol #log-unfinished {
            @if !cut.is_empty() {
                li.u { time {} i title="a line that has not ended" { "…" } span { (cut) } }
            }
        }
    }
}

/// Returns a sentence about the empty log of a job that has ended: a short script may have written to its output alone.
pub(super) fn nothing(job: &JobDoc, log: &[LogLine]) -> Markup {
    let is_empty = log.is_empty() && job.status().is_terminal();
    html! {
        div #log-nothing {
            @if is_empty && job.text("output").is_empty() { p.empty { "The script wrote nothing." } }
            @else if is_empty { p.empty { "The log is empty. The script has an " a href="#output" { "output" } "." } }
        }
    }
}

pub(super) fn count_of(lines: &[LogLine]) -> Markup {
    html! {
        small #log-count {
            @if lines.len() >= LINES_SHOWN { "the last " (LINES_SHOWN) " lines" }
            @else if lines.len() == 1 { "1 line" }
            @else { (lines.len()) " lines" }
        }
    }
}

/// Returns lines as text: the time, the descriptor and the line, as it was written.
pub(super) fn text(lines: &[LogLine]) -> String {
    let mut text = String::new();
    for line in lines {
        let at = line.time().map(|at| format!("{at:.3}")).unwrap_or_default();
        let whole = if line.progress.is_some() { &text_of(line) } else { &line.line };
        let _ = writeln!(text, "{at} {} {whole}", line.fd);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use jiff::Timestamp;

    use super::*;

    fn line(id: &str, fd: u8, text: &str) -> LogLine {
        LogLine { id: id.to_owned(), fd, line: text.to_owned(), progress: None, output: false }
    }

    fn attempt(number: u64, second: i64) -> ShownAttempt {
        ShownAttempt {
            number: Some(number),
            started: Timestamp::from_second(second).expect("in range"),
            ended: None,
            actor: "a:b:1".to_owned(),
            machine: String::new(),
            class: "error",
            word: "Error",
            error: String::new(),
        }
    }

    #[test]
    fn each_attempt_begins_with_a_rule() {
        let lines = [line("1000-0", 1, "a"), line("5000-0", 2, "b"), line("5000-1", 2, "c")];
        let ids: Vec<String> = rows(&lines, &[attempt(1, 1), attempt(2, 4), attempt(3, 60)], "")
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        assert_eq!(ids, ["attempt-0", "L1000-0", "attempt-1", "L5000-0", "L5000-1"]);
    }

    #[test]
    fn script_with_an_output_did_not_write_nothing() {
        let told = |status: &str, output: &str, log: &[LogLine]| {
            let job = JobDoc::from(json!({ "id": "a", "status": status, "output": output }));
            let whole = pane(&SiteLinks::new("/"), &job, &LogView::default(), log, &[]);
            let text = nothing(&job, log).into_string();
            assert!(whole.into_string().contains(&text), "{text}");
            text
        };
        assert!(told("finished", "", &[]).contains("The script wrote nothing."));
        let text = told("finished", "40 + 2", &[]);
        assert!(text.contains("The log is empty.") && text.contains("href=\"#output\""), "{text}");
        assert!(!text.contains("wrote nothing"), "{text}");
        for none in [told("started", "", &[]), told("finished", "", &[line("1-0", 1, "a")])] {
            assert!(!none.contains("class=\"empty\""), "{none}");
        }
    }

    #[test]
    fn lines_of_attempts_that_are_not_shown_have_no_rule() {
        let lines = [line("9000-0", 1, "a")];
        let ids: Vec<String> = rows(&lines, &[attempt(1, 1), attempt(2, 4)], "")
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        assert_eq!(ids, ["attempt-1", "L9000-0"]);
        assert!(rows(&[], &[attempt(1, 1)], "").is_empty());
    }

    #[test]
    fn hostile_line_is_escaped_and_cut() {
        let long = format!("<script>{}", "x".repeat(LINE_MAX));
        let (_, row) = row(&line("\"><b>", 1, &long), "");
        let text = row.into_string();
        assert!(!text.contains("<script") && !text.contains("<b>"), "{text}");
        assert!(text.ends_with("…</span></li>"), "{text}");
    }

    #[test]
    fn text_that_was_searched_for_is_marked_in_any_case_and_escaped() {
        let (_, found) = row(&line("1000-0", 2, "über <b> Error"), "<B>");
        let text = found.into_string();
        assert!(text.contains("über <mark>&lt;b&gt;</mark> Error"), "{text}");
        assert!(text.contains(">00:00:01.000<"), "{text}");
        assert!(!row(&line("1000-0", 1, "other"), "ü").1.into_string().contains("<mark>"));
    }

    #[test]
    fn text_has_time_descriptor_and_line() {
        assert_eq!(text(&[line("1000-3", 2, "a b")]), "1970-01-01T00:00:01.000Z 2 a b\n");
    }
}
