//! `/scripts`: published scripts; one with a form of its parameters, its versions and their differences.

mod form;

use axum::extract::Path;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::fields::{Fields, NoQuery, PageQuery};
use super::layout::{Nav, WebPage};
use super::links::{SiteLinks, page_of};
use super::parts::{bar, count, data_table, empty, first_line, head, things, was_at};
use super::submit::DraftError;
use super::visit::Visit;
use super::web_error::{PageError, PageResult};
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
        @if scripts.is_empty() {
            (empty(&html! { "No published scripts. " code { "hero script publish NAME FILE" } " publishes one." }))
        } @else {
            (table(&scripts, visit.links(), now.snapshot.at))
        }
    };
    Ok(visit.page(&now, &WebPage::still("Scripts", Nav::Scripts, main)))
}

const HEADS: [(&str, &str); 6] = [
    ("", "Name"),
    ("num", "Version"),
    ("", "Type"),
    ("num", "Published"),
    ("", "By"),
    ("", "Description"),
];

fn table(scripts: &[ScriptDocument], links: &SiteLinks, now: Timestamp) -> Markup {
    let rows = html! {
        @for script in scripts {
            tr role="row" {
                td.m1 role="cell" { a.id href=(links.page("scripts", &script.name)) { (script.name) } }
                td.num.m4 role="cell" { (count(script.version.into())) }
                td.dim.wide role="cell" { (script.script_type) }
                td.num.mr role="cell" { (was_at(&script.published_at, now)) }
                td.dim.wide role="cell" { (publisher(script)) }
                td.m5 role="cell" { (first_line(&script.description)) }
            }
        }
    };
    data_table("nopick", "Published scripts", &HEADS, &rows)
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
    let rows = html! {
        @for of in versions {
            @let text = of.version.to_string();
            tr role="row" {
                td.num.m1 role="cell" { a href=(links.with(&own, &[("version", &text)])) { (text) } }
                td.num.mr role="cell" { (was_at(&of.published_at, now)) }
                td.dim.m4 role="cell" {
                    (publisher(of))
                    @if let Some(back) = of.rolled_back_to { ", rolled back to " (back) }
                }
                td.mono.wide role="cell" { (of.digest.chars().take(12).collect::<String>()) }
                td.m5 role="cell" {
                    @if of.version != shown {
                        @let shown = shown.to_string();
                        a href=(links.with(&own, &[("version", &shown), ("from", &text)])) { "with " (shown) }
                    }
                }
                @if may_publish {
                    td.mr role="cell" {
                        @if Some(of.version) != latest {
                            form method="post" action=(links.to(&own)) {
                                (visit.forgery_field())
                                input type="hidden" name="version" value=(text);
                                button name="do" value="rollback" aria-label={ "Roll back to " (text) } { "Roll back" }
                            }
                        }
                    }
                }
            }
        }
    };
    let heads = &VERSION_HEADS[..if may_publish { 6 } else { 5 }];
    html! { section { (bar("Versions", "", None)) (data_table("nopick", "Versions", heads, &rows)) } }
}

/// The last is for those who may publish.
const VERSION_HEADS: [(&str, &str); 6] = [
    ("num", "Version"),
    ("num", "Published"),
    ("", "By"),
    ("", "Digest"),
    ("", "Compare"),
    ("sr", "Roll back"),
];

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
