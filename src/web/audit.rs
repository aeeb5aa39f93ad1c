//! `/audit`: the changes that people and programs made.

use std::collections::HashMap;

use axum::extract::{Query, State};
use axum::response::Response;
use maud::html;
use serde_json::json;

use super::layout::{Nav, WebPage, head};
use super::parts::{data_table, empty, was_at};
use super::site::Site;
use super::visitor::Visitor;
use super::web_error::PageError;
use crate::rpc::results::AuditList;

const HEADS: [(&str, &str); 5] =
    [("", "When"), ("", "Who"), ("", "What"), ("", "To"), ("", "From")];

/// Lists the changes.
pub(super) async fn list(
    State(site): State<Site>,
    visitor: Visitor,
    Query(asked): Query<HashMap<String, String>>,
) -> Result<Response, PageError> {
    let now = site.snapshot(&visitor).await?;
    let mut params = json!({ "limit": 200 });
    for name in ["who", "what"] {
        if let Some(text) = asked.get(name).filter(|text| !text.is_empty()) {
            params[name] = json!(text);
        }
    }
    let AuditList { records } = site.ask(&visitor, "audit.list", params).await?;
    let line = html! { "Changes by people and programs, kept for 90 days. " code { "hero audit" } " has all of them." };
    let rows = html! {
        @for record in &records {
            tr role="row" {
                td.dim role="cell" { (was_at(&record.at, now.moment.at)) }
                td role="cell" { (record.who) }
                td role="cell" { (record.what) }
                td role="cell" { (record.to) }
                td.dim role="cell" { (record.from) " by " (record.through) }
            }
        }
    };
    let text = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let main = html! {
        (head("Audit", &line, &html! {}))
        form.filters action=(site.links().to("/audit")) role="search" aria-label="Filter changes" {
            label { "Who " input name="who" size="12" value=(text("who")) placeholder="anybody"; }
            label { "What " input name="what" size="12" value=(text("what")) placeholder="job.stop"; }
            button { "Filter" }
        }
        @if records.is_empty() && text("who").is_empty() && text("what").is_empty() {
            (empty(&html! { "Nobody has changed anything yet." }))
        } @else if records.is_empty() {
            (empty(&html! { "No change matches. " a href=(site.links().to("/audit")) { "Clear the filters." } }))
        } @else {
            div #audit { (data_table("nopick", "Changes", &HEADS, &rows)) }
        }
    };
    Ok(site.page(&visitor, &now, &WebPage::still("Audit", Nav::Audit, main)))
}
