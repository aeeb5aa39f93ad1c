//! The jobs of an actor and of a queue, for their pages.

use std::time::Duration;

use maud::{Markup, html};
use serde_json::json;

use super::super::doc::JobDoc;
use super::super::layout::bar;
use super::super::site::Site;
use super::super::snapshot::SiteSnapshot;
use super::super::visitor::Visitor;
use super::super::web_error::PageError;
use super::rows::{self, RowLook};
use crate::proto::job::JobStatus;
use crate::proto::queue::Queue;
use crate::proto::target::{ActorId, ScriptType};
use crate::store::{JobSearch, JobSummary, ListQuery};

/// The maximum number of jobs of a section for each state.
const JOBS_MAX: usize = 10;
/// The time whose ended jobs are shown.
const HISTORY: Duration = Duration::from_hours(1);

/// Shows the running jobs of an actor, and those that it ended in the last hour.
pub(in crate::web) async fn of_actor(
    site: &Site,
    visitor: &Visitor,
    now: &SiteSnapshot,
    actor: &ActorId,
) -> Result<Markup, PageError> {
    let name = actor.to_string();
    let own = |job: &JobSummary| job.fields.get("actor").is_some_and(|actor| *actor == name);
    let sections = [
        ("Running jobs", "It runs no job.", &[JobStatus::Started][..]),
        ("Last hour", "No job of it ended.", &ENDED[..]),
    ];
    of(site, visitor, now, (&actor.script_type, &sections), own).await
}

/// Shows the waiting and running jobs of a queue, and those that ended in the last hour.
pub(in crate::web) async fn of_queue(
    site: &Site,
    visitor: &Visitor,
    now: &SiteSnapshot,
    queue: &Queue,
) -> Result<Markup, PageError> {
    let own = |job: &JobSummary| job.queue().as_ref() == Some(queue);
    let sections = [
        ("Waiting jobs", "No job waits.", &[JobStatus::Dispatched][..]),
        ("Running jobs", "No job runs.", &[JobStatus::Started][..]),
        ("Last hour", "No job of it ended.", &ENDED[..]),
    ];
    of(site, visitor, now, (queue.target.script_type(), &sections), own).await
}

const ENDED: [JobStatus; 2] = [JobStatus::Error, JobStatus::Finished];

/// A section: its title, the sentence without jobs, and the states of its jobs.
type SectionOfJobs<'a> = (&'a str, &'a str, &'a [JobStatus]);

/// Shows sections of jobs of a script type.
async fn of(
    site: &Site,
    visitor: &Visitor,
    now: &SiteSnapshot,
    (script_type, sections): (&ScriptType, &[SectionOfJobs<'_>]),
    own: impl Fn(&JobSummary) -> bool,
) -> Result<Markup, PageError> {
    let mut shown = Vec::new();
    let look = RowLook { picks: false, died: false };
    for (title, nothing, states) in sections {
        let ended_since = states.contains(&JobStatus::Finished).then(|| now.moment.at - HISTORY);
        let search = JobSearch { ended_since, ..JobSearch::default() };
        let mut jobs: Vec<JobDoc> = Vec::new();
        for status in *states {
            let (statuses, limit) = (vec![*status], JOBS_MAX);
            let query = ListQuery {
                statuses,
                script_type: Some(script_type.clone()),
                limit,
                ..ListQuery::default()
            };
            let sees = |job: &JobSummary| own(job) && visitor.sees(job);
            let found = site.client().find_jobs(&query, &search, sees).await?;
            jobs.extend(found.items.iter().map(|job| JobDoc::from(json!(job))));
        }
        shown.push(html! {
            section {
                (bar(title, "", None))
                @if jobs.is_empty() { p.dim { (nothing) } }
                @else { (rows::table(&jobs, site.links(), now.moment.at, look, None)) }
            }
        });
    }
    Ok(html! { @for section in &shown { (section) } })
}
