//! `/audit`: the changes that people and programs made.

use std::collections::HashMap;

use axum::extract::{Query, State};
use axum::response::Response;
use maud::html;
use serde_json::{Value, json};

use super::doc::JobDoc;
use super::layout::{Nav, WebPage, head};
use super::parts::{columns, empty, was};
use super::site::Site;
use super::visitor::Visitor;
use super::web_error::PageError;

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
    let mut answer = site.ask(&visitor, "audit.list", params).await?;
    let records = answer.get_mut("records").map(Value::take);
    let records = records.and_then(|records| records.as_array().cloned()).unwrap_or_default();
    let records: Vec<JobDoc> = records.into_iter().map(JobDoc::from).collect();
    let line = html! { "Changes by people and programs, kept for 90 days. " code { "hero audit" } " has all of them." };
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
            table.stack.nopick #audit role="table" {
                caption.sr { "Changes" }
                thead role="rowgroup" {
                    tr role="row" {
                        (columns(&[("", "When"), ("", "Who"), ("", "What"), ("", "To"), ("", "From")]))
                    }
                }
                tbody role="rowgroup" {
                    @for record in &records {
                        tr role="row" {
                            td.dim role="cell" {
                                @if let Some(at) = record.time("at") { (was(at, now.moment.at)) }
                            }
                            td role="cell" { (record.text("who")) }
                            td role="cell" { (record.text("what")) }
                            td role="cell" { (record.text("to")) }
                            td.dim role="cell" { (record.text("from")) " by " (record.text("through")) }
                        }
                    }
                }
            }
        }
    };
    Ok(site.page(&visitor, &now, &WebPage::still("Audit", Nav::Audit, main)))
}
