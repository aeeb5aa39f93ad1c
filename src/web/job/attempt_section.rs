//! The section of attempts: the time line and the table.

use jiff::Timestamp;
use maud::{Markup, html};

use super::super::doc::JobDoc;
use super::super::links::SiteLinks;
use super::super::parts::{PageTable, duration, elapsed, first_line, instant, sign};
use super::attempts::{ShownAttempt, of};
use super::time_line;

pub(super) fn section(job: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    let attempts = of(job);
    let so_far = job.whole("attempt").unwrap_or_default();
    html! {
        section #attempts {
            div.bar { h2 { "Attempts" } }
            @if attempts.is_empty() {
                p.dim { "It has not run yet." }
            } @else {
                (time_line::drawn(job.time("created_at"), &attempts, now))
                (table(&attempts, job, links, now))
                @if so_far > attempts.len() as u64 {
                    p.faint { "Earlier attempts are not kept." }
                }
            }
        }
    }
}

fn table(attempts: &[ShownAttempt], job: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    let most = job.whole("retries").unwrap_or_default() + 1;
    let last = attempts.last();
    let newest_first: Vec<&ShownAttempt> = attempts.iter().rev().collect();
    PageTable::of(&newest_first, "att nopick fix", "Attempts, the newest first")
        .column("Attempt", "m1 c-n", |of| html! {
            @match of.number {
                None => "–",
                Some(number) if Some(*of) == last && most > 1 => { (number) " of " (most.max(number)) }
                Some(number) => (number),
            }
        })
        .column("State", "m4 c-st", |of| sign(of.class, of.class, of.word))
        .column("How it went", "m5 cut", |of| how(of, job))
        .column("Machine", "wide dim cut c-ca", |of| machine(of, links))
        .column("Started", "num wide c-ca", |of| instant(of.started))
        .column("Took", "num mr c-tk", |of| html! { (took(of, now)) })
        .markup()
}

fn how(attempt: &ShownAttempt, job: &JobDoc) -> Markup {
    if attempt.class == "running" {
        return html! { span.dim { (job.text("progress_text")) } };
    }
    html! { span.err title=(attempt.error) { (first_line(&attempt.error)) } }
}

fn machine(attempt: &ShownAttempt, links: &SiteLinks) -> Markup {
    let shown = if attempt.machine.is_empty() { &attempt.actor } else { &attempt.machine };
    html! {
        @if attempt.actor.is_empty() { (shown) }
        @else { a href=(links.page("actors", &attempt.actor)) title=(attempt.actor) { (shown) } }
    }
}

fn took(attempt: &ShownAttempt, now: Timestamp) -> String {
    let is_running = attempt.class == "running";
    let end = attempt.ended.or(is_running.then_some(now));
    end.map_or_else(|| "–".to_owned(), |end| duration(elapsed(attempt.started, end)))
}

#[cfg(test)]
mod tests {
    use super::super::attempts::tests::job;
    use super::*;

    #[test]
    fn table_has_number_machine_and_reason_escaped() {
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        let text = section(&job(), &SiteLinks::new("/"), now).into_string();
        assert!(text.contains("2 of 4") && text.contains("40 s"), "{text}");
        assert!(!text.contains("<script") && !text.contains("<b>"), "{text}");
    }
}
