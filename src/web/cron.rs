//! `/cron`: periodic jobs, their next and last firings; run, enable, disable.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::doc::JobDoc;
use super::fields::Fields;
use super::layout::{Nav, WebPage, bar, head};
use super::links::{SiteLinks, encoded};
use super::parts::{ShownState, ago, columns, count, empty, id_link, sign, things, until, was};
use super::site::Site;
use super::visitor::Visitor;
use super::web_error::PageError;
use crate::config::format_duration;
use crate::proto::job::JobStatus;
use crate::proto::units::brief;
use crate::rpc::Scope;
use crate::store::FIRINGS_MAX;

/// The periodic jobs, and the mistakes of their files.
struct SeenPeriodicJobs {
    jobs: Vec<JobDoc>,
    problems: Vec<String>,
}

async fn read(site: &Site, visitor: &Visitor) -> Result<SeenPeriodicJobs, PageError> {
    let answer = site.ask(visitor, "cron.list", json!({})).await?;
    let list = |name: &str| answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let problems = list("problems").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    Ok(SeenPeriodicJobs { jobs: list("cron").into_iter().map(JobDoc::from).collect(), problems })
}

fn address(links: &SiteLinks, name: &str) -> String {
    links.to(&format!("/cron/{}", encoded(name)))
}

fn is_enabled(job: &JobDoc) -> bool {
    job.get("enabled").and_then(Value::as_bool).unwrap_or(true)
}

/// Lists periodic jobs.
pub(super) async fn list(
    State(site): State<Site>,
    visitor: Visitor,
) -> Result<Response, PageError> {
    let now = site.snapshot(&visitor).await?;
    let seen = read(&site, &visitor).await?;
    let disabled = seen.jobs.iter().filter(|job| !is_enabled(job)).count() as u64;
    let line = html! {
        (things(seen.jobs.len() as u64, "periodic job")) ", " (count(disabled)) " disabled"
    };
    let runs = visitor.may(Scope::Operate).then(|| visitor.forgery_field());
    let main = html! {
        @let add = links_to_form(&site, &visitor, "");
        (head("Periodic jobs", &line, &add))
        @for problem in &seen.problems { div.note-err { pre { (problem) } } }
        @if seen.jobs.is_empty() {
            (empty(&html! { "No periodic jobs. A file in the folder cron.d declares one." }))
        } @else {
            (table(&seen.jobs, site.links(), now.moment.at, runs.as_ref()))
        }
    };
    Ok(site.page(&visitor, &now, &WebPage::still("Periodic jobs", Nav::PeriodicJobs, main)))
}

/// `forgery` is the field of a form, if the visitor may run periodic jobs.
fn table(jobs: &[JobDoc], links: &SiteLinks, now: Timestamp, forgery: Option<&Markup>) -> Markup {
    html! {
        table.stack.nopick role="table" {
            caption.sr { "Periodic jobs" }
            thead role="rowgroup" {
                tr role="row" {
                    (columns(&[
                        ("", "Name"), ("", "State"), ("", "Schedule"), ("", "Type"), ("num", "Next"),
                        ("", "Last"), ("", "Succeeded"), ("num", "Firings"),
                    ]))
                    @if forgery.is_some() { th role="columnheader" scope="col" { span.sr { "Run" } } }
                }
            }
            tbody role="rowgroup" {
                @for job in jobs {
                    tr role="row" {
                        td.m1 role="cell" { a.id href=(address(links, job.text("name"))) { (job.text("name")) } }
                        td.m4 role="cell" { (state(job)) }
                        td.mono.m5 role="cell" { (job.text("schedule")) " " span.faint { (job.text("time_zone")) } }
                        td.dim.wide role="cell" { (job.text("script_type")) }
                        td.num.mr role="cell" {
                            @if let Some(next) = job.time("next") { (until(next, now)) } @else { span.faint { "–" } }
                        }
                        td.wide role="cell" { (last(job, links, now)) }
                        td.wide role="cell" { (succeeded(job, now)) }
                        td.num.wide role="cell" { (count(job.whole("fired").unwrap_or_default())) }
                        @if let Some(forgery) = forgery { td.mr role="cell" { (run_form(forgery, job, links)) } }
                    }
                }
            }
        }
    }
}

fn state(job: &JobDoc) -> Markup {
    html! {
        @if !is_enabled(job) { (sign("warn", "pause", "disabled")) }
        @else if !job.text("not_in_force").is_empty() { (sign("warn", "warn", job.text("not_in_force"))) }
        @else { span.faint { "enabled" } }
    }
}

/// Returns the button that runs a periodic job now.
fn run_form(forgery: &Markup, job: &JobDoc, links: &SiteLinks) -> Markup {
    let name = job.text("name");
    html! {
        form method="post" action=(address(links, name)) {
            (forgery)
            button name="do" value="run" aria-label={ "Run " (name) " now" } { "Run" }
        }
    }
}

/// Returns how long ago it succeeded last, and whether it is overdue.
fn succeeded(job: &JobDoc, now: Timestamp) -> Markup {
    let is_overdue = job.get("overdue").and_then(Value::as_bool) == Some(true);
    html! {
        @if is_overdue { (sign("warn", "warn", "overdue")) " " }
        @match job.time("succeeded_at") {
            Some(at) => span.faint { (was(at, now)) },
            None => span.faint { "never" },
        }
    }
}

/// Returns the link to the form that adds a periodic job, or changes the one of this name, for those who may.
fn links_to_form(site: &Site, visitor: &Visitor, name: &str) -> Markup {
    let links = site.links();
    html! {
        @if visitor.may(Scope::Admin) {
            @if name.is_empty() { a.btn href=(links.to("/cron-form")) { "Add" } }
            @else { a.btn href=(links.with("/cron-form", &[("name", name)])) { "Edit" } }
        }
    }
}

/// Returns the last firing: its job, with its state, and the time.
fn last(job: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    let last = job.get("last").cloned().map(JobDoc::from).unwrap_or_default();
    let id = last.text("job_id");
    let status = last.text("status").parse::<JobStatus>().ok();
    html! {
        @if let Some(due) = last.time("due") {
            @if let Some(status) = status { (ShownState::of(status, false, false).shown()) " " }
            (id_link(id, &links.job(id))) " " span.faint { (was(due, now)) }
        } @else { span.faint { "never" } }
    }
}

/// Shows a periodic job.
pub(super) async fn show(
    State(site): State<Site>,
    visitor: Visitor,
    Path(name): Path<String>,
) -> Result<Response, PageError> {
    let now = site.snapshot(&visitor).await?;
    let job = JobDoc::from(site.ask(&visitor, "cron.get", json!({ "name": name })).await?);
    let links = site.links();
    let line = html! {
        (state(&job))
        @if let Some(at) = job.time("disabled_at") {
            " since " (ago(at, now.moment.at))
            @if !job.text("disabled_by").is_empty() { " by " (job.text("disabled_by")) }
        }
    };
    let main = html! {
        p.crumb { a href=(links.to("/cron")) { "Periodic jobs" } }
        @let edit = (!job.text("added_by").is_empty()).then(|| links_to_form(&site, &visitor, &name));
        (head(&name, &line, &html! { @if let Some(edit) = edit { (edit) } (actions(&visitor, &job, links)) }))
        (facts(&job, links, now.moment.at))
        section {
            (bar("Next", "", None))
            @if !is_enabled(&job) { p.dim { "It does not fire while it is disabled." } }
            @else if !job.text("not_in_force").is_empty() { p.dim { (job.text("not_in_force")) } }
            ul { @for at in upcoming(&job) { li { (until(at, now.moment.at)) } } }
        }
        section {
            (bar("Script", "", None))
            pre tabindex="0" { (job.text("script")) }
        }
        (history(&job, links, now.moment.at))
    };
    Ok(site.page(&visitor, &now, &WebPage::still(name.as_str(), Nav::PeriodicJobs, main)))
}

/// Returns what is known of a periodic job.
fn facts(job: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    html! {
        section {
            (bar("Facts", "", None))
            dl.facts {
                dt { "Schedule" } dd { code { (job.text("schedule")) } " " (job.text("time_zone")) }
                dt { "Type" } dd { (job.text("script_type")) }
                dt { "File" }
                dd {
                    code { (job.text("file")) }
                    @if !job.text("added_by").is_empty() { " by " (job.text("added_by")) }
                }
                dt { "Catch up" } dd { (job.text("catch_up")) }
                dt { "Overlap" } dd { (job.text("overlap")) }
                dt { "Last" } dd { (last(job, links, now)) }
                @if let Some(spread) = job.get("spread").filter(|spread| spread.is_object()) {
                    dt { "Spread" } dd { (seconds(spread, "own_s")) " of at most " (seconds(spread, "most_s")) }
                }
                @if !job.text("calendar").is_empty() { dt { "Calendar" } dd { (job.text("calendar")) } }
                dt { "Succeeded" } dd { (succeeded(job, now)) }
                @if let Some(at) = job.time("failed_at") {
                    dt { "Failed" }
                    dd {
                        @let id = job.text("failed_id");
                        (id_link(id, &links.job(id))) " " span.faint { (was(at, now)) } " "
                        (job.text("failed_why"))
                    }
                }
                @if let Some(took) = job.get("duration_s").and_then(Value::as_f64) {
                    dt { "Duration" } dd { (brief(Duration::from_secs_f64(took.clamp(0.0, 1e9)))) }
                }
                @if let Some(at) = job.time("overdue_at").filter(|at| *at > now) {
                    dt { "Overdue" } dd { (until(at, now)) }
                }
                dt { "Missed" } dd { (count(job.whole("missed").unwrap_or_default())) }
                dt { "Firings" } dd { (count(job.whole("fired").unwrap_or_default())) }
                dt { "Left out" } dd { (count(job.whole("left_out").unwrap_or_default())) }
            }
        }
    }
}

/// Shows all firings of a periodic job that are kept.
pub(super) async fn whole_history(
    State(site): State<Site>,
    visitor: Visitor,
    Path(name): Path<String>,
) -> Result<Response, PageError> {
    let now = site.snapshot(&visitor).await?;
    let asked = json!({ "name": name, "limit": FIRINGS_MAX });
    let answer = site.ask(&visitor, "cron.history", asked).await?;
    let firings = answer.get("firings").and_then(Value::as_array).cloned().unwrap_or_default();
    let firings: Vec<JobDoc> = firings.into_iter().map(JobDoc::from).collect();
    let links = site.links();
    let main = html! {
        p.crumb {
            a href=(links.to("/cron")) { "Periodic jobs" } " / " a href=(address(links, &name)) { (name) }
        }
        (head("Firings", &html! { (things(firings.len() as u64, "firing")) }, &html! {}))
        @if firings.is_empty() { p.dim { "It has not fired." } }
        @else { (firing_table(&firings, links, now.moment.at)) }
    };
    Ok(site.page(&visitor, &now, &WebPage::still("Firings", Nav::PeriodicJobs, main)))
}

fn seconds(of: &Value, name: &str) -> String {
    format_duration(Duration::from_secs(of.get(name).and_then(Value::as_u64).unwrap_or_default()))
}

/// Returns the latest firings, each with its job or the reason for which it was left out.
fn history(job: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    let firings = job.get("history").and_then(Value::as_array).cloned().unwrap_or_default();
    let firings: Vec<JobDoc> = firings.into_iter().map(JobDoc::from).collect();
    html! {
        section {
            @let all = format!("{}/history", address(links, job.text("name")));
            (bar("Firings", "", Some(("All firings", &all))))
            @if firings.is_empty() { p.dim { "It has not fired." } }
            @else { (firing_table(&firings, links, now)) }
        }
    }
}

fn firing_table(firings: &[JobDoc], links: &SiteLinks, now: Timestamp) -> Markup {
    html! {
        table.stack.nopick role="table" {
            caption.sr { "Latest firings" }
            thead role="rowgroup" {
                tr role="row" { (columns(&[("", "Job"), ("", "State"), ("num", "Due"), ("", "Why")])) }
            }
            tbody role="rowgroup" { @for firing in firings { (firing_row(firing, links, now)) } }
        }
    }
}

fn firing_row(firing: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    let status = firing.text("status").parse::<JobStatus>().ok();
    html! {
        tr role="row" {
            td.m1 role="cell" {
                @let id = firing.text("job_id");
                @if id.is_empty() { span.faint { "–" } } @else { (id_link(id, &links.job(id))) }
            }
            td.m4 role="cell" {
                @match (firing.text("outcome"), status) {
                    ("fired", Some(status)) => (ShownState::of(status, false, false).shown()),
                    (outcome, _) => span.faint { (outcome.replace('_', " ")) },
                }
            }
            td.num.mr role="cell" {
                @if let Some(due) = firing.time("due") { (was(due, now)) }
            }
            td.dim.m5 role="cell" { (firing.text("why")) }
        }
    }
}

/// Returns the next firings.
fn upcoming(job: &JobDoc) -> impl Iterator<Item = Timestamp> {
    let times = job.get("upcoming").and_then(Value::as_array).into_iter().flatten();
    times.filter_map(|at| at.as_str()?.parse().ok())
}

fn actions(visitor: &Visitor, job: &JobDoc, links: &SiteLinks) -> Markup {
    html! {
        @if visitor.may(Scope::Operate) {
            form.actions method="post" action=(address(links, job.text("name"))) {
                (visitor.forgery_field())
                button name="do" value="run" { "Run now" }
                @if is_enabled(job) { button name="do" value="disable" { "Disable" } }
                @else { button name="do" value="enable" { "Enable" } }
            }
        }
    }
}

/// Runs, enables or disables a periodic job.
pub(super) async fn change(
    State(site): State<Site>,
    visitor: Visitor,
    Path(name): Path<String>,
    fields: Fields,
) -> Result<Response, PageError> {
    let verb @ ("run" | "enable" | "disable") = fields.get("do") else {
        return Err(PageError::wrong("The form asks for nothing that a periodic job can do."));
    };
    visitor.needs(Scope::Operate, &format!("{verb} a periodic job"))?;
    let answer = site.call(&visitor, &format!("cron.{verb}"), json!({ "name": name })).await?;
    site.snapshots_are_old();
    let own = format!("/cron/{}", encoded(&name));
    Ok(match verb {
        "run" => {
            let id = answer.get("id").and_then(Value::as_str).unwrap_or_default();
            site.done(&format!("/jobs/{}", encoded(id)), &format!("{name} runs now."))
        }
        "enable" => site.done(&own, &format!("Enabled {name}.")),
        _ => site.done(&own, &format!("Disabled {name}. It does not fire until it is enabled.")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabled_periodic_job_is_marked_and_hostile_texts_are_escaped() {
        let hostile = "<script>alert(1)</script>";
        let job = JobDoc::from(json!({
            "name": hostile, "schedule": hostile, "time_zone": hostile, "enabled": false, "fired": 3,
            "last": { "due": "2026-01-31T12:00:00Z", "job_id": hostile, "status": "error" },
        }));
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        let text = table(&[job], &SiteLinks::new("/"), now, Some(&html! { "token" })).into_string();
        assert!(text.contains("disabled") && text.contains("1 h</time> ago"), "{text}");
        assert!(!text.contains("<script"), "{text}");
    }
}
