//! `/notifications`: the notifications that are configured, a test of each, and their latest deliveries.

use maud::{Markup, html};
use serde_json::json;

use super::fields::{Fields, NoQuery};
use super::layout::{Nav, WebPage};
use super::parts::{data_table, empty, head, was_at};
use super::snapshot::SiteSnapshot;
use super::visit::Visit;
use super::web_error::{PageError, PageResult};
use crate::proto::notification::DeliveryRecord;
use crate::rpc::results::{ConfiguredNotification, DeliveryList, TestResult};

pub(super) async fn list(visit: Visit, _: NoQuery) -> PageResult {
    let now = visit.snapshot().await?;
    let asked = json!({ "limit": 200 });
    let DeliveryList { configured, failing, deliveries, .. } =
        visit.ask("notify.list", asked).await?;
    let line = html! { "Messages of " code { "[notify.NAME]" } " in hero.toml." };
    let main = html! {
        (head("Notifications", &line, &html! {}))
        @if !configured.is_empty() { (tests(&visit, &configured)) }
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

const CONFIGURED: [(&str, &str); 4] =
    [("", "Notification"), ("", "By"), ("", "Events"), ("sr", "Action")];

/// Returns the table of notifications as a form whose buttons send a test.
fn tests(visit: &Visit, configured: &[ConfiguredNotification]) -> Markup {
    let rows = html! {
        @for ConfiguredNotification { name, ways, on } in configured {
            tr role="row" {
                td role="cell" { (name) }
                td role="cell" { (ways.join(", ")) }
                td.dim role="cell" { (on.join(", ")) }
                td.num role="cell" {
                    button.plain name="test" value=(name) { "Send a test" span.sr { " by " (name) } }
                }
            }
        }
    };
    let table = data_table("nopick", "Notifications", &CONFIGURED, &rows);
    html! { div #configured { (visit.form(&visit.links().to("/notifications"), &table)) } }
}

/// Sends a test by the notification whose button was pressed, and waits for its delivery.
pub(super) async fn test(visit: Visit, fields: Fields) -> PageResult {
    let name = fields.get("test");
    if name.is_empty() {
        return Err(PageError::wrong("The form names no notification."));
    }
    let TestResult { delivery, .. } =
        visit.call_for("notify.test", json!({ "name": name })).await?;
    let outcome = match delivery {
        None => format!("No supervisor has sent the test of {name} yet."),
        Some(of) if of.error.is_empty() => format!("The test of {name} was delivered."),
        Some(of) => format!("The test of {name} was not delivered: {}", of.error),
    };
    Ok(visit.done("/notifications", &outcome))
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
