//! `/jobs`: the list with its filters, files of it, and failures by their errors.

mod bulk;
mod export;
mod failures;
mod filter;
mod related_jobs;
mod rows;

use axum::response::{IntoResponse, Redirect};
use serde_json::json;

use super::parts::{ShownState, count, empty, filter_choice, head, or_any, pager, search, things};
use super::prelude::*;
use super::relations;
use super::site::Site;
use crate::proto::job::JobId;
use crate::proto::target::ScriptType;
use crate::rpc::results::JobDocument;
use crate::rpc::{Scope, on_own_thread};

pub(super) use bulk::{change, change_dead};
pub(super) use export::attachment;
pub(super) use related_jobs::{of_actor, of_machine, of_queue};
pub(super) use rows::{progress, tags, what_it_is_at};

use failures::FailureTable;
use filter::{AGES, JobListPage, JobsQuery, SIZES};
use rows::JobRows;

/// A list of more jobs is not live, and its JSON is written on a thread of its own.
const LARGE_LIST: usize = 100;

pub(super) async fn list(visit: Visit, PageQuery(filter): PageQuery<JobsQuery>) -> PageResult {
    show(&visit, filter).await
}

/// Shows the list of dead letters, jobs that used up their attempts.
pub(super) async fn list_dead(visit: Visit, PageQuery(filter): PageQuery<JobsQuery>) -> PageResult {
    show(&visit, filter.of_dead()).await
}

async fn show(visit: &Visit, filter: JobsQuery) -> PageResult {
    let now = visit.snapshot().await?;
    if let Some(id) = named(visit, &filter).await {
        return Ok(Redirect::to(&visit.links().job(id.as_str())).into_response());
    }
    let size = filter.size()?;
    if filter.place.by == "error" {
        return by_error(visit, &now, &filter).await;
    }
    let mut found = filter.find(visit, now.snapshot.at, size).await?;
    relations::add_to(visit, &mut found.jobs).await?;
    let title = title(&filter);
    let main = html! {
        (head(title, &headline(&now, &filter, &found), &actions(visit, &filter)))
        @if !filter.is_of_dead() { (states(&now, &filter, visit.links())) }
        (filters(&visit.site, &now, &filter))
        (rows::chosen_tag(&filter, visit.links()))
        (body(visit, &now, &filter, &found))
    };
    let page = if is_live(&filter) { WebPage::live } else { WebPage::still };
    Ok(visit.page(&now, &page(title, nav(&filter), main)))
}

fn title(filter: &JobsQuery) -> &'static str {
    if filter.is_of_dead() { "Dead letters" } else { "Jobs" }
}

/// Returns the entry of the side bar that a list belongs to.
fn nav(filter: &JobsQuery) -> Nav {
    if filter.is_of_dead() { Nav::DeadLetters } else { Nav::Jobs(filter.state()) }
}

/// Returns the job whose whole id was asked for.
async fn named(visit: &Visit, filter: &JobsQuery) -> Option<JobId> {
    let id: JobId = filter.filter.value("text")?.parse().ok()?;
    let asked = json!({ "id": id.as_str() });
    visit.ask::<JobDocument>("job.get", asked).await.is_ok().then_some(id)
}

/// Returns true if the list costs little to read each second.
fn is_live(filter: &JobsQuery) -> bool {
    filter.is_plain()
        && filter.place.cursor.is_empty()
        && filter.size().is_ok_and(|size| size <= LARGE_LIST)
}

pub(super) async fn live(visit: &Visit, now: &SiteSnapshot, query: &str) -> LiveParts {
    let filter: JobsQuery = filters_of(query);
    if !is_live(&filter) || filter.place.by == "error" {
        return Ok(Vec::new());
    }
    let mut found = filter.find(visit, now.snapshot.at, filter.size()?).await?;
    relations::add_to(visit, &mut found.jobs).await?;
    if found.jobs.is_empty() && !found.complete {
        return Ok(vec![LivePart::headline(&headline(now, &filter, &found))]);
    }
    let (links, at) = (visit.links(), now.snapshot.at);
    let rows = JobRows { links, now: at, picks: picks(visit), died: false }.rows(&found.jobs);
    Ok(vec![LivePart::headline(&headline(now, &filter, &found)), LivePart::rows("job-rows", rows)])
}

/// Returns true if the visitor may tick jobs.
fn picks(visit: &Visit) -> bool {
    visit.may(Scope::Submit) || visit.may(Scope::Operate)
}

fn headline(now: &SiteSnapshot, filter: &JobsQuery, found: &JobListPage) -> Markup {
    let total = match filter.state() {
        None => now.jobs(),
        Some(state) => now.count(state),
    };
    if filter.is_of_dead() {
        return html! {
            @if let Some(number) = now.dead() { (things(number, "job")) } @else { "Jobs" }
            " with all attempts used up. The script is kept until the job is retried, deleted or expired."
        };
    }
    let order = "the latest change first";
    html! {
        @if let (true, Some(total)) = (filter.is_whole(), total) {
            (things(total, "job")) ", " (order)
        } @else {
            (count(found.jobs.len() as u64)) " found among "
            (things(found.searched as u64, "job")) ", " (order)
        }
    }
}

fn actions(visit: &Visit, filter: &JobsQuery) -> Markup {
    let by_error = || filter.address(visit.links(), filter.path(), &[("by", "error")]);
    html! {
        @if filter.is_of_dead() { a.btn href=(by_error()) { "Group by error" } }
        @else if visit.may(Scope::Submit) { a.btn href=(visit.links().to("/submit")) { "Submit a job" } }
    }
}

fn counted(number: Option<u64>) -> String {
    number.map_or_else(|| "–".to_owned(), count)
}

/// Returns the strip of states of a narrow screen, where the side bar is closed.
fn states(now: &SiteSnapshot, filter: &JobsQuery, links: &SiteLinks) -> Markup {
    let of = |state: &str| filter.with("status", state);
    let current = |state| (filter.state() == state).then_some("true");
    html! {
        nav aria-label="State" {
            ul.states {
                li {
                    a href=(of("").address(links, "/jobs", &[])) aria-current=[current(None)] {
                        "All" b { (counted(now.jobs())) }
                    }
                }
                @for state in ShownState::ALL {
                    li {
                        a href=(of(state.asked()).address(links, "/jobs", &[]))
                            aria-current=[current(Some(state))]
                        {
                            (state.shown())
                            b { (counted(now.count(state))) }
                        }
                    }
                }
            }
        }
    }
}

/// More queues are no choice but a text.
const QUEUES_MAX: usize = 50;

fn filters(site: &Site, now: &SiteSnapshot, filter: &JobsQuery) -> Markup {
    let config = site.config();
    let types = or_any("any", config.types.keys().map(ScriptType::as_str));
    let queues: Vec<String> =
        now.snapshot.queues.iter().map(|(state, _)| state.queue.to_string()).collect();
    let value = |name: &str| filter.filter.value(name).unwrap_or_default();
    // The others stand there once they are set.
    let first =
        ["status", "dead", "text", "type", "queue", "caller", "since", "ended_since", "tags"];
    let further = filter.filter.values().filter(|(row, _)| !first.contains(&row.name));
    html! {
        form.filters action=(site.links.to(filter.path())) role="search" aria-label="Filter jobs" {
            @for (name, value) in filter.fields().into_iter().filter(|(name, _)| *name == "status") {
                input type="hidden" name=(name) value=(value);
            }
            (search("text", "Id, name, tag or error", "Id, name, tag or error", value("text")))
            label.btn.only-m { "Filters" input.sr #more type="checkbox"; }
            label.opt { "Type " (filter_choice("script_type", types, value("type"))) }
            label.opt {
                "Queue "
                @if queues.len() > QUEUES_MAX {
                    input name="queue" size="14" placeholder="any" value=(value("queue"));
                } @else {
                    (filter_choice("queue", or_any("any", queues.iter().map(String::as_str)), value("queue")))
                }
            }
            label.opt { "Caller " input name="caller" size="8" placeholder="any" value=(value("caller")); }
            label.opt { "Created " (filter_choice("since", AGES, value("since"))) }
            label.opt { "Ended " (filter_choice("ended_since", AGES, value("ended_since"))) }
            label.opt { "Tag " input name="tags" size="8" placeholder="any" value=(value("tags")); }
            @for (row, value) in further {
                label.opt { (row.label) " " input name=(row.name) size="18" value=(value); }
            }
            button.opt { "Filter" }
        }
    }
}

fn body(visit: &Visit, now: &SiteSnapshot, filter: &JobsQuery, found: &JobListPage) -> Markup {
    let (links, picks) = (visit.links(), picks(visit));
    let table = JobRows { links, now: now.snapshot.at, picks, died: filter.is_of_dead() };
    html! {
        @if found.jobs.is_empty() && !(is_live(filter) && found.complete) {
            (empty(&html! { (none(filter, found)) " " a href=(links.to(filter.path())) { "Clear the filters." } }))
            (foot(links, filter, found))
        } @else {
            form method="post" action=(links.to(filter.path())) {
                (visit.forgery_field())
                @for (name, value) in filter.fields() { input type="hidden" name=(name) value=(value); }
                (table.of(&found.jobs).live("job-rows", &table.rows(&found.jobs)))
                @if picks { (bulk::bar(filter)) }
                (foot(links, filter, found))
            }
        }
    }
}

/// Returns the sentence of a list without a job. Only a complete search knows that there is none.
fn none(filter: &JobsQuery, found: &JobListPage) -> Markup {
    html! {
        @let (further, order) = if filter.place.cursor.is_empty() { ("", "latest") } else { ("further ", "next") };
        @if found.complete { "No " (further) (filter.filter.sentence(filter.noun())) "." }
        @else {
            "Found no " (further) (filter.filter.sentence(filter.noun())) " among the " (order) " "
            (things(found.searched as u64, "job"))
            @if let Some(time) = found.back_to { ", back to " (format!("{time:.0}")) }
            "; older ones are on the next page."
        }
    }
}

fn foot(links: &SiteLinks, filter: &JobsQuery, found: &JobListPage) -> Markup {
    let more = if found.next.is_some() { ", and there may be more" } else { "" };
    let shown = things(found.jobs.len() as u64, "job") + more;
    let place = (filter.place.cursor.as_str(), found.next.as_deref());
    let further = |cursor: &str| filter.address(links, filter.path(), &[("cursor", cursor)]);
    let is_failed = matches!(filter.state(), Some(ShownState::Error));
    let size = filter.size().unwrap_or_default();
    html! {
        (pager(&shown, place, further))
        p.pager {
            span { "Rows" }
            @for rows in SIZES {
                a href=(filter.sized(rows).address(links, filter.path(), &[]))
                    aria-current=[(rows == size).then_some("true")] { (rows) }
            }
        }
        p.pager {
            span { "As a file: all jobs that match as CSV, up to " (count(export::EXPORT_MAX as u64)) " as JSON" }
            @if is_failed { a href=(filter.address(links, "/jobs", &[("by", "error")])) { "Group by error" } }
            a href=(filter.address(links, "/jobs.json", &[])) { "JSON" }
            a href=(filter.address(links, "/jobs.csv", &[])) { "CSV" }
        }
    }
}

async fn by_error(visit: &Visit, now: &SiteSnapshot, filter: &JobsQuery) -> PageResult {
    let (links, at) = (visit.links(), now.snapshot.at);
    filter.search(at)?;
    let failed = if filter.is_of_dead() {
        filter.clone()
    } else {
        filter.with("status", ShownState::Error.asked())
    };
    let (query, search) = failed.search(at)?;
    let sees = |job: &_| visit.sees(job);
    let _place = visit.may_search().await?;
    let found =
        visit.site.client.jobs().error_groups(&query, &search, sees, failures::KINDS_MAX).await?;
    let forgery = visit.may(Scope::Operate).then(|| visit.forgery_field());
    let table = FailureTable { filter: &failed, links, now: at, forgery: forgery.as_ref() };
    let main = html! {
        p.crumb { a href=(failed.address(links, failed.path(), &[])) { (title(filter)) } " / Failures" }
        (head("Failures", &failures::headline(&found), &html! {}))
        (table.markup(&found))
    };
    Ok(visit.page(now, &WebPage::still("Failures", nav(&failed), main)))
}

/// Answers with the list as JSON, which says whether it is all.
pub(super) async fn json(visit: Visit, PageQuery(filter): PageQuery<JobsQuery>) -> PageResult {
    let most = filter.most(export::EXPORT_MAX)?.unwrap_or(export::EXPORT_MAX);
    let now = visit.snapshot().await?.snapshot.at;
    let found = filter.find(&visit, now, most).await?;
    let text = move || {
        json!({ "jobs": found.jobs, "searched": found.searched, "complete": found.complete, "next": found.next })
            .to_string()
    };
    let text = on_own_thread(most > LARGE_LIST, text).await;
    Ok((attachment("application/json", "jobs.json"), text).into_response())
}

pub(super) async fn csv(visit: Visit, PageQuery(filter): PageQuery<JobsQuery>) -> PageResult {
    let body = export::whole_csv(visit, filter).await?;
    Ok((attachment("text/csv; charset=utf-8", "jobs.csv"), body).into_response())
}
