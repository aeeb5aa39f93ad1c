//! `/jobs/ID`: one job with its attempts, log, output, script and facts.

mod attempt_section;
mod attempts;
mod change;
mod facts;
mod highlight;
mod log_pane;
mod source;
mod time_line;

use std::collections::HashMap;

use axum::body::Bytes;
use axum::extract::Path;
use axum::response::IntoResponse;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::doc::JobDoc;
use super::jobs::{attachment, tags};
use super::parts::{duration, given, percent, was};
use super::prelude::*;
use super::relations;
use crate::proto::job::{JobId, JobStatus};
use crate::rpc::Scope;
use crate::rpc::results::JobDocument;
use crate::store::LogLine;

pub(super) use change::{ask_correction, ask_delete, change, correct};
pub(super) use facts::{download, download_output};

use facts::{RELATED_MAX, RelatedId};
use log_pane::LogView;

/// The lines of one reading of a log.
const LOG_PORTION: usize = 1_000;

/// Returns a job that the visitor may see.
pub(super) async fn read(visit: &Visit, id: &str) -> PageResult<JobDoc> {
    parsed(id)?;
    let JobDocument(job) = visit.ask("job.get", json!({ "id": id })).await?;
    Ok(JobDoc::from(job))
}

/// Returns the same with its words on other jobs.
async fn told(visit: &Visit, id: &str) -> PageResult<JobDoc> {
    let mut job = read(visit, id).await?;
    relations::add_to(visit, std::slice::from_mut(&mut job)).await?;
    Ok(job)
}

/// Refuses what was read by the id of a job if a later job has it, which the visitor may not see.
async fn check_same(visit: &Visit, job: &JobDoc) -> PageResult<()> {
    if visit.is_bound() {
        let created_at = job.time("created_at");
        visit.site.client.jobs().check_same(&parsed(job.id())?, created_at).await?;
    }
    Ok(())
}

fn parsed(id: &str) -> PageResult<JobId> {
    id.parse().map_err(|_| PageError::not_found("No job has this id."))
}

pub(super) async fn show(
    visit: Visit,
    Path(id): Path<String>,
    PageQuery(view): PageQuery<LogView>,
) -> PageResult {
    let now = visit.snapshot().await?;
    let job = match (told(&visit, &id).await, id.strip_suffix(".json")) {
        (Err(_), Some(bare)) => return as_json(&read(&visit, bare).await?),
        (job, _) => job?,
    };
    let log = view.lines(&visit.site.client, &parsed(&id)?).await?;
    check_same(&visit, &job).await?;
    let (attempts, links) = (attempts::of(&job), visit.links());
    let main = html! {
        (head(&visit, &job, now.snapshot.at))
        (progress(&job))
        nav.jump.only-m aria-label="On this page" {
            a href="#logh" { "Log" } a href="#output" { "Output" }
            a href="#src" { "Script" } a href="#facts" { "Facts" }
        }
        div.cols.job {
            div {
                (change::wait(&visit, &job))
                (attempt_section::section(&job, links, now.snapshot.at))
                (source::error(&job, links))
                (log_pane::pane(links, &job, &view, &log, &attempts))
                (source::output(&job, links))
                (source::kept_state(&job))
                (source::script(&job))
                (change::correction_link(&job, links))
            }
            aside aria-label="Facts" {
                (facts::facts(&job, links, now.snapshot.at))
                (facts::files(&visit, &job).await?)
                (facts::environment(&job, &visit.site.config().log.redact))
                (relations(&visit, &job, now.snapshot.at).await?)
            }
        }
    };
    let title = format!("Job {}", job.label());
    Ok(visit.page(&now, &WebPage::live(title, Nav::Jobs(None), main)))
}

pub(super) async fn live(visit: &Visit, now: &SiteSnapshot, id: &str, query: &str) -> LiveParts {
    let job = told(visit, id).await?;
    let (view, links): (LogView, _) = (filters_of(query), visit.links());
    let mut parts = vec![
        LivePart::whole("state", state(&job)),
        LivePart::whole("headline", headline(&job, links, now.snapshot.at)),
        LivePart::whole("progress", progress(&job)),
        LivePart::whole("attempts", attempt_section::section(&job, links, now.snapshot.at)),
        LivePart::whole("error", source::error(&job, links)),
        LivePart::whole("output", source::output(&job, links)),
        LivePart::whole("kept", source::kept_state(&job)),
        LivePart::whole("facts", facts::facts(&job, links, now.snapshot.at)),
        LivePart::whole("files", facts::files(visit, &job).await?),
        LivePart::whole("relations", relations(visit, &job, now.snapshot.at).await?),
    ];
    if view.is_end() {
        let log = view.lines(&visit.site.client, &parsed(id)?).await?;
        check_same(visit, &job).await?;
        let rows = log_pane::rows(&log, &attempts::of(&job), "");
        parts.push(LivePart::whole("log-count", log_pane::count_of(&log)));
        parts.push(LivePart::rows("log-lines", rows));
        parts.push(LivePart::whole("log-unfinished", log_pane::unfinished(&job)));
        parts.push(LivePart::whole("log-nothing", log_pane::nothing(&job, &log)));
    }
    if visit.may(Scope::Operate) {
        parts.push(LivePart::whole("job-actions", buttons(&job, links)));
    }
    Ok(parts)
}

fn state(job: &JobDoc) -> Markup {
    html! { span #state { (job.state().pill()) } }
}

fn head(visit: &Visit, job: &JobDoc, now: Timestamp) -> Markup {
    let (links, script_type) = (visit.links(), job.text("script_type"));
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
            (actions(visit, job))
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
                    @if !actor.is_empty() { " on " a href=(links.page("actors", actor)) { (actor) } }
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
    let share = job.share().filter(|_| job.status() == JobStatus::Started);
    html! {
        div #progress {
            @if let Some(share) = share {
                div.prog.running {
                    span { (job.text("progress_text")) }
                    span { (percent(share, 1.0)) }
                    progress max="1" value=(share) aria-label="Progress" { (percent(share, 1.0)) }
                }
            }
        }
    }
}

/// Returns the buttons in their form. The live parts have the buttons alone, without the token.
fn actions(visit: &Visit, job: &JobDoc) -> Markup {
    let links = visit.links();
    html! {
        div.actions {
            @if visit.may_change(job.text("caller_id")) {
                (visit.form(&links.job(job.id()), &buttons(job, links)))
            }
            @if visit.may(Scope::Submit) {
                a.btn href=(links.with("/submit", &[("from", job.id())])) { "Submit again with changes" }
            }
        }
    }
}

fn buttons(job: &JobDoc, links: &SiteLinks) -> Markup {
    let is_over = job.status().is_terminal();
    html! {
        span #job-actions .actions {
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

async fn relations(visit: &Visit, job: &JobDoc, now: Timestamp) -> PageResult<Markup> {
    let with_note = |field: &str, note| job.list(field).into_iter().map(move |id| (id, note));
    let before: Vec<RelatedId> =
        with_note("prerequisites", "").chain(with_note("after_any", "any end")).collect();
    let behind: Vec<_> = with_note("dependents", "").collect();
    let parent: Vec<_> = given(job.text("parent")).into_iter().map(|id| (id, "")).collect();
    let children: Vec<_> = with_note("children", "").collect();
    let known = related(visit, [&before, &behind, &parent, &children]).await?;
    let has_ended =
        |(id, _): &&RelatedId| known.get(*id).is_some_and(|job| job.status().is_terminal());
    let ended = before.iter().take(RELATED_MAX).filter(has_ended).count();
    let small = format!("{ended} of {} ended", before.len());
    let links = visit.links();
    let list = |title: &str, small: &str, ids: &[RelatedId<'_>], all: u64| {
        facts::related(title, small, (ids, all), &known, links, now)
    };
    let number = |ids: &[RelatedId<'_>]| ids.len() as u64;
    let waiting = number(&behind) + job.whole("dependents_more").unwrap_or_default();
    let of_parent = links.with("/jobs", &[("parent", job.id())]);
    Ok(html! {
        section.rel #relations {
            (list("Waits for", &small, &before, number(&before)))
            (list("Waiting for it", &waiting.to_string(), &behind, waiting))
            (list("Submitted by the script of", "", &parent, 1))
            (list("Its script submitted", &children.len().to_string(), &children, number(&children)))
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
    visit: &Visit,
    lists: [&[RelatedId<'_>]; 4],
) -> PageResult<HashMap<String, JobDoc>> {
    let shown = lists.into_iter().flat_map(|list| list.iter().take(RELATED_MAX));
    let ids: Vec<JobId> = shown.filter_map(|(id, _)| id.parse().ok()).collect();
    let mut known = visit.site.client.jobs().summaries(ids).await?;
    known.retain(|job| visit.sees(job));
    let documents = known.iter().map(|job| (job.id.to_string(), JobDoc::from(job)));
    Ok(documents.collect())
}

fn as_json(job: &JobDoc) -> PageResult {
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

pub(super) async fn log(
    visit: Visit,
    Path(id): Path<String>,
    PageQuery(LogQuery { since }): PageQuery<LogQuery>,
) -> PageResult {
    let seen = read(&visit, &id).await?;
    let job = parsed(&id)?;
    let after = match since.parse::<Timestamp>() {
        Ok(time) => Some(LogLine::place_before(time)),
        Err(_) if since.is_empty() => None,
        Err(_) if log_pane::is_place(&since) => Some(since),
        Err(_) => {
            let text = "Give since as a time such as 2026-12-24T18:00:00Z, or as the id of a line.";
            return Err(PageError::wrong(text));
        }
    };
    let kind = attachment("text/plain; charset=utf-8", &format!("{id}.log"));
    let log = RestOfLog { visit: visit.clone(), seen, job, after };
    let text = visit.in_steps("a log", log, RestOfLog::step).await?;
    Ok((kind, text).into_response())
}

/// A log that is being sent as text: what is left of it.
struct RestOfLog {
    visit: Visit,
    seen: JobDoc,
    job: JobId,
    after: Option<String>,
}

impl RestOfLog {
    async fn step(mut self) -> PageResult<(Bytes, Option<Self>)> {
        let client = &self.visit.site.client;
        let lines = client.get_job_logs(&self.job, self.after.as_deref(), LOG_PORTION).await?;
        check_same(&self.visit, &self.seen).await?;
        let text = Bytes::from(log_pane::text(&lines));
        let last = lines.last().filter(|_| lines.len() == LOG_PORTION);
        self.after = last.map(|line| line.id.clone());
        Ok((text, self.after.is_some().then_some(self)))
    }
}
