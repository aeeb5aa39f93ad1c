//! `/notifications`: the latest deliveries of notifications.

use maud::{Markup, html};
use serde_json::json;

use super::fields::NoQuery;
use super::layout::{Nav, WebPage};
use super::parts::{data_table, empty, head, was_at};
use super::snapshot::SiteSnapshot;
use super::visit::Visit;
use super::web_error::PageResult;
use crate::proto::notification::DeliveryRecord;
use crate::rpc::results::DeliveryList;

pub(super) async fn list(visit: Visit, _: NoQuery) -> PageResult {
    let now = visit.snapshot().await?;
    let asked = json!({ "limit": 200 });
    let DeliveryList { failing, deliveries, .. } = visit.ask("notify.list", asked).await?;
    let line = html! { "Messages of " code { "[notify.NAME]" } ". " code { "hero notify test NAME" } " sends a test." };
    let main = html! {
        (head("Notifications", &line, &html! {}))
        @if !failing.is_empty() {
            h2 { "Failing" }
            (table("failing", "Notifications that fail", &failing, &now))
        }
        @if deliveries.is_empty() {
            (empty(&html! { "No notification was delivered yet." }))
        } @else {
            @if !failing.is_empty() { h2 { "Latest deliveries" } }
            (table("deliveries", "Latest deliveries", &deliveries, &now))
        }
    };
    Ok(visit.page(&now, &WebPage::still("Notifications", Nav::Notifications, main)))
}

const HEADS: [(&str, &str); 5] =
    [("", "When"), ("", "Notification"), ("", "State"), ("", "Told"), ("", "Error")];

fn table(id: &str, caption: &str, records: &[DeliveryRecord], now: &SiteSnapshot) -> Markup {
    let rows = html! {
        @for record in records {
            tr role="row" {
                td.dim role="cell" { (was_at(&record.at, now.snapshot.at)) }
                td role="cell" { (record.notification) }
                td role="cell" { (record.state) }
                td role="cell" { (record.title) }
                td role="cell" { (record.error) }
            }
        }
    };
    html! { div id=(id) { (data_table("nopick", caption, &HEADS, &rows)) } }
}
