//! `/jobs/ID`: one job with its attempts, log, output, script and facts.

mod attempt_section;
mod attempts;
mod change;
mod facts;
mod files;
mod highlight;
mod log_pane;
mod retry_form;
mod source;
mod tell_form;
mod time_line;

use std::collections::HashMap;

use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::bonds;
use super::doc::JobDoc;
use super::jobs::{attachment, tags};
use super::layout::{Nav, WebPage};
use super::links::SiteLinks;
use super::live::{LivePart, filters_of};
use super::parts::{duration, percent, was};
use super::site::Site;
use super::snapshot::SiteSnapshot;
use super::visitor::Visitor;
use super::web_error::PageError;
use crate::proto::job::{JobId, JobStatus};
use crate::rpc::Scope;
use crate::rpc::results::JobDocument;
use crate::store::LogLine;

pub(super) use change::{ask_delete, change};
pub(super) use files::download;
pub(super) use retry_form::{ask_correction, correct};

use facts::{RELATED_MAX, RelatedJob};
use log_pane::LogView;

/// The maximum number of bytes of a log that is sent as text.
const LOG_TEXT_MAX: usize = 16 * 1024 * 1024;
/// The lines of one reading of a log.
const LOG_PORTION: usize = 1_000;

/// Returns a job that the visitor may see.
pub(super) async fn read(site: &Site, visitor: &Visitor, id: &str) -> Result<JobDoc, PageError> {
    parsed(id)?;
    let JobDocument(job) = site.ask(visitor, "job.get", json!({ "id": id })).await?;
    Ok(JobDoc::from(job))
}

/// Returns the same with its words on other jobs.
async fn told(site: &Site, visitor: &Visitor, id: &str) -> Result<JobDoc, PageError> {
    let mut job = read(site, visitor, id).await?;
    bonds::tell(site, visitor, std::slice::from_mut(&mut job)).await?;
    Ok(job)
}

fn parsed(id: &str) -> Result<JobId, PageError> {
    id.parse().map_err(|_| PageError::not_found("No job has this id."))
}

/// Shows a job.
pub(super) async fn show(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
    Query(view): Query<LogView>,
) -> Result<Response, PageError> {
    let now = site.snapshot(&visitor).await?;
    let job = match (told(&site, &visitor, &id).await, id.strip_suffix(".json")) {
        (Err(_), Some(bare)) => return as_json(&read(&site, &visitor, bare).await?),
        (job, _) => job?,
    };
    let log = view.lines(site.client(), &parsed(&id)?).await?;
    let (attempts, links) = (attempts::of(&job), site.links());
    let main = html! {
        (head(&site, &visitor, &job, now.moment.at))
        (progress(&job))
        nav.jump.only-m aria-label="On this page" {
            a href="#logh" { "Log" } a href="#output" { "Output" }
            a href="#src" { "Script" } a href="#facts" { "Facts" }
        }
        div.cols.job {
            div {
                (tell_form::section(&job, links, &visitor, may_change(&visitor, &job)))
                (attempt_section::section(&job, links, now.moment.at))
                (source::error(&job, links))
                (log_pane::pane(links, &job, &view, &log, &attempts))
                (source::output(&job))
                (source::kept_state(&job))
                (source::script(&job))
                (retry_form::link(&job, links))
            }
            aside aria-label="Facts" {
                (facts::facts(&job, links, now.moment.at))
                (files::section(&site, &visitor, &job).await?)
                (facts::environment(&job, &site.config().log.redact))
                (relations(&site, &visitor, &job, now.moment.at).await?)
            }
        }
    };
    let title = format!("Job {}", job.label());
    Ok(site.page(&visitor, &now, &WebPage::live(title, Nav::Jobs(None), main)))
}

/// Returns the live parts of a job.
pub(super) async fn live(
    site: &Site,
    visitor: &Visitor,
    now: &SiteSnapshot,
    (id, query): (&str, &str),
) -> Result<Vec<LivePart>, PageError> {
    let job = told(site, visitor, id).await?;
    let (view, links): (LogView, _) = (filters_of(query), site.links());
    let mut parts = vec![
        LivePart::whole("state", state(&job)),
        LivePart::whole("headline", headline(&job, links, now.moment.at)),
        LivePart::whole("progress", progress(&job)),
        LivePart::whole("attempts", attempt_section::section(&job, links, now.moment.at)),
        LivePart::whole("error", source::error(&job, links)),
        LivePart::whole("output", source::output(&job)),
        LivePart::whole("kept", source::kept_state(&job)),
        LivePart::whole("facts", facts::facts(&job, links, now.moment.at)),
        LivePart::whole("files", files::section(site, visitor, &job).await?),
        LivePart::whole("relations", relations(site, visitor, &job, now.moment.at).await?),
    ];
    if view.is_end() {
        let log = view.lines(site.client(), &parsed(id)?).await?;
        let rows = log_pane::rows(&log, &attempts::of(&job), "");
        parts.push(LivePart::whole("log-count", log_pane::count_of(&log)));
        parts.push(LivePart::rows("log-lines", rows));
        parts.push(LivePart::whole("log-unfinished", log_pane::unfinished(&job)));
        parts.push(LivePart::whole("log-nothing", log_pane::nothing(&job, &log)));
    }
    if visitor.may(Scope::Operate) {
        parts.push(LivePart::whole("job-actions", buttons(&job, links, true)));
    }
    Ok(parts)
}

fn state(job: &JobDoc) -> Markup {
    html! { span #state { (job.state().pill()) } }
}

fn head(site: &Site, visitor: &Visitor, job: &JobDoc, now: Timestamp) -> Markup {
    let (links, script_type) = (site.links(), job.text("script_type"));
    html! {
        div.head {
            div {
                p.crumb {
                    a href=(links.to("/jobs")) { "Jobs" }
                    @if !script_type.is_empty() {
                        " / " a href=(links.with("/jobs", &[("type", script_type)])) { (script_type) }
                    }
                }
                (names(job))
                (headline(job, links, now))
                @if !job.list("tags").is_empty() {
                    p.chips { (tags(job, links, usize::MAX)) }
                }
            }
            (actions(site, visitor, job))
        }
    }
}

/// Returns the name of a job with its id below it; a job without a name is named by its id.
fn names(job: &JobDoc) -> Markup {
    let name = job.text("name");
    let copy = html! { button.plain type="button" data-copy="#jobid" { "Copy id" } };
    html! {
        div.idline {
            (state(job))
            @if name.is_empty() { h1 #jobid { (job.id()) } (copy) }
            @else { h1.plain-h { (name) } }
        }
        @if !name.is_empty() {
            p.idrow { code #jobid { (job.id()) } (copy) }
        }
    }
}

fn headline(job: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    let (caller, actor) = (job.text("caller_id"), job.text("actor"));
    let has_run = job.whole("attempt").unwrap_or_default() > 0;
    html! {
        p.meta #headline {
            @if has_run { span { "Attempt " (job.attempts()) } }
            @if let Some(took) = job.took(now) {
                span {
                    @if job.status() == JobStatus::Started { "for " (duration(took)) }
                    @else { "took " (duration(took)) }
                    @if !actor.is_empty() { " on " a href=(links.actor(actor)) { (actor) } }
                }
            } @else {
                span { (super::jobs::what_it_is_at(job, links, now)) }
            }
            @if !caller.is_empty() {
                span { "from " a href=(links.with("/jobs", &[("caller", caller)])) { (caller) } }
            }
            @if let Some(created) = job.time("created_at") { span { "created " (was(created, now)) } }
        }
    }
}

fn progress(job: &JobDoc) -> Markup {
    let share = job.number("progress").filter(|share| share.is_finite());
    let share = share.filter(|_| job.status() == JobStatus::Started);
    html! {
        div #progress {
            @if let Some(share) = share.map(|share| share.clamp(0.0, 1.0)) {
                div.prog.running {
                    span { (job.text("progress_text")) }
                    span { (percent(share, 1.0)) }
                    progress max="1" value=(share) aria-label="Progress" { (percent(share, 1.0)) }
                }
            }
        }
    }
}

fn may_change(visitor: &Visitor, job: &JobDoc) -> bool {
    let is_own = job.text("caller_id") == visitor.caller.name;
    visitor.may(Scope::Operate) || (visitor.may(Scope::Submit) && is_own)
}

/// Returns the buttons in their form. The live parts have the buttons alone, without the token.
fn actions(site: &Site, visitor: &Visitor, job: &JobDoc) -> Markup {
    let links = site.links();
    html! {
        div.actions {
            @if may_change(visitor, job) {
                form method="post" action=(links.job(job.id())) {
                    (visitor.forgery_field())
                    (buttons(job, links, true))
                }
            }
            @if visitor.may(Scope::Submit) {
                a.btn href=(links.with("/submit", &[("from", job.id())])) { "Submit again with changes" }
            }
        }
    }
}

fn buttons(job: &JobDoc, links: &SiteLinks, may_change: bool) -> Markup {
    let is_over = job.status().is_terminal();
    html! {
        span #job-actions .actions {
            @if may_change {
                // With ids of their own one never turns into the other under the pointer.
                @if is_over { button #do-retry name="do" value="retry" data-key="retry" { "Retry" } }
                @else { button #do-stop name="do" value="stop" data-key="stop" { "Stop" } }
                @if job.status() == JobStatus::Started {
                    button.danger type="button" disabled aria-describedby="why-del" title="Stop the job first" {
                        "Delete…"
                    }
                    span.sr #why-del { "Stop the job first" }
                } @else {
                    a.btn.danger href={ (links.job(job.id())) "/delete" } data-ask { "Delete…" }
                }
            }
        }
    }
}

/// Returns the jobs before and after a job.
async fn relations(
    site: &Site,
    visitor: &Visitor,
    job: &JobDoc,
    now: Timestamp,
) -> Result<Markup, PageError> {
    let (after, any) = (job.list("prerequisites"), job.list("after_any"));
    let dependents = job.list("dependents");
    let before: Vec<(&str, &'static str)> =
        after.iter().map(|id| (*id, "")).chain(any.iter().map(|id| (*id, "any end"))).collect();
    let behind: Vec<(&str, &'static str)> = dependents.iter().map(|id| (*id, "")).collect();
    let children = job.list("children");
    let parent = Some((job.text("parent"), "")).filter(|(id, _)| !id.is_empty());
    let parent: Vec<(&str, &'static str)> = parent.into_iter().collect();
    let children: Vec<(&str, &'static str)> = children.iter().map(|id| (*id, "")).collect();
    let links = site.links();
    let known = related(site, visitor, [&before, &behind, &parent, &children]).await?;
    let list = |ids: &[(&str, &'static str)]| -> Vec<RelatedJob> {
        let shown = ids.iter().take(RELATED_MAX);
        shown
            .map(|(id, note)| RelatedJob {
                id: (*id).to_owned(),
                job: known.get(*id).cloned(),
                note,
            })
            .collect()
    };
    let ended = list(&before)
        .iter()
        .filter(|of| of.job.as_ref().is_some_and(|job| job.status().is_terminal()))
        .count();
    let small = format!("{ended} of {} ended", before.len());
    let number = behind.len().to_string();
    let below = children.len().to_string();
    let of_parent = links.with("/jobs", &[("parent", job.id())]);
    Ok(html! {
        section.rel #relations {
            (facts::related("Waits for", &small, &list(&before), before.len(), links, now))
            (facts::related("Waiting for it", &number, &list(&behind), behind.len(), links, now))
            (facts::related("Submitted by the script of", "", &list(&parent), parent.len(), links, now))
            (facts::related("Its script submitted", &below, &list(&children), children.len(), links, now))
            @if !children.is_empty() {
                p { a href=(of_parent) { "List them" } }
            }
            @if !before.is_empty() || !behind.is_empty() {
                p { a href={ (links.job(job.id())) "/graph" } { "Show graph" } }
            }
        }
    })
}

async fn related(
    site: &Site,
    visitor: &Visitor,
    lists: [&[(&str, &'static str)]; 4],
) -> Result<HashMap<String, JobDoc>, PageError> {
    let shown = lists.into_iter().flat_map(|list| list.iter().take(RELATED_MAX));
    let ids: Vec<JobId> = shown.filter_map(|(id, _)| id.parse().ok()).collect();
    let mut known = site.client().job_summaries(ids).await?;
    known.retain(|job| visitor.sees(job));
    let documents = known.into_iter().map(|job| (job.id.to_string(), JobDoc::from(json!(job))));
    Ok(documents.collect())
}

fn as_json(job: &JobDoc) -> Result<Response, PageError> {
    let text = serde_json::to_string_pretty(job).map_err(|error| {
        PageError::wrong(format!("The job cannot be written as JSON: {error}."))
    })?;
    let name = format!("{}.json", job.id());
    Ok((attachment("application/json", &name), text).into_response())
}

/// The place in a log to read from.
#[derive(Deserialize)]
pub(super) struct LogQuery {
    /// A time, or the id of a line.
    #[serde(default)]
    since: String,
}

/// Answers with the log as text.
pub(super) async fn log(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
    Query(LogQuery { since }): Query<LogQuery>,
) -> Result<Response, PageError> {
    read(&site, &visitor, &id).await?;
    let job = parsed(&id)?;
    let mut after = match since.parse::<Timestamp>() {
        Ok(time) => Some(LogLine::place_before(time)),
        Err(_) if since.is_empty() => None,
        Err(_) if log_pane::is_place(&since) => Some(since),
        Err(_) => {
            let text = "Give since as a time such as 2026-12-24T18:00:00Z, or as the id of a line.";
            return Err(PageError::wrong(text));
        }
    };
    let mut text = String::new();
    loop {
        let lines = site.client().get_job_logs(&job, after.as_deref(), LOG_PORTION).await?;
        text.push_str(&log_pane::text(&lines));
        let Some(last) = lines.last().filter(|_| lines.len() == LOG_PORTION) else { break };
        if text.len() > LOG_TEXT_MAX {
            text.push_str("The log goes on; add ?since= with the time of the last line.\n");
            break;
        }
        after = Some(last.id.clone());
    }
    let mut response =
        (attachment("text/plain; charset=utf-8", &format!("{id}.log")), text).into_response();
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    Ok(response)
}
