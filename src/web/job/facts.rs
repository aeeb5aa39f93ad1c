//! The facts beside a job: its settings, times and resources, its files, and the jobs before and after it.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::Path;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::doc::JobDoc;
use super::super::jobs::{attachment, tags};
use super::super::links::encoded;
use super::super::parts::{bar, duration, fact_list, short_id, until, was};
use super::super::prelude::*;
use crate::proto::job::{FieldGroup, FieldUnit, JOB_FIELDS, JobField, JobSignature, STDIN};
use crate::proto::pattern::matches_name;
use crate::proto::units::readable_size;
use crate::rpc::RpcError;
use crate::rpc::results::ListedFiles;
use crate::store::FileSide;

/// The maximum number of jobs of a list of prerequisites or dependents that are shown.
pub(super) const RELATED_MAX: usize = 20;

const GROUPS: [FieldGroup; 7] = [
    FieldGroup::Job,
    FieldGroup::Place,
    FieldGroup::State,
    FieldGroup::Settings,
    FieldGroup::Inputs,
    FieldGroup::Times,
    FieldGroup::Results,
];
/// Fields that other parts of the page show.
const ELSEWHERE: [&str; 8] = [
    "id",
    "status",
    "attempt",
    "attempts",
    "progress",
    "progress_text",
    "unfinished_line",
    "env_vars",
];

pub(super) fn facts(job: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    let json = format!("{}.json", links.job(job.id()));
    let of = |group| JOB_FIELDS.iter().filter(move |field: &&JobField| field.group == group);
    let shown = GROUPS.into_iter().flat_map(of);
    let shown = shown.filter(|field| !ELSEWHERE.contains(&field.name));
    let terms = html! {
        @if let Some(queue) = job.queue() {
            dt { "Queue" } dd { a href=(links.page("queues", &queue)) { (queue) } }
        }
        @for field in shown { (fact(field, job, links, now)) }
    };
    fact_list(Some(("JSON", &json)), &terms)
}

/// Returns a field with its label and its unit; nothing if the job does not have it.
fn fact(field: &JobField, job: &JobDoc, links: &SiteLinks, now: Timestamp) -> Markup {
    let text = job.plain(field.name);
    let value = match (field.unit, field.name) {
        _ if text.is_empty() => return html! {},
        (FieldUnit::Time, name) => match job.time(name) {
            // What has happened is never ahead: only the time of the page may be a little older.
            Some(at) if at > now && name == "run_at" => until(at, now),
            Some(at) => was(at, now),
            None => html! { (text) },
        },
        (FieldUnit::Seconds, name) => html! { (seconds(job, name).unwrap_or(text)) },
        (FieldUnit::Bytes, name) => html! { (job.whole(name).map(readable_size).unwrap_or(text)) },
        (_, "tags") => tags(job, links, usize::MAX),
        (_, "priority") => html! { (priority(job)) },
        (_, "signature") => {
            html! { (text.parse().map_or(text, |of: JobSignature| of.told())) }
        }
        (_, "boot_id") => html! { code { (text) } },
        _ => html! {
            @if let Some(address) = address(field.name, &text, links) { a href=(address) { (text) } }
            @else { (text) }
        },
    };
    html! { dt { (field.label) } dd { (value) } }
}

fn address(field: &str, text: &str, links: &SiteLinks) -> Option<String> {
    match field {
        "script_type" => Some(links.with("/jobs", &[("type", text)])),
        "caller_id" => Some(links.with("/jobs", &[("caller", text)])),
        "graph_id" => Some(links.page("graphs", text)),
        "actor" => Some(links.page("actors", text)),
        "fell_back_from" => Some(links.page("queues", text)),
        "held_by" => Some(links.to("/limits")),
        _ => None,
    }
}

fn seconds(job: &JobDoc, field: &str) -> Option<String> {
    let seconds = job.number(field)?;
    Some(Duration::try_from_secs_f64(seconds).map_or_else(|_| seconds.to_string(), duration))
}

fn priority(job: &JobDoc) -> &'static str {
    match job.whole("priority") {
        Some(0) => "0, urgent",
        Some(2) => "2, background",
        _ => "1, normal",
    }
}

/// Returns the environment of the script, without the values of variables with certain names. The API masks all
/// its values for a caller who may only read.
pub(super) fn environment(job: &JobDoc, redact: &[String]) -> Markup {
    let mut variables = job.map("env_vars");
    for (name, value) in &mut variables {
        if matches_name(redact, name) {
            *value = "***";
        }
    }
    html! {
        @if !variables.is_empty() {
            section {
                (bar("Environment", "", None))
                dl.facts {
                    @for (name, value) in variables { dt { code { (name) } } dd { code { (value) } } }
                }
            }
        }
    }
}

/// The id of a job before or after another one, and their bond: `any end`, or nothing.
pub(super) type RelatedId<'a> = (&'a str, &'a str);

/// Returns a list of jobs before or after a job. A job that is not known does not exist any more.
pub(super) fn related(
    title: &str,
    small: &str,
    (ids, all): (&[RelatedId<'_>], u64),
    known: &HashMap<String, JobDoc>,
    links: &SiteLinks,
    now: Timestamp,
) -> Markup {
    let more = all.saturating_sub(RELATED_MAX as u64);
    let one = |(id, note): &RelatedId<'_>| {
        html! {
            @if let Some(job) = known.get(*id) {
                (job.state().shown())
                (job.link(links))
                span.faint {
                    @if !note.is_empty() { (note) } @else if let Some(took) = job.took(now) { (duration(took)) }
                }
            } @else {
                span.st {} span.id title=(id) { (short_id(id)) }
                span.faint { "not kept any more" }
            }
        }
    };
    html! {
        @if !ids.is_empty() {
            (bar(title, small, None))
            ul {
                @for of in ids.iter().take(RELATED_MAX) { li { (one(of)) } }
                @if more > 0 { li.faint { span { (more) " more" } } }
            }
        }
    }
}

/// Returns the list of files, empty for a job without files.
pub(super) async fn files(visit: &Visit, job: &JobDoc) -> PageResult<Markup> {
    let has_some =
        |field| job.get(field).and_then(Value::as_array).is_some_and(|of| !of.is_empty());
    if !has_some("output_files") && !has_some("input_files") {
        return Ok(html! { section #files {} });
    }
    let asked = json!({ "id": job.id() });
    let ListedFiles { files, .. } = visit.ask("job.files", asked).await?;
    let folder = format!("{}/files", visit.links().job(job.id()));
    Ok(html! {
        section #files {
            (bar("Files", "", None))
            ul {
                @for file in &files {
                    li {
                        a href={ (folder) "/" (encoded(&file.name)) } download {
                            @if file.kind == FileSide::Stdin { "standard input" } @else { (file.name) }
                        }
                        " " span.faint {
                            (readable_size(file.size))
                            @if file.kind != FileSide::Output { ", given to it" }
                        }
                    }
                }
            }
        }
    })
}

pub(in crate::web) async fn download(
    visit: Visit,
    Path((id, name)): Path<(String, String)>,
    _: NoQuery,
    headers: HeaderMap,
) -> PageResult {
    let file = visit.file(&id, &name, &headers).await?;
    // Nothing of it is shown in the place of the page.
    let saved = if name == STDIN { "stdin" } else { &name };
    Ok((attachment("application/octet-stream", saved), file).into_response())
}

pub(in crate::web) async fn download_output(
    visit: Visit,
    Path(id): Path<String>,
    _: NoQuery,
    headers: HeaderMap,
) -> PageResult {
    let by_path = |mut error: RpcError| {
        let wait = "wait for its end with GET /jobs/ID?wait=SECONDS";
        error.message = error.message.replace("wait for it with job.wait", wait);
        error
    };
    let output = visit.output(&id, &headers).await.map_err(by_path)?;
    Ok(([(header::CONTENT_DISPOSITION, "attachment")], output).into_response())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-31T13:00:00Z".parse().expect("a time")
    }

    #[test]
    fn facts_have_units_and_are_escaped() {
        let hostile = "<script>alert(1)</script>";
        let job = JobDoc::from(json!({
            "id": hostile, "name": hostile, "script_type": hostile, "caller_id": hostile,
            "context_id": hostile, "actor": hostile, "unique_key": hostile, "boot_id": hostile,
            "held_by": hostile, "timeout": 600, "retries": 3, "memory_peak": 43_000_000,
            "cpu_time": 1.9, "priority": 0, "created_at": "2026-01-31T12:58:00Z",
            "env_vars": { hostile: hostile, "A_KEY": "hidden-value" },
        }));
        let links = SiteLinks::new("/");
        let text = [facts(&job, &links, now()), environment(&job, &["*_KEY".to_owned()])]
            .map(Markup::into_string)
            .concat();
        assert!(!text.contains("<script") && !text.contains("hidden-value"), "{text}");
        for shown in ["10 min", "41.0 MiB", "1.9 s", "0, urgent", "2 min ago</time>"] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
    }

    #[test]
    fn only_the_time_that_a_job_is_due_is_ahead() {
        let soon = "2026-01-31T13:00:02Z";
        let job = JobDoc::from(json!({ "created_at": soon, "started_at": soon, "run_at": soon }));
        let text = facts(&job, &SiteLinks::new("/"), now()).into_string();
        assert_eq!(text.matches(" data-was>0 s ago</time>").count(), 2, "{text}");
        assert_eq!(text.matches(" data-until>in 2 s</time>").count(), 1, "{text}");
    }

    #[test]
    fn every_field_of_the_table_is_a_fact_or_stands_elsewhere_on_the_page() {
        // The lists of jobs and of files, the head and the texts are parts of their own.
        let parts = [FieldGroup::Relations, FieldGroup::Texts];
        for field in JOB_FIELDS {
            let is_elsewhere = ELSEWHERE.contains(&field.name) || parts.contains(&field.group);
            let value = match field.unit {
                FieldUnit::Time => json!("2026-01-31T12:58:00Z"),
                FieldUnit::None => json!("given"),
                _ => json!(7),
            };
            let value = if field.name == "tags" { json!(["given"]) } else { value };
            let job = JobDoc::from(json!({ field.name: value }));
            let text = facts(&job, &SiteLinks::new("/"), now()).into_string();
            assert_eq!(
                text.contains(&format!("<dt>{}</dt>", field.label)),
                !is_elsewhere,
                "{}",
                field.name
            );
        }
    }

    #[test]
    fn job_that_is_gone_is_said_to_be() {
        let gone = [("<b>", ""); RELATED_MAX + 3];
        let (known, links) = (HashMap::new(), SiteLinks::new("/"));
        let text = related("Waits for", "", (&gone, 23), &known, &links, now()).into_string();
        assert!(text.contains("not kept any more") && text.contains("3 more"), "{text}");
        assert!(!text.contains("<b>"), "{text}");
    }

    #[test]
    fn durations_out_of_range_do_not_fail() {
        let job = JobDoc::from(json!({ "timeout": -1, "retention": 1e300 }));
        assert!(seconds(&job, "timeout").is_some() && seconds(&job, "retention").is_some());
    }
}
