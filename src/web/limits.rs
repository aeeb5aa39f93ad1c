//! `/limits`: each limit with the jobs that run under it and that it holds.

use maud::{Markup, html};
use serde_json::json;

use super::fields::NoQuery;
use super::layout::{Nav, WebPage};
use super::links::SiteLinks;
use super::live::{LivePart, LiveParts};
use super::parts::{count, data_table, empty, head};
use super::visit::Visit;
use super::web_error::PageResult;
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

const HEADS: [(&str, &str); 5] =
    [("", "Limit"), ("", "Of"), ("num", "Running"), ("num", "Held"), ("num", "Started")];

fn table(limits: &[LimitDocument], links: &SiteLinks) -> Markup {
    let rows = html! { @for limit in limits { (row(limit, links)) } };
    html! {
        div #limits {
            @if limits.is_empty() {
                (empty(&html! { "No limits. " code { "[limit.NAME]" } " of hero.toml sets one." }))
            } @else {
                (data_table("nopick", "Limits", &HEADS, &rows))
            }
        }
    }
}

fn row(limit: &LimitDocument, links: &SiteLinks) -> Markup {
    let held = limit.held;
    html! {
        tr role="row" {
            td.m1 role="cell" {
                span.id { (limit.name) }
                @if let Some(value) = &limit.value { " " span.faint { (value) } }
                @if let Some(shard) = limit.shard { " " span.faint { "shard " (shard) } }
            }
            td.dim.m4 role="cell" { (scope(limit)) }
            td.num.m5 role="cell" {
                (count(limit.running))
                @if let Some(most) = limit.running_max { " of " (count(most.into())) }
                span.only-n.faint { " running" }
            }
            td.num.mr role="cell" {
                @if held == 0 { span.faint { "0" } }
                @else { a href=(links.with("/jobs", &[("status", "held")])) { (count(held)) } }
                span.only-n.faint { " held" }
            }
            td.num.wide role="cell" {
                @match (limit.started, &limit.rate) {
                    (Some(started), Some(rate)) => { (count(started)) " of " (rate) }
                    _ => { span.faint { "–" } }
                }
            }
        }
    }
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
