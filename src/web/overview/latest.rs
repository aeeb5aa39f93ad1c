//! The jobs that failed last, those that started last, the periodic jobs that are due next, and the script types over the
//! last hour.

use maud::{Markup, html};

use super::super::doc::{FAILED, JobDoc};
use super::super::links::SiteLinks;
use super::super::parts::{
    ShownState, ago, bar, count, data_table, empty, percent_of, rate, time_of, until,
};
use super::super::relations::{error_line, error_of_prerequisite};
use super::super::snapshot::{LATEST, SiteSnapshot};
use crate::client::PeriodicJobDocument;
use crate::store::{JobSummary, LastHour, TypeState};

/// A share of failed jobs from this on is shown in the colour of errors.
const MANY_ERRORS: f64 = 0.01;
/// The maximum number of types in the table; types with more jobs come first.
const TYPES_MAX: usize = 12;

pub(super) fn errors(links: &SiteLinks, now: &SiteSnapshot) -> Markup {
    let all = links.with("/jobs", &[("status", "failed")]);
    // What was stopped or replaced has not failed.
    let failed = now.latest.failed.iter().filter(|job| job.intended_end().is_none());
    let failed: Vec<JobDoc> = failed.take(LATEST).map(|job| told(now, job)).collect();
    html! {
        section #latest-errors {
            (bar("Latest errors", "", Some(("Show all", &all))))
            @if failed.is_empty() { (empty(&html! { "None of the latest jobs has failed." })) }
            @else {
                (data_table("nopick fix fails", "Latest errors", &[
                    ("c-id", "Job"), ("", "Error"), ("c-ty", "Type"), ("num c-tk", "Ended"),
                ], &html! {
                    @for job in &failed {
                        tr role="row" {
                            td.cut.m1 role="cell" { (job.link(links)) }
                            td.cut.m5 role="cell" { (error_line(job, links)) }
                            td.dim.wide role="cell" { (job.text("script_type")) }
                            td.num.mr role="cell" { (age(job, "finished_at", now)) }
                        }
                    }
                }))
            }
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
    html! {
        section #running-now {
            (bar("Running now", &small, Some(("Show all", &all))))
            @if running.is_empty() {
                // A visitor with bounds sees the part of the latest that is within them.
                (empty(&html! {
                    @if now.jobs().is_some() { "No job runs." } @else { "None of your jobs is among the latest that run." }
                }))
            }
            @else {
                (data_table("nopick fix run", "Running jobs", &[("c-id", "Job"), ("", "Progress"), ("num c-tk", "For")], &html! {
                    @for job in &running {
                        tr role="row" {
                            td.cut.m1 role="cell" { (job.link(links)) }
                            td.why.m5.cut role="cell" { (progress(job)) }
                            td.num.mr role="cell" { (age(job, "started_at", now)) }
                        }
                    }
                }))
            }
        }
    }
}

fn age(job: &JobDoc, field: &str, now: &SiteSnapshot) -> Markup {
    html! { @if let Some(at) = job.time(field) { (ago(at, now.snapshot.at)) } @else { "–" } }
}

fn progress(job: &JobDoc) -> Markup {
    let text = job.text("progress_text");
    match job.number("progress") {
        Some(share) => {
            let percent = format!("{:.0} %", share.clamp(0.0, 1.0) * 100.0);
            html! {
                progress max="1" value=(format!("{share:.3}")) aria-label=(percent) {}
                (percent) " " span.faint { (text) }
            }
        }
        None if !text.is_empty() => html! { span.faint { (text) } },
        None => html! { span.faint { "tells no progress" } },
    }
}

/// Returns the periodic jobs that are due next, with the end of their last firing.
pub(super) fn due(links: &SiteLinks, now: &SiteSnapshot) -> Markup {
    let all = links.to("/cron");
    html! {
        section #due-next {
            (bar("Due next", "", Some(("All periodic jobs", &all))))
            @if now.due.is_empty() { (empty(&html! { "No periodic job." })) }
            @else {
                (data_table("nopick due", "Periodic jobs due next", &[
                    ("", "Periodic job"), ("", "Schedule"), ("", "Last"), ("num", "Due"),
                ], &html! { @for job in now.due.iter() { (due_row(links, now, job)) } }))
            }
        }
    }
}

fn due_row(links: &SiteLinks, now: &SiteSnapshot, job: &PeriodicJobDocument) -> Markup {
    let state = job.last.as_ref().and_then(|last| ShownState::of_status(last.status.as_deref()));
    html! {
        tr role="row" {
            td.m1 role="cell" { a.id href=(links.page("cron", &job.name)) { (job.name) } }
            td.mono.dim.wide role="cell" { (job.schedule) }
            td.m5 role="cell" {
                @match state {
                    Some(state) => (state.shown()),
                    None => span.faint { "–" },
                }
            }
            td.num.mr role="cell" {
                @match job.next.as_deref().and_then(time_of) {
                    Some(at) => (until(at, now.snapshot.at)),
                    _ if !job.enabled => span.faint { "disabled" },
                    _ => "–",
                }
            }
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
    html! {
        section #by-type {
            (bar("By type", "the last hour", None))
            (data_table("nopick three", "Script types over the last hour", &[
                ("", "Type"), ("num", "Finished/s"), ("num", "Failed/s"), ("num", "Errors"), ("num", "Dead letters"),
                ("num", "Tasks busy"),
            ], &html! { @for (of, hour) in &types { (type_row(links, now, of, hour)) } }))
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "no counter comes near 2^53")]
fn type_row(links: &SiteLinks, now: &SiteSnapshot, of: &TypeState, hour: &LastHour) -> Markup {
    let name = of.script_type.as_str();
    let seconds = hour.since.as_secs_f64().max(1.0);
    let (finished, failed) = (hour.finished as f64, hour.failed as f64);
    let share = percent_of(hour.failed, hour.finished + hour.failed);
    let is_bad = failed >= MANY_ERRORS * (finished + failed) && failed > 0.0;
    let actors = now.snapshot.actor_counts.get(&of.script_type).copied().unwrap_or_default();
    html! {
        tr role="row" {
            td.m1 role="cell" { a.id href=(links.with("/jobs", &[("type", name)])) { (name) } }
            td.num.wide role="cell" { (rate(finished / seconds)) }
            td.num.wide role="cell" { (rate(failed / seconds)) }
            td.num.mr role="cell" {
                @if is_bad { span.err { (share) } } @else { (share) }
                span.only-n.faint { " errors" }
            }
            td.num.wide role="cell" { (count(hour.dead)) }
            td.num.m5 role="cell" { span.only-n.faint { "tasks busy: " } (actors.running) " of " (actors.tasks) }
        }
    }
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
        let shown = progress(&JobDoc::from(&known));
        let shown = shown.into_string();
        assert!(shown.contains("62 %") && shown.contains("page 31 of 50"), "{shown}");
        assert!(progress(&JobDoc::default()).into_string().contains("tells no progress"));
    }
}
