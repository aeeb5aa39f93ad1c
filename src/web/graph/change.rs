//! Retries, stops and deletes the jobs of a graph, and ends its pause.

use std::fmt::Write as _;

use axum::extract::Path;
use serde_json::{Value, json};

use super::super::fields::Fields;
use super::super::graphs::{address, label};
use super::super::layout::Nav;
use super::super::parts::{Confirm, things};
use super::super::visit::Visit;
use super::super::web_error::{PageError, PageResult};
use super::id_alone;
use crate::client::{GraphChange, GraphDocument};
use crate::rpc::results::ShownGraph;

/// Reads a graph without its jobs.
pub(super) async fn named(visit: &Visit, id: &str) -> PageResult<GraphDocument> {
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
    let question = Confirm::of(address, ("stop", "Stop the jobs"), title, text.to_owned());
    visit.question(Nav::Graphs, &question).await
}

pub(in crate::web) async fn ask_delete(visit: Visit, Path(id): Path<String>) -> PageResult {
    let graph = named(&visit, &id).await?;
    let title = format!("Delete {} with {}?", label(&graph), things(graph.jobs, "job"));
    let text = "The scripts, outputs and logs of its jobs are gone for good.";
    let address = visit.links().to(&address(&graph));
    let question = Confirm::of(address, ("delete", "Delete the graph"), title, text.to_owned());
    visit.question(Nav::Graphs, &question).await
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

pub(super) async fn retried(visit: &Visit, graph: &GraphDocument, changes: Value) -> PageResult {
    let params = json!({ "id": id_alone(&graph.id), "changes": changes });
    let retried = visit.call_for("graph.retry", params).await?;
    Ok(visit.done(&address(graph), &said("retry", &retried)))
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
