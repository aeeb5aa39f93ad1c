//! Draws a graph as SVG: a link for each job, and its edges.

use std::fmt::Write as _;

use jiff::Timestamp;
use maud::{Markup, html};

use super::super::doc::JobDoc;
use super::super::links::SiteLinks;
use super::super::parts::{ShownState, duration, shortened};
use super::layout::{GraphEdge, GraphPlaces, NodePlace, placed};

const NODE_WIDTH: f64 = 150.0;
const NODE_HEIGHT: f64 = 44.0;
/// The distance of two layers.
const COLUMN: f64 = 196.0;
const MARGIN: f64 = 20.0;
/// The width of the bar of progress.
const BAR_WIDTH: f64 = 130.0;
/// The maximum number of letters of a text in a node.
const LETTERS_MAX: usize = 16;

/// The size of a drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct GraphZoom {
    /// Its word in an address.
    pub(super) word: &'static str,
    pub(super) label: &'static str,
    /// The part of its own size that a drawing has; without one it fills the width.
    scale: Option<f64>,
}

impl GraphZoom {
    /// A short graph fills the width, a long one keeps its size.
    const AUTO: Self = Self { word: "auto", label: "Automatic", scale: None };
    /// All of it in the width.
    const FIT: Self = Self { word: "fit", label: "Whole graph", scale: None };
    pub(super) const ALL: [Self; 5] = [
        Self::AUTO,
        Self::FIT,
        Self { word: "50", label: "50 %", scale: Some(0.5) },
        Self { word: "100", label: "100 %", scale: Some(1.0) },
        Self { word: "200", label: "200 %", scale: Some(2.0) },
    ];

    pub(super) fn of(word: &str) -> Self {
        Self::ALL.into_iter().find(|zoom| zoom.word == word).unwrap_or(Self::AUTO)
    }
}

/// Returns the id of the element of a job; an address can jump to it.
pub(super) fn node_id(job: &str) -> String {
    format!("node-{job}")
}

fn left(layer: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "at most some hundred layers")]
    let layer = layer as f64;
    MARGIN + layer * COLUMN
}

/// Returns the drawing. `id` is the job in the middle of interest.
pub(super) fn drawn(
    jobs: &[JobDoc],
    edges: &[GraphEdge],
    (id, zoom): (&str, GraphZoom),
    links: &SiteLinks,
    now: Timestamp,
) -> Markup {
    let places = placed(jobs.len(), edges);
    let width = left(places.layers.saturating_sub(1)) + NODE_WIDTH + MARGIN;
    let (width, height) = (width.max(974.0), places.height.max(NODE_HEIGHT * 2.0));
    let view = format!("0 0 {width:.0} {height:.0}");
    // A drawing of a size of its own scrolls.
    let is_long = zoom == GraphZoom::AUTO && places.layers > 6;
    let scale = if is_long { Some(1.0) } else { zoom.scale };
    let size = scale.map(|scale| [width, height].map(|of| format!("{:.0}", of * scale)));
    html! {
        svg.long[size.is_some()].fit[zoom == GraphZoom::FIT] viewBox=(view) width=[size.as_ref().map(|size| &size[0])]
            height=[size.as_ref().map(|size| &size[1])] role="group" aria-label={ "Graph of " (jobs.len()) " jobs" } {
            @for (place, edge) in edges.iter().enumerate() { (line(&places, place, *edge, jobs)) }
            @for (at, job) in places.jobs.iter().zip(jobs) { (node(*at, job, job.id() == id, links, now)) }
        }
    }
}

fn line(places: &GraphPlaces, place: usize, edge: GraphEdge, jobs: &[JobDoc]) -> Markup {
    let (from, to) = (places.jobs[edge.from], places.jobs[edge.to]);
    let start = left(from.layer) + NODE_WIDTH;
    // It leaves at the job's own height, runs in its lane, and bends in the last gap.
    let (lane, last) = (places.edges[place], left(to.layer) - (COLUMN - NODE_WIDTH));
    let (bend, end) = (last + 23.0, left(to.layer) - 5.0);
    let mut path = format!("M{start:.0},{:.0}", from.y);
    if (lane - from.y).abs() > 0.5 {
        let (half, next) = (start + 23.0, start + (COLUMN - NODE_WIDTH));
        let _ = write!(path, " C{half:.0},{:.0} {half:.0},{lane:.0} {next:.0},{lane:.0}", from.y);
    }
    let _ =
        write!(path, " H{last:.0} C{bend:.0},{lane:.0} {bend:.0},{:.0} {end:.0},{:.0}", to.y, to.y);
    let head = format!("M{:.0},{:.0} l-6,-3.5 v7z", end + 5.0, to.y);
    let has_failed =
        |job: &JobDoc| matches!(job.state(), ShownState::Error | ShownState::Cancelled);
    let carries = !edge.any && has_failed(&jobs[edge.from]) && has_failed(&jobs[edge.to]);
    html! {
        g.error[carries] {
            path.edge.any[edge.any] d=(path) {}
            path.head-e d=(head) {}
        }
    }
}

fn node(at: NodePlace, job: &JobDoc, is_own: bool, links: &SiteLinks, now: Timestamp) -> Markup {
    let state = job.state();
    let [name, note] = [job.label(), &note(job, now)].map(|text| shortened(text, LETTERS_MAX));
    let share = job.share().filter(|_| state == ShownState::Running);
    let lift = if share.is_some() { "translate(0,-2)" } else { "translate(0,0)" };
    let label = format!("{} {note}, {}", job.label(), state);
    html! {
        a #(node_id(job.id())) href=(links.job(job.id())) aria-label=(label) {
            g.node.sel[is_own] .(state)
                transform={ "translate(" (format!("{:.0}", left(at.layer))) "," (format!("{:.0}", at.y - NODE_HEIGHT / 2.0)) ")" }
            {
                rect.box width="150" height="44" rx="4" {}
                rect.tag width="4" height="44" rx="2" {}
                g transform=(lift) {
                    use href={ "#s-" (state) } x="12" y="8" width="14" height="14" {}
                    text.nm.id[job.text("name").is_empty()] x="32" y="19" { (name) }
                    " "
                    text x="32" y="35" { (note) }
                }
                @if let Some(share) = share {
                    rect.tr x="11" y="37" width="130" height="3" rx="1.5" {}
                    rect.tag x="11" y="37" width=(format!("{:.0}", share * BAR_WIDTH)) height="3" rx="1.5" {}
                }
            }
        }
    }
}

/// Returns the second line of a node: the type, and what matters most.
fn note(job: &JobDoc, now: Timestamp) -> String {
    let more = match job.state() {
        ShownState::Held => format!("limit {}", job.text("held_by")),
        ShownState::Error => job.text("error").lines().next().unwrap_or_default().to_owned(),
        _ => match job.took(now) {
            Some(took) => duration(took),
            None => job.text("group").to_owned(),
        },
    };
    if more.is_empty() {
        return job.text("script_type").to_owned();
    }
    format!("{} · {more}", job.text("script_type"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(id: &str, fields: serde_json::Value) -> JobDoc {
        let mut all = json!({ "id": id, "script_type": "python", "status": "finished" });
        if let (Some(all), serde_json::Value::Object(fields)) = (all.as_object_mut(), fields) {
            all.extend(fields);
        }
        JobDoc::from(all)
    }

    fn drawing(jobs: &[JobDoc], edges: &[GraphEdge]) -> String {
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        drawn(jobs, edges, ("a", GraphZoom::AUTO), &SiteLinks::new("/"), now).into_string()
    }

    #[test]
    fn failure_that_was_carried_on_is_red_and_any_end_is_dashed() {
        let failed = || json!({ "status": "error", "error": "bad" });
        let jobs = [job("a", failed()), job("b", failed()), job("c", json!({}))];
        let edges =
            [GraphEdge { from: 0, to: 1, any: false }, GraphEdge { from: 1, to: 2, any: true }];
        let text = drawing(&jobs, &edges);
        assert_eq!(text.matches("<g class=\"error\">").count(), 1, "{text}");
        assert_eq!(text.matches("edge any").count(), 1, "{text}");
        assert_eq!(text.matches(" sel").count(), 1, "{text}");
    }

    #[test]
    fn running_job_has_its_progress_and_hostile_names_are_text() {
        let hostile = "<script>alert(1)</script>";
        let running =
            json!({ "status": "started", "progress": "0.5", "name": hostile, "group": hostile });
        let text = drawing(&[job("a", running)], &[]);
        assert!(text.contains("width=\"65\"") && !text.contains("<script"), "{text}");
    }
}
