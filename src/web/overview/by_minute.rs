//! The last hour by minute: the jobs that ended, stacked by their ends, as bars that lead to them, and as a table.

use jiff::{SignedDuration, Timestamp};

use super::super::parts::{PageTable, bar, count, duration, instant};
use super::super::prelude::*;
use crate::view::Minute;

const WIDTH: u64 = 1200;
const HEIGHT: u64 = 100;

pub(super) fn section(minutes: &[Minute], links: &SiteLinks) -> Markup {
    let latest_first = latest_first(minutes);
    let table = table(&latest_first, links);
    html! {
        section.gap {
            (bar("Jobs by minute", "that ended: finished below, failed above", None))
            (drawing(minutes, links))
            details {
                summary { "The minutes as a table" }
                (table.live("minute-rows", &table.rows()))
            }
        }
    }
}

pub(super) fn live(minutes: &[Minute], links: &SiteLinks) -> [LivePart; 2] {
    let rows = table(&latest_first(minutes), links).rows();
    [LivePart::whole("minutes", drawing(minutes, links)), LivePart::rows("minute-rows", rows)]
}

/// Returns the address of the jobs that ended in a minute.
fn address(minute: &Minute, links: &SiteLinks) -> Option<String> {
    let (end, length) = (minute.at?, SignedDuration::try_from(minute.length).ok()?);
    let (since, until) = (format!("{:.3}", end - length), format!("{end:.3}"));
    Some(links.with("/jobs", &[("ended_since", &since), ("ended_until", &until)]))
}

fn drawing(minutes: &[Minute], links: &SiteLinks) -> Markup {
    let most = minutes.iter().map(|of| of.finished + of.failed).max().unwrap_or_default();
    let step = WIDTH / (minutes.len().max(1) as u64);
    let height = |jobs: u64| jobs * HEIGHT / most.max(1);
    let clock = |at: Option<Timestamp>| html! { @if let Some(at) = at { (instant(at)) } };
    html! {
        div #minutes {
            @if let ([first, .., last], true) = (minutes, most > 0) {
                svg.minutes viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="group"
                    aria-label="Jobs that ended, by minute" {
                    @for (place, of) in (0..).zip(minutes).filter(|(_, of)| of.finished + of.failed > 0) {
                        @let (finished, failed) = (height(of.finished), height(of.failed));
                        @let words = format!("{} finished, {} failed", count(of.finished), count(of.failed));
                        a href=[address(of, links)] aria-label=(words) {
                            title { (words) }
                            rect.hit x=(place * step) width=(step) height=(HEIGHT) {}
                            rect.m-v.finished x=(place * step) y=(HEIGHT - finished) width=(step - 2) height=(finished) {}
                            rect.m-v.error x=(place * step) y=(HEIGHT - finished - failed) width=(step - 2) height=(failed) {}
                        }
                    }
                }
                p.faint { (clock(first.at)) " to " (clock(last.at)) ", at most " (count(most)) " in a minute" }
            } @else { p.faint { "Nothing ended in the last hour." } }
        }
    }
}

/// Returns the minutes whose end is known, the latest first.
fn latest_first(minutes: &[Minute]) -> Vec<(Timestamp, &Minute)> {
    minutes.iter().rev().filter_map(|of| Some((of.at?, of))).collect()
}

fn table<'a>(
    minutes: &'a [(Timestamp, &'a Minute)],
    links: &'a SiteLinks,
) -> PageTable<'a, (Timestamp, &'a Minute)> {
    PageTable::of(minutes, "nopick", "The last hour by minute")
        .ids(|(at, _)| format!("minute-{}", at.as_second()))
        .column("Until", "", |(at, of)| html! { a href=[address(of, links)] { (instant(*at)) } })
        .column("Submitted", "num", |(_, of)| html! { (count(of.submitted)) })
        .column("Finished", "num", |(_, of)| html! { (count(of.finished)) })
        .column("Failed", "num", |(_, of)| html! { (count(of.failed)) })
        .column("95 % waited at most", "num dim", |(_, of)| {
            html! { (of.wait_p95.map_or_else(|| "–".to_owned(), duration)) }
        })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn minutes_are_bars_that_lead_to_their_jobs_and_rows_of_a_table() {
        let minute = |at: i64, finished: u64, failed: u64| {
            let (length, at) = (Duration::from_mins(1), Timestamp::from_second(at * 60).ok());
            Minute { at, length, submitted: 9, finished, failed, running: 0, wait_p95: None }
        };
        let (minutes, links) = ([minute(1, 3, 1), minute(2, 0, 0)], SiteLinks::new("/x"));
        let drawn = drawing(&minutes, &links).into_string();
        assert_eq!(drawn.matches("<a ").count(), 1, "{drawn}");
        for text in ["3 finished, 1 failed", "y=\"25\"", "y=\"0\"", "at most 4 in a minute"] {
            assert!(drawn.contains(text), "{text}: {drawn}");
        }
        let period =
            "/x/jobs?ended_since=1970-01-01T00:00:00.000Z&amp;ended_until=1970-01-01T00:01:00.000Z";
        assert!(drawn.replace("%3A", ":").contains(period), "{drawn}");
        let table = section(&minutes, &links).into_string();
        assert_eq!(table.matches("id=\"minute-").count(), 3, "two rows and their body: {table}");
        assert!(drawing(&[], &links).into_string().contains("Nothing ended"));
    }
}
