//! The files of a job: a list, and each as a file that a browser saves.

use axum::extract::{Path, State};
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::super::doc::JobDoc;
use super::super::jobs::attachment;
use super::super::layout::bar;
use super::super::links::encoded;
use super::super::site::Site;
use super::super::visitor::Visitor;
use super::super::web_error::PageError;
use super::facts::bytes;
use crate::proto::job::STDIN;
use crate::rpc::results::{FileContent, ListedFiles};
use crate::store::FileSide;

/// Returns the list, empty for a job without files.
pub(super) async fn section(
    site: &Site,
    visitor: &Visitor,
    job: &JobDoc,
) -> Result<Markup, PageError> {
    let has_some =
        |field| job.get(field).and_then(Value::as_array).is_some_and(|of| !of.is_empty());
    if !has_some("output_files") && !has_some("input_files") {
        return Ok(html! { section #files {} });
    }
    let asked = json!({ "id": job.id() });
    let ListedFiles { files, .. } = site.ask(visitor, "job.files", asked).await?;
    let folder = format!("{}/files", site.links().job(job.id()));
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

/// Sends a file of a job.
pub(in crate::web) async fn download(
    State(site): State<Site>,
    visitor: Visitor,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, PageError> {
    let params = json!({ "id": id, "name": name });
    let FileContent { content, .. } = site.ask(&visitor, "job.file", params).await?;
    let content = BASE64_STANDARD.decode(content).unwrap_or_default();
    // Nothing of it is shown in the place of the page.
    let saved = if name == STDIN { "stdin" } else { &name };
    let kind = attachment("application/octet-stream", saved);
    let mut response = (kind, content).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}
