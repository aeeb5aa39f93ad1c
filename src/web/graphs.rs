//! `/graphs`: graphs and batches, and what became of their jobs.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::parts::{
    PageTable, ShownState, count, head, pager, percent_of, short_id, things, was_at,
};
use super::prelude::*;
use crate::client::GraphDocument;
use crate::proto::graph::GraphState;
use crate::rpc::results::ListedGraphs;

/// The rows of a page.
const ROWS: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GraphsQuery {
    /// The `next` of the page before.
    after: String,
}

pub(super) async fn list(visit: Visit, PageQuery(query): PageQuery<GraphsQuery>) -> PageResult {
    let now = visit.snapshot().await?;
    let params = page_params(json!({ "limit": ROWS }), &query.after);
    let ListedGraphs { graphs, next } = visit.ask("graph.list", params).await?;
    let next = next.map(|next| next.to_string());
    let further = |after: &str| visit.links().with("/graphs", &[("after", after)]);
    let line = html! { "Jobs that were submitted together, and what became of them." };
    let none = html! {
        @if query.after.is_empty() { "No graphs. " code { "hero submit --graph FILE" } " submits one." }
        @else { "No further graphs." }
    };
    let main = html! {
        (head("Graphs", &line, &html! {}))
        (table(&graphs, visit.links(), now.snapshot.at, &none))
        (pager(&things(graphs.len() as u64, "graph"), (&query.after, next.as_deref()), further))
    };
    Ok(visit.page(&now, &WebPage::still("Graphs", Nav::Graphs, main)))
}

/// Adds the place of a page to the parameters of a method; `after` is the `next` of the page before.
pub(super) fn page_params(mut params: Value, after: &str) -> Value {
    if let Ok(after) = after.parse::<u64>() {
        params["cursor"] = json!(after);
    }
    params
}

pub(super) fn address(graph: &GraphDocument) -> String {
    page_of("graphs", &graph.id)
}

/// Returns its name, or its id as lists show it.
pub(super) fn label(graph: &GraphDocument) -> &str {
    graph.name.as_deref().unwrap_or(short_id(&graph.id))
}

pub(super) fn state(graph: &GraphDocument) -> Markup {
    match graph.state {
        GraphState::Running => ShownState::Running,
        GraphState::Finished => ShownState::Finished,
        GraphState::Failed => ShownState::Error,
        GraphState::Cancelled => ShownState::Cancelled,
    }
    .shown()
}

/// Returns `137 of 200 done, 2 failed, 61 not ended`.
pub(super) fn counts(graph: &GraphDocument) -> String {
    let mut text = format!("{} of {} done", count(graph.finished), count(graph.jobs));
    // Those that wait in a graph may run: they have no outcome yet.
    let others =
        [(graph.failed, "failed"), (graph.cancelled, "cancelled"), (graph.waiting, "not ended")];
    for (number, word) in others.into_iter().filter(|(number, _)| *number > 0) {
        let _ = write!(text, ", {} {word}", count(number));
    }
    text
}

/// Returns a bar of its jobs by their ends.
pub(super) fn done_bar(graph: &GraphDocument) -> Markup {
    let all = graph.jobs.max(1);
    let mut from = 0;
    let parts =
        [(graph.finished, "finished"), (graph.failed, "error"), (graph.cancelled, "cancelled")];
    let parts = parts.map(|(number, class)| {
        let part = (from * 1000 / all, number * 1000 / all, class);
        from += number;
        part
    });
    let ended = percent_of(from, all);
    html! {
        svg.done-bar viewBox="0 0 1000 8" preserveAspectRatio="none" role="img"
            aria-label={ (ended) " ended: " (counts(graph)) } {
            rect.m-t width="1000" height="8" {}
            @for (x, width, class) in parts {
                @if width > 0 { rect.m-v.(class) x=(x) width=(width) height="8" {} }
            }
        }
    }
}

fn table(graphs: &[GraphDocument], links: &SiteLinks, now: Timestamp, none: &Markup) -> Markup {
    PageTable::of(graphs, "nopick fix", "Graphs")
        .column("Graph", "cut m1 c-wf", |of| {
            html! {
                a.id href=(links.to(&address(of))) title=(of.id) { (label(of)) }
                @if of.name.is_some() { " " span.faint { (short_id(&of.id)) } }
            }
        })
        .column("State", "m4 c-st", state)
        .column("Jobs", "m5 cut", |of| html! { (counts(of)) (done_bar(of)) })
        .column("Kind", "dim wide c-n", |of| html! { (of.kind.as_str()) })
        .column("Caller", "dim wide cut c-ca", |of| html! { (of.caller_id) })
        .column("Created", "num mr c-tk", |of| was_at(&of.created_at, now))
        .or(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graph_shows_its_counts_without_zeros_and_hostile_names_as_text() {
        let graph = GraphDocument {
            id: "g".to_owned(),
            name: Some("<b>night".to_owned()),
            kind: crate::proto::graph::GraphKind::Batch,
            state: GraphState::Failed,
            jobs: 200,
            finished: 137,
            failed: 2,
            cancelled: 0,
            waiting: 61,
            caller_id: "ann".to_owned(),
            created_at: String::new(),
            ended_at: None,
            callbacks: std::collections::BTreeMap::new(),
            callback_jobs: Vec::new(),
            at_a_time: None,
            stop_after: None,
            stopped: None,
            pause_after: None,
            paused: false,
            goes_on_at: None,
            every: None,
        };
        let now = Timestamp::UNIX_EPOCH;
        let text = table(&[graph], &SiteLinks::new("/x"), now, &html! {}).into_string();
        assert!(text.contains("137 of 200 done, 2 failed, 61 not ended"), "{text}");
        assert!(text.contains("/x/graphs/g") && !text.contains("<b>"), "{text}");
    }
}
