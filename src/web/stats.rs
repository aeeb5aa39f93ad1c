//! `/stats`: how many jobs of each type came and ended in a period of the last 30 days, and how long they took.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::fields::PageQuery;
use super::layout::{Nav, WebPage};
use super::links::SiteLinks;
use super::parts::{
    count, data_table, duration, empty, filter_choice, given, head, percent_of, things, time_of,
};
use super::visit::Visit;
use super::web_error::PageResult;
use crate::client::{PeriodStats, PlaceStatsDocument, StatsBy, StatsDocument, TypeStatsDocument};
use crate::proto::spoken_time::parse_past_time;
use crate::rpc::{RpcError, code};

/// The periods that links choose: their start and end, and their words.
const PERIODS: [(&str, &str, &str); 6] = [
    ("1h", "", "last hour"),
    ("24h", "", "last 24 h"),
    ("today", "", "today"),
    ("yesterday", "today", "yesterday"),
    ("7d", "", "last 7 days"),
    ("30d", "", "last 30 days"),
];

/// The period without a choice.
const DEFAULT: &str = "24h";

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AskedPeriod {
    since: String,
    until: String,
    /// `host` or `actor`, else by script type.
    by: String,
}

/// The places of jobs by which numbers are, and their words.
const PLACES: [(&str, &str); 4] =
    [("", "script type"), ("host", "machine"), ("actor", "actor"), ("name", "name of the job")];

impl AskedPeriod {
    fn or_default(&self) -> Self {
        Self {
            by: self.by.clone(),
            since: given(self.since.trim()).unwrap_or(DEFAULT).to_owned(),
            until: self.until.trim().to_owned(),
        }
    }

    /// Returns why it cannot be read, for the form.
    fn mistake(&self, now: Timestamp) -> Option<String> {
        let mut texts = [&self.since, &self.until].into_iter().filter_map(|text| given(text));
        texts.find_map(|text| Some(parse_past_time(text, &TimeZone::UTC, now).err()?.to_string()))
    }
}

pub(super) async fn show(visit: Visit, PageQuery(asked): PageQuery<AskedPeriod>) -> PageResult {
    let now = visit.snapshot().await?;
    let period = asked.or_default();
    let mistake = period.mistake(now.snapshot.at);
    let until = given(&period.until);
    let params = json!({ "since": period.since, "until": until, "by": given(&period.by) });
    let stats = match &mistake {
        Some(_) => None,
        None => match visit.ask::<StatsDocument>("stats.get", params).await {
            Ok(stats) => Some(stats),
            Err(RpcError { code: code::NOT_FOUND, .. }) => None,
            Err(error) => return Err(error.into()),
        },
    };
    let links = visit.links();
    let main = html! {
        p.crumb { a href=(links.to("/")) { "Overview" } }
        (head("Statistics", &line(stats.as_ref()), &html! {}))
        (form(links, &period, mistake.as_deref()))
        @match (&stats, &mistake) {
            (Some(stats), _) if stats.by.is_some() => (by_place(links, stats)),
            (Some(stats), _) => (table(links, stats)),
            (None, Some(_)) => {}
            (None, None) => (empty(&html! { "No numbers: " (PeriodStats::NONE) "." })),
        }
    };
    Ok(visit.page(&now, &WebPage::still("Statistics", Nav::Nowhere, main)))
}

fn line(stats: Option<&StatsDocument>) -> Markup {
    let period = stats.and_then(|of| of.from.as_deref().zip(of.to.as_deref()));
    let period = period.and_then(|(from, to)| time_of(from).zip(time_of(to)));
    html! {
        @if let Some((from, to)) = period {
            "From " (moment(from)) " to " (moment(to)) ", UTC. "
        }
        @match stats.and_then(|of| of.searched) {
            None => {
                "A period begins and ends at a sample: of every minute of the last hour, of every hour of the last 30 days."
            },
            Some(number) => { (searched(number, stats)) },
        }
    }
}

/// Returns which ended jobs were read.
fn searched(number: u64, stats: Option<&StatsDocument>) -> Markup {
    html! {
        "Of " @if stats.and_then(|of| of.complete) == Some(false) { "the latest " }
        (things(number, "ended job")) " that " @if number == 1 { "has" } @else { "have" }
        " not expired. The slowest comes first; a wait begins with the submission, and is of the last attempt."
    }
}

/// Returns a time with its day: a period may be of many.
fn moment(at: Timestamp) -> Markup {
    html! { time datetime=(format!("{at:.3}")) { (at.strftime("%Y-%m-%d %H:%M")) } }
}

fn form(links: &SiteLinks, period: &AskedPeriod, mistake: Option<&str>) -> Markup {
    let chosen = |since: &str, until: &str| period.since == since && period.until == until;
    html! {
        form.filters action=(links.to("/stats")) role="search" aria-label="Period" {
            label {
                "From "
                input name="since" size="18" value=(period.since) aria-invalid=[mistake.map(|_| "true")]
                    aria-describedby="period-hint";
            }
            label { "until " input name="until" size="18" placeholder="now" value=(period.until); }
            label { "by " (filter_choice("by", PLACES, &period.by)) }
            button { "Show" }
        }
        p #period-hint {
            @match mistake {
                Some(mistake) => span.err { (mistake) },
                None => small.faint { "In UTC: 24h (ago), 09:00, yesterday 18:00, friday, 2026-12-24 18:00, or RFC 3339." },
            }
        }
        p.zoom.gap {
            @for (since, until, word) in PERIODS {
                a href=(links.with("/stats", &[("since", since), ("until", until), ("by", &period.by)]))
                    aria-current=[chosen(since, until).then_some("true")] { (word) }
            }
        }
    }
}

const HEADS: [(&str, &str); 10] = [
    ("", "Type"),
    ("num", "Submitted"),
    ("num", "Finished"),
    ("num", "Failed"),
    ("num", "Cancelled"),
    ("num", "Errors"),
    ("num", "Waited"),
    ("num", "95 % up to"),
    ("num", "Ran"),
    ("num", "95 % up to"),
];

fn table(links: &SiteLinks, stats: &StatsDocument) -> Markup {
    let types: Vec<_> = stats.types.iter().filter(|of| has_jobs(of)).collect();
    let [from, to] = [&stats.from, &stats.to].map(|time| time.as_deref().unwrap_or_default());
    let rows = html! { @for of in &types { (row(links, of, (from, to))) } };
    html! {
        @if types.is_empty() {
            (empty(&html! { "No job came or ended in this period." }))
        } @else {
            div #stats { (data_table("nopick", "Jobs by script type", &HEADS, &rows)) }
        }
    }
}

/// Returns the ended jobs by machine or actor.
fn by_place(links: &SiteLinks, stats: &StatsDocument) -> Markup {
    let (field, noun) = match stats.by {
        Some(StatsBy::Actor) => ("actor", "Actor"),
        Some(StatsBy::Name) => ("name", "Name"),
        _ => ("host", "Machine"),
    };
    let mut heads = HEADS.to_vec();
    heads.remove(1);
    heads[0].1 = noun;
    let [from, to] = [&stats.from, &stats.to].map(|time| time.as_deref().unwrap_or_default());
    let rows = html! { @for of in &stats.places { (place_row(links, of, (field, from, to))) } };
    html! {
        @if stats.places.is_empty() && stats.complete == Some(true) {
            (empty(&html! { "No job ended on a machine in this period." }))
        }
        @else if stats.places.is_empty() { (empty(&html! { "None of the jobs that were read ran on a machine." })) }
        @else {
            div #stats { (data_table("nopick", "Ended jobs by their place", &heads, &rows)) }
        }
    }
}

fn place_row(
    links: &SiteLinks,
    of: &PlaceStatsDocument,
    (field, from, to): (&str, &str, &str),
) -> Markup {
    let ended = [(field, of.name.as_str()), ("ended_since", from), ("ended_until", to)];
    html! {
        tr role="row" {
            td.m1 role="cell" { a.id href=(links.with("/jobs", &ended)) { (of.name) } }
            td.num.m4 role="cell" { (count(of.finished)) span.only-n.faint { " finished" } }
            td.num.m5 role="cell" { (failures(links, &ended, of.failed)) }
            td.num.wide role="cell" { (count(of.cancelled)) }
            td.num.wide role="cell" { (percent_of(of.failed, of.finished + of.failed)) }
            td.num.wide role="cell" { (shown_time(of.wait.mean_s)) }
            td.num.wide role="cell" { (shown_time(of.wait.p95_s)) }
            td.num.mr role="cell" { span.only-n.faint { "ran " } (shown_time(of.run.mean_s)) }
            td.num.wide role="cell" { (shown_time(of.run.p95_s)) }
        }
    }
}

/// Returns the number of failures, which leads to them.
fn failures(links: &SiteLinks, of: &[(&str, &str)], failed: u64) -> Markup {
    let address = links.with("/jobs", &[&[("status", "failed")], of].concat());
    html! {
        @if failed == 0 { span.faint { "0" } }
        @else { a.err href=(address) { (count(failed)) } }
        span.only-n.faint { " failed" }
    }
}

fn shown_time(seconds: Option<f64>) -> Markup {
    let text = seconds.and_then(|of| Duration::try_from_secs_f64(of).ok()).map(duration);
    html! { @match text { Some(text) => (text), None => span.faint { "–" } } }
}

fn has_jobs(of: &TypeStatsDocument) -> bool {
    of.submitted + of.finished + of.failed + of.cancelled + of.replaced > 0
}

fn row(links: &SiteLinks, of: &TypeStatsDocument, (from, to): (&str, &str)) -> Markup {
    let (name, finished, failed) = (of.script_type.as_str(), of.finished, of.failed);
    let ended = [("type", name), ("ended_since", from), ("ended_until", to)];
    html! {
        tr role="row" {
            td.m1 role="cell" { a.id href=(links.with("/jobs", &[("type", name)])) { (name) } }
            td.num.m4 role="cell" { (count(of.submitted)) span.only-n.faint { " submitted" } }
            td.num.m5 role="cell" { (count(finished)) span.only-n.faint { " finished" } }
            td.num.mr role="cell" { (failures(links, &ended, failed)) }
            td.num.wide role="cell" { (count(of.cancelled + of.replaced)) }
            td.num.wide role="cell" { (percent_of(failed, finished + failed)) }
            td.num.wide role="cell" { (shown_time(of.wait.mean_s)) }
            td.num.wide role="cell" { (shown_time(of.wait.p95_s)) }
            td.num.wide role="cell" { (shown_time(of.run.mean_s)) }
            td.num.wide role="cell" { (shown_time(of.run.p95_s)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::TimesDocument;

    fn period(since: &str, until: &str) -> AskedPeriod {
        let (since, until, by) = (since.to_owned(), until.to_owned(), String::new());
        AskedPeriod { since, until, by }.or_default()
    }

    #[test]
    fn period_that_cannot_be_read_is_reported_at_the_form() {
        let now = "2026-01-31T13:00:00Z".parse().expect("a time");
        assert_eq!(period(" ", "").since, DEFAULT);
        assert_eq!(period("yesterday 18:00", "2026-01-31").mistake(now), None);
        for (since, until) in [("<b>", ""), ("1h", "soon")] {
            let asked = period(since, until);
            let mistake = asked.mistake(now).expect("no time");
            let form = form(&SiteLinks::new("/"), &asked, Some(&mistake)).into_string();
            assert!(form.contains("is not a time") && !form.contains("<b>"), "{form}");
        }
    }

    #[test]
    fn failures_of_a_period_lead_to_its_jobs() {
        let times = || TimesDocument { number: 3, mean_s: Some(0.25), p95_s: None };
        let of = |name: &str, finished, failed| TypeStatsDocument {
            script_type: name.to_owned(),
            submitted: finished + failed,
            finished,
            failed,
            cancelled: 0,
            replaced: 0,
            failed_percent: None,
            wait: times(),
            run: times(),
        };
        let stats = StatsDocument {
            seconds: None,
            from: Some("2026-01-30T00:00:00.000Z".to_owned()),
            to: Some("2026-01-31T00:00:00.000Z".to_owned()),
            types: vec![of("python", 2, 1), of("bash", 1, 0), of("idle", 0, 0)],
            ..StatsDocument::default()
        };
        let text = table(&SiteLinks::new("/hero"), &stats).into_string();
        let address =
            "/hero/jobs?status=failed&amp;type=python&amp;ended_since=2026-01-30T00:00:00.000Z";
        assert!(text.contains(address) && text.contains("250 ms"), "{text}");
        assert!(!text.contains("idle") && !text.contains("status=failed&amp;type=bash"), "{text}");
    }
}
