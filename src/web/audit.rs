//! `/audit`: the changes that people and programs made.

use maud::html;
use serde::Deserialize;
use serde_json::json;

use super::fields::PageQuery;
use super::layout::{Nav, WebPage};
use super::parts::{data_table, empty, given, head, was_at};
use super::visit::Visit;
use super::web_error::PageResult;
use crate::rpc::results::AuditList;

const HEADS: [(&str, &str); 5] =
    [("", "When"), ("", "Who"), ("", "What"), ("", "To"), ("", "From")];

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AuditQuery {
    who: String,
    what: String,
}

pub(super) async fn list(visit: Visit, PageQuery(asked): PageQuery<AuditQuery>) -> PageResult {
    let AuditQuery { who, what } = asked;
    let now = visit.snapshot().await?;
    let params = json!({ "limit": 200, "who": given(&who), "what": given(&what) });
    let AuditList { records } = visit.ask("audit.list", params).await?;
    let line = html! { "Changes by people and programs, kept for 90 days. " code { "hero audit" } " has all of them." };
    let rows = html! {
        @for record in &records {
            tr role="row" {
                td.dim role="cell" { (was_at(&record.at, now.snapshot.at)) }
                td role="cell" { (record.who) }
                td role="cell" { (record.what) }
                td role="cell" { (record.to) }
                td.dim role="cell" { (record.from) " by " (record.through) }
            }
        }
    };
    let main = html! {
        (head("Audit", &line, &html! {}))
        form.filters action=(visit.links().to("/audit")) role="search" aria-label="Filter changes" {
            label { "Who " input name="who" size="12" value=(who) placeholder="anybody"; }
            label { "What " input name="what" size="12" value=(what) placeholder="job.stop"; }
            button { "Filter" }
        }
        @if records.is_empty() && who.is_empty() && what.is_empty() {
            (empty(&html! { "Nobody has changed anything yet." }))
        } @else if records.is_empty() {
            (empty(&html! { "No change matches. " a href=(visit.links().to("/audit")) { "Clear the filters." } }))
        } @else {
            div #audit { (data_table("nopick", "Changes", &HEADS, &rows)) }
        }
    };
    Ok(visit.page(&now, &WebPage::still("Audit", Nav::Audit, main)))
}
