//! `/scripts`: published scripts; one with a form of its parameters, its versions and their differences.

mod form;

use axum::extract::Path;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::parts::{PageTable, bar, count, first_line, head, page_link, things, was_at};
use super::prelude::*;
use super::submit::DraftError;
use crate::client::{PublishedDocument, ScriptDocument, ScriptTextDocument};
use crate::proto::job::JobFiles;
use crate::proto::line_diff::shown_diff;
use crate::rpc::results::{ScriptList, ScriptVersions};
use crate::rpc::{RpcError, Scope};
use form::{FIELD, RunDraft, given, run_form};

pub(super) async fn list(visit: Visit, _: NoQuery) -> PageResult {
    let now = visit.snapshot().await?;
    let ScriptList { scripts } = visit.ask("script.list", json!({})).await?;
    let line = html! { (things(scripts.len() as u64, "script")) };
    let main = html! {
        (head("Scripts", &line, &html! {}))
        (table(&scripts, visit.links(), now.snapshot.at))
    };
    Ok(visit.page(&now, &WebPage::still("Scripts", Nav::Scripts, main)))
}

fn table(scripts: &[ScriptDocument], links: &SiteLinks, now: Timestamp) -> Markup {
    let none = html! { "No published scripts. " code { "hero script publish NAME FILE" } " publishes one." };
    PageTable::of(scripts, "nopick", "Published scripts")
        .column("Name", "m1", |of| page_link("scripts", &of.name, links))
        .column("Version", "num m4", |of| html! { (count(of.version.into())) })
        .column("Type", "dim wide", |of| html! { (of.script_type) })
        .column("Published", "num mr", |of| was_at(&of.published_at, now))
        .column("By", "dim wide", |of| html! { (publisher(of)) })
        .column("Description", "m5", |of| html! { (first_line(&of.description)) })
        .or(&none)
}

/// Returns the file that declares a version, or who published it.
fn publisher(script: &ScriptDocument) -> &str {
    script.file.as_deref().unwrap_or(&script.published_by)
}

/// The query of a script: the version that is shown, and an older one that it is compared with.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ScriptQuery {
    version: String,
    from: String,
}

pub(super) async fn show(
    visit: Visit,
    Path(name): Path<String>,
    PageQuery(query): PageQuery<ScriptQuery>,
) -> PageResult {
    let now = visit.snapshot().await?;
    let main = page(&visit, &name, &query, &RunDraft::default(), now.snapshot.at).await?;
    Ok(visit.page(&now, &WebPage::still(name.as_str(), Nav::Scripts, main)))
}

async fn version(visit: &Visit, name: &str, version: &str) -> Result<ScriptTextDocument, RpcError> {
    let used = if version.is_empty() { name.to_owned() } else { format!("{name}@{version}") };
    visit.ask("script.get", json!({ "name": used })).await
}

async fn page(
    visit: &Visit,
    name: &str,
    query: &ScriptQuery,
    draft: &RunDraft,
    now: Timestamp,
) -> PageResult<Markup> {
    let script = version(visit, name, &query.version).await?;
    let of = &script.of;
    let asked = json!({ "name": name });
    let ScriptVersions { versions } = visit.ask("script.history", asked).await?;
    let older = match query.from.as_str() {
        "" => None,
        from => Some(version(visit, name, from).await?),
    };
    let links = visit.links();
    let line = html! {
        "version " (count(of.version.into())) ", type " (of.script_type) ", by " (publisher(of))
    };
    Ok(html! {
        p.crumb { a href=(links.to("/scripts")) { "Scripts" } }
        (head(name, &line, &html! {}))
        @if !of.description.is_empty() { p { (of.description) } }
        @if visit.may(Scope::Submit) { (run_form(visit, of, draft)) }
        @if let Some(older) = &older { (difference(older, &script)) }
        section {
            (bar("Script", &of.digest, None))
            pre tabindex="0" { (script.script) }
        }
        (history(visit, &versions, of, now))
    })
}

fn difference(older: &ScriptTextDocument, newer: &ScriptTextDocument) -> Markup {
    let settings = |ScriptTextDocument { of, .. }: &ScriptTextDocument| {
        let settings = [
            ("script_type", json!(of.script_type)),
            ("description", json!(of.description)),
            ("settings", json!(of.settings)),
            ("parameters", json!(of.parameters)),
        ];
        settings.map(|(name, value)| format!("{name}: {value:#}\n")).concat()
    };
    let settings = shown_diff(&settings(older), &settings(newer));
    let lines = [settings, shown_diff(&older.script, &newer.script)].concat();
    html! {
        section {
            (bar(&format!("Version {} to {}", older.of.version, newer.of.version), "", None))
            @if lines.is_empty() { p.dim { "They are the same." } }
            @else { pre tabindex="0" { @for line in &lines { (line) "\n" } } }
        }
    }
}

fn history(
    visit: &Visit,
    versions: &[ScriptDocument],
    shown: &ScriptDocument,
    now: Timestamp,
) -> Markup {
    let (own, links, shown) = (page_of("scripts", &shown.name), visit.links(), shown.version);
    let latest = versions.first().map(|of| of.version);
    let may_publish = visit.may(Scope::Admin) && !visit.is_bound();
    let address = |query: &[(&str, String)]| {
        let query: Vec<_> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        links.with(&own, &query)
    };
    let table = PageTable::of(versions, "nopick", "Versions")
        .column("Version", "num m1", |of| html! {
            a href=(address(&[("version", of.version.to_string())])) { (of.version) }
        })
        .column("Published", "num mr", |of| was_at(&of.published_at, now))
        .column("By", "dim m4", |of| html! {
            (publisher(of))
            @if let Some(back) = of.rolled_back_to { ", rolled back to " (back) }
        })
        .column("Digest", "mono wide", |of| html! { (of.digest.chars().take(12).collect::<String>()) })
        .column("Compare", "m5", |of| {
            let compared = [("version", shown.to_string()), ("from", of.version.to_string())];
            html! { @if of.version != shown { a href=(address(&compared)) { "with " (shown) } } }
        })
        .column_if(may_publish, "Roll back", "sr mr", |of| html! {
            @if Some(of.version) != latest {
                form method="post" action=(links.to(&own)) {
                    (visit.forgery_field())
                    input type="hidden" name="version" value=(of.version);
                    button name="do" value="rollback" aria-label={ "Roll back to " (of.version) } { "Roll back" }
                }
            }
        });
    html! { section { (bar("Versions", "", None)) (table.markup()) } }
}

/// Runs a version of a script with the parameters of the form, or rolls back to it.
pub(super) async fn change(visit: Visit, Path(name): Path<String>, fields: Fields) -> PageResult {
    let number = fields.get("version").to_owned();
    match fields.get("do") {
        "rollback" => {
            visit.needs(Scope::Admin, "publish scripts")?;
            let params =
                json!({ "name": name, "version": number.parse::<u32>().unwrap_or_default() });
            let done = visit.call_for("script.rollback", params).await?;
            let PublishedDocument { version, .. } = done;
            Ok(visit
                .done(&page_of("scripts", &name), &format!("Version {version} is {number} again.")))
        }
        "run" => run(&visit, &name, number, &fields).await,
        _ => Err(PageError::wrong("The form asks for nothing that a script can do.")),
    }
}

async fn run(visit: &Visit, name: &str, number: String, fields: &Fields) -> PageResult {
    visit.needs(Scope::Submit, "submit jobs")?;
    let script = version(visit, name, &number).await?;
    let texts = fields.pairs().filter_map(|(field, text)| Some((field.strip_prefix(FIELD)?, text)));
    let texts: Map<String, Value> = texts
        .filter(|(_, text)| !text.is_empty())
        .map(|(field, text)| (field.to_owned(), text.replace("\r\n", "\n").into()))
        .collect();
    let params = given(&script.of, &texts);
    let job = json!({ "uses": format!("{name}@{number}"), "params": params });
    match visit.submit(job, JobFiles::default()).await {
        Ok(submitted) => Ok(submitted),
        Err(error) => {
            let page_error = PageError::from(error.clone());
            if page_error.status.as_u16() != 400 {
                return Err(page_error);
            }
            let now = visit.snapshot().await?;
            let error = DraftError { field: String::new(), message: error.message };
            let draft = RunDraft { texts, error };
            let query = ScriptQuery { version: number, from: String::new() };
            let main = page(visit, name, &query, &draft, now.snapshot.at).await?;
            Ok(visit.refused(&now, &WebPage::still(name, Nav::Scripts, main)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_script_are_escaped() {
        let evil = "<script>alert(1)</script>";
        let [name, description, published_by, script_type, digest, script] =
            [evil; 6].map(str::to_owned);
        let of = ScriptDocument {
            name,
            description,
            published_by,
            script_type,
            digest,
            ..ScriptDocument::default()
        };
        let script = ScriptTextDocument { of, script };
        let older = ScriptTextDocument { of: ScriptDocument::default(), script: String::new() };
        let text = [
            difference(&older, &script).into_string(),
            table(&[script.of], &SiteLinks::new("/"), Timestamp::UNIX_EPOCH).into_string(),
        ]
        .concat();
        assert!(text.contains("&lt;script&gt;") && !text.contains("<script"), "{text}");
    }
}
