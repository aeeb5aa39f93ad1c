//! The files of a job: a list, and each as a file that a browser saves.

use axum::extract::Path;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::super::doc::JobDoc;
use super::super::jobs::attachment;
use super::super::layout::bar;
use super::super::links::encoded;
use super::super::visit::Visit;
use super::super::web_error::PageResult;
use super::facts::bytes;
use crate::proto::job::STDIN;
use crate::rpc::results::ListedFiles;
use crate::store::FileSide;

/// Returns the list, empty for a job without files.
pub(super) async fn section(visit: &Visit, job: &JobDoc) -> PageResult<Markup> {
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
                            (bytes(file.size))
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
    headers: HeaderMap,
) -> PageResult {
    let file = visit.file(&id, &name, &headers).await?;
    // Nothing of it is shown in the place of the page.
    let saved = if name == STDIN { "stdin" } else { &name };
    let kind = attachment("application/octet-stream", saved);
    let own = [(header::CACHE_CONTROL, "no-store"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    Ok((kind, own, file).into_response())
}
