//! Retries, stops and deletes one job, tells it the event that it waits for, and corrects its script: `/jobs/ID/correct` runs an
//! ended job again with a corrected one, or changes a job that has not started.

use axum::extract::Path;
use serde_json::{Value, json};

use super::super::doc::JobDoc;
use super::super::parts::{bar, correction_head};
use super::super::prelude::*;
use super::{parsed, read};
use crate::proto::job::{AskedWait, JobId, JobStatus};
use crate::rpc::results::JobChangeResult;

pub(in crate::web) async fn ask_delete(visit: Visit, Path(id): Path<String>) -> PageResult {
    let job = read(&visit, &id).await?;
    let more = job.whole("dependents_more").unwrap_or_default();
    let waiting = match job.list("dependents").len() as u64 + more {
        0 => String::new(),
        1 => " A job that waits for it ends in error.".to_owned(),
        many => format!(" Its dependents that still wait (of {many}) end in error."),
    };
    let title = format!("Delete job {}?", job.label());
    let text = format!("Its script, output and log are gone for good.{waiting}");
    let address = visit.links().job(&id);
    visit.ask_before(Nav::Jobs(None), address, ("delete", "Delete the job"), (title, &text)).await
}

pub(in crate::web) async fn change(
    visit: Visit,
    Path(id): Path<String>,
    fields: Fields,
) -> PageResult {
    let id = parsed(&id)?;
    let params = json!({ "id": id.as_str() });
    let own = page_of("jobs", id.as_str());
    let (said, back) = match fields.get("do") {
        "retry" => {
            visit.call("job.retry", params).await?;
            ("The job runs again.".to_owned(), own)
        }
        "stop" => {
            let told: JobChangeResult = visit.call_for("job.stop", params).await?;
            let is_over = told.result == "stopped";
            let said = if is_over { "Stopped." } else { "Its actor was told to stop it." };
            (said.to_owned(), own)
        }
        "tell" => (tell(&visit, &id, &fields).await?, own),
        "delete" => {
            visit.call("job.delete", params).await?;
            (format!("Deleted job {id}."), "/jobs".to_owned())
        }
        _ => return Err(PageError::wrong("The form asks for nothing that a job can do.")),
    };
    Ok(visit.done(&back, &said))
}

/// Returns the wait of a job, with the form if it is for an event and the visitor may change the job.
pub(super) fn wait(visit: &Visit, job: &JobDoc) -> Markup {
    let wait = AskedWait::of_field(job.text("wait"));
    let Some(wait) = wait.filter(|_| job.status() == JobStatus::Scheduled) else {
        return html! {};
    };
    html! {
        section #wait {
            (bar("It waits", "", None))
            p {
                "For " (wait.words()) ", until " (job.text("run_at"))
                @if !wait.who.is_empty() { "; told by " (wait.who.join(", ")) }
                "."
            }
            @if let Some(event) = wait.event.as_ref().filter(|_| visit.may_change(job.text("caller_id"))) {
                form.form method="post" action=(visit.links().job(job.id())) {
                    (visit.forgery_field())
                    input type="hidden" name="event" value=(event);
                    div.f-l {
                        label for="f-data" { "Text for the script" }
                        input #f-data name="data" maxlength="2000";
                    }
                    div.actions { button.main name="do" value="tell" { "Tell " (event) } }
                }
            }
        }
    }
}

async fn tell(visit: &Visit, id: &JobId, fields: &Fields) -> PageResult<String> {
    let (event, text) = (fields.get("event"), fields.get("data"));
    let data = if text.is_empty() { Value::Null } else { json!(text) };
    let params = json!({ "id": id.as_str(), "event": event, "data": data });
    let told: JobChangeResult = visit.call_for("job.tell", params).await?;
    let was_awaited = told.result == "told";
    Ok(if was_awaited { "Told. It runs again." } else { "Kept for its next wait." }.to_owned())
}

/// Returns the link to the form, for a job that can be corrected.
pub(super) fn correction_link(job: &JobDoc, links: &SiteLinks) -> Markup {
    let verb = match job.status() {
        JobStatus::Started => return html! {},
        status if status.is_terminal() => "Correct and run again",
        _ => "Correct",
    };
    let place = links.job(job.id()) + "/correct";
    html! { p { a.btn #correct href=(place) { (verb) } } }
}

pub(in crate::web) async fn ask_correction(visit: Visit, Path(id): Path<String>) -> PageResult {
    let now = visit.snapshot().await?;
    let job = read(&visit, &id).await?;
    let has_ended = job.status().is_terminal();
    let links = visit.links();
    let place = links.job(job.id()) + "/correct";
    let line = "The script that its last attempt ran stays in the record of that attempt.";
    let main = html! {
        (correction_head(&html! { a href=(links.to("/jobs")) { "Jobs" } }, (job.label(), &links.job(&id)), line))
        form.form method="post" action=(place) {
            (visit.forgery_field())
            div.f-l {
                label for="f-script" { "Script" }
                textarea #f-script name="script" rows="20" spellcheck="false" autocapitalize="off" required {
                    "\n" (job.text("script"))
                }
            }
            div.row.flow {
                div.f-l {
                    label for="f-timeout" { "Timeout in seconds" }
                    input #f-timeout name="timeout" inputmode="decimal" value=(job.text("timeout"));
                }
            }
            @if has_ended {
                label { input type="checkbox" name="dependents" value="1"; " also the dependents that failed because it did" }
            }
            div.actions {
                button.main { @if has_ended { "Run again" } @else { "Change" } }
                a.btn href=(links.job(&id)) { "Keep it as it is" }
            }
        }
    };
    let title = format!("Correct {}", job.label());
    Ok(visit.page(&now, &WebPage::still(title, Nav::Jobs(None), main)))
}

pub(in crate::web) async fn correct(
    visit: Visit,
    Path(id): Path<String>,
    fields: Fields,
) -> PageResult {
    let job = read(&visit, &id).await?;
    let id = job.text("id");
    // A browser sends each end of a line as two characters.
    let mut changes = json!({ "script": fields.get("script").replace("\r\n", "\n") });
    let timeout = fields.get("timeout").trim();
    if timeout != job.text("timeout") {
        changes["timeout"] = if timeout.is_empty() { json!(null) } else { json!(timeout) };
    }
    let said = if job.status().is_terminal() {
        let dependents = !fields.get("dependents").is_empty();
        let params = json!({ "id": id, "changes": changes, "with_dependents": dependents });
        visit.call("job.retry", params).await?;
        "The corrected job runs again."
    } else {
        visit.call("job.edit", json!({ "id": id, "changes": changes })).await?;
        "The job is changed."
    };
    Ok(visit.done(&page_of("jobs", id), said))
}
