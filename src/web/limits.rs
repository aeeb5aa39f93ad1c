//! `/limits`: each limit with the jobs that run under it and that it holds.

use serde_json::json;

use super::parts::{PageTable, count, head};
use super::prelude::*;
use crate::client::LimitDocument;
use crate::rpc::results::LimitList;

async fn read(visit: &Visit) -> PageResult<Vec<LimitDocument>> {
    let LimitList { limits } = visit.ask("limit.list", json!({})).await?;
    Ok(limits)
}

pub(super) async fn list(visit: Visit, _: NoQuery) -> PageResult {
    let now = visit.snapshot().await?;
    let limits = read(&visit).await?;
    let line =
        html! { "Bounds on concurrent jobs and on starts per time. A job without a slot is held." };
    let main = html! { (head("Limits", &line, &html! {})) (table(&limits, visit.links())) };
    Ok(visit.page(&now, &WebPage::live("Limits", Nav::Limits, main)))
}

pub(super) async fn live(visit: &Visit) -> LiveParts {
    let limits = read(visit).await?;
    Ok(vec![LivePart::whole("limits", table(&limits, visit.links()))])
}

fn table(limits: &[LimitDocument], links: &SiteLinks) -> Markup {
    let none = html! { "No limits. " code { "[limit.NAME]" } " of hero.toml sets one." };
    let table = PageTable::of(limits, "nopick", "Limits")
        .column("Limit", "m1", |of| {
            html! {
                span.id { (of.name) }
                @if let Some(value) = &of.value { " " span.faint { (value) } }
                @if let Some(shard) = of.shard { " " span.faint { "shard " (shard) } }
            }
        })
        .column("Of", "dim m4", |of| html! { (scope(of)) })
        .column("Running", "num m5", |of| {
            html! {
                (count(of.running))
                @if let Some(most) = of.running_max { " of " (count(most.into())) }
                span.only-n.faint { " running" }
            }
        })
        .column("Held", "num mr", |of| {
            html! {
                @if of.held == 0 { span.faint { "0" } }
                @else { a href=(links.with("/jobs", &[("status", "held")])) { (count(of.held)) } }
                span.only-n.faint { " held" }
            }
        })
        .column("Started", "num wide", |of| {
            html! {
                @match (of.started, &of.rate) {
                    (Some(started), Some(rate)) => { (count(started)) " of " (rate) }
                    _ => { span.faint { "–" } }
                }
            }
        });
    html! { div #limits { (table.or(&none)) } }
}

/// Returns the jobs that a limit counts.
fn scope(limit: &LimitDocument) -> String {
    let named = [
        ("type", &limit.script_type),
        ("group", &limit.group),
        ("caller", &limit.caller),
        ("key", &limit.key),
        ("each", &limit.per),
    ];
    let told = |(word, value): (&str, &Option<String>)| Some(format!("{word} {}", value.as_ref()?));
    let parts: Vec<String> = named.into_iter().filter_map(told).collect();
    if parts.is_empty() { "all jobs".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_shows_what_runs_what_it_holds_and_of_whom() {
        let limit = LimitDocument {
            name: "<b>gpu".to_owned(),
            per: Some("caller".to_owned()),
            script_type: Some("python".to_owned()),
            running_max: Some(4),
            running: 4,
            held: 2,
            ..LimitDocument::default()
        };
        let text = table(&[limit], &SiteLinks::new("/")).into_string();
        assert!(text.contains("type python, each caller") && text.contains("4 of 4"), "{text}");
        assert!(text.contains("status=held") && !text.contains("<b>"), "{text}");
    }
}
