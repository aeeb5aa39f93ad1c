//! The script types over the last hour.

use maud::{Markup, html};

use super::super::layout::bar;
use super::super::links::SiteLinks;
use super::super::parts::{count, data_table, percent, rate};
use super::super::snapshot::SiteSnapshot;
use crate::store::{LastHour, TypeState};

/// A share of failed jobs from this on is shown in the colour of errors.
const MANY_ERRORS: f64 = 0.01;
/// The maximum number of types in the table; types with more jobs come first.
const TYPES_MAX: usize = 12;

/// Returns the table of script types that ended jobs in the last hour.
pub(super) fn table(links: &SiteLinks, now: &SiteSnapshot) -> Markup {
    let mut types: Vec<(&TypeState, LastHour)> =
        now.snapshot.types.iter().filter_map(|of| Some((of, of.hour?))).collect();
    types.retain(|(_, hour)| hour.finished + hour.failed > 0);
    types.sort_by_key(|(_, hour)| std::cmp::Reverse(hour.finished + hour.failed));
    types.truncate(TYPES_MAX);
    html! {
        section #by-type {
            (bar("By type", "the last hour", None))
            (data_table("nopick three", "Script types over the last hour", &[
                ("", "Type"), ("num", "Finished/s"), ("num", "Failed/s"), ("num", "Errors"), ("num", "Dead letters"),
                ("num", "Tasks busy"),
            ], &html! { @for (of, hour) in &types { (row(links, now, of, hour)) } }))
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "no counter comes near 2^53")]
fn row(links: &SiteLinks, now: &SiteSnapshot, of: &TypeState, hour: &LastHour) -> Markup {
    let name = of.script_type.as_str();
    let seconds = hour.since.as_secs_f64().max(1.0);
    let (finished, failed) = (hour.finished as f64, hour.failed as f64);
    let share = percent(failed, finished + failed);
    let is_bad = failed >= MANY_ERRORS * (finished + failed) && failed > 0.0;
    let actors = now.snapshot.actor_counts.get(&of.script_type).copied().unwrap_or_default();
    html! {
        tr role="row" {
            td.m1 role="cell" { a.id href=(links.with("/jobs", &[("type", name)])) { (name) } }
            td.num.wide role="cell" { (rate(finished / seconds)) }
            td.num.wide role="cell" { (rate(failed / seconds)) }
            td.num.mr role="cell" {
                @if is_bad { span.err { (share) } } @else { (share) }
                span.only-n.faint { " errors" }
            }
            td.num.wide role="cell" { (count(hour.dead)) }
            td.num.m5 role="cell" { span.only-n.faint { "tasks busy: " } (actors.running) " of " (actors.tasks) }
        }
    }
}
