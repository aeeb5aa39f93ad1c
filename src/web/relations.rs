//! Relations between jobs for lists and pages: the others that a job waits for, and the one that failed before it.

use std::collections::HashMap;

use maud::{Markup, html};
use serde_json::{Value, json};

use super::doc::{AWAITED, AWAITED_NUMBER, FAILED, JobDoc};
use super::links::SiteLinks;
use super::parts::{count, first_line, short_id};
use super::visit::Visit;
use super::web_error::PageResult;
use crate::proto::error_kind::failed_prerequisite;
use crate::proto::job::{JobId, JobStatus};
use crate::store::JobSummary;

/// The maximum number of jobs that are named of those that a job waits for.
const NAMED_MAX: usize = 2;

/// Adds to jobs of a page which others they wait for, and the name and error of the one whose failure ended them.
pub(super) async fn add_to(visit: &Visit, jobs: &mut [JobDoc]) -> PageResult<()> {
    let is_waiting = |job: &JobDoc| job.status() == JobStatus::WaitingForPrerequisites;
    let waiting = jobs.iter().enumerate().filter(|(_, job)| is_waiting(job));
    let (waiting, ids): (Vec<usize>, Vec<JobId>) =
        waiting.filter_map(|(place, job)| Some((place, job.id().parse().ok()?))).unzip();
    let failed = jobs.iter().enumerate();
    let failed: Vec<(usize, JobId)> = failed
        .filter_map(|(place, job)| Some((place, failed_prerequisite(job.text("error"))?)))
        .collect();
    let awaited = visit.site.client.jobs().awaited_by(ids).await?;
    let named = awaited.iter().flat_map(|ids| ids.iter().take(NAMED_MAX));
    let wanted = named.chain(failed.iter().map(|(_, id)| id)).cloned().collect();
    let known = names(visit, wanted).await?;
    let told = |id: &JobId| known.get(id.as_str()).cloned().unwrap_or_else(|| json!({ "id": id }));
    for (place, ids) in waiting.into_iter().zip(&awaited) {
        jobs[place].set(AWAITED, ids.iter().take(NAMED_MAX).map(told).collect());
        jobs[place].set(AWAITED_NUMBER, json!(ids.len()));
    }
    for (place, id) in failed {
        jobs[place].set(FAILED, told(&id));
    }
    Ok(())
}

/// Returns id, name and error of a job.
pub(super) fn error_of_prerequisite(job: &JobSummary) -> Value {
    let field = |name| job.fields.get(name).map_or("", String::as_str);
    json!({ "id": job.id, "name": field("name"), "error": field("error") })
}

/// Reads id, name and error of those jobs that the visitor may see.
async fn names(visit: &Visit, mut ids: Vec<JobId>) -> PageResult<HashMap<String, Value>> {
    ids.sort();
    ids.dedup();
    let mut known = visit.site.client.jobs().summaries(ids).await?;
    known.retain(|job| visit.sees(job));
    Ok(known.iter().map(|job| (job.id.to_string(), error_of_prerequisite(job))).collect())
}

/// Returns the jobs that a job waits for: the first by their names, and the number of the others.
pub(super) fn awaited(job: &JobDoc, links: &SiteLinks) -> Markup {
    let named = job.get(AWAITED).and_then(Value::as_array).cloned().unwrap_or_default();
    let all = job.whole(AWAITED_NUMBER).unwrap_or_default();
    let more = all.saturating_sub(named.len() as u64);
    html! {
        "waits for "
        @if named.is_empty() { "other jobs" }
        @for (place, other) in named.into_iter().map(JobDoc::from).enumerate() {
            @if place > 0 { @if more > 0 { ", " } @else { " and " } }
            (other.link(links))
        }
        @if more > 0 { " and " (count(more)) " more" }
    }
}

/// Returns the first line of the error of a job. If it tells of another job, it links to it.
pub(super) fn error_line(job: &JobDoc, links: &SiteLinks) -> Markup {
    let error = job.text("error");
    html! {
        span.err title=(error) {
            @if let Some(id) = failed_prerequisite(error) {
                @let told = prerequisite(job);
                @let name = told.as_ref().map_or("", |told| told.text("name"));
                "prerequisite failed: "
                a.err href=(links.job(id.as_str())) {
                    @if name.is_empty() { (short_id(id.as_str())) } @else { (name) }
                }
            } @else { (first_line(error)) }
        }
    }
}

/// Returns id, name and error of the job whose failure ended a job, if they are known.
pub(super) fn prerequisite(job: &JobDoc) -> Option<JobDoc> {
    Some(JobDoc::from(job.get(FAILED)?.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_prerequisite_is_named_and_linked_and_hostile_names_are_text() {
        let links = SiteLinks::new("/x");
        let mut job = JobDoc::from(json!({ "error": "prerequisite failed: load-1" }));
        let bare = error_line(&job, &links).into_string();
        assert!(bare.contains("href=\"/x/jobs/load-1\">load-1</a>"), "{bare}");
        job.set(FAILED, json!({ "id": "load-1", "name": "<b>load" }));
        let named = error_line(&job, &links).into_string();
        assert!(named.contains(">&lt;b&gt;load</a>"), "{named}");
        let other = JobDoc::from(json!({ "error": "exit code 1\nmore" }));
        assert!(error_line(&other, &links).into_string().ends_with(">exit code 1</span>"));
    }

    #[test]
    fn jobs_that_are_waited_for_are_named_and_the_others_counted() {
        let links = SiteLinks::new("/");
        let of = |named: Value, number: u64| {
            let mut job = JobDoc::default();
            job.set(AWAITED, named);
            job.set(AWAITED_NUMBER, json!(number));
            awaited(&job, &links).into_string()
        };
        let two = json!([{ "id": "a", "name": "load" }, { "id": "b" }]);
        assert!(of(two.clone(), 2).contains("load</a> and <a"), "{}", of(two.clone(), 2));
        assert!(of(two, 5).ends_with(" and 3 more"));
        assert_eq!(of(json!([]), 0), "waits for other jobs");
    }
}
