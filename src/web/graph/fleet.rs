//! The machines of a job for every one, in cells: those with an equal answer are one cell.

use jiff::Timestamp;

use super::super::doc::JobDoc;
use super::super::jobs::what_it_is_at;
use super::super::parts::{ShownState, bar, first_line};
use super::super::prelude::*;
use crate::client::GraphDocument;
use crate::proto::job::{JobId, JobStatus};
use crate::view::{EqualAnswers, FleetAnswer, answered_error};

/// The longest output that is compared and shown, in bytes.
const OUTPUT_BYTES_MAX: u64 = 4096;
/// The cells of answers that finished, and of others; further ones are one cell each.
const CELLS_MAX: usize = 24;
/// The machines of a cell that stand without a click.
const NAMES_MAX: usize = 8;

/// The outputs of a job for every machine.
pub(super) struct FleetGrid {
    /// The word for one of those that got a copy.
    noun: &'static str,
    /// The beginning of the names of the jobs.
    prefix: String,
    /// The outputs, in the order of the jobs; `None` for a longer one.
    outputs: Vec<Option<Vec<u8>>>,
}

/// A cell: an equal answer, or several further ones.
struct FleetCell<'a> {
    output: Option<&'a [u8]>,
    /// The places of its jobs.
    jobs: Vec<&'a JobDoc>,
}

impl FleetGrid {
    /// Reads it; `None` for jobs that are no copies.
    pub(super) async fn read(
        visit: &Visit,
        graph: &GraphDocument,
        jobs: &[JobDoc],
    ) -> PageResult<Option<Self>> {
        let Some(every) = graph.every else { return Ok(None) };
        let id = |job: &JobDoc| job.id().parse::<JobId>().ok();
        let finished: Vec<Option<JobId>> = jobs
            .iter()
            .map(|job| id(job).filter(|_| job.status() == JobStatus::Finished))
            .collect();
        let asked: Vec<&JobId> = finished.iter().flatten().collect();
        let own: JobId =
            graph.id.parse().map_err(|_| super::PageError::not_found("No such graph."))?;
        let read = visit.site.client.jobs().short_outputs(&own, &asked, OUTPUT_BYTES_MAX).await?;
        let mut read = read.into_iter();
        let of = |id: Option<JobId>| id.map_or(Some(Vec::new()), |_| read.next().flatten());
        let outputs = finished.into_iter().map(of).collect();
        let prefix = graph.name.as_ref().map(|name| format!("{name} on ")).unwrap_or_default();
        Ok(Some(Self { noun: every.as_str(), prefix, outputs }))
    }

    fn name<'a>(&self, job: &'a JobDoc) -> &'a str {
        let label = job.label();
        label.strip_prefix(&self.prefix).unwrap_or(label)
    }

    /// Returns the cells: equal answers, the most common first, then those that did not finish.
    fn cells<'a>(&'a self, jobs: &'a [JobDoc]) -> Vec<FleetCell<'a>> {
        let is_known = |job: &JobDoc| !job.text("status").is_empty();
        let (mut answers, mut long) = (Vec::new(), Vec::new());
        for (job, output) in jobs.iter().zip(&self.outputs).filter(|(job, _)| is_known(job)) {
            let Some(output) = output else {
                long.push(job);
                continue;
            };
            let given = Some(job.text("error")).filter(|text| !text.is_empty());
            let error = answered_error(job.status(), given);
            answers.push(FleetAnswer {
                name: self.name(job).to_owned(),
                id: job.id(),
                error,
                output,
            });
        }
        let of = |id: &str| jobs.iter().find(|job| job.id() == id);
        let cell = |group: &EqualAnswers<'a>| FleetCell {
            jobs: group.ids.iter().filter_map(|id| of(id)).collect(),
            output: Some(group.output),
        };
        let groups = EqualAnswers::of(answers);
        let (finished, others) =
            groups.split_at(groups.partition_point(|group| group.error.is_none()));
        let mut cells = bounded(finished.iter().map(cell).collect(), long);
        cells.extend(bounded(others.iter().map(cell).collect(), Vec::new()));
        cells
    }

    pub(super) fn markup(&self, jobs: &[JobDoc], links: &SiteLinks, now: Timestamp) -> Markup {
        html! {
            (bar(if self.noun == "actor" { "Actors" } else { "Machines" }, "equal answers in one cell", None))
            ul.fleet { @for cell in self.cells(jobs) { (self.cell(&cell, links, now)) } }
        }
    }

    fn cell(&self, cell: &FleetCell, links: &SiteLinks, now: Timestamp) -> Markup {
        let Some(first) = cell.jobs.first() else { return html! {} };
        let number = cell.jobs.len();
        let links_of = |jobs: &[&JobDoc]| {
            html! {
                @for (place, job) in jobs.iter().enumerate() {
                    @if place > 0 { ", " }
                    a.id href=(links.job(job.id())) { (self.name(job)) }
                }
            }
        };
        let code = first.plain("exit_code");
        html! {
            li {
                p.fleet-head {
                    strong {
                        @if number == 1 { (links_of(&cell.jobs)) }
                        @else { (number) " " (self.noun) "s" }
                    }
                    (first.state().shown())
                    @if !code.is_empty() && cell.output.is_some() { span.faint { "exit " (code) } }
                }
                p.cut.mono { (answer(cell, first, links, now)) }
                @if number > NAMES_MAX {
                    details {
                        summary { (links_of(&cell.jobs[..NAMES_MAX])) " and " (number - NAMES_MAX) " more" }
                        p { (links_of(&cell.jobs[NAMES_MAX..])) }
                    }
                } @else if number > 1 { p { (links_of(&cell.jobs)) } }
            }
        }
    }
}

fn answer(cell: &FleetCell<'_>, first: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    match (cell.output, first.state()) {
        (None, ShownState::Finished) => html! { span.faint { "longer or further outputs" } },
        (None, _) => html! { span.faint { "further errors" } },
        (Some(output), ShownState::Finished) => {
            let text = String::from_utf8_lossy(output);
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            html! {
                @if let Some(last) = last { span title=(last) { (last) } }
                @else { span.faint { "no output" } }
            }
        }
        (Some(_), ShownState::Error | ShownState::Cancelled) => {
            let error = first_line(first.text("error"));
            html! { span.err title=(error) { (error) } }
        }
        (Some(_), _) => html! { span.why { (what_it_is_at(first, links, now)) } },
    }
}

/// Returns cells of which there are not too many: the further ones, and jobs without a cell of their own, are one.
fn bounded<'a>(mut cells: Vec<FleetCell<'a>>, mut rest: Vec<&'a JobDoc>) -> Vec<FleetCell<'a>> {
    let further = cells.split_off(cells.len().min(CELLS_MAX));
    rest.extend(further.into_iter().flat_map(|cell| cell.jobs));
    if !rest.is_empty() {
        cells.push(FleetCell { output: None, jobs: rest });
    }
    cells
}
