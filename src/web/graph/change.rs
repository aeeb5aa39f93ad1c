//! Retries, stops and deletes the jobs of a graph.

use std::fmt::Write as _;

use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::super::fields::Fields;
use super::super::graphs::{address, label};
use super::super::layout::Nav;
use super::super::parts::{Confirm, things};
use super::super::site::Site;
use super::super::visitor::Visitor;
use super::super::web_error::PageError;
use crate::client::{GraphChange, GraphDocument};
use crate::rpc::results::ShownGraph;

/// Reads a graph without its jobs.
pub(super) async fn named(
    site: &Site,
    visitor: &Visitor,
    id: &str,
) -> Result<GraphDocument, PageError> {
    let asked = json!({ "id": id, "limit": 1 });
    let ShownGraph { graph, .. } = site.ask(visitor, "graph.get", asked).await?;
    Ok(graph)
}

/// Asks before the jobs of a graph are stopped.
pub(in crate::web) async fn ask_stop(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    let graph = named(&site, &visitor, &id).await?;
    let question = Confirm {
        title: format!("Stop {} of {}?", things(graph.waiting, "job"), label(&graph)),
        text: "Those that run are told to stop, those that wait do not start. They can be retried."
            .to_owned(),
        back: site.links().to(&address(&graph)),
        action: site.links().to(&address(&graph)),
        fields: vec![("do", "stop".to_owned())],
        verb: "Stop the jobs",
    };
    site.question(&visitor, Nav::Graphs, &question).await
}

/// Asks before a graph is deleted.
pub(in crate::web) async fn ask_delete(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    let graph = named(&site, &visitor, &id).await?;
    let question = Confirm {
        title: format!("Delete {} with {}?", label(&graph), things(graph.jobs, "job")),
        text: "The scripts, outputs and logs of its jobs are gone for good.".to_owned(),
        back: site.links().to(&address(&graph)),
        action: site.links().to(&address(&graph)),
        fields: vec![("do", "delete".to_owned())],
        verb: "Delete the graph",
    };
    site.question(&visitor, Nav::Graphs, &question).await
}

/// Changes the jobs of a graph.
pub(in crate::web) async fn change(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
    fields: Fields,
) -> Result<Response, PageError> {
    let verb @ ("retry" | "stop" | "delete") = fields.get("do") else {
        return Err(PageError::wrong("The form asks for nothing that a graph can do."));
    };
    let graph = named(&site, &visitor, &id).await?;
    let (method, params) = (format!("graph.{verb}"), json!({ "id": graph.id }));
    let changed: GraphChange = site.call_for(&visitor, &method, params).await?;
    site.snapshots_are_old();
    // A graph with jobs left is still there.
    let is_gone = verb == "delete" && changed.left == 0;
    let back = if is_gone { "/graphs".to_owned() } else { address(&graph) };
    Ok(site.done(&back, &said(verb, &changed)))
}

/// Runs the failed jobs of a graph again with these changes.
pub(super) async fn retried(
    site: &Site,
    visitor: &Visitor,
    graph: &GraphDocument,
    changes: Value,
) -> Result<Response, PageError> {
    let params = json!({ "id": graph.id, "changes": changes });
    let retried = site.call_for(visitor, "graph.retry", params).await?;
    site.snapshots_are_old();
    Ok(site.done(&address(graph), &said("retry", &retried)))
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
