//! Retries, stops and deletes the jobs of a graph, ends its pause, and corrects its failed scripts: `/graphs/ID/correct` runs
//! it again with the scripts of a form.

use std::fmt::Write as _;

use axum::extract::Path;
use serde_json::{Map, json};

use super::super::doc::JobDoc;
use super::super::graphs::{address, label};
use super::super::job::read;
use super::super::parts::{correction_head, things};
use super::super::prelude::*;
use super::id_alone;
use crate::client::{GraphChange, GraphDocument, JobOfGraphDocument};
use crate::proto::error_kind::FailureCause;
use crate::rpc::results::ShownGraph;

const SCRIPTS_MAX: usize = 20;
const LINE: &str = "Its failed jobs run again, and then those that wait for them. The script that the last attempt of a job \
                    ran stays in the record of that attempt.";
/// The prefix of a field; the id of its job follows.
const SCRIPT: &str = "script-";

/// Reads a graph without its jobs.
async fn named(visit: &Visit, id: &str) -> PageResult<GraphDocument> {
    let asked = json!({ "id": id_alone(id), "limit": 1 });
    let ShownGraph { graph, .. } = visit.ask("graph.get", asked).await?;
    Ok(graph)
}

pub(in crate::web) async fn ask_stop(visit: Visit, Path(id): Path<String>) -> PageResult {
    let graph = named(&visit, &id).await?;
    let title = format!("Stop {} of {}?", things(graph.waiting, "job"), label(&graph));
    let text =
        "Those that run are told to stop, those that wait do not start. They can be retried.";
    let address = visit.links().to(&address(&graph));
    visit.ask_before(Nav::Graphs, address, ("stop", "Stop the jobs"), (title, text)).await
}

pub(in crate::web) async fn ask_delete(visit: Visit, Path(id): Path<String>) -> PageResult {
    let graph = named(&visit, &id).await?;
    let title = format!("Delete {} with {}?", label(&graph), things(graph.jobs, "job"));
    let text = "The scripts, outputs and logs of its jobs are gone for good.";
    let address = visit.links().to(&address(&graph));
    visit.ask_before(Nav::Graphs, address, ("delete", "Delete the graph"), (title, text)).await
}

pub(in crate::web) async fn change(
    visit: Visit,
    Path(id): Path<String>,
    fields: Fields,
) -> PageResult {
    let verb @ ("retry" | "stop" | "delete" | "go") = fields.get("do") else {
        return Err(PageError::wrong("The form asks for nothing that a graph can do."));
    };
    let graph = named(&visit, &id).await?;
    if verb == "go" {
        let params = json!({ "id": id_alone(&graph.id), "order": "go" });
        visit.call_for::<GraphDocument>("graph.tell", params).await?;
        return Ok(visit.done(&address(&graph), "It goes on."));
    }
    let (method, params) = (format!("graph.{verb}"), json!({ "id": id_alone(&graph.id) }));
    let changed: GraphChange = visit.call_for(&method, params).await?;
    // A graph with jobs left is still there.
    let is_gone = verb == "delete" && changed.left == 0;
    let back = if is_gone { "/graphs".to_owned() } else { address(&graph) };
    Ok(visit.done(&back, &said(verb, &changed)))
}

/// Returns the sentence about what happened: `Retried 2 jobs, 1 stays as it is.`
fn said(verb: &str, changed: &GraphChange) -> String {
    let word = match verb {
        "retry" => "Retried",
        "stop" => "Stopped",
        _ => "Deleted",
    };
    let mut text = format!("{word} {}", things(changed.done, "job"));
    if changed.told > 0 {
        let _ = write!(text, ", told {} to stop", things(changed.told, "running job"));
    }
    match changed.left {
        0 => {}
        1 => text += ", 1 stays as it is",
        left => drop(write!(text, ", {left} stay as they are")),
    }
    if let Some(first) = changed.problems.first() {
        let _ = write!(text, ": {}", first.problem);
    }
    text + "."
}

/// Reads the jobs of a graph that failed by themselves, not because of others. The second value is true if these are all.
async fn failed(visit: &Visit, graph: &GraphDocument) -> PageResult<(Vec<JobDoc>, bool)> {
    let params = json!({ "id": id_alone(&graph.id), "outcome": "failed", "limit": 1000 });
    let ShownGraph { jobs: failed, next, .. } = visit.ask("graph.get", params).await?;
    let by_itself = |job: &&JobOfGraphDocument| {
        let error = job.error.as_deref();
        error.is_some_and(|error| FailureCause::of(error) != FailureCause::Prerequisite)
    };
    let mut jobs = Vec::new();
    for job in failed.iter().filter(by_itself).take(SCRIPTS_MAX) {
        jobs.push(read(visit, &job.id).await?);
    }
    let is_all = next.is_none() && failed.iter().filter(by_itself).count() == jobs.len();
    Ok((jobs, is_all))
}

pub(in crate::web) async fn ask_correction(visit: Visit, Path(id): Path<String>) -> PageResult {
    let now = visit.snapshot().await?;
    let graph = named(&visit, &id).await?;
    let (jobs, is_all) = failed(&visit, &graph).await?;
    let links = visit.links();
    let own = links.to(&address(&graph));
    let main = html! {
        (correction_head(&html! { a href=(links.to("/graphs")) { "Graphs" } }, (label(&graph), &own), LINE))
        form method="post" action={ (own) "/correct" } {
            (visit.forgery_field())
            @if !is_all {
                p.dim { "Not all of them are shown: the others run again with their scripts as they are." }
            } @else if jobs.is_empty() { p.dim { "No job failed by itself." } }
            @for job in &jobs {
                @let name = format!("{SCRIPT}{}", job.id());
                label for=(name) { "Script of " (job.link(links)) }
                p.meta { (job.text("error")) }
                textarea id=(name) name=(name) rows="12" spellcheck="false" autocapitalize="off" required {
                    "\n" (job.text("script"))
                }
            }
            button.main { "Run again" }
        }
    };
    let title = format!("Correct {}", label(&graph));
    Ok(visit.page(&now, &WebPage::still(title, Nav::Graphs, main)))
}

pub(in crate::web) async fn correct(
    visit: Visit,
    Path(id): Path<String>,
    fields: Fields,
) -> PageResult {
    let graph = named(&visit, &id).await?;
    // A browser sends each end of a line as two characters.
    let plain = |text: &str| text.replace("\r\n", "\n");
    let mut changes = Map::new();
    for job in failed(&visit, &graph).await?.0 {
        let name = format!("{SCRIPT}{}", job.id());
        let given = fields.pairs().find(|(field, _)| *field == name);
        let Some(given) = given.map(|(_, text)| plain(text)) else { continue };
        if given != plain(job.text("script")) {
            changes.insert(job.id().to_owned(), json!({ "script": given }));
        }
    }
    let params = json!({ "id": id_alone(&graph.id), "changes": changes });
    let retried = visit.call_for("graph.retry", params).await?;
    Ok(visit.done(&address(&graph), &said("retry", &retried)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::GraphProblem;

    #[test]
    fn sentence_says_what_happened_and_what_was_left() {
        let retried = GraphChange { done: 2, ..GraphChange::default() };
        assert_eq!(said("retry", &retried), "Retried 2 jobs.");
        let why = GraphProblem { id: "a".to_owned(), problem: "gone".to_owned() };
        let stopped = GraphChange { done: 1, told: 3, left: 2, problems: vec![why] };
        let text = "Stopped 1 job, told 3 running jobs to stop, 2 stay as they are: gone.";
        assert_eq!(said("stop", &stopped), text);
    }
}
