//! `/jobs`: the list with its filters, files of it, and failures by their errors.

mod beside;
mod bulk;
mod export;
mod failures;
mod filter;
mod rows;
mod search;

use axum::extract::{Query, RawQuery, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::json;

use super::bonds;
use super::layout::{Nav, WebPage, head};
use super::links::SiteLinks;
use super::live::{LivePart, filters_of};
use super::parts::{ShownState, count, empty, pager, things};
use super::site::Site;
use super::snapshot::SiteSnapshot;
use super::visitor::Visitor;
use super::web_error::PageError;
use crate::proto::job::JobId;
use crate::rpc::Scope;
use crate::rpc::results::JobDocument;

pub(super) use beside::{of_actor, of_queue};
pub(super) use bulk::{change, change_dead};
pub(super) use export::attachment;
pub(super) use rows::{tags, what_it_is_at};

use filter::{AGES, JobFilter};
use rows::RowLook;
use search::JobListPage;

/// Shows the list.
pub(super) async fn list(
    State(site): State<Site>,
    visitor: Visitor,
    Query(filter): Query<JobFilter>,
) -> Result<Response, PageError> {
    show(&site, &visitor, filter).await
}

/// Shows the list of dead letters, jobs that used up their attempts.
pub(super) async fn list_dead(
    State(site): State<Site>,
    visitor: Visitor,
    Query(filter): Query<JobFilter>,
) -> Result<Response, PageError> {
    show(&site, &visitor, filter.of_dead()).await
}

async fn show(site: &Site, visitor: &Visitor, filter: JobFilter) -> Result<Response, PageError> {
    let now = site.snapshot(visitor).await?;
    if let Some(id) = named(site, visitor, &filter).await {
        return Ok(Redirect::to(&site.links().job(id.as_str())).into_response());
    }
    let size = filter.size()?;
    if filter.by == "error" {
        return by_error(site, visitor, &now, &filter).await;
    }
    let mut found = search::find(site, visitor, &filter, now.moment.at, size).await?;
    bonds::tell(site, visitor, &mut found.jobs).await?;
    let title = title(&filter);
    let main = html! {
        (head(title, &headline(&now, &filter, &found), &actions(site, visitor, &filter)))
        @if !filter.is_of_dead() { (states(&now, &filter, site.links())) }
        (filters(site, &now, &filter))
        (rows::chosen_tag(&filter, site.links()))
        (body(site, visitor, &now, &filter, &found))
    };
    let (nav, page) = (nav(&filter), if is_live(&filter) { WebPage::live } else { WebPage::still });
    let page = page(title, nav, main);
    Ok(site.page(visitor, &now, &page))
}

fn title(filter: &JobFilter) -> &'static str {
    if filter.is_of_dead() { "Dead letters" } else { "Jobs" }
}

/// Returns the entry of the side bar that a list belongs to.
fn nav(filter: &JobFilter) -> Nav {
    if filter.is_of_dead() { Nav::DeadLetters } else { Nav::Jobs(filter.state()) }
}

/// Returns the job whose whole id was asked for.
async fn named(site: &Site, visitor: &Visitor, filter: &JobFilter) -> Option<JobId> {
    let id: JobId = filter.q.trim().parse().ok()?;
    let asked = json!({ "id": id.as_str() });
    site.ask::<JobDocument>(visitor, "job.get", asked).await.is_ok().then_some(id)
}

/// Returns true if the list costs little to read each second.
fn is_live(filter: &JobFilter) -> bool {
    filter.is_plain() && filter.cursor.is_empty()
}

/// Returns the live parts of the list.
pub(super) async fn live(
    site: &Site,
    visitor: &Visitor,
    now: &SiteSnapshot,
    query: &str,
) -> Result<Vec<LivePart>, PageError> {
    let filter: JobFilter = filters_of(query);
    if !is_live(&filter) || filter.by == "error" {
        return Ok(Vec::new());
    }
    let mut found = search::find(site, visitor, &filter, now.moment.at, filter.size()?).await?;
    bonds::tell(site, visitor, &mut found.jobs).await?;
    let picks = visitor.may(Scope::Submit) || visitor.may(Scope::Operate);
    let rows = rows::rows(&found.jobs, site.links(), now.moment.at, RowLook { picks, died: false });
    Ok(vec![
        LivePart::whole("headline", html! { p #headline { (headline(now, &filter, &found)) } }),
        LivePart::rows("job-rows", rows),
    ])
}

fn headline(now: &SiteSnapshot, filter: &JobFilter, found: &JobListPage) -> Markup {
    let total = match filter.state() {
        None => now.jobs(),
        Some(state) => now.count(state),
    };
    if filter.is_of_dead() {
        return html! {
            @if let Some(number) = now.dead() { (things(number, "job")) } @else { "Jobs" }
            " used up their attempts. Each keeps its script until it is retried, deleted or expired."
        };
    }
    let is_whole = filter.is_plain() && filter.script_type.trim().is_empty();
    let order = match filter.state() {
        None => "by state, the newest of each first",
        Some(_) => "the newest first",
    };
    html! {
        @if let (true, Some(total)) = (is_whole, total) {
            (things(total, "job")) ", " (order)
        } @else {
            (count(found.jobs.len() as u64)) " found among "
            (things(found.looked_at as u64, "job")) ", " (order)
        }
    }
}

fn actions(site: &Site, visitor: &Visitor, filter: &JobFilter) -> Markup {
    let by_error = || filter.address(site.links(), filter.path(), &[("by", "error")]);
    html! {
        @if filter.is_of_dead() { a.btn href=(by_error()) { "Group by error" } }
        @else if visitor.may(Scope::Submit) { a.btn href=(site.links().to("/submit")) { "Submit a job" } }
    }
}

fn counted(number: Option<u64>) -> String {
    number.map_or_else(|| "–".to_owned(), count)
}

/// Returns the strip of states of a narrow screen, where the side bar is closed.
fn states(now: &SiteSnapshot, filter: &JobFilter, links: &SiteLinks) -> Markup {
    let of = |state: &str| JobFilter { state: state.to_owned(), ..filter.clone() };
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
                        a href=(of(state.class()).address(links, "/jobs", &[]))
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

fn filters(site: &Site, now: &SiteSnapshot, filter: &JobFilter) -> Markup {
    let types: Vec<String> = site.config().types.keys().map(ToString::to_string).collect();
    let queues: Vec<String> =
        now.moment.queues.iter().map(|(state, _)| state.queue.to_string()).collect();
    let ages: Vec<(String, String)> =
        AGES.iter().map(|(value, text)| ((*value).to_owned(), (*text).to_owned())).collect();
    let any = |names: Vec<String>| -> Vec<(String, String)> {
        let first = [(String::new(), "any".to_owned())];
        first.into_iter().chain(names.into_iter().map(|name| (name.clone(), name))).collect()
    };
    html! {
        form.filters action=(site.links().to(filter.path())) role="search" aria-label="Filter jobs" {
            @if !filter.is_of_dead() { input type="hidden" name="state" value=(filter.state); }
            label.grow {
                span.sr { "Id, name, tag or error" }
                input.w type="search" name="q" value=(filter.q)
                    placeholder="Id, name, tag or error";
            }
            label.btn.only-m { "Filters" input.sr #more type="checkbox"; }
            label.opt { "Type " (choice("type", &filter.script_type, any(types))) }
            label.opt {
                "Queue "
                @if queues.len() > QUEUES_MAX {
                    input name="queue" size="14" placeholder="any" value=(filter.queue);
                } @else {
                    (choice("queue", &filter.queue, any(queues)))
                }
            }
            label.opt { "Caller " input name="caller" size="8" placeholder="any" value=(filter.caller); }
            label.opt { "Created " (choice("since", &filter.since, ages.clone())) }
            label.opt { "Ended " (choice("ended_since", &filter.ended_since, ages)) }
            label.opt { "Tag " input name="tag" size="8" placeholder="any" value=(filter.tag); }
            @if !filter.until.is_empty() {
                label.opt { "until " input name="until" size="18" value=(filter.until); }
            }
            @if !filter.ended_until.is_empty() {
                label.opt { "ended until " input name="ended_until" size="18" value=(filter.ended_until); }
            }
            @for (word, name, value) in [("Actor ", "actor", &filter.actor), ("Machine ", "host", &filter.host), ("Child of ", "parent", &filter.parent)] {
                @if !value.is_empty() { label.opt { (word) input name=(name) size="18" value=(value); } }
            }
            @if !filter.kind.is_empty() {
                label.opt { "Error is " input name="kind" size="24" value=(filter.kind); }
            }
            button.opt { "Filter" }
        }
    }
}

/// Returns a choice; a value that the options lack is added to them.
fn choice(name: &str, value: &str, mut options: Vec<(String, String)>) -> Markup {
    if !options.iter().any(|(option, _)| option == value) {
        options.push((value.to_owned(), value.to_owned()));
    }
    html! {
        select name=(name) data-submit {
            @for (option, text) in &options {
                option value=(option) selected[option == value] { (text) }
            }
        }
    }
}

fn body(
    site: &Site,
    visitor: &Visitor,
    now: &SiteSnapshot,
    filter: &JobFilter,
    found: &JobListPage,
) -> Markup {
    let (links, picks) = (site.links(), visitor.may(Scope::Submit) || visitor.may(Scope::Operate));
    let look = RowLook { picks, died: filter.is_of_dead() };
    html! {
        @if found.jobs.is_empty() && !is_live(filter) {
            (empty(&html! { "No " (filter.noun()) "s match. " a href=(links.to(filter.path())) { "Clear the filters." } }))
            (foot(links, filter, found))
        } @else {
            form method="post" action=(links.to(filter.path())) {
                (visitor.forgery_field())
                @for (name, value) in filter.fields() { input type="hidden" name=(name) value=(value); }
                (rows::table(&found.jobs, links, now.moment.at, look, Some("job-rows")))
                @if picks { (bulk::bar(filter)) }
                (foot(links, filter, found))
            }
        }
    }
}

fn foot(links: &SiteLinks, filter: &JobFilter, found: &JobListPage) -> Markup {
    let shown = format!(
        "{}{}",
        things(found.jobs.len() as u64, "job"),
        if found.next.is_some() { ", and there may be more" } else { "" }
    );
    let first = filter.address(links, filter.path(), &[]);
    let first = (!filter.cursor.is_empty()).then_some(first.as_str());
    let next =
        found.next.as_ref().map(|next| filter.address(links, filter.path(), &[("cursor", next)]));
    let is_failed = matches!(filter.state(), Some(ShownState::Error));
    html! {
        (pager(&shown, first, next.as_deref()))
        p.pager {
            span { "As a file: up to " (count(export::EXPORT_MAX as u64)) " jobs that match" }
            @if is_failed { a href=(filter.address(links, "/jobs", &[("by", "error")])) { "Group by error" } }
            a href=(filter.address(links, "/jobs.json", &[])) { "JSON" }
            a href=(filter.address(links, "/jobs.csv", &[])) { "CSV" }
        }
    }
}

async fn by_error(
    site: &Site,
    visitor: &Visitor,
    now: &SiteSnapshot,
    filter: &JobFilter,
) -> Result<Response, PageError> {
    filter.search(now.moment.at)?;
    let failed = if filter.is_of_dead() {
        filter.clone()
    } else {
        JobFilter { state: ShownState::Error.class().to_owned(), ..filter.clone() }
    };
    let (query, search) = failed.search(now.moment.at)?;
    let sees = |job: &_| visitor.sees(job);
    let found = site.client().error_groups(&query, &search, sees, failures::KINDS_MAX).await?;
    let retries = visitor.may(Scope::Operate).then(|| visitor.forgery_field());
    let main = html! {
        p.crumb { a href=(failed.address(site.links(), failed.path(), &[])) { (title(filter)) } " / Failures" }
        (head("Failures", &failures::headline(&found), &html! {}))
        (failures::table(&found, &failed, site.links(), now.moment.at, retries.as_ref()))
    };
    Ok(site.page(visitor, now, &WebPage::still("Failures", nav(&failed), main)))
}

/// Answers with the list as JSON.
pub(super) async fn json(
    State(site): State<Site>,
    visitor: Visitor,
    RawQuery(names): RawQuery,
    Query(filter): Query<JobFilter>,
) -> Result<Response, PageError> {
    JobFilter::check_names(names.as_deref())?;
    let most = filter.most(export::EXPORT_MAX)?.unwrap_or(export::EXPORT_MAX);
    let found = search::all(&site, &visitor, &filter, most).await?;
    let list = json!({ "jobs": found.jobs, "looked_at": found.looked_at, "next": found.next });
    Ok((attachment("application/json", "jobs.json"), list.to_string()).into_response())
}

/// Answers with the list as CSV.
pub(super) async fn csv(
    State(site): State<Site>,
    visitor: Visitor,
    RawQuery(names): RawQuery,
    Query(filter): Query<JobFilter>,
) -> Result<Response, PageError> {
    JobFilter::check_names(names.as_deref())?;
    let most = filter.most(export::EXPORT_MAX)?.unwrap_or(export::EXPORT_MAX);
    let found = search::all(&site, &visitor, &filter, most).await?;
    let text = export::csv(&found.jobs);
    Ok((attachment("text/csv; charset=utf-8", "jobs.csv"), text).into_response())
}
