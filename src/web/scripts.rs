//! `/scripts`: published scripts; one with a form of its parameters, its versions and their differences.

mod form;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::doc::JobDoc;
use super::fields::Fields;
use super::layout::{Nav, WebPage, bar, head};
use super::links::{SiteLinks, encoded};
use super::parts::{columns, count, empty, first_line, things, was};
use super::site::Site;
use super::visitor::Visitor;
use super::web_error::PageError;
use crate::proto::line_diff::shown_diff;
use crate::rpc::Scope;
use form::{FIELD, RunDraft, given, run_form};

fn address(links: &SiteLinks, name: &str) -> String {
    links.to(&own_path(name))
}

fn own_path(name: &str) -> String {
    format!("/scripts/{}", encoded(name))
}

fn documents(answer: &Value, name: &str) -> Vec<JobDoc> {
    let all = answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    all.into_iter().map(JobDoc::from).collect()
}

/// Lists the published scripts.
pub(super) async fn list(
    State(site): State<Site>,
    visitor: Visitor,
) -> Result<Response, PageError> {
    let now = site.snapshot(&visitor).await?;
    let scripts = documents(&site.ask(&visitor, "script.list", json!({})).await?, "scripts");
    let line = html! { (things(scripts.len() as u64, "script")) };
    let main = html! {
        (head("Scripts", &line, &html! {}))
        @if scripts.is_empty() {
            (empty(&html! { "No published scripts. " code { "hero script publish NAME FILE" } " publishes one." }))
        } @else {
            (table(&scripts, site.links(), now.moment.at))
        }
    };
    Ok(site.page(&visitor, &now, &WebPage::still("Scripts", Nav::Scripts, main)))
}

fn table(scripts: &[JobDoc], links: &SiteLinks, now: Timestamp) -> Markup {
    html! {
        table.stack.nopick role="table" {
            caption.sr { "Published scripts" }
            thead role="rowgroup" {
                tr role="row" {
                    (columns(&[
                        ("", "Name"), ("num", "Version"), ("", "Type"), ("num", "Published"), ("", "By"),
                        ("", "Description"),
                    ]))
                }
            }
            tbody role="rowgroup" {
                @for script in scripts {
                    tr role="row" {
                        td.m1 role="cell" {
                            a.id href=(address(links, script.text("name"))) { (script.text("name")) }
                        }
                        td.num.m4 role="cell" { (count(script.whole("version").unwrap_or_default())) }
                        td.dim.wide role="cell" { (script.text("script_type")) }
                        td.num.mr role="cell" {
                            @if let Some(at) = script.time("published_at") { (was(at, now)) }
                        }
                        td.dim.wide role="cell" { (publisher(script)) }
                        td.m5 role="cell" { (first_line(script.text("description"))) }
                    }
                }
            }
        }
    }
}

/// Returns the file that declares a version, or who published it.
fn publisher(script: &JobDoc) -> &str {
    let file = script.text("file");
    if file.is_empty() { script.text("published_by") } else { file }
}

/// The query of a script: the version that is shown, and an older one that it is compared with.
#[derive(Deserialize)]
pub(super) struct ScriptQuery {
    #[serde(default)]
    version: String,
    #[serde(default)]
    from: String,
}

/// Shows a published script.
pub(super) async fn show(
    State(site): State<Site>,
    visitor: Visitor,
    Path(name): Path<String>,
    Query(query): Query<ScriptQuery>,
) -> Result<Response, PageError> {
    let now = site.snapshot(&visitor).await?;
    let main = page(&site, &visitor, &name, &query, &RunDraft::default(), now.moment.at).await?;
    Ok(site.page(&visitor, &now, &WebPage::still(name.as_str(), Nav::Scripts, main)))
}

async fn version(
    site: &Site,
    visitor: &Visitor,
    name: &str,
    version: &str,
) -> Result<JobDoc, PageError> {
    let used = if version.is_empty() { name.to_owned() } else { format!("{name}@{version}") };
    Ok(JobDoc::from(site.ask(visitor, "script.get", json!({ "name": used })).await?))
}

async fn page(
    site: &Site,
    visitor: &Visitor,
    name: &str,
    query: &ScriptQuery,
    draft: &RunDraft,
    now: Timestamp,
) -> Result<Markup, PageError> {
    let script = version(site, visitor, name, &query.version).await?;
    let versions = site.ask(visitor, "script.history", json!({ "name": name })).await?;
    let versions = documents(&versions, "versions");
    let older = match query.from.as_str() {
        "" => None,
        from => Some(version(site, visitor, name, from).await?),
    };
    let links = site.links();
    let number = script.whole("version").unwrap_or_default();
    let line = html! {
        "version " (count(number)) ", type " (script.text("script_type")) ", by " (publisher(&script))
    };
    Ok(html! {
        p.crumb { a href=(links.to("/scripts")) { "Scripts" } }
        (head(name, &line, &html! {}))
        @if !script.text("description").is_empty() { p { (script.text("description")) } }
        @if visitor.may(Scope::Submit) { (run_form(&script, &address(links, name), visitor, draft)) }
        @if let Some(older) = &older { (difference(older, &script)) }
        section {
            (bar("Script", script.text("digest"), None))
            pre tabindex="0" { (script.text("script")) }
        }
        (history(name, &versions, number, links, visitor, now))
    })
}

/// Returns the lines in which two versions differ.
fn difference(older: &JobDoc, newer: &JobDoc) -> Markup {
    let parts = |of: &JobDoc| {
        let settings = ["script_type", "description", "settings", "parameters"];
        let settings = settings.map(|name| {
            let value = of.get(name).cloned().unwrap_or_default();
            format!("{name}: {}\n", serde_json::to_string_pretty(&value).unwrap_or_default())
        });
        (settings.concat(), of.text("script").to_owned())
    };
    let ((old_settings, old_text), (settings, text)) = (parts(older), parts(newer));
    let lines = [shown_diff(&old_settings, &settings), shown_diff(&old_text, &text)].concat();
    let number = |of: &JobDoc| of.whole("version").unwrap_or_default();
    html! {
        section {
            (bar(&format!("Version {} to {}", number(older), number(newer)), "", None))
            @if lines.is_empty() { p.dim { "They are the same." } }
            @else { pre tabindex="0" { @for line in &lines { (line) "\n" } } }
        }
    }
}

fn history(
    name: &str,
    versions: &[JobDoc],
    shown: u64,
    links: &SiteLinks,
    visitor: &Visitor,
    now: Timestamp,
) -> Markup {
    let own = own_path(name);
    let latest = versions.first().and_then(|of| of.whole("version")).unwrap_or_default();
    let may_publish = visitor.may(Scope::Admin) && !visitor.is_bound();
    html! {
        section {
            (bar("Versions", "", None))
            table.stack.nopick role="table" {
                caption.sr { "Versions" }
                thead role="rowgroup" {
                    tr role="row" {
                        (columns(&[("num", "Version"), ("num", "Published"), ("", "By"), ("", "Digest"), ("", "Compare")]))
                        @if may_publish { th role="columnheader" scope="col" { span.sr { "Roll back" } } }
                    }
                }
                tbody role="rowgroup" {
                    @for of in versions {
                        @let number = of.whole("version").unwrap_or_default();
                        @let text = number.to_string();
                        tr role="row" {
                            td.num.m1 role="cell" { a href=(links.with(&own, &[("version", &text)])) { (text) } }
                            td.num.mr role="cell" {
                                @if let Some(at) = of.time("published_at") { (was(at, now)) }
                            }
                            td.dim.m4 role="cell" {
                                (publisher(of))
                                @if let Some(back) = of.whole("rolled_back_to") { ", rolled back to " (back) }
                            }
                            td.mono.wide role="cell" { (of.text("digest").chars().take(12).collect::<String>()) }
                            td.m5 role="cell" {
                                @if number != shown {
                                    @let shown = shown.to_string();
                                    a href=(links.with(&own, &[("version", &shown), ("from", &text)])) {
                                        "with " (shown)
                                    }
                                }
                            }
                            @if may_publish {
                                td.mr role="cell" {
                                    @if number != latest {
                                        form method="post" action=(links.to(&own)) {
                                            (visitor.forgery_field())
                                            input type="hidden" name="version" value=(text);
                                            button name="do" value="rollback" aria-label={ "Roll back to " (text) } { "Roll back" }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Runs a version of a script with the parameters of the form, or rolls back to it.
pub(super) async fn change(
    State(site): State<Site>,
    visitor: Visitor,
    Path(name): Path<String>,
    fields: Fields,
) -> Result<Response, PageError> {
    let number = fields.get("version").to_owned();
    match fields.get("do") {
        "rollback" => {
            visitor.needs(Scope::Admin, "publish scripts")?;
            let params =
                json!({ "name": name, "version": number.parse::<u32>().unwrap_or_default() });
            let done = site.call(&visitor, "script.rollback", params).await?;
            let version = done.get("version").and_then(Value::as_u64).unwrap_or_default();
            Ok(site.done(&own_path(&name), &format!("Version {version} is {number} again.")))
        }
        "run" => run(&site, &visitor, &name, number, &fields).await,
        _ => Err(PageError::wrong("The form asks for nothing that a script can do.")),
    }
}

async fn run(
    site: &Site,
    visitor: &Visitor,
    name: &str,
    number: String,
    fields: &Fields,
) -> Result<Response, PageError> {
    visitor.needs(Scope::Submit, "submit jobs")?;
    let script = version(site, visitor, name, &number).await?;
    let texts = fields.pairs().filter_map(|(field, text)| Some((field.strip_prefix(FIELD)?, text)));
    let texts: Map<String, Value> = texts
        .filter(|(_, text)| !text.is_empty())
        .map(|(field, text)| (field.to_owned(), text.replace("\r\n", "\n").into()))
        .collect();
    let params = given(&script, &texts);
    let job = json!({ "job": { "uses": format!("{name}@{number}"), "params": params } });
    match site.call_or_why(visitor, "job.submit", job).await {
        Ok(answer) => {
            site.snapshots_are_old();
            let id = answer.get("id").and_then(Value::as_str).unwrap_or_default();
            Ok(site.done(&format!("/jobs/{}", encoded(id)), "Submitted."))
        }
        Err(error) => {
            let page_error = PageError::from(error.clone());
            if page_error.status.as_u16() != 400 {
                return Err(page_error);
            }
            let now = site.snapshot(visitor).await?;
            let draft = RunDraft { texts, error: error.message };
            let query = ScriptQuery { version: number, from: String::new() };
            let main = page(site, visitor, name, &query, &draft, now.moment.at).await?;
            Ok(site.refused(visitor, &now, &WebPage::still(name, Nav::Scripts, main)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_script_are_escaped() {
        let evil = "<script>alert(1)</script>";
        let script = JobDoc::from(json!({
            "name": "evil", "version": 1, "description": evil, "published_by": evil, "script_type": evil,
            "digest": evil, "script": evil,
        }));
        let text = [
            difference(&JobDoc::default(), &script).into_string(),
            table(&[script], &SiteLinks::new("/"), Timestamp::UNIX_EPOCH).into_string(),
        ]
        .concat();
        assert!(text.contains("&lt;script&gt;") && !text.contains("<script"), "{text}");
    }
}
