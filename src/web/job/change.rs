//! Retries, stops and deletes one job.

use axum::extract::Path;
use serde_json::json;

use super::super::fields::Fields;
use super::super::layout::Nav;
use super::super::links::page_of;
use super::super::parts::Confirm;
use super::super::visit::Visit;
use super::super::web_error::{PageError, PageResult};
use super::{parsed, read, tell_form};
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
    let question = Confirm::of(address, ("delete", "Delete the job"), title, text);
    visit.question(Nav::Jobs(None), &question).await
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
        "tell" => (tell_form::tell(&visit, &id, &fields).await?, own),
        "delete" => {
            visit.call("job.delete", params).await?;
            (format!("Deleted job {id}."), "/jobs".to_owned())
        }
        _ => return Err(PageError::wrong("The form asks for nothing that a job can do.")),
    };
    Ok(visit.done(&back, &said))
}
