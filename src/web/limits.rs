//! `/limits`: each limit with the jobs that run under it and that it holds.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::doc::JobDoc;
use super::layout::{Nav, WebPage, head};
use super::links::SiteLinks;
use super::live::LivePart;
use super::parts::{columns, count, empty};
use super::site::Site;
use super::visitor::Visitor;
use super::web_error::PageError;

async fn read(site: &Site, visitor: &Visitor) -> Result<Vec<JobDoc>, PageError> {
    let mut answer = site.ask(visitor, "limit.list", json!({})).await?;
    let limits = answer.get_mut("limits").map(Value::take);
    let limits = limits.and_then(|limits| limits.as_array().cloned()).unwrap_or_default();
    Ok(limits.into_iter().map(JobDoc::from).collect())
}

/// Lists the limits.
pub(super) async fn list(
    State(site): State<Site>,
    visitor: Visitor,
) -> Result<Response, PageError> {
    let now = site.snapshot(&visitor).await?;
    let limits = read(&site, &visitor).await?;
    let line =
        html! { "Bounds on concurrent jobs and on starts per time. A job without a slot is held." };
    let main = html! { (head("Limits", &line, &html! {})) (table(&limits, site.links())) };
    Ok(site.page(&visitor, &now, &WebPage::live("Limits", Nav::Limits, main)))
}

/// Returns the live parts.
pub(super) async fn live(site: &Site, visitor: &Visitor) -> Result<Vec<LivePart>, PageError> {
    let limits = read(site, visitor).await?;
    Ok(vec![LivePart::whole("limits", table(&limits, site.links()))])
}

fn table(limits: &[JobDoc], links: &SiteLinks) -> Markup {
    html! {
        div #limits {
            @if limits.is_empty() {
                (empty(&html! { "No limits. " code { "[limit.NAME]" } " of hero.toml sets one." }))
            } @else {
                table.stack.nopick role="table" {
                    caption.sr { "Limits" }
                    thead role="rowgroup" {
                        tr role="row" {
                            (columns(&[
                                ("", "Limit"), ("", "Of"), ("num", "Running"), ("num", "Held"),
                                ("num", "Started"),
                            ]))
                        }
                    }
                    tbody role="rowgroup" { @for limit in limits { (row(limit, links)) } }
                }
            }
        }
    }
}

fn row(limit: &JobDoc, links: &SiteLinks) -> Markup {
    let number = |field: &str| limit.whole(field).unwrap_or_default();
    let held = number("held");
    html! {
        tr role="row" {
            td.m1 role="cell" {
                span.id { (limit.text("name")) }
                @if !limit.text("value").is_empty() { " " span.faint { (limit.text("value")) } }
                @if let Some(shard) = limit.whole("shard") { " " span.faint { "shard " (shard) } }
            }
            td.dim.m4 role="cell" { (scope(limit)) }
            td.num.m5 role="cell" {
                (count(number("running")))
                @if let Some(most) = limit.whole("running_max") { " of " (count(most)) }
                span.only-n.faint { " running" }
            }
            td.num.mr role="cell" {
                @if held == 0 { span.faint { "0" } }
                @else { a href=(links.with("/jobs", &[("state", "held")])) { (count(held)) } }
                span.only-n.faint { " held" }
            }
            td.num.wide role="cell" {
                @match limit.whole("started") {
                    Some(started) => { (count(started)) " of " (limit.text("rate")) }
                    None => { span.faint { "–" } }
                }
            }
        }
    }
}

/// Returns the jobs that a limit counts.
fn scope(limit: &JobDoc) -> String {
    let named = [("type", "type"), ("group", "group"), ("caller", "caller"), ("key", "key")];
    let mut parts: Vec<String> = named
        .into_iter()
        .filter(|(field, _)| !limit.text(field).is_empty())
        .map(|(field, word)| format!("{word} {}", limit.text(field)))
        .collect();
    if !limit.text("per").is_empty() {
        parts.push(format!("each {}", limit.text("per")));
    }
    if parts.is_empty() { "all jobs".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_shows_what_runs_what_it_holds_and_of_whom() {
        let limit = JobDoc::from(json!({
            "name": "<b>gpu", "type": "python", "per": "caller", "running_max": 4, "running": 4,
            "held": 2,
        }));
        let text = table(&[limit], &SiteLinks::new("/")).into_string();
        assert!(text.contains("type python, each caller") && text.contains("4 of 4"), "{text}");
        assert!(text.contains("state=held") && !text.contains("<b>"), "{text}");
    }
}
