//! The jobs of an actor, of a machine and of a queue, for their pages.

use jiff::tz::TimeZone;

use super::super::doc::JobDoc;
use super::super::parts::{bar, things};
use super::super::prelude::*;
use super::rows::JobRows;
use crate::client::MachineDocument;
use crate::proto::job::JobStatus;
use crate::proto::job_filter::JobFilter;
use crate::proto::queue::Queue;
use crate::proto::target::ActorId;
use crate::store::{JobSearch, JobSummary, ListQuery};

/// The maximum number of jobs of a section for each state.
const JOBS_MAX: usize = 10;
/// The time whose ended jobs are shown.
const HISTORY: &str = "1h";

pub(in crate::web) async fn of_actor(
    visit: &Visit,
    now: &SiteSnapshot,
    actor: &ActorId,
) -> PageResult<Markup> {
    let name = actor.to_string();
    let own = |job: &JobSummary| job.fields.get("actor").is_some_and(|actor| *actor == name);
    let filter = JobFilter::of([("type", actor.script_type.as_str())]);
    of(visit, now, (&filter, &RAN), own).await
}

pub(in crate::web) async fn of_machine(
    visit: &Visit,
    now: &SiteSnapshot,
    machine: &MachineDocument,
) -> PageResult<Markup> {
    let is_own = |name: &String| machine.actors.iter().any(|of| of.actor == *name);
    let own = |job: &JobSummary| job.fields.get("actor").is_some_and(is_own);
    of(visit, now, (&JobFilter::of([("host", machine.host.as_str())]), &RAN), own).await
}

pub(in crate::web) async fn of_queue(
    visit: &Visit,
    now: &SiteSnapshot,
    queue: &Queue,
) -> PageResult<Markup> {
    let own = |job: &JobSummary| job.queue().as_ref() == Some(queue);
    let sections = [
        ("Waiting jobs", "No job waits.", &[JobStatus::Dispatched][..]),
        ("Running jobs", "No job runs.", &[JobStatus::Started][..]),
        ("Last hour", "No job of it ended.", &ENDED[..]),
    ];
    let filter = JobFilter::of([("type", queue.target.script_type().as_str())]);
    of(visit, now, (&filter, &sections), own).await
}

const RAN: [SectionOfJobs; 2] = [
    ("Running jobs", "It runs no job.", &[JobStatus::Started]),
    ("Last hour", "No job of it ended.", &ENDED),
];
const ENDED: [JobStatus; 2] = [JobStatus::Error, JobStatus::Finished];

/// A section: its title, the sentence without jobs, and the states of its jobs.
type SectionOfJobs<'a> = (&'a str, &'a str, &'a [JobStatus]);

async fn of(
    visit: &Visit,
    now: &SiteSnapshot,
    (filter, sections): (&JobFilter, &[SectionOfJobs<'_>]),
    own: impl Fn(&JobSummary) -> bool,
) -> PageResult<Markup> {
    let mut shown = Vec::new();
    let (links, at) = (visit.links(), now.snapshot.at);
    let table = JobRows { links, now: at, picks: false, died: false };
    for (title, nothing, states) in sections {
        let is_of_ended = states.contains(&JobStatus::Finished);
        let filter = filter.clone();
        let filter = if is_of_ended { filter.with("ended_since", HISTORY) } else { filter };
        let (query, search) = JobSearch::of(&filter, &TimeZone::UTC, at)
            .map_err(|error| PageError::wrong(error.to_string()))?;
        let query = ListQuery {
            statuses: states.to_vec(),
            limit: JOBS_MAX * states.len(),
            budget: Some(ListQuery::BUDGET),
            ..query
        };
        let sees = |job: &JobSummary| own(job) && visit.sees(job);
        let found = visit.site.client.find_jobs(&query, &search, sees).await?;
        let jobs: Vec<JobDoc> = found.items.iter().map(JobDoc::from).collect();
        shown.push(html! {
            section {
                (bar(title, "", None))
                @if jobs.is_empty() && found.complete { p.dim { (nothing) } }
                @else if jobs.is_empty() {
                    p.dim { "None among the latest " (things(found.searched as u64, "job")) "." }
                }
                @else { (table.of(&jobs).markup()) }
            }
        });
    }
    Ok(html! { @for section in &shown { (section) } })
}
