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
    of(visit, now, ("actor", &actor.to_string()), &RAN).await
}

pub(in crate::web) async fn of_machine(
    visit: &Visit,
    now: &SiteSnapshot,
    machine: &MachineDocument,
) -> PageResult<Markup> {
    of(visit, now, ("host", &machine.host), &RAN).await
}

pub(in crate::web) async fn of_queue(
    visit: &Visit,
    now: &SiteSnapshot,
    queue: &Queue,
) -> PageResult<Markup> {
    let sections = [
        ("Waiting jobs", "No job waits.", &[JobStatus::Dispatched][..]),
        ("Running jobs", "No job runs.", &[JobStatus::Started][..]),
        ("Last hour", "No job of it ended.", &ENDED[..]),
    ];
    of(visit, now, ("queue", &queue.to_string()), &sections).await
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
    own: (&str, &str),
    sections: &[SectionOfJobs<'_>],
) -> PageResult<Markup> {
    let mut shown = Vec::new();
    let (links, at) = (visit.links(), now.snapshot.at);
    let table = JobRows { links, now: at, picks: false, died: false };
    for (title, nothing, states) in sections {
        let is_of_ended = states.contains(&JobStatus::Finished);
        let filter = JobFilter::of([own]);
        let filter = if is_of_ended { filter.with("ended_since", HISTORY) } else { filter };
        let (query, search) = JobSearch::of(&filter, &TimeZone::UTC, at)
            .map_err(|error| PageError::wrong(error.to_string()))?;
        let query = ListQuery {
            statuses: states.to_vec(),
            limit: JOBS_MAX * states.len(),
            budget: Some(ListQuery::BUDGET),
            ..query
        };
        let sees = |job: &JobSummary| visit.sees(job);
        let _place = visit.may_search().await?;
        let found = visit.site.client.jobs().find(&query, &search, sees).await?;
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
