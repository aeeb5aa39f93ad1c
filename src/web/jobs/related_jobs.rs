//! The jobs of an actor and of a queue, for their pages.

use std::time::Duration;

use maud::{Markup, html};

use super::super::doc::JobDoc;
use super::super::layout::bar;
use super::super::parts::things;
use super::super::snapshot::SiteSnapshot;
use super::super::visit::Visit;
use super::super::web_error::PageResult;
use super::rows::{self, RowStyle};
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
    visit: &Visit,
    now: &SiteSnapshot,
    actor: &ActorId,
) -> PageResult<Markup> {
    let name = actor.to_string();
    let own = |job: &JobSummary| job.fields.get("actor").is_some_and(|actor| *actor == name);
    let sections = [
        ("Running jobs", "It runs no job.", &[JobStatus::Started][..]),
        ("Last hour", "No job of it ended.", &ENDED[..]),
    ];
    of(visit, now, (&actor.script_type, &sections), own).await
}

/// Shows the waiting and running jobs of a queue, and those that ended in the last hour.
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
    of(visit, now, (queue.target.script_type(), &sections), own).await
}

const ENDED: [JobStatus; 2] = [JobStatus::Error, JobStatus::Finished];

/// A section: its title, the sentence without jobs, and the states of its jobs.
type SectionOfJobs<'a> = (&'a str, &'a str, &'a [JobStatus]);

/// Shows sections of jobs of a script type.
async fn of(
    visit: &Visit,
    now: &SiteSnapshot,
    (script_type, sections): (&ScriptType, &[SectionOfJobs<'_>]),
    own: impl Fn(&JobSummary) -> bool,
) -> PageResult<Markup> {
    let mut shown = Vec::new();
    let look = RowStyle { picks: false, died: false };
    for (title, nothing, states) in sections {
        let ended_since = states.contains(&JobStatus::Finished).then(|| now.snapshot.at - HISTORY);
        let search = JobSearch::ended_since(ended_since);
        let query = ListQuery {
            statuses: states.to_vec(),
            script_type: Some(script_type.clone()),
            limit: JOBS_MAX * states.len(),
            budget: Some(ListQuery::BUDGET),
            ..ListQuery::default()
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
                @else { (rows::table(&jobs, visit.links(), now.snapshot.at, look, None)) }
            }
        });
    }
    Ok(html! { @for section in &shown { (section) } })
}
