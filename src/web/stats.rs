//! `/stats`: how many jobs of each type came and ended in a period of the last 30 days, and how long they took.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::json;

use super::parts::{
    PageTable, count, duration, empty, filter_choice, given, head, percent_of, things, time_of,
};
use super::prelude::*;
use crate::client::{
    PeriodStats, PlaceStatsDocument, StatsBy, StatsDocument, TimesDocument, TypeStatsDocument,
};
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

/// The numbers of a script type, or of the jobs of a machine, an actor or a name.
struct StatsRow<'a> {
    name: &'a str,
    submitted: u64,
    finished: u64,
    failed: u64,
    /// The jobs that were stopped or replaced.
    cancelled: u64,
    wait: &'a TimesDocument,
    run: &'a TimesDocument,
}

impl<'a> StatsRow<'a> {
    fn of_type(of: &'a TypeStatsDocument) -> Self {
        let TypeStatsDocument { submitted, finished, failed, wait, run, .. } = of;
        let (submitted, finished, failed) = (*submitted, *finished, *failed);
        let cancelled = of.cancelled + of.replaced;
        Self { name: &of.script_type, submitted, finished, failed, cancelled, wait, run }
    }

    fn of_place(of: &'a PlaceStatsDocument) -> Self {
        let PlaceStatsDocument { name, finished, failed, cancelled, wait, run, .. } = of;
        let (finished, failed, cancelled) = (*finished, *failed, *cancelled);
        Self { name, submitted: 0, finished, failed, cancelled, wait, run }
    }

    fn is_empty(&self) -> bool {
        self.submitted + self.finished + self.failed + self.cancelled == 0
    }
}

/// Returns the jobs of each script type, or the ended jobs by machine, actor or name.
fn table(links: &SiteLinks, stats: &StatsDocument) -> Markup {
    let (field, noun, caption) = match stats.by {
        None => ("type", "Type", "Jobs by script type"),
        Some(StatsBy::Host) => ("host", "Machine", "Ended jobs by their place"),
        Some(StatsBy::Actor) => ("actor", "Actor", "Ended jobs by their place"),
        Some(StatsBy::Name) => ("name", "Name", "Ended jobs by their place"),
    };
    let of_types = stats.by.is_none();
    let types = stats.types.iter().map(StatsRow::of_type).filter(|of| of_types && !of.is_empty());
    let rows: Vec<StatsRow> = types.chain(stats.places.iter().map(StatsRow::of_place)).collect();
    let [from, to] = [&stats.from, &stats.to].map(|time| time.as_deref().unwrap_or_default());
    let ended = [("ended_since", from), ("ended_until", to)];
    let jobs = |of: &StatsRow, status, period: &[(&str, &str)]| {
        links.with("/jobs", &[&[("status", status), (field, of.name)], period].concat())
    };
    let period_of_name = if of_types { &[][..] } else { &ended };
    let table = PageTable::of(&rows, "nopick", caption)
        .column(noun, "m1", |of| html! { a.id href=(jobs(of, "", period_of_name)) { (of.name) } })
        .column_if(of_types, "Submitted", "num m4", |of| {
            html! {
                (count(of.submitted)) span.only-n.faint { " submitted" }
            }
        })
        .column(
            "Finished",
            "num m5",
            |of| html! { (count(of.finished)) span.only-n.faint { " finished" } },
        )
        .column("Failed", "num mr", |of| {
            html! {
                @if of.failed == 0 { span.faint { "0" } }
                @else { a.err href=(jobs(of, "failed", &ended)) { (count(of.failed)) } }
                span.only-n.faint { " failed" }
            }
        })
        .column("Cancelled", "num wide", |of| html! { (count(of.cancelled)) })
        .column(
            "Errors",
            "num wide",
            |of| html! { (percent_of(of.failed, of.finished + of.failed)) },
        )
        .column("Waited", "num wide", |of| shown_time(of.wait.mean_s))
        .column("95 % up to", "num wide", |of| shown_time(of.wait.p95_s))
        .column(
            "Ran",
            "num m6",
            |of| html! { span.only-n.faint { "ran " } (shown_time(of.run.mean_s)) },
        )
        .column("95 % up to", "num wide", |of| shown_time(of.run.p95_s));
    let none = html! {
        @if of_types { "No job came or ended in this period." }
        @else if stats.complete == Some(true) { "No job ended on a machine in this period." }
        @else { "None of the jobs that were read ran on a machine." }
    };
    html! { div #stats { (table.or(&none)) } }
}

fn shown_time(seconds: Option<f64>) -> Markup {
    let text = seconds.and_then(|of| Duration::try_from_secs_f64(of).ok()).map(duration);
    html! { @match text { Some(text) => (text), None => span.faint { "–" } } }
}

#[cfg(test)]
mod tests {
    use super::*;

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
