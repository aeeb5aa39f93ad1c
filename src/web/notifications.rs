//! `/notifications`: the latest deliveries of notifications.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::doc::JobDoc;
use super::layout::{Nav, WebPage, head};
use super::parts::{columns, empty, was};
use super::site::Site;
use super::snapshot::SiteSnapshot;
use super::visitor::Visitor;
use super::web_error::PageError;

/// Lists the deliveries.
pub(super) async fn list(
    State(site): State<Site>,
    visitor: Visitor,
) -> Result<Response, PageError> {
    let now = site.snapshot(&visitor).await?;
    let mut answer = site.ask(&visitor, "notify.list", json!({ "limit": 200 })).await?;
    let mut records = |name: &str| -> Vec<JobDoc> {
        let found = answer.get_mut(name).map(Value::take);
        let found = found.and_then(|found| found.as_array().cloned()).unwrap_or_default();
        found.into_iter().map(JobDoc::from).collect()
    };
    let (failing, recent) = (records("failing"), records("deliveries"));
    let line = html! { "Messages of " code { "[notify.NAME]" } ". " code { "hero notify test NAME" } " sends a test." };
    let main = html! {
        (head("Notifications", &line, &html! {}))
        @if !failing.is_empty() {
            h2 { "Failing" }
            (table("failing", "Notifications that fail", &failing, &now))
        }
        @if recent.is_empty() {
            (empty(&html! { "No notification was delivered yet." }))
        } @else {
            @if !failing.is_empty() { h2 { "Latest deliveries" } }
            (table("deliveries", "Latest deliveries", &recent, &now))
        }
    };
    Ok(site.page(&visitor, &now, &WebPage::still("Notifications", Nav::Notifications, main)))
}

fn table(id: &str, caption: &str, records: &[JobDoc], now: &SiteSnapshot) -> Markup {
    html! {
        table.stack.nopick id=(id) role="table" {
            caption.sr { (caption) }
            thead role="rowgroup" {
                tr role="row" {
                    (columns(&[("", "When"), ("", "Notification"), ("", "State"), ("", "Told"), ("", "Error")]))
                }
            }
            tbody role="rowgroup" {
                @for record in records {
                    tr role="row" {
                        td.dim role="cell" {
                            @if let Some(at) = record.time("at") { (was(at, now.moment.at)) }
                        }
                        td role="cell" { (record.text("notification")) }
                        td role="cell" { (record.text("state")) }
                        td role="cell" { (record.text("title")) }
                        td role="cell" { (record.text("error")) }
                    }
                }
            }
        }
    }
}
