//! `/jobs/ID/correct`: the script of a job in a form, to run an ended job again with a corrected one, or to change a job
//! that has not started.

use axum::extract::Path;
use maud::{Markup, html};
use serde_json::json;

use super::super::doc::JobDoc;
use super::super::fields::Fields;
use super::super::layout::{Nav, WebPage};
use super::super::links::{SiteLinks, page_of};
use super::super::visit::Visit;
use super::super::web_error::PageResult;
use super::read;
use crate::proto::job::JobStatus;

/// Returns the link to the form, for a job that can be corrected.
pub(super) fn link(job: &JobDoc, links: &SiteLinks) -> Markup {
    let verb = match job.status() {
        JobStatus::Started => return html! {},
        status if status.is_terminal() => "Correct and run again",
        _ => "Correct",
    };
    let place = links.job(job.id()) + "/correct";
    html! { p { a.btn #correct href=(place) { (verb) } } }
}

/// Shows the form.
pub(in crate::web) async fn ask_correction(visit: Visit, Path(id): Path<String>) -> PageResult {
    let now = visit.snapshot().await?;
    let job = read(&visit, &id).await?;
    let has_ended = job.status().is_terminal();
    let links = visit.links();
    let place = links.job(job.id()) + "/correct";
    let main = html! {
        div.head {
            div {
                p.crumb {
                    a href=(links.to("/jobs")) { "Jobs" } " / "
                    a href=(links.job(&id)) title=(id) { (job.label()) } " / Correct"
                }
                h1.plain-h { "Correct " (job.label()) }
                p.meta { "The script that its last attempt ran stays in the record of that attempt." }
            }
        }
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

/// Corrects the job.
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
