//! `/notifications`: the notifications that are configured, a test of each, and their latest deliveries.

use serde_json::json;

use super::parts::{PageTable, empty, head, was_at};
use super::prelude::*;
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

/// Returns the table of notifications as a form whose buttons send a test.
fn tests(visit: &Visit, configured: &[ConfiguredNotification]) -> Markup {
    let table = PageTable::of(configured, "nopick", "Notifications")
        .column("Notification", "", |of| html! { (of.name) })
        .column("By", "", |of| html! { (of.ways.join(", ")) })
        .column("Events", "dim", |of| html! { (of.on.join(", ")) })
        .column("Action", "sr num", |of| html! {
            button.plain name="test" value=(of.name) { "Send a test" span.sr { " by " (of.name) } }
        });
    html! { div #configured { (visit.form(&visit.links().to("/notifications"), &table.markup())) } }
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

fn table(id: &str, caption: &str, records: &[DeliveryRecord], now: &SiteSnapshot) -> Markup {
    let table = PageTable::of(records, "nopick", caption)
        .column("When", "dim", |of| was_at(&of.at, now.snapshot.at))
        .column("Notification", "", |of| html! { (of.notification) })
        .column("State", "", |of| html! { (of.state) })
        .column("Told", "", |of| html! { (of.title) })
        .column("Error", "", |of| html! { (of.error) });
    html! { div id=(id) { (table.markup()) } }
}
