//! The table of jobs: one row, one line, one reason.

use jiff::Timestamp;
use maud::{Markup, html};

use super::super::doc::JobDoc;
use super::super::links::SiteLinks;
use super::super::parts::{PageTable, ago, duration, percent, short_id, tick, until};
use super::super::relations::{awaited, error_line};
use super::filter::JobsQuery;
use crate::proto::job::{AskedWait, JobStatus};

/// A table of jobs.
#[derive(Clone, Copy)]
pub(super) struct JobRows<'a> {
    pub(super) links: &'a SiteLinks,
    pub(super) now: Timestamp,
    /// True if the visitor may tick them.
    pub(super) picks: bool,
    /// True if they show when jobs died rather than when they were created.
    pub(super) died: bool,
}

const TAGS_MAX: usize = 3;

/// Returns why a job is where it is: its delay, progress, error, limit or wait.
pub(in crate::web) fn what_it_is_at(job: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    let is_slow = job.time("slow_at").is_some_and(|slow| Some(slow) >= job.time("started_at"));
    let delay = match job.status() {
        status if status.is_terminal() => None,
        _ if !job.text("late_at").is_empty() => Some("late"),
        JobStatus::Started if is_slow => Some("slow"),
        _ => None,
    };
    html! {
        @if let Some(word) = delay { span.chip { (word) } " " }
        (its_reason(job, links, now))
    }
}

fn its_reason(job: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    match job.status() {
        JobStatus::Created => html! { "not started" },
        JobStatus::WaitingForPrerequisites => awaited(job, links),
        JobStatus::Scheduled => html! {
            @if let Some(wait) = AskedWait::of_field(job.text("wait")) {
                "waits for " (wait.words()) ", or "
            }
            @if let Some(at) = job.time("run_at") { "runs " (until(at, now)) }
            @if !job.text("error").is_empty() {
                " after " (error_line(job, links))
            }
        },
        JobStatus::Dispatched => match job.text("held_by") {
            "" => html! { "waits in its queue" },
            limit => html! { "held by limit " a href=(links.to("/limits")) { (limit) } },
        },
        JobStatus::Started => progress(job, ""),
        JobStatus::Finished => html! {},
        JobStatus::Error => error_line(job, links),
    }
}

/// Returns the progress of a running job as a bar and a text; `none` if its script tells neither.
pub(in crate::web) fn progress(job: &JobDoc, none: &str) -> Markup {
    let text = job.text("progress_text");
    let Some(share) = job.share() else {
        return html! { span.faint { @if text.is_empty() { (none) } @else { (text) } } };
    };
    let percent = percent(share, 1.0);
    html! {
        progress max="1" value=(share) aria-label=(percent) {}
        (percent) " " span.faint { (text) }
    }
}

/// Returns the tags of a job as chips, each a link to the jobs that have it; at most so many.
pub(in crate::web) fn tags(job: &JobDoc, links: &SiteLinks, most: usize) -> Markup {
    let all = job.list("tags");
    html! {
        @for tag in all.iter().take(most) {
            a.chip href=(links.with("/jobs", &[("tag", tag)])) { (tag) } " "
        }
        @if all.len() > most { span.chip title=(all[most..].join(" ")) { "+" (all.len() - most) } " " }
    }
}

/// Returns the tag that the list is filtered by, as a chip that takes the filter away.
pub(super) fn chosen_tag(filter: &JobsQuery, links: &SiteLinks) -> Markup {
    let tag = filter.filter.value("tags");
    html! {
        @if let Some(tag) = tag {
            p.chosen {
                "Only jobs with the tag "
                a.chip.on href=(filter.with("tags", "").address(links, "/jobs", &[]))
                    aria-label={ "Tag " (tag) ", show jobs without it too" } {
                    (tag) span aria-hidden="true" { " ✕" }
                }
            }
        }
    }
}

impl<'a> JobRows<'a> {
    pub(super) fn of(self, jobs: &'a [JobDoc]) -> PageTable<'a, JobDoc> {
        let Self { links, now, picks, died } = self;
        let (title, field) = if died { ("Died", "finished_at") } else { ("Created", "created_at") };
        let dash = || html! { span.faint { "–" } };
        let classes = if picks { "fix jobs" } else { "fix jobs nopick" };
        PageTable::of(jobs, classes, "Jobs")
            .ids(|job| format!("j-{}", job.id()))
            .ticks_if(picks, |job| tick("id", job.id(), short_id(job.id())))
            .column("Job", "cut m1 c-id", move |job| job.link(links))
            .column("State", "m4 in c-st", |job| job.state().shown())
            .column("What it is at", "why cut m5", move |job| {
                html! {
                    (tags(job, links, TAGS_MAX)) (what_it_is_at(job, links, now))
                }
            })
            .column("Type, group", "dim wide cut c-tg", JobDoc::type_and_group)
            .column("Caller", "dim wide cut c-ca", |job| html! { (job.text("caller_id")) })
            .column("Actor", "wide xl cut mono faint c-ac", |job| html! { (job.text("actor")) })
            .column("Attempt", "num dim wide c-at", |job| html! { (job.attempts()) })
            .column("Took", "num dim wide c-tk", move |job| {
                html! {
                    @if let Some(took) = job.took(now) { (duration(took)) } @else { (dash()) }
                }
            })
            .column(title, "num dim mr c-tk", move |job| {
                html! {
                    @if let Some(time) = job.time(field) { (ago(time, now)) } @else { (dash()) }
                }
            })
    }

    /// Returns the rows by their ids, to change them while the page is open.
    pub(super) fn rows(self, jobs: &'a [JobDoc]) -> Vec<(String, Markup)> {
        self.of(jobs).rows_or("no-job", &html! { "No jobs." })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(job: serde_json::Value) -> String {
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        what_it_is_at(&JobDoc::from(job), &SiteLinks::new("/"), now).into_string()
    }

    #[test]
    fn each_state_has_its_reason() {
        assert!(at(json!({ "status": "dispatched", "held_by": "gpu" })).contains("held by limit"));
        assert!(at(json!({ "status": "started", "progress": "0.5" })).contains("50 %"));
        assert!(
            at(json!({ "status": "scheduled", "run_at": "2026-01-31T13:20:00Z" }))
                .contains("in 20 min")
        );
        assert_eq!(at(json!({ "status": "finished", "late_at": "2026-01-31T12:00:00Z" })), "");
        let late = json!({ "status": "dispatched", "late_at": "2026-01-31T12:00:00Z" });
        assert!(at(late).contains(">late</span> waits in its queue"));
        let slow = |slow_at: &str| {
            let started_at = "2026-01-31T12:00:00Z";
            at(json!({ "status": "started", "started_at": started_at, "slow_at": slow_at }))
        };
        assert!(slow("2026-01-31T12:00:01Z").contains(">slow</span>"));
        assert!(!slow("2026-01-31T11:00:00Z").contains("slow"), "an attempt before was");
    }

    #[test]
    fn hostile_text_is_escaped() {
        let hostile = "<script>alert(1)</script>";
        let job = json!({
            "id": hostile, "name": hostile, "status": "error", "error": hostile, "caller_id": hostile,
            "script_type": hostile, "group": hostile, "actor": hostile,
        });
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        let table = JobRows { links: &SiteLinks::new("/"), now, picks: true, died: true };
        let row = table.of(&[JobDoc::from(job)]).markup().into_string();
        assert!(!row.contains("<script"), "{row}");
    }

    #[test]
    fn progress_beyond_its_range_is_cut() {
        assert!(at(json!({ "status": "started", "progress": "7" })).contains("100 %"));
        assert!(!at(json!({ "status": "started", "progress": "NaN" })).contains("NaN"));
    }
}
