//! `/submit`: a form for a new job, empty or filled from a job, with the documentation of functions beside it.

mod choice;
mod form;
mod upload;

use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::job::read;
use super::layout::{Nav, WebPage, bar, head};
use super::links::encoded;
use super::site::Site;
use super::visitor::Visitor;
use super::web_error::{PageError, sentence};
use crate::config::{Config, JobConfig, format_size};
use crate::engine::rhai::Finding;
use crate::engine::scripts::FunctionDocument;
use crate::proto::job::JobFiles;
use crate::rpc::results::{Documented, Findings, SubmittedId};
use crate::rpc::{RpcError, Scope};

pub(super) use choice::DraftError;
use choice::OfferedType;
use form::inputs;
pub(super) use form::{JobDraft, periodic_inputs};
use upload::{INPUTS, SubmitForm, text_bytes_max};

/// The script type of an empty form, if it is configured.
const FIRST_TYPE: &str = "osis";

/// Bounds a form: its texts, and its files in memory or in the folder of contents.
pub(super) async fn bound_body(
    State(site): State<Site>,
    mut request: Request,
    next: Next,
) -> Response {
    let job = &site.config().job;
    let in_folder = job.artifacts.as_ref().map_or(0, |folder| folder.max_size);
    let files = job.files_size_max.max(in_folder.saturating_mul(JobFiles::COUNT_MAX as u64));
    let most = text_bytes_max(job).saturating_add(files);
    DefaultBodyLimit::max(usize::try_from(most).unwrap_or(usize::MAX)).apply(&mut request);
    next.run(request).await
}

/// The query of the form.
#[derive(Deserialize)]
pub(super) struct SubmitQuery {
    /// The job whose settings fill the form.
    #[serde(default)]
    from: String,
    /// The script type of an empty form.
    #[serde(default, rename = "type")]
    script_type: String,
}

/// Shows the form.
pub(super) async fn show(
    State(site): State<Site>,
    visitor: Visitor,
    Query(SubmitQuery { from, script_type }): Query<SubmitQuery>,
) -> Result<Response, PageError> {
    visitor.needs(Scope::Submit, "submit jobs")?;
    let now = site.snapshot(&visitor).await?;
    let draft = if !script_type.is_empty() {
        JobDraft::of_type(&script_type)
    } else if from.is_empty() {
        let has_first = site.config().types.keys().any(|name| name.as_str() == FIRST_TYPE);
        if has_first { JobDraft::of_type(FIRST_TYPE) } else { JobDraft::default() }
    } else {
        JobDraft::of_job(&read(&site, &visitor, &from).await?)
    };
    let main = page(&site, &visitor, &draft, &DraftError::default(), &html! {}).await;
    Ok(site.page(&visitor, &now, &WebPage::still("Submit a job", Nav::Submit, main)))
}

/// Submits the job of a form, or checks its script.
pub(super) async fn change(
    State(site): State<Site>,
    visitor: Visitor,
    SubmitForm { fields, files, refused }: SubmitForm,
) -> Result<Response, PageError> {
    visitor.needs(Scope::Submit, "submit jobs")?;
    let draft = JobDraft::of_fields(&fields);
    match fields.get("do") {
        "check" => return check(&site, &visitor, &draft).await,
        "functions" => return chosen_type(&site, &visitor, &draft).await,
        _ => {}
    }
    let has_files = refused.is_some() || !files.is_empty();
    let now = site.snapshot(&visitor).await?;
    let job = match refused {
        Some(message) => Err(DraftError { field: INPUTS.to_owned(), message }),
        None => draft.members(now.moment.at),
    };
    let params = job.map(|job| json!({ "job": job }));
    let refused = match params {
        Err(error) => error,
        Ok(params) => match site.submit(&visitor, params, files).await {
            Ok(SubmittedId { id, .. }) => {
                site.snapshots_are_old();
                return Ok(site.done(&format!("/jobs/{}", encoded(&id)), "Submitted."));
            }
            Err(error) => refusal(error)?,
        },
    };
    refuse(&site, &visitor, &draft, &refused, has_files).await
}

/// Shows the form with the functions of the type that was chosen.
async fn chosen_type(
    site: &Site,
    visitor: &Visitor,
    draft: &JobDraft,
) -> Result<Response, PageError> {
    let now = site.snapshot(visitor).await?;
    let main = page(site, visitor, draft, &DraftError::default(), &html! {}).await;
    Ok(site.page(visitor, &now, &WebPage::still("Submit a job", Nav::Submit, main)))
}

/// Returns the field that an error is about. An error that no change of the form mends has a page of its own.
fn refusal(error: RpcError) -> Result<DraftError, PageError> {
    let field = error.data.as_ref().and_then(|data| data.get("field")).and_then(Value::as_str);
    // The field of a name says what it is: "script type".
    let field = field.map(|field| field.replace(' ', "_")).unwrap_or_default();
    let page = PageError::from(error.clone());
    if field.is_empty() && !matches!(page.status.as_u16(), 400 | 403 | 409) {
        return Err(page);
    }
    Ok(DraftError { field, message: error.message })
}

async fn refuse(
    site: &Site,
    visitor: &Visitor,
    draft: &JobDraft,
    error: &DraftError,
    has_files: bool,
) -> Result<Response, PageError> {
    let now = site.snapshot(visitor).await?;
    let note = html! {
        div.note-err #why role="alert" {
            p { "The job was not submitted." @if !error.field.is_empty() { " The field: " (error.field) } }
            pre { (sentence(&error.message)) }
            @if has_files { p { "Choose the files again: a browser does not keep them." } }
        }
    };
    let main = page(site, visitor, draft, error, &note).await;
    Ok(site.refused(visitor, &now, &WebPage::still("Submit a job", Nav::Submit, main)))
}

async fn check(site: &Site, visitor: &Visitor, draft: &JobDraft) -> Result<Response, PageError> {
    let now = site.snapshot(visitor).await?;
    let params = json!({
        "script": draft.text("script"), "script_type": draft.text("script_type").trim(),
        "extension": draft.text("extension").trim(),
    });
    let (error, note) = match site.call_for(visitor, "script.check", params).await {
        Err(error) => {
            let text = sentence(&error.message);
            (DraftError::default(), html! { div.note-err #why role="alert" { pre { (text) } } })
        }
        Ok(Findings { errors }) => {
            let field = if errors.is_empty() { "" } else { "script" };
            let error = DraftError { field: field.to_owned(), message: String::new() };
            (error, findings(&errors))
        }
    };
    let main = page(site, visitor, draft, &error, &note).await;
    Ok(site.page(visitor, &now, &WebPage::still("Submit a job", Nav::Submit, main)))
}

fn findings(found: &[Finding]) -> Markup {
    html! {
        @if found.is_empty() {
            p role="status" { "No mistakes were found." }
        } @else {
            div.note-err #why role="alert" {
                @for of in found {
                    @if of.line > 0 { p { "Line " (of.line) ", column " (of.column) } }
                    pre { (of.message) }
                }
            }
        }
    }
}

async fn page(
    site: &Site,
    visitor: &Visitor,
    draft: &JobDraft,
    error: &DraftError,
    note: &Markup,
) -> Markup {
    let config = site.config();
    let types = offered_types(&config, visitor);
    let own = draft.text("script_type");
    let of = if own.is_empty() { types.first().map_or("", |of| of.name.as_str()) } else { own };
    html! {
        (head("Submit a job", &html! {}, &html! {}))
        div.cols.sub {
            form.form method="post" action=(site.links().to("/submit")) enctype="multipart/form-data" {
                (visitor.forgery_field())
                (note)
                (inputs(draft, &types, error, &files_hint(&config.job)))
                div.actions {
                    button.main { "Submit" }
                    button name="do" value="check" formnovalidate { "Check the script" }
                    button name="do" value="functions" formnovalidate { "Show the functions of the type" }
                }
            }
            div #functions { (functions(site, visitor, of).await) }
        }
    }
}

/// Returns the script types that a visitor may use.
pub(super) fn offered_types(config: &Config, visitor: &Visitor) -> Vec<OfferedType> {
    let offered = config.types.keys().filter(|name| visitor.caller.may_use(config, name));
    offered
        .map(|name| OfferedType { name: name.to_string(), is_sandboxed: config.is_sandboxed(name) })
        .collect()
}

/// Returns what a visitor may give as files.
fn files_hint(job: &JobConfig) -> String {
    let size = match &job.artifacts {
        Some(folder) => format!("{} each", format_size(folder.max_size)),
        None => format!("{} together", format_size(job.files_size_max)),
    };
    format!(
        "For scripts that are processes: the folder HERO_INPUT_DIR has them. Up to {} files, {size}",
        JobFiles::COUNT_MAX
    )
}

/// Returns the documentation of the functions of a script type, by group; nothing for a type that has none.
async fn functions(site: &Site, visitor: &Visitor, script_type: &str) -> Markup {
    if !matches!(script_type, "osis" | "sal") {
        return html! {};
    }
    let answer = site.ask(visitor, "script.functions", json!({ "script_type": script_type })).await;
    let Ok(Documented { functions }) = answer else { return html! {} };
    let small = functions.len().to_string();
    html! {
        aside aria-label="Functions" {
            (bar(&format!("Functions of {script_type}"), &small, None))
            @for group in functions.chunk_by(|a, b| a.group == b.group) {
                details {
                    summary { (group[0].group) }
                    ul.fn { @for function in group { (documented(function)) } }
                }
            }
        }
    }
}

fn documented(function: &FunctionDocument) -> Markup {
    html! {
        li {
            @for signature in &function.signatures { code { (signature) } " " }
            p { (function.says) }
            @if !function.example.is_empty() { pre { (function.example) } }
        }
    }
}
