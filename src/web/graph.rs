//! `/jobs/ID/graph`: the jobs around a job, as a drawing and as a table.

mod change;
mod draw;
mod fleet;
mod layout;
mod whole;

use axum::extract::Path;
use jiff::Timestamp;
use serde::Deserialize;

use super::doc::JobDoc;
use super::job::read;
use super::jobs::what_it_is_at;
use super::parts::{PageTable, ShownState, bar, duration, was};
use super::prelude::*;
use super::relations;
use crate::client::GraphJob;
use crate::proto::job::JobId;

pub(super) use change::{ask_correction, ask_delete, ask_stop, change, correct};
pub(super) use whole::{live as live_whole, show as show_whole};

use draw::GraphZoom;
use layout::GraphEdge;

/// Returns how a method takes an id as nothing else, where another graph may have it as its name.
fn id_alone(id: &str) -> String {
    format!("id:{id}")
}

const JOBS_MAX: usize = 200;

/// The graph around a job, as the visitor may see it.
struct VisibleGraph {
    /// The jobs in the order of their layers.
    jobs: Vec<JobDoc>,
    edges: Vec<GraphEdge>,
    is_cut: bool,
}

async fn around(visit: &Visit, id: &str) -> PageResult<VisibleGraph> {
    let named = id.parse().map_err(|_| PageError::not_found("No job has this id."))?;
    let graph = visit.site.client.graphs().around(&named, JOBS_MAX).await?;
    let mut seen = graph.jobs;
    seen.retain(|of| visit.sees(&of.job));
    Ok(of(&seen, graph.is_cut))
}

fn of(seen: &[GraphJob], is_cut: bool) -> VisibleGraph {
    let place = |id: &JobId| seen.iter().position(|other| other.job.id == *id);
    let mut edges = Vec::new();
    for (to, job) in seen.iter().enumerate() {
        let bonds = job.after.iter().map(|id| (id, false));
        for (id, any) in bonds.chain(job.after_any.iter().map(|id| (id, true))) {
            if let Some(from) = place(id).filter(|from| *from != to) {
                edges.push(GraphEdge { from, to, any });
            }
        }
    }
    let jobs = seen.iter().map(|job| JobDoc::from(&job.job)).collect();
    VisibleGraph { jobs, edges, is_cut }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ZoomQuery {
    /// The size of the drawing, by its word.
    zoom: String,
}

pub(super) async fn show(
    visit: Visit,
    Path(id): Path<String>,
    PageQuery(query): PageQuery<ZoomQuery>,
) -> PageResult {
    let now = visit.snapshot().await?;
    let own = read(&visit, &id).await?;
    let mut graph = around(&visit, &id).await?;
    relations::add_to(&visit, &mut graph.jobs).await?;
    let zoom = GraphZoom::of(&query.zoom);
    let links = visit.links();
    let main = html! {
        div.head {
            div {
                p.crumb {
                    a href=(links.to("/jobs")) { "Jobs" } " / "
                    a href=(links.job(&id)) title=(id) { (own.label()) } " / Graph"
                }
                div.idline { h1.plain-h { "Graph around " (own.label()) } }
                (headline(&graph, &own, now.snapshot.at))
            }
        }
        (zoom_links(&format!("{}/graph", links.job(&id)), zoom))
        (figure(&graph, &id, zoom, links, now.snapshot.at))
        section.gap {
            (bar("The same as a table", "", None))
            (table(&graph, &id, links, now.snapshot.at))
        }
    };
    let title = format!("Graph around {}", own.label());
    Ok(visit.page(&now, &WebPage::live(title, Nav::Jobs(None), main)))
}

pub(super) async fn live(visit: &Visit, now: &SiteSnapshot, id: &str, query: &str) -> LiveParts {
    let own = read(visit, id).await?;
    let mut graph = around(visit, id).await?;
    relations::add_to(visit, &mut graph.jobs).await?;
    let zoom = GraphZoom::of(&filters_of::<ZoomQuery>(query).zoom);
    let links = visit.links();
    Ok(vec![
        LivePart::whole("headline", headline(&graph, &own, now.snapshot.at)),
        LivePart::whole("figure", figure(&graph, id, zoom, links, now.snapshot.at)),
        LivePart::whole("graph-table", table(&graph, id, links, now.snapshot.at)),
    ])
}

fn headline(graph: &VisibleGraph, own: &JobDoc, now: Timestamp) -> Markup {
    let all = graph.jobs.len();
    let ended = graph.jobs.iter().filter(|job| job.status().is_terminal()).count();
    let running = graph.jobs.iter().filter(|job| job.state() == ShownState::Running).count();
    html! {
        p.meta #headline {
            span {
                (all) " jobs"
                @if graph.is_cut { " near it; the graph has more" }
            }
            span { (ended) " ended, " (running) " running, " (all - ended - running) " to go" }
            @if !own.text("caller_id").is_empty() { span { "from " (own.text("caller_id")) } }
            @if let Some(created) = own.time("created_at") { span { "submitted " (was(created, now)) } }
        }
    }
}

/// Returns the links that change the size of the drawing. `page` is the address of the page.
fn zoom_links(page: &str, at: GraphZoom) -> Markup {
    html! {
        nav.zoom aria-label="Size of the drawing" {
            "Size "
            @for zoom in GraphZoom::ALL {
                a href={ (page) "?zoom=" (zoom.word) "#figure" }
                    aria-current=[(zoom == at).then_some("true")] { (zoom.label) }
            }
        }
    }
}

fn figure(
    graph: &VisibleGraph,
    id: &str,
    zoom: GraphZoom,
    links: &SiteLinks,
    now: Timestamp,
) -> Markup {
    html! {
        figure #figure {
            div.graph tabindex="0" role="region" aria-label="Graph, scrolls sideways" {
                (draw::drawn(&graph.jobs, &graph.edges, (id, zoom), links, now))
            }
            figcaption {
                ul.legend {
                    @for state in ShownState::ALL {
                        @let number = graph.jobs.iter().filter(|job| job.state() == state).count();
                        @if number > 0 {
                            li { (state.shown_with("st", &format!(" {number}"))) }
                        }
                    }
                    (bond("after it finished", None))
                    (bond("after any end", Some("4 3")))
                }
            }
        }
    }
}

fn bond(text: &str, dashes: Option<&str>) -> Markup {
    html! {
        li.faint {
            svg width="26" height="6" aria-hidden="true" {
                path d="M0 3h26" stroke="currentColor" stroke-dasharray=[dashes] {}
            }
            (text)
        }
    }
}

fn table(graph: &VisibleGraph, id: &str, links: &SiteLinks, now: Timestamp) -> Markup {
    let places = layout::placed(graph.jobs.len(), &graph.edges);
    let mut order: Vec<usize> = (0..graph.jobs.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&places.jobs[*a], &places.jobs[*b]);
        a.layer.cmp(&b.layer).then(a.y.total_cmp(&b.y))
    });
    let waits = |place: usize| {
        let edges = graph.edges.iter().filter(|edge| edge.to == place);
        let names = edges.map(|edge| {
            let label = graph.jobs[edge.from].label();
            if edge.any { format!("{label} (any end)") } else { label.to_owned() }
        });
        names.collect::<Vec<_>>().join(", ")
    };
    let job = |place: &usize| &graph.jobs[*place];
    let table = PageTable::of(&order, "nopick fix", "Jobs of the graph")
        .at(|place| job(place).id() == id)
        .column("Job", "m1 cut c-tg", |place| job(place).link(links))
        .column("State", "m4 c-st", |place| job(place).state().shown())
        .column("Type", "dim wide c-ca", |place| html! { (job(place).text("script_type")) })
        .column("Waits for", "dim m5 c-wf", |place| {
            let waits = waits(*place);
            html! {
                span.only-n.faint { "after " }
                @if waits.is_empty() { span.faint { "nothing" } } @else { (waits) }
            }
        })
        .column("What it is at", "why wide cut", |place| what_it_is_at(job(place), links, now))
        .column("Took", "num mr c-tk", |place| html! { (took(job(place), now)) });
    html! { div #graph-table { (table.markup()) } }
}

/// Returns how long the last attempt of a job ran, or runs.
fn took(job: &JobDoc, now: Timestamp) -> String {
    job.took(now).map_or_else(|| "–".to_owned(), duration)
}
