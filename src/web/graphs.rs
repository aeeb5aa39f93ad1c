//! `/graphs`: graphs and batches, and what became of their jobs.

use std::fmt::Write as _;

use axum::extract::{Query, State};
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::doc::JobDoc;
use super::layout::{Nav, WebPage, head};
use super::links::{SiteLinks, encoded};
use super::parts::{ShownState, columns, count, empty, pager, short_id, things, was};
use super::site::Site;
use super::visitor::Visitor;
use super::web_error::PageError;

/// The rows of a page.
const ROWS: usize = 100;

/// The page that an address asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GraphsQuery {
    /// The `next` of the page before.
    after: String,
}

impl GraphsQuery {
    fn params(&self, others: Value) -> Value {
        let mut params = others;
        params["limit"] = json!(ROWS);
        if let Ok(after) = self.after.parse::<u64>() {
            params["cursor"] = json!(after);
        }
        params
    }
}

/// Lists graphs and batches.
pub(super) async fn list(
    State(site): State<Site>,
    visitor: Visitor,
    Query(query): Query<GraphsQuery>,
) -> Result<Response, PageError> {
    let now = site.snapshot(&visitor).await?;
    let mut answer = site.ask(&visitor, "graph.list", query.params(json!({}))).await?;
    let graphs = docs(&mut answer, "graphs");
    let line = html! { "Jobs that were submitted together, and what became of them." };
    let main = html! {
        (head("Graphs", &line, &html! {}))
        @if graphs.is_empty() {
            (empty(&html! { "No graphs. " code { "hero submit --graph FILE" } " submits one." }))
        } @else {
            (graphs_table(&graphs, site.links(), now.moment.at))
        }
        (pages(site.links(), "/graphs", &answer, &query, &things(graphs.len() as u64, "graph")))
    };
    Ok(site.page(&visitor, &now, &WebPage::still("Graphs", Nav::Graphs, main)))
}

/// Takes a list of an answer.
pub(super) fn docs(answer: &mut Value, field: &str) -> Vec<JobDoc> {
    match answer.get_mut(field).map(Value::take) {
        Some(Value::Array(found)) => found.into_iter().map(JobDoc::from).collect(),
        _ => Vec::new(),
    }
}

/// Returns the path of its page.
pub(super) fn address(graph: &JobDoc) -> String {
    format!("/graphs/{}", encoded(graph.text("id")))
}

fn pages(
    links: &SiteLinks,
    path: &str,
    answer: &Value,
    query: &GraphsQuery,
    shown: &str,
) -> Markup {
    let next =
        answer["next"].as_u64().map(|next| links.with(path, &[("after", &next.to_string())]));
    let first = (!query.after.is_empty()).then(|| links.to(path));
    pager(shown, first.as_deref(), next.as_deref())
}

/// Returns the state in the words for a job's state.
pub(super) fn state(graph: &JobDoc) -> Markup {
    let word = match graph.text("state") {
        "failed" => "error",
        word => word,
    };
    html! { @if let Some(state) = ShownState::parse(word) { (state.shown()) } @else { (word) } }
}

/// Returns `137 of 200 done, 2 failed, 61 not ended`.
pub(super) fn counts(graph: &JobDoc) -> String {
    let number = |field| graph.whole(field).unwrap_or_default();
    let mut text = format!("{} of {} done", count(number("finished")), count(number("jobs")));
    // Those that wait in a graph may run: they have no outcome yet.
    for (field, word) in
        [("failed", "failed"), ("cancelled", "cancelled"), ("waiting", "not ended")]
    {
        if number(field) > 0 {
            let _ = write!(text, ", {} {word}", count(number(field)));
        }
    }
    text
}

fn graphs_table(graphs: &[JobDoc], links: &SiteLinks, now: Timestamp) -> Markup {
    html! {
        table.stack.nopick.fix role="table" {
            caption.sr { "Graphs" }
            thead role="rowgroup" {
                tr role="row" {
                    (columns(&[
                        ("c-wf", "Graph"), ("c-st", "State"), ("", "Jobs"), ("c-n", "Kind"),
                        ("c-ca", "Caller"), ("num c-tk", "Created"),
                    ]))
                }
            }
            tbody role="rowgroup" {
                @for graph in graphs {
                    tr role="row" {
                        td.cut.m1 role="cell" {
                            a.id href=(links.to(&address(graph))) title=(graph.id()) { (graph.label()) }
                            @if !graph.text("name").is_empty() {
                                " " span.faint { (short_id(graph.id())) }
                            }
                        }
                        td.m4 role="cell" { (state(graph)) }
                        td.m5.cut role="cell" { (counts(graph)) }
                        td.dim.wide role="cell" { (graph.text("kind")) }
                        td.dim.wide.cut role="cell" { (graph.text("caller_id")) }
                        td.num.mr role="cell" {
                            @if let Some(at) = graph.time("created_at") { (was(at, now)) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graph_shows_its_counts_without_zeros_and_hostile_names_as_text() {
        let graph = JobDoc::from(json!({
            "id": "g", "name": "<b>night", "kind": "batch", "state": "failed", "jobs": 200,
            "finished": 137, "failed": 2, "cancelled": 0, "waiting": 61, "caller_id": "ann",
        }));
        let now = Timestamp::UNIX_EPOCH;
        let text = graphs_table(&[graph], &SiteLinks::new("/x"), now).into_string();
        assert!(text.contains("137 of 200 done, 2 failed, 61 not ended"), "{text}");
        assert!(text.contains("/x/graphs/g") && !text.contains("<b>"), "{text}");
    }
}
