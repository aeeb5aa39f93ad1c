//! The log of a job: as a pane of the page, and as text.

use std::fmt::Write as _;

use jiff::Timestamp;
use maud::{Markup, html};

use super::super::doc::JobDoc;
use super::super::links::SiteLinks;
use super::attempts::ShownAttempt;
use crate::proto::job::JobStatus;
use crate::proto::text::at_terminal;
use crate::store::LogLine;

/// The number of lines in the pane.
pub(super) const LINES_SHOWN: usize = 500;
/// The longest line in the pane, in characters.
const LINE_MAX: usize = 4_000;

/// Returns the time of a line, which its id has.
fn time_of(line: &LogLine) -> Option<Timestamp> {
    let (millis, _) = line.id.split_once('-')?;
    Timestamp::from_millisecond(millis.parse().ok()?).ok()
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
pub(super) fn rows(lines: &[LogLine], attempts: &[ShownAttempt]) -> Vec<(String, Markup)> {
    let first = lines.first().and_then(time_of);
    // The attempt of the first line begins before it.
    let before =
        attempts.iter().filter(|of| first.is_some_and(|first| of.started <= first)).count();
    let mut rest = attempts.iter().enumerate().skip(before.saturating_sub(1)).peekable();
    let mut rows = Vec::with_capacity(lines.len() + attempts.len());
    for line in lines {
        let at = time_of(line);
        while let Some((place, attempt)) =
            rest.next_if(|(_, attempt)| at.is_some_and(|at| attempt.started <= at))
        {
            rows.push(rule(place, attempt));
        }
        rows.push(row(line));
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

fn row(line: &LogLine) -> (String, Markup) {
    let id = format!("L{}", line.id);
    let (class, mark, meaning) = origin(line);
    let text = text_of(line);
    let cut: String = text.chars().take(LINE_MAX).collect();
    let is_cut = cut.len() < text.len();
    let row = html! {
        li #(id) class=(class) {
            @if let Some(at) = time_of(line) {
                time datetime=(format!("{at:.3}")) title=(format!("{at:.3}")) data-clock {
                    (at.strftime("%H:%M:%S"))
                }
            } @else { time {} }
            i title=(meaning) { (mark) }
            span { (cut) @if is_cut { "…" } }
        }
    };
    (id, row)
}

/// Returns the pane with the lines in it.
pub(super) fn pane(
    links: &SiteLinks,
    job: &JobDoc,
    log: &[LogLine],
    attempts: &[ShownAttempt],
) -> Markup {
    let download = format!("{}/log", links.job(job.id()));
    let is_running = !job.status().is_terminal();
    html! {
        section {
            div.bar {
                h2 #logh { "Log " (count_of(log)) }
                a.dl href=(download) { "Download" }
                button.plain type="button" data-toggle=".log" data-class="only" aria-pressed="false" {
                    "Errors only"
                }
                @if is_running {
                    button.plain #follow type="button" aria-pressed="true" { "Follow" }
                }
            }
            div.log role="log" aria-labelledby="logh" aria-live="off" tabindex="0" {
                ol #log-lines {
                    @for (_, row) in rows(log, attempts) { (row) }
                }
                (unfinished(job))
                @if log.is_empty() && !is_running { p.empty { "The script wrote nothing." } }
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

/// Returns the number of lines.
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
        let at = time_of(line).map(|at| format!("{at:.3}")).unwrap_or_default();
        let whole = if line.progress.is_some() { &text_of(line) } else { &line.line };
        let _ = writeln!(text, "{at} {} {whole}", line.fd);
    }
    text
}

#[cfg(test)]
mod tests {
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
        let ids: Vec<String> = rows(&lines, &[attempt(1, 1), attempt(2, 4), attempt(3, 60)])
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        assert_eq!(ids, ["attempt-0", "L1000-0", "attempt-1", "L5000-0", "L5000-1"]);
    }

    #[test]
    fn lines_of_attempts_that_are_not_shown_have_no_rule() {
        let lines = [line("9000-0", 1, "a")];
        let ids: Vec<String> =
            rows(&lines, &[attempt(1, 1), attempt(2, 4)]).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["attempt-1", "L9000-0"]);
        assert!(rows(&[], &[attempt(1, 1)]).is_empty());
    }

    #[test]
    fn hostile_line_is_escaped_and_cut() {
        let long = format!("<script>{}", "x".repeat(LINE_MAX));
        let (_, row) = row(&line("\"><b>", 1, &long));
        let text = row.into_string();
        assert!(!text.contains("<script") && !text.contains("<b>"), "{text}");
        assert!(text.ends_with("…</span></li>"), "{text}");
    }

    #[test]
    fn text_has_time_descriptor_and_line() {
        assert_eq!(text(&[line("1000-3", 2, "a b")]), "1970-01-01T00:00:01.000Z 2 a b\n");
    }
}
