//! The jobs that failed last, those that started last, the periodic jobs that are due next, and the script types over the
//! last hour.

use maud::{Markup, html};

use super::super::doc::{FAILED, JobDoc};
use super::super::jobs::progress;
use super::super::links::SiteLinks;
use super::super::parts::{
    PageTable, ShownState, ago_or_dash, bar, count, page_link, percent_of, rate, time_of,
    type_link, until,
};
use super::super::relations::{error_line, error_of_prerequisite};
use super::super::snapshot::{LATEST, SiteSnapshot};
use crate::store::{JobSummary, LastHour, TypeState};

/// One failed job of so many that ended is shown in the colour of errors.
const MANY_ERRORS: u64 = 100;
/// The maximum number of types in the table; types with more jobs come first.
const TYPES_MAX: usize = 12;

pub(super) fn errors(links: &SiteLinks, now: &SiteSnapshot) -> Markup {
    let all = links.with("/jobs", &[("status", "failed")]);
    // What was stopped or replaced has not failed.
    let failed = now.latest.failed.iter().filter(|job| job.intended_end().is_none());
    let failed: Vec<JobDoc> = failed.take(LATEST).map(|job| told(now, job)).collect();
    let table = PageTable::of(&failed, "nopick fix fails", "Latest errors")
        .column("Job", "cut m1 c-id", |job| job.link(links))
        .column("Error", "cut m5", |job| error_line(job, links))
        .column("Type", "dim wide c-ty", |job| html! { (job.text("script_type")) })
        .column("Ended", "num mr c-tk", |job| {
            ago_or_dash(job.time("finished_at"), now.snapshot.at)
        });
    html! {
        section #latest-errors {
            (bar("Latest errors", "", Some(("Show all", &all))))
            (table.or(&html! { "None of the latest jobs has failed." }))
        }
    }
}

fn told(now: &SiteSnapshot, job: &JobSummary) -> JobDoc {
    let mut told = JobDoc::from(job);
    if let Some(prerequisite) = now.latest.prerequisite(job) {
        told.set(FAILED, error_of_prerequisite(prerequisite));
    }
    told
}

pub(super) fn running(links: &SiteLinks, now: &SiteSnapshot) -> Markup {
    let all = links.with("/jobs", &[("status", "running")]);
    let running: Vec<JobDoc> = now.latest.running.iter().take(LATEST).map(JobDoc::from).collect();
    let small = match now.count(ShownState::Running) {
        _ if running.is_empty() => String::new(),
        Some(number) => format!("{} of {}, the newest first", running.len(), count(number)),
        None => "the newest first".to_owned(),
    };
    // A visitor with bounds sees the part of the latest that is within them.
    let none = html! {
        @if now.jobs().is_some() { "No job runs." } @else { "None of your jobs is among the latest that run." }
    };
    let table = PageTable::of(&running, "nopick fix run", "Running jobs")
        .column("Job", "cut m1 c-id", |job| job.link(links))
        .column("Progress", "why m5 cut", |job| progress(job, "tells no progress"))
        .column("For", "num mr c-tk", |job| ago_or_dash(job.time("started_at"), now.snapshot.at));
    html! {
        section #running-now {
            (bar("Running now", &small, Some(("Show all", &all))))
            (table.or(&none))
        }
    }
}

/// Returns the periodic jobs that are due next, with the end of their last firing.
pub(super) fn due(links: &SiteLinks, now: &SiteSnapshot) -> Markup {
    let all = links.to("/cron");
    let table = PageTable::of(&now.due, "nopick due", "Periodic jobs due next")
        .column("Periodic job", "m1", |job| page_link("cron", &job.name, links))
        .column("Schedule", "mono dim wide", |job| html! { (job.schedule) })
        .column("Last", "m5", |job| {
            let last = job.last.as_ref().and_then(|last| last.status.as_deref());
            let state = ShownState::of_status(last).map(ShownState::shown);
            state.unwrap_or_else(|| html! { span.faint { "–" } })
        })
        .column("Due", "num mr", |job| match job.next.as_deref().and_then(time_of) {
            Some(at) => until(at, now.snapshot.at),
            _ if !job.enabled => html! { span.faint { "disabled" } },
            _ => html! { "–" },
        });
    html! {
        section #due-next {
            (bar("Due next", "", Some(("All periodic jobs", &all))))
            (table.or(&html! { "No periodic job." }))
        }
    }
}

/// Returns the table of script types that ended jobs in the last hour.
pub(super) fn types(links: &SiteLinks, now: &SiteSnapshot) -> Markup {
    let mut types: Vec<(&TypeState, LastHour)> =
        now.snapshot.types.iter().filter_map(|of| Some((of, of.hour?))).collect();
    types.retain(|(_, hour)| hour.finished + hour.failed > 0);
    types.sort_by_key(|(_, hour)| std::cmp::Reverse(hour.finished + hour.failed));
    types.truncate(TYPES_MAX);
    let errors = |(_, hour): &(&TypeState, LastHour)| {
        let ended = hour.finished + hour.failed;
        let share = percent_of(hour.failed, ended);
        let is_bad = hour.failed > 0 && hour.failed * MANY_ERRORS >= ended;
        html! {
            @if is_bad { span.err { (share) } } @else { (share) }
            span.only-n.faint { " errors" }
        }
    };
    let busy = |(of, _): &(&TypeState, LastHour)| {
        let actors = now.snapshot.actor_counts.get(&of.script_type).copied().unwrap_or_default();
        html! { span.only-n.faint { "tasks busy: " } (actors.running) " of " (actors.tasks) }
    };
    let table = PageTable::of(&types, "nopick three", "Script types over the last hour")
        .column("Type", "m1", |(of, _)| type_link(of.script_type.as_str(), links))
        .column("Finished/s", "num wide", |(_, hour)| per_second(hour.finished, hour))
        .column("Failed/s", "num wide", |(_, hour)| per_second(hour.failed, hour))
        .column("Errors", "num mr", errors)
        .column("Dead letters", "num wide", |(_, hour)| html! { (count(hour.dead)) })
        .column("Tasks busy", "num m5", busy);
    html! { section #by-type { (bar("By type", "the last hour", None)) (table.markup()) } }
}

#[expect(clippy::cast_precision_loss, reason = "no counter comes near 2^53")]
fn per_second(number: u64, hour: &LastHour) -> Markup {
    html! { (rate(number as f64 / hour.since.as_secs_f64().max(1.0))) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::super::snapshot::tests::site_snapshot;
    use super::*;
    use crate::proto::job::JobStatus;

    fn job(fields: &[(&'static str, &str)]) -> JobSummary {
        let fields: BTreeMap<_, _> =
            fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        JobSummary { id: "j1".parse().expect("legal"), status: JobStatus::Error, fields }
    }

    #[test]
    fn error_is_cut_to_its_first_line_and_escaped() {
        let mut now = site_snapshot();
        now.latest.failed =
            vec![job(&[("error", "<script>alert(1)</script>\nmore"), ("name", "a&b")])];
        let shown = errors(&SiteLinks::new("/x"), &now).into_string();
        assert!(shown.contains(">&lt;script&gt;alert(1)&lt;/script&gt;</span>"), "{shown}");
        assert!(shown.contains("href=\"/x/jobs/j1\"") && shown.contains(">a&amp;b</a>"), "{shown}");
    }

    #[test]
    fn failed_prerequisite_has_its_name() {
        let mut now = site_snapshot();
        now.latest.failed = vec![job(&[("error", "prerequisite failed: j1")])];
        now.latest.prerequisites = vec![job(&[("name", "load <b>")])];
        let shown = errors(&SiteLinks::new("/x"), &now).into_string();
        assert!(shown.contains("prerequisite failed: <a class=\"err\""), "{shown}");
        assert!(shown.contains(">load &lt;b&gt;</a>"), "{shown}");
    }

    #[test]
    fn progress_is_a_bar_with_its_text() {
        let known = job(&[("progress", "0.62"), ("progress_text", "page 31 of 50")]);
        let shown = progress(&JobDoc::from(&known), "none");
        let shown = shown.into_string();
        assert!(shown.contains("62 %") && shown.contains("page 31 of 50"), "{shown}");
        assert!(progress(&JobDoc::default(), "none").into_string().contains(">none<"));
    }
}
