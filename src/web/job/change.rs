//! Retries, stops and deletes one job.

use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::json;

use super::super::fields::Fields;
use super::super::layout::Nav;
use super::super::links::encoded;
use super::super::parts::Confirm;
use super::super::site::Site;
use super::super::visitor::Visitor;
use super::super::web_error::PageError;
use super::{parsed, read, tell_form};
use crate::rpc::results::ToldJob;

/// Asks before a job is deleted.
pub(in crate::web) async fn ask_delete(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    let job = read(&site, &visitor, &id).await?;
    let waiting = match job.list("dependents").len() {
        0 => String::new(),
        1 => " A job that waits for it ends in error.".to_owned(),
        many => format!(" Its dependents that still wait (of {many}) end in error."),
    };
    let question = Confirm {
        title: format!("Delete job {}?", job.label()),
        text: format!("Its script, output and log are gone for good.{waiting}"),
        back: site.links().job(&id),
        action: site.links().job(&id),
        fields: vec![("do", "delete".to_owned())],
        verb: "Delete the job",
    };
    site.question(&visitor, Nav::Jobs(None), &question).await
}

/// Changes a job.
pub(in crate::web) async fn change(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
    fields: Fields,
) -> Result<Response, PageError> {
    let id = parsed(&id)?;
    let params = json!({ "id": id.as_str() });
    let own = format!("/jobs/{}", encoded(id.as_str()));
    let (said, back) = match fields.get("do") {
        "retry" => {
            site.call(&visitor, "job.retry", params).await?;
            ("The job runs again.".to_owned(), own)
        }
        "stop" => {
            let told: ToldJob = site.call_for(&visitor, "job.stop", params).await?;
            let said = if told.result == "stopped" {
                "Stopped."
            } else {
                "Its actor was told to stop it."
            };
            (said.to_owned(), own)
        }
        "tell" => (tell_form::tell(&site, &visitor, &id, &fields).await?, own),
        "delete" => {
            site.call(&visitor, "job.delete", params).await?;
            (format!("Deleted job {id}."), "/jobs".to_owned())
        }
        _ => return Err(PageError::wrong("The form asks for nothing that a job can do.")),
    };
    site.snapshots_are_old();
    Ok(site.done(&back, &said))
}
