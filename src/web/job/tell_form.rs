//! The wait of a job, and the form that tells it the event.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::super::doc::JobDoc;
use super::super::fields::Fields;
use super::super::layout::bar;
use super::super::links::SiteLinks;
use super::super::visit::Visit;
use super::super::visitor::Visitor;
use super::super::web_error::PageResult;
use crate::proto::job::{AskedWait, JobId, JobStatus};
use crate::rpc::results::JobChangeResult;

/// Returns the wait of a job, with the form if it is for an event and the visitor may change the job.
pub(super) fn section(
    job: &JobDoc,
    links: &SiteLinks,
    visitor: &Visitor,
    may_change: bool,
) -> Markup {
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
            @if let Some(event) = wait.event.as_ref().filter(|_| may_change) {
                form.form method="post" action=(links.job(job.id())) {
                    (visitor.forgery_field())
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

/// Tells a job the event of the form.
pub(super) async fn tell(visit: &Visit, id: &JobId, fields: &Fields) -> PageResult<String> {
    let (event, text) = (fields.get("event"), fields.get("data"));
    let data = if text.is_empty() { Value::Null } else { json!(text) };
    let params = json!({ "id": id.as_str(), "event": event, "data": data });
    let told: JobChangeResult = visit.call_for("job.tell", params).await?;
    let was_awaited = told.result == "told";
    Ok(if was_awaited { "Told. It runs again." } else { "Kept for its next wait." }.to_owned())
}
