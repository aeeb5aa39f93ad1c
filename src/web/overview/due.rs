//! The periodic jobs that are due next.

use maud::{Markup, html};

use super::super::layout::bar;
use super::super::links::SiteLinks;
use super::super::parts::{ShownState, data_table, empty, time_of, until};
use super::super::snapshot::SiteSnapshot;
use crate::client::PeriodicJobDocument;

/// Returns the periodic jobs that are due next, with the end of their last firing.
pub(super) fn table(links: &SiteLinks, now: &SiteSnapshot) -> Markup {
    let all = links.to("/cron");
    html! {
        section #due-next {
            (bar("Due next", "", Some(("All periodic jobs", &all))))
            @if now.due.is_empty() { (empty(&html! { "No periodic job." })) }
            @else {
                (data_table("nopick due", "Periodic jobs due next", &[
                    ("", "Periodic job"), ("", "Schedule"), ("", "Last"), ("num", "Due"),
                ], &html! { @for job in now.due.iter() { (row(links, now, job)) } }))
            }
        }
    }
}

fn row(links: &SiteLinks, now: &SiteSnapshot, job: &PeriodicJobDocument) -> Markup {
    let state = job.last.as_ref().and_then(|last| ShownState::of_status(last.status.as_deref()));
    html! {
        tr role="row" {
            td.m1 role="cell" { a.id href=(links.periodic_job(&job.name)) { (job.name) } }
            td.mono.dim.wide role="cell" { (job.schedule) }
            td.m5 role="cell" {
                @match state {
                    Some(state) => (state.shown()),
                    None => span.faint { "–" },
                }
            }
            td.num.mr role="cell" {
                @match job.next.as_deref().and_then(time_of) {
                    Some(at) => (until(at, now.snapshot.at)),
                    _ if !job.enabled => span.faint { "disabled" },
                    _ => "–",
                }
            }
        }
    }
}
