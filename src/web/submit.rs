//! `/submit`: a form for a new job, empty or filled from a job, with the documentation of functions beside it.

mod choice;
mod form;
mod upload;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::job::read;
use super::parts::{bar, head};
use super::prelude::*;
use super::site::Site;
use super::web_error::sentence;
use crate::config::{Config, JobConfig, format_size};
use crate::engine::rhai::{Finding, Function};
use crate::proto::job::JobFiles;
use crate::rpc::results::{Documented, Findings};
use crate::rpc::{RpcError, Scope};

pub(super) use choice::DraftError;
use choice::OfferedType;
pub(super) use form::{JobDraft, JobForm};
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

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SubmitQuery {
    /// The job whose settings fill the form.
    from: String,
    /// The script type of an empty form.
    #[serde(rename = "type")]
    script_type: String,
}

pub(super) async fn show(visit: Visit, PageQuery(asked): PageQuery<SubmitQuery>) -> PageResult {
    visit.needs(Scope::Submit, "submit jobs")?;
    let draft = if !asked.script_type.is_empty() {
        JobDraft::of_type(&asked.script_type)
    } else if asked.from.is_empty() {
        let has_first = visit.site.config().types.keys().any(|name| name.as_str() == FIRST_TYPE);
        if has_first { JobDraft::of_type(FIRST_TYPE) } else { JobDraft::default() }
    } else {
        JobDraft::of_job(&read(&visit, &asked.from).await?)
    };
    show_draft(&visit, &draft).await
}

/// Submits the job of a form, or checks its script.
pub(super) async fn change(visit: Visit, form: SubmitForm) -> PageResult {
    let SubmitForm { fields, files, refused } = form;
    visit.needs(Scope::Submit, "submit jobs")?;
    let draft = JobDraft::of_fields(&fields);
    match fields.get("do") {
        "check" => return check(&visit, &draft).await,
        "functions" => return show_draft(&visit, &draft).await,
        _ => {}
    }
    let has_files = refused.is_some() || !files.is_empty();
    let now = visit.snapshot().await?;
    let job = match refused {
        Some(message) => Err(DraftError { field: INPUTS.to_owned(), message }),
        None => draft.members(now.snapshot.at),
    };
    let refused = match job {
        Err(error) => error,
        Ok(job) => match visit.submit(job.into(), files).await {
            Ok(submitted) => return Ok(submitted),
            Err(error) => refusal(error)?,
        },
    };
    let again = html! {
        @if has_files { p { "Choose the files again: a browser does not keep them." } }
    };
    let note = refused.note("The job was not submitted.", &again);
    Ok(visit.refused(&now, &page(&visit, &draft, &refused, &note).await))
}

/// Shows the form with a draft, and the functions of its script type.
async fn show_draft(visit: &Visit, draft: &JobDraft) -> PageResult {
    let now = visit.snapshot().await?;
    Ok(visit.page(&now, &page(visit, draft, &DraftError::default(), &html! {}).await))
}

/// Returns the field that an error is about.
fn refusal(error: RpcError) -> PageResult<DraftError> {
    let field = error.data.as_ref().and_then(|data| data.get("field")).and_then(Value::as_str);
    // The field of a name says what it is: "script type".
    let field = field.map(|field| field.replace(' ', "_")).unwrap_or_default();
    DraftError::of(error, field)
}

async fn check(visit: &Visit, draft: &JobDraft) -> PageResult {
    let now = visit.snapshot().await?;
    let params = json!({
        "script": draft.text("script"), "script_type": draft.text("script_type").trim(),
        "extension": draft.text("extension").trim(),
    });
    let (error, note) = match visit.call_for("script.check", params).await {
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
    Ok(visit.page(&now, &page(visit, draft, &error, &note).await))
}

fn findings(found: &[Finding]) -> Markup {
    html! {
        @if found.is_empty() {
            p role="status" { "No mistakes were found." }
        } @else {
            div.note-err #why role="alert" {
                @for of in found {
                    @if of.column > 0 { p { "Line " (of.line) ", column " (of.column) } }
                    pre { (of.message) }
                }
            }
        }
    }
}

async fn page(visit: &Visit, draft: &JobDraft, error: &DraftError, note: &Markup) -> WebPage {
    let config = visit.site.config();
    let types = offered_types(&config, visit);
    let own = draft.text("script_type");
    let of = if own.is_empty() { types.first().map_or("", |of| of.name.as_str()) } else { own };
    let main = html! {
        (head("Submit a job", &html! {}, &html! {}))
        div.cols.sub {
            form.form method="post" action=(visit.links().to("/submit")) enctype="multipart/form-data" {
                (visit.forgery_field())
                (note)
                (JobForm { draft, types: &types, error }.inputs(&files_hint(&config.job)))
                div.actions {
                    button.main { "Submit" }
                    button name="do" value="check" formnovalidate { "Check the script" }
                    button name="do" value="functions" formnovalidate { "Show the functions of the type" }
                }
            }
            div #functions { (functions(visit, of).await) }
        }
    };
    WebPage::still("Submit a job", Nav::Submit, main)
}

pub(super) fn offered_types(config: &Config, visit: &Visit) -> Vec<OfferedType> {
    let offered = config.types.keys().filter(|name| visit.caller.may_use(config, name));
    let label = |name| {
        let note = if config.is_sandboxed(name) { "" } else { " (not sandboxed)" };
        format!("{name}{note}")
    };
    offered.map(|name| OfferedType { name: name.to_string(), label: label(name) }).collect()
}

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
async fn functions(visit: &Visit, script_type: &str) -> Markup {
    if !matches!(script_type, "osis" | "sal") {
        return html! {};
    }
    let answer = visit.ask("script.functions", json!({ "script_type": script_type })).await;
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

fn documented(function: &Function) -> Markup {
    html! {
        li {
            @for signature in &function.signatures { code { (signature) } " " }
            p { (function.summary) }
            @if !function.example.is_empty() { pre { (function.example) } }
        }
    }
}
