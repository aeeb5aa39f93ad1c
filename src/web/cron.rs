//! `/cron`: periodic jobs, their next and last firings; run, enable, disable, delete.

use std::time::Duration;

use axum::extract::Path;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::parts::{
    PageTable, ShownState, ago, bar, count, fact_list, head, id_link, page_link, sign, things,
    time_of, until, was_at,
};
use super::prelude::*;
use crate::client::{FiringDocument, PeriodicJobDocument, PeriodicJobHistoryDocument};
use crate::config::format_duration;
use crate::proto::cron::CronGraph;
use crate::proto::graph_plan::PlannedJob;
use crate::proto::units::brief;
use crate::rpc::Scope;
use crate::rpc::results::{FiringList, Id, PeriodicJobList};
use crate::store::FIRINGS_MAX;

pub(super) async fn list(visit: Visit, _: NoQuery) -> PageResult {
    let now = visit.snapshot().await?;
    let PeriodicJobList { cron: jobs, problems } = visit.ask("cron.list", json!({})).await?;
    let disabled = jobs.iter().filter(|job| !job.enabled).count() as u64;
    let line = html! {
        (things(jobs.len() as u64, "periodic job")) ", " (count(disabled)) " disabled"
    };
    let runs = visit.may(Scope::Operate).then(|| visit.forgery_field());
    let main = html! {
        (head("Periodic jobs", &line, &links_to_form(&visit, "")))
        @for problem in &problems { div.note-err { pre { (problem) } } }
        (table(&jobs, visit.links(), now.snapshot.at, runs.as_ref()))
    };
    Ok(visit.page(&now, &WebPage::still("Periodic jobs", Nav::PeriodicJobs, main)))
}

/// `forgery` is the field of a form, if the visitor may run periodic jobs.
fn table(
    jobs: &[PeriodicJobDocument],
    links: &SiteLinks,
    now: Timestamp,
    forgery: Option<&Markup>,
) -> Markup {
    let none = html! { "No periodic jobs. A file in the folder cron.d declares one." };
    PageTable::of(jobs, "nopick", "Periodic jobs")
        .column("Name", "m1", |job| page_link("cron", &job.name, links))
        .column("State", "m4", state)
        .column("Schedule", "mono m5", |job| html! { (job.schedule) " " span.faint { (job.time_zone) } })
        .column("Type", "dim wide", |job| html! { (job.type_words()) })
        .column("Next", "num mr", |job| html! {
            @if let Some(next) = job.next.as_deref().and_then(time_of) { (until(next, now)) } @else { span.faint { "–" } }
        })
        .column("Last", "wide", |job| last(job, links, now))
        .column("Succeeded", "wide", |job| succeeded(job, now))
        .column("Firings", "num wide", |job| html! { (count(job.fired)) })
        .column_if(forgery.is_some(), "Run", "sr mr", |job| html! {
            form method="post" action=(links.page("cron", &job.name)) {
                (forgery.unwrap_or(&html! {}))
                button name="do" value="run" aria-label={ "Run " (job.name) " now" } { "Run" }
            }
        })
        .or(&none)
}

fn state(job: &PeriodicJobDocument) -> Markup {
    html! {
        @if !job.enabled { (sign("warn", "pause", "disabled")) }
        @else if let Some(why) = &job.not_in_force { (sign("warn", "warn", why)) }
        @else { span.faint { "enabled" } }
    }
}

fn succeeded(job: &PeriodicJobDocument, now: Timestamp) -> Markup {
    html! {
        @if job.overdue { (sign("warn", "warn", "overdue")) " " }
        @match &job.succeeded_at {
            Some(at) => span.faint { (was_at(at, now)) },
            None => span.faint { "never" },
        }
    }
}

/// Returns the link to the form that adds a periodic job, or changes the one of this name, for those who may.
fn links_to_form(visit: &Visit, name: &str) -> Markup {
    let links = visit.links();
    html! {
        @if visit.may(Scope::Admin) {
            @if name.is_empty() { a.btn href=(links.to("/cron-form")) { "Add" } }
            @else { a.btn href=(links.with("/cron-form", &[("name", name)])) { "Edit" } }
        }
    }
}

/// Returns the links to the form that changes a periodic job in Redis, and to the question before it is deleted, for
/// those who may.
fn links_of_added(visit: &Visit, name: &str, is_graph: bool) -> Markup {
    html! {
        @if !is_graph { (links_to_form(visit, name)) }
        @if visit.may(Scope::Admin) {
            " " a.btn href={ (visit.links().page("cron", name)) "/delete" } { "Delete" }
        }
    }
}

pub(super) async fn ask_delete(visit: Visit, Path(name): Path<String>) -> PageResult {
    visit.needs(Scope::Admin, "delete a periodic job")?;
    let whole: PeriodicJobHistoryDocument = visit.ask("cron.get", json!({ "name": name })).await?;
    let job = &whole.job;
    if job.added_by.is_none() {
        let file = &job.file;
        let text =
            format!("{name} is declared in {file}. Take it out of that file, or disable it.");
        return Err(PageError::wrong(text));
    }
    let title = format!("Delete the periodic job {name}?");
    let text = "It does not fire any more, and its history is gone for good. Its jobs stay.";
    let address = visit.links().page("cron", &name);
    visit.ask_before(Nav::PeriodicJobs, address, ("delete", "Delete it"), (title, text)).await
}

fn last(job: &PeriodicJobDocument, links: &SiteLinks, now: Timestamp) -> Markup {
    html! {
        @if let Some(last) = &job.last {
            @if let Some(state) = ShownState::of_status(last.status.as_deref()) { (state.shown()) " " }
            (firing_link(last.job_id.as_deref(), last.batch_id.as_deref(), links)) " " span.faint { (was_at(&last.due, now)) }
        } @else { span.faint { "never" } }
    }
}

pub(super) async fn show(visit: Visit, Path(name): Path<String>, _: NoQuery) -> PageResult {
    let now = visit.snapshot().await?;
    let asked = json!({ "name": name });
    let whole: PeriodicJobHistoryDocument = visit.ask("cron.get", asked).await?;
    let (job, links) = (&whole.job, visit.links());
    let line = html! {
        (state(job))
        @if let Some(at) = job.disabled_at.as_deref().and_then(time_of) {
            " since " (ago(at, now.snapshot.at))
            @if let Some(who) = job.disabled_by.as_ref().filter(|who| !who.is_empty()) { " by " (who) }
        }
    };
    let main = html! {
        p.crumb { a href=(links.to("/cron")) { "Periodic jobs" } }
        @let edit = job.added_by.as_ref().map(|_| links_of_added(&visit, &name, whole.graph.is_some()));
        (head(&name, &line, &html! { @if let Some(edit) = edit { (edit) } (actions(&visit, job)) }))
        (facts(job, links, now.snapshot.at))
        section {
            (bar("Next", "", None))
            @if !job.enabled { p.dim { "It does not fire while it is disabled." } }
            @else if let Some(why) = &job.not_in_force { p.dim { (why) } }
            ul {
                @for at in whole.upcoming.iter().filter_map(|at| time_of(at)) { li { (until(at, now.snapshot.at)) } }
            }
        }
        @match &whole.graph {
            Some(plan) => (graph_section(plan)),
            None => section {
                (bar("Script", "", None))
                pre tabindex="0" { (whole.script) }
            },
        }
        section {
            @let all = format!("{}/history", links.page("cron", &job.name));
            (bar("Firings", "", Some(("All firings", &all))))
            (firing_table(&whole.history, links, now.snapshot.at))
        }
    };
    Ok(visit.page(&now, &WebPage::still(name.as_str(), Nav::PeriodicJobs, main)))
}

fn graph_section(plan: &CronGraph) -> Markup {
    let text = |job: &Map<String, Value>, field: &str| job.get(field)?.as_str().map(str::to_owned);
    let table = PageTable::of(&plan.jobs, "nopick", "Jobs of the graph")
        .column("Job", "m1", |of| html! { (of.name) })
        .column("Type", "dim m4", |PlannedJob { job, .. }| {
            html! {
                (text(job, "script_type").or(text(job, "uses")).unwrap_or_default())
            }
        })
        .column("After", "dim m5", |of| {
            html! {
                (of.after.iter().chain(&of.after_any).cloned().collect::<Vec<_>>().join(", "))
            }
        });
    html! {
        section {
            (bar("Graph", "", None))
            (table.markup())
        }
    }
}

fn facts(job: &PeriodicJobDocument, links: &SiteLinks, now: Timestamp) -> Markup {
    let terms = html! {
        dt { "Schedule" } dd { code { (job.schedule) } " " (job.time_zone) }
        dt { "Type" } dd { (job.type_words()) }
        dt { "File" }
        dd {
            code { (job.file) }
            @if let Some(who) = &job.added_by { " by " (who) }
        }
        dt { "Catch up" } dd { (job.catch_up) }
        dt { "Overlap" } dd { (job.overlap) }
        dt { "Last" } dd { (last(job, links, now)) }
        @if let Some(spread) = &job.spread {
            dt { "Spread" }
            dd {
                @if let Some(own) = spread.own_s { (seconds(own)) " of at most " }
                @else { "by machine, at most " }
                (seconds(spread.most_s))
            }
        }
        @if let Some(every) = job.every {
            dt { "Every" } dd { (every.as_str()) ", " (job.window.to_string()) }
        }
        @if let Some(calendar) = &job.calendar { dt { "Calendar" } dd { (calendar) } }
        dt { "Succeeded" } dd { (succeeded(job, now)) }
        @if let Some(at) = &job.failed_at {
            dt { "Failed" }
            dd {
                @if let Some(id) = &job.failed_id { (id_link(id, links)) } @else { "not submitted" }
                " " span.faint { (was_at(at, now)) } " "
                @if let Some(text) = &job.failed_why { (text) }
            }
        }
        @if let Some(took) = job.duration_s {
            dt { "Duration" } dd { (brief(Duration::from_secs_f64(took.clamp(0.0, 1e9)))) }
        }
        @if let Some(at) = job.overdue_at.as_deref().and_then(time_of).filter(|at| *at > now) {
            dt { "Overdue" } dd { (until(at, now)) }
        }
        dt { "Missed" } dd { (count(job.missed)) }
        dt { "Firings" } dd { (count(job.fired)) }
        dt { "Left out" } dd { (count(job.left_out)) }
    };
    fact_list(None, &terms)
}

pub(super) async fn all_firings(visit: Visit, Path(name): Path<String>, _: NoQuery) -> PageResult {
    let now = visit.snapshot().await?;
    let asked = json!({ "name": name, "limit": FIRINGS_MAX });
    let FiringList { firings } = visit.ask("cron.history", asked).await?;
    let links = visit.links();
    let main = html! {
        p.crumb {
            a href=(links.to("/cron")) { "Periodic jobs" } " / " a href=(links.page("cron", &name)) { (name) }
        }
        (head("Firings", &html! { (things(firings.len() as u64, "firing")) }, &html! {}))
        (firing_table(&firings, links, now.snapshot.at))
    };
    Ok(visit.page(&now, &WebPage::still("Firings", Nav::PeriodicJobs, main)))
}

fn seconds(seconds: u64) -> String {
    format_duration(Duration::from_secs(seconds))
}

fn firing_table(firings: &[FiringDocument], links: &SiteLinks, now: Timestamp) -> Markup {
    let table = PageTable::of(firings, "nopick", "Latest firings")
        .column("Job", "m1", |of| firing_link(of.job_id.as_deref(), of.batch_id.as_deref(), links))
        .column("State", "m4", |of| {
            match (of.outcome.as_str(), ShownState::of_status(of.status.as_deref())) {
                ("fired", Some(state)) => state.shown(),
                (outcome, _) => html! { span.faint { (outcome.replace('_', " ")) } },
            }
        })
        .column("Due", "num mr", |of| was_at(&of.due, now))
        .column("Why", "dim m5", |of| html! { @if let Some(text) = &of.why { (text) } });
    html! {
        @if firings.is_empty() { p.dim { "It has not fired." } }
        @else { (table.markup()) }
    }
}

fn firing_link(job: Option<&str>, batch: Option<&str>, links: &SiteLinks) -> Markup {
    html! {
        @match (job, batch) {
            (Some(id), _) => (id_link(id, links)),
            (_, Some(id)) => a.mono href=(links.to(&format!("/graphs/{id}"))) { (id) },
            _ => span.faint { "–" },
        }
    }
}

fn actions(visit: &Visit, job: &PeriodicJobDocument) -> Markup {
    html! {
        @if visit.may(Scope::Operate) {
            form.actions method="post" action=(visit.links().page("cron", &job.name)) {
                (visit.forgery_field())
                button name="do" value="run" { "Run now" }
                @if job.enabled { button name="do" value="disable" { "Disable" } }
                @else { button name="do" value="enable" { "Enable" } }
            }
        }
    }
}

pub(super) async fn change(visit: Visit, Path(name): Path<String>, fields: Fields) -> PageResult {
    let verb @ ("run" | "enable" | "disable" | "delete") = fields.get("do") else {
        return Err(PageError::wrong("The form asks for nothing that a periodic job can do."));
    };
    let scope = if verb == "delete" { Scope::Admin } else { Scope::Operate };
    visit.needs(scope, &format!("{verb} a periodic job"))?;
    let (method, params) = (format!("cron.{verb}"), json!({ "name": name }));
    if verb == "run" {
        let of: PeriodicJobHistoryDocument = visit.ask("cron.get", params.clone()).await?;
        let is_one = of.graph.is_none() && of.job.every.is_none();
        let Id { id } = visit.call_for(&method, params).await?;
        let list = if is_one { "jobs" } else { "graphs" };
        return Ok(visit.done(&page_of(list, &id), &format!("{name} runs now.")));
    }
    visit.call(&method, params).await?;
    if verb == "delete" {
        return Ok(visit.done("/cron", &format!("Deleted {name}. Its jobs stay.")));
    }
    let said = match verb {
        "disable" => format!("Disabled {name}. It does not fire until it is enabled."),
        _ => format!("Enabled {name}."),
    };
    Ok(visit.done(&page_of("cron", &name), &said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::LastFiringDocument;

    #[test]
    fn disabled_periodic_job_is_marked_and_hostile_texts_are_escaped() {
        let hostile = "<script>alert(1)</script>";
        let last = LastFiringDocument {
            due: "2026-01-31T12:00:00Z".to_owned(),
            job_id: Some(hostile.to_owned()),
            batch_id: None,
            status: Some("error".to_owned()),
        };
        let job = PeriodicJobDocument {
            name: hostile.to_owned(),
            schedule: hostile.to_owned(),
            time_zone: hostile.to_owned(),
            last: Some(last),
            ..PeriodicJobDocument::default()
        };
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        let text = table(&[job], &SiteLinks::new("/"), now, Some(&html! { "token" })).into_string();
        assert!(text.contains("disabled") && text.contains("1 h ago</time>"), "{text}");
        assert!(!text.contains("<script"), "{text}");
    }
}
