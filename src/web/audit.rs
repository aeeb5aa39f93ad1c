//! `/audit`: the changes that people and programs made.

use serde::Deserialize;
use serde_json::json;

use super::parts::{PageTable, empty, given, head, was_at};
use super::prelude::*;
use crate::proto::audit::AuditRecord;
use crate::rpc::results::AuditList;

/// The changes of a page.
const SHOWN_MAX: usize = 200;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AuditQuery {
    who: String,
    what: String,
}

pub(super) async fn list(
    visit: Visit,
    PageQuery(AuditQuery { who, what }): PageQuery<AuditQuery>,
) -> PageResult {
    let now = visit.snapshot().await?;
    let params = json!({ "limit": SHOWN_MAX, "who": given(&who), "what": given(&what) });
    let AuditList { records } = visit.ask("audit.list", params).await?;
    let is_cut = records.len() == SHOWN_MAX;
    let line = html! {
        "Changes by people and programs, kept for 90 days."
        @if is_cut { " The latest " (SHOWN_MAX) " that match; " code { "hero audit" } " has all of them." }
    };
    let links = visit.links();
    let table = PageTable::of(&records, "nopick", "Changes")
        .column("When", "dim", |of| was_at(&of.at, now.snapshot.at))
        .column("Who", "", |of| html! { (of.who) })
        .column("What", "", |of| html! { (of.what) })
        .column("To", "", |of| target(of, links))
        .column("From", "dim", |of| html! { (of.from) " by " (of.through) });
    let main = html! {
        (head("Audit", &line, &html! {}))
        form.filters action=(links.to("/audit")) role="search" aria-label="Filter changes" {
            label { "Who " input name="who" size="12" value=(who) placeholder="anybody"; }
            label { "What " input name="what" size="12" value=(what) placeholder="job.stop"; }
            button { "Filter" }
        }
        @if records.is_empty() && who.is_empty() && what.is_empty() {
            (empty(&html! { "Nobody has changed anything yet." }))
        } @else if records.is_empty() {
            (empty(&html! { "No change matches. " a href=(links.to("/audit")) { "Clear the filters." } }))
        } @else {
            div #audit { (table.markup()) }
        }
    };
    Ok(visit.page(&now, &WebPage::still("Audit", Nav::Audit, main)))
}

/// Returns what was changed: one thing that has a page as a link to it.
fn target(record: &AuditRecord, links: &SiteLinks) -> Markup {
    let noun = record.what.split('.').next().unwrap_or_default();
    let page = match noun {
        "job" | "dead" => "jobs",
        "graph" | "batch" => "graphs",
        "cron" => "cron",
        "actor" => "actors",
        "machine" => "machines",
        "script" => "scripts",
        _ => "",
    };
    // Behind the id there may be the names of what was changed.
    let (id, rest) = record.to.find(" (").map_or((&*record.to, ""), |at| record.to.split_at(at));
    // A sentence about many, and what is gone, have no page.
    let is_one =
        !id.is_empty() && !id.contains([' ', ',', '…']) && !record.what.ends_with(".delete");
    html! {
        @if is_one && !page.is_empty() { a.id href=(links.page(page, id)) { (id) } (rest) }
        @else { (record.to) }
    }
}
