//! `/graphs` and `/graphs/ID`: graphs and batches, what became of their jobs, and one of them with these.

use std::fmt::Write as _;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::doc::JobDoc;
use super::error::PageError;
use super::jobs::first_line;
use super::layout::{Nav, WebPage, bar, head};
use super::links::{SiteLinks, encoded};
use super::parts::{ShownState, count, empty, id_link, pager, short_id, things, was};
use super::site::Site;
use super::visitor::Visitor;

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

/// Shows a graph or batch with its jobs.
pub(super) async fn show(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
    Query(query): Query<GraphsQuery>,
) -> Result<Response, PageError> {
    let now = site.snapshot(&visitor).await?;
    let mut answer = site.ask(&visitor, "graph.get", query.params(json!({ "id": id }))).await?;
    let jobs = docs(&mut answer, "jobs");
    let graph = JobDoc::from(answer["graph"].take());
    let (links, name) = (site.links(), graph.text("name"));
    let title = if name.is_empty() { short_id(graph.text("id")) } else { name };
    let line = html! {
        (graph.text("kind")) " " code { (graph.text("id")) } ": " (counts(&graph))
    };
    let main = html! {
        (head(title, &line, &html! {}))
        section {
            (bar("Jobs", "", None))
            @if jobs.is_empty() { (empty(&html! { "No jobs." })) }
            @else { (jobs_table(&jobs, links)) }
            (pages(links, &address(&graph), &answer, &query, &things(jobs.len() as u64, "job")))
        }
        (facts(&graph, links, now.moment.at))
    };
    Ok(site.page(&visitor, &now, &WebPage::still(format!("Graph {title}"), Nav::Graphs, main)))
}

fn docs(answer: &mut Value, field: &str) -> Vec<JobDoc> {
    match answer.get_mut(field).map(Value::take) {
        Some(Value::Array(found)) => found.into_iter().map(JobDoc::from).collect(),
        _ => Vec::new(),
    }
}

fn address(graph: &JobDoc) -> String {
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

/// Returns the state as people see that of a job.
fn state(graph: &JobDoc) -> Markup {
    let word = match graph.text("state") {
        "failed" => "error",
        word => word,
    };
    html! { @if let Some(state) = ShownState::parse(word) { (state.shown()) } @else { (word) } }
}

/// Returns `137 of 200 done, 2 failed, 61 not ended`.
fn counts(graph: &JobDoc) -> String {
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
        table.stack.nopick role="table" {
            caption.sr { "Graphs" }
            thead role="rowgroup" {
                tr role="row" {
                    th role="columnheader" { "Graph" }
                    th role="columnheader" { "State" }
                    th role="columnheader" { "Jobs" }
                    th role="columnheader" { "Kind" }
                    th role="columnheader" { "Caller" }
                    th.num role="columnheader" { "Created" }
                }
            }
            tbody role="rowgroup" {
                @for graph in graphs {
                    tr role="row" {
                        td.cut.m1 role="cell" {
                            (id_link(graph.text("id"), &links.to(&address(graph))))
                            @if !graph.text("name").is_empty() { " " (graph.text("name")) }
                        }
                        td.m4 role="cell" { (state(graph)) }
                        td.m5 role="cell" { (counts(graph)) }
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

fn jobs_table(jobs: &[JobDoc], links: &SiteLinks) -> Markup {
    html! {
        table.stack.nopick role="table" {
            caption.sr { "Jobs" }
            thead role="rowgroup" {
                tr role="row" {
                    th role="columnheader" { "Job" }
                    th role="columnheader" { "State" }
                    th role="columnheader" { "Error" }
                }
            }
            tbody role="rowgroup" {
                @for job in jobs {
                    tr role="row" {
                        td.cut.m1 role="cell" {
                            (id_link(job.text("id"), &links.job(job.text("id"))))
                            @if !job.text("name").is_empty() { " " (job.text("name")) }
                        }
                        td.m4 role="cell" {
                            @if job.text("status").is_empty() {
                                (job.text("outcome")) span.faint { ", deleted" }
                            } @else if job.text("outcome") == "waiting" {
                                (job.state().shown())
                            } @else { (job.text("outcome")) }
                        }
                        td.why.cut.m5 role="cell" {
                            @if !job.text("error").is_empty() {
                                span.err title=(job.text("error")) { (first_line(job.text("error"))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn facts(graph: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    let callbacks = graph.get("callbacks").and_then(Value::as_object);
    html! {
        section {
            (bar("Facts", "", None))
            dl.facts {
                dt { "State" } dd { (state(graph)) }
                @if !graph.text("caller_id").is_empty() { dt { "Caller" } dd { (graph.text("caller_id")) } }
                @if let Some(at) = graph.time("created_at") { dt { "Created" } dd { (was(at, now)) } }
                @if let Some(at) = graph.time("ended_at") { dt { "Ended" } dd { (was(at, now)) } }
                @for (name, job) in callbacks.into_iter().flatten() {
                    @let id = job.as_str().unwrap_or_default();
                    dt { (name) } dd { (id_link(id, &links.job(id))) }
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
