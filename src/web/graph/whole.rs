//! `/graphs/ID`: a graph or batch with its progress, its drawing and its jobs, the failed first.

use std::collections::HashMap;

use axum::extract::Path;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::super::doc::{JobDoc, OUTCOME};
use super::super::graphs::{address, counts, done_bar, label, page_params, state};
use super::super::jobs::what_it_is_at;
use super::super::links::encoded;
use super::super::parts::{PageTable, ShownState, bar, id_link, pager, things, was_at};
use super::super::prelude::*;
use super::super::relations;
use super::draw::{GraphZoom, node_id};
use super::fleet::FleetGrid;
use super::{JOBS_MAX, VisibleGraph, figure, id_alone, of, took, zoom_links};
use crate::client::{GraphDocument, JobOfGraphDocument};
use crate::proto::error_kind::failed_prerequisite;
use crate::proto::graph::GraphKind;
use crate::proto::job::JobId;
use crate::rpc::results::ShownGraph;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::web) struct WholeQuery {
    /// The `next` of the page before.
    after: String,
    /// The size of the drawing, by its word.
    zoom: String,
}

struct DrawnGraph {
    graph: GraphDocument,
    /// Its jobs; one that was deleted with its outcome alone.
    jobs: Vec<JobDoc>,
    /// The drawing; `None` if it is too large, and for jobs without bonds.
    drawn: Option<VisibleGraph>,
    /// The machines of a job for every one.
    fleet: Option<FleetGrid>,
    /// Why the first of its jobs that have not ended do not start.
    waits_for: Vec<String>,
    next: Option<String>,
    /// True for a page after another.
    is_further: bool,
}

async fn read(visit: &Visit, id: &str, query: &WholeQuery) -> PageResult<DrawnGraph> {
    let params = page_params(json!({ "id": id_alone(id), "limit": JOBS_MAX }), &query.after);
    let ShownGraph { graph, jobs: members, next, waits_for } =
        visit.ask("graph.get", params).await?;
    let own: JobId = graph.id.parse().map_err(|_| PageError::not_found("No such graph."))?;
    let ids = members.iter().filter_map(|job| job.id.parse().ok()).collect();
    let mut found = visit.site.client.graphs().relations(&own, ids).await?;
    found.retain(|of| {
        of.job.fields.get("graph_id").is_some_and(|of| of == own.as_str()) && visit.sees(&of.job)
    });
    let places: HashMap<&str, u64> =
        members.iter().map(|job| (job.id.as_str(), job.place)).collect();
    found.sort_by_key(|of| places.get(of.job.id.as_str()).copied());
    let mut seen = of(&found, false);
    relations::add_to(visit, &mut seen.jobs).await?;
    let known: HashMap<&str, &JobDoc> = seen.jobs.iter().map(|job| (job.id(), job)).collect();
    let whole = |member: JobOfGraphDocument| {
        let known = known.get(member.id.as_str()).map(|job| (*job).clone());
        known.unwrap_or_else(|| JobDoc::from(json!(member)))
    };
    let jobs: Vec<JobDoc> = members.into_iter().map(whole).collect();
    let fleet = FleetGrid::read(visit, &graph, &jobs).await?;
    let is_further = !query.after.is_empty();
    let is_whole = next.is_none() && !is_further;
    let drawn = (is_whole && !seen.edges.is_empty()).then_some(seen);
    let next = next.map(|next| next.to_string());
    Ok(DrawnGraph { graph, jobs, drawn, fleet, waits_for, next, is_further })
}

pub(in crate::web) async fn show(
    visit: Visit,
    Path(id): Path<String>,
    PageQuery(query): PageQuery<WholeQuery>,
) -> PageResult {
    let now = visit.snapshot().await?;
    let shown = read(&visit, &id, &query).await?;
    let (links, at) = (visit.links(), now.snapshot.at);
    let title = label(&shown.graph);
    let further = |after: &str| links.with(&address(&shown.graph), &[("after", after)]);
    let main = html! {
        div.head {
            div {
                p.crumb { a href=(links.to("/graphs")) { "Graphs" } }
                div.idline { h1.plain-h { (title) } }
                p.idrow {
                    (shown.graph.kind.as_str()) " " code #graph-id { (shown.graph.id) }
                    button.plain type="button" data-copy="#graph-id" { "Copy id" }
                }
                (headline(&shown, links, at))
            }
            (actions(&visit, &shown.graph))
        }
        div #progress { (done_bar(&shown.graph)) }
        @if shown.drawn.is_some() {
            (zoom_links(&links.to(&address(&shown.graph)), GraphZoom::of(&query.zoom)))
        }
        (drawing(&shown, &query, links, at))
        (machines(&shown, links, at))
        section.gap {
            (bar("Jobs", "the failed first", None))
            (table(&shown, links, at))
            (pager(&things(shown.jobs.len() as u64, "job"), (&query.after, shown.next.as_deref()), further))
        }
        (callbacks(&shown.graph, links))
    };
    let title = format!("Graph {title}");
    Ok(visit.page(&now, &WebPage::live(title, Nav::Graphs, main)))
}

pub(in crate::web) async fn live(
    visit: &Visit,
    now: &SiteSnapshot,
    id: &str,
    query: &str,
) -> LiveParts {
    let query: WholeQuery = filters_of(query);
    let shown = read(visit, id, &query).await?;
    let (links, at) = (visit.links(), now.snapshot.at);
    let mut parts = vec![
        LivePart::whole("headline", headline(&shown, links, at)),
        LivePart::whole("progress", html! { div #progress { (done_bar(&shown.graph)) } }),
        LivePart::whole("figure", drawing(&shown, &query, links, at)),
        LivePart::whole("fleet", machines(&shown, links, at)),
        LivePart::whole("graph-table", table(&shown, links, at)),
        LivePart::whole("callbacks", callbacks(&shown.graph, links)),
    ];
    if visit.may_change(&shown.graph.caller_id) {
        parts.push(LivePart::whole("graph-actions", buttons(links, &shown.graph)));
    }
    Ok(parts)
}

/// Returns the job whose failure the others followed: the first that failed by itself.
fn first_failure(jobs: &[JobDoc]) -> Option<&JobDoc> {
    let failed = jobs.iter().filter(|job| job.state() == ShownState::Error);
    let own = failed.filter(|job| failed_prerequisite(job.text("error")).is_none());
    own.min_by_key(|job| job.time("finished_at"))
}

fn headline(shown: &DrawnGraph, links: &SiteLinks, now: Timestamp) -> Markup {
    let graph = &shown.graph;
    let caller = &graph.caller_id;
    html! {
        p.meta #headline {
            span { (state(graph)) }
            span { (counts(graph)) }
            @if let Some(window) = graph.window() { span { (window.to_string()) } }
            @if let Some(stopped) = &graph.stopped { span { (stopped) } }
            @if let Some(pause) = graph.pause(str::to_owned) { span { "paused " (pause) } }
            @for reason in &shown.waits_for { span.why { "waits for " (reason) } }
            @if let Some(job) = first_failure(&shown.jobs) {
                span {
                    "first failure: "
                    @if shown.drawn.is_some() {
                        a href={ "#" (encoded(&node_id(job.id()))) } data-jump { (job.label()) }
                    } @else { (job.link(links)) }
                }
            }
            @if !caller.is_empty() {
                span { "from " a href=(links.with("/jobs", &[("caller", caller)])) { (caller) } }
            }
            span { "created " (was_at(&graph.created_at, now)) }
            @if let Some(at) = &graph.ended_at { span { "ended " (was_at(at, now)) } }
        }
    }
}

fn drawing(shown: &DrawnGraph, query: &WholeQuery, links: &SiteLinks, now: Timestamp) -> Markup {
    let is_large = shown.graph.jobs > JOBS_MAX as u64;
    html! {
        @if let Some(graph) = &shown.drawn {
            @let first = first_failure(&shown.jobs).map_or("", JobDoc::id);
            (figure(graph, first, GraphZoom::of(&query.zoom), links, now))
        } @else {
            figure #figure {
                @if is_large && shown.graph.kind == GraphKind::Graph {
                    p.dim { "A graph of more than " (JOBS_MAX) " jobs is not drawn. The graph around each job is." }
                }
            }
        }
    }
}

fn machines(shown: &DrawnGraph, links: &SiteLinks, now: Timestamp) -> Markup {
    html! {
        section #fleet { @if let Some(fleet) = &shown.fleet { (fleet.markup(&shown.jobs, links, now)) } }
    }
}

fn actions(visit: &Visit, graph: &GraphDocument) -> Markup {
    let links = visit.links();
    html! {
        @if visit.may_change(&graph.caller_id) {
            div.actions { (visit.form(&links.to(&address(graph)), &buttons(links, graph))) }
        }
    }
}

fn buttons(links: &SiteLinks, graph: &GraphDocument) -> Markup {
    let own = links.to(&address(graph));
    html! {
        span #graph-actions .actions {
            @if graph.pause_after.is_some() && graph.goes_on_at.is_none() && graph.waiting > 0 {
                button #do-go name="do" value="go" { "Go on" }
            }
            @if graph.failed + graph.cancelled > 0 {
                button #do-retry name="do" value="retry" data-key="retry" { "Retry failed" }
            }
            @if graph.failed > 0 {
                a.btn #do-correct href={ (own) "/correct" } { "Correct and retry…" }
            }
            @if graph.waiting > 0 {
                a.btn #do-stop href={ (own) "/stop" } data-ask data-key="stop" { "Stop…" }
            }
            a.btn.danger #do-delete href={ (own) "/delete" } data-ask { "Delete…" }
        }
    }
}

fn table(shown: &DrawnGraph, links: &SiteLinks, now: Timestamp) -> Markup {
    let none = html! { @if shown.is_further { "No further jobs." } @else { "No jobs." } };
    let is_gone = |job: &JobDoc| job.text("status").is_empty();
    let table = PageTable::of(&shown.jobs, "nopick fix", "Jobs of the graph")
        .column("Job", "m1 cut c-ac", |job| job.link(links))
        .column("State", "m4 c-st", |job| {
            html! {
                @if is_gone(job) { (job.text(OUTCOME)) span.faint { ", deleted" } }
                @else { (job.state().shown()) }
            }
        })
        .column("Type, group", "dim wide cut c-tg", JobDoc::type_and_group)
        .column("What it is at", "why cut m5", |job| {
            html! {
                @if !is_gone(job) { (what_it_is_at(job, links, now)) }
            }
        })
        .column("Attempt", "num dim wide c-at", |job| html! { (job.attempts()) })
        .column("Took", "num mr c-tk", |job| html! { (took(job, now)) });
    html! { div #graph-table { (table.or(&none)) } }
}

fn callbacks(graph: &GraphDocument, links: &SiteLinks) -> Markup {
    let state = |name: &str| {
        let job = graph.callback_jobs.iter().find(|job| job.callback == name)?;
        Some(job.status.as_str())
    };
    html! {
        section #callbacks {
            @if !graph.callbacks.is_empty() {
                (bar("Started by its end", "", None))
                dl.facts {
                    @for (name, id) in &graph.callbacks {
                        dt { (name) }
                        dd { (id_link(id, links)) @if let Some(state) = state(name) { " " (state) } }
                    }
                }
            }
        }
    }
}
