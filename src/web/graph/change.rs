//! Retries, stops and deletes the jobs of a graph.

use std::fmt::Write as _;

use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::super::doc::JobDoc;
use super::super::fields::Fields;
use super::super::graphs::address;
use super::super::layout::Nav;
use super::super::parts::{Confirm, things};
use super::super::site::Site;
use super::super::visitor::Visitor;
use super::super::web_error::PageError;

/// Reads a graph without its jobs.
pub(super) async fn named(site: &Site, visitor: &Visitor, id: &str) -> Result<JobDoc, PageError> {
    let mut answer = site.ask(visitor, "graph.get", json!({ "id": id, "limit": 1 })).await?;
    Ok(JobDoc::from(answer["graph"].take()))
}

/// Asks before the jobs of a graph are stopped.
pub(in crate::web) async fn ask_stop(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    let graph = named(&site, &visitor, &id).await?;
    let number = graph.whole("waiting").unwrap_or_default();
    let question = Confirm {
        title: format!("Stop {} of {}?", things(number, "job"), graph.label()),
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
    let number = graph.whole("jobs").unwrap_or_default();
    let question = Confirm {
        title: format!("Delete {} with {}?", graph.label(), things(number, "job")),
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
    let answer = site.call(&visitor, &format!("graph.{verb}"), json!({ "id": graph.id() })).await?;
    site.snapshots_are_old();
    // A graph with jobs left is still there.
    let is_gone = verb == "delete" && answer["left"] == 0;
    let back = if is_gone { "/graphs".to_owned() } else { address(&graph) };
    Ok(site.done(&back, &said(verb, &answer)))
}

/// Runs the failed jobs of a graph again with these changes.
pub(super) async fn retried(
    site: &Site,
    visitor: &Visitor,
    graph: &JobDoc,
    changes: Value,
) -> Result<Response, PageError> {
    let params = json!({ "id": graph.id(), "changes": changes });
    let answer = site.call(visitor, "graph.retry", params).await?;
    site.snapshots_are_old();
    Ok(site.done(&address(graph), &said("retry", &answer)))
}

/// Returns the sentence about what happened: `Retried 2 jobs, 1 stays as it is.`
fn said(verb: &str, answer: &Value) -> String {
    let number = |field: &str| answer[field].as_u64().unwrap_or_default();
    let word = match verb {
        "retry" => "Retried",
        "stop" => "Stopped",
        _ => "Deleted",
    };
    let mut text = format!("{word} {}", things(number("done"), "job"));
    if number("told") > 0 {
        let _ = write!(text, ", told {} to stop", things(number("told"), "running job"));
    }
    match number("left") {
        0 => {}
        1 => text += ", 1 stays as it is",
        left => drop(write!(text, ", {left} stay as they are")),
    }
    if let Some(why) = answer["problems"][0]["problem"].as_str() {
        let _ = write!(text, ": {why}");
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_says_what_happened_and_what_was_left() {
        assert_eq!(said("retry", &json!({ "done": 2, "told": 0, "left": 0 })), "Retried 2 jobs.");
        let stopped =
            json!({ "done": 1, "told": 3, "left": 2, "problems": [{ "problem": "gone" }] });
        let text = "Stopped 1 job, told 3 running jobs to stop, 2 stay as they are: gone.";
        assert_eq!(said("stop", &stopped), text);
    }
}
