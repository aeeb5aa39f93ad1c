//! `/scripts`: published scripts; one with a form of its parameters, its versions and their differences.

use axum::extract::{Path, Query, State};
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::doc::JobDoc;
use super::error::{PageError, sentence};
use super::fields::Fields;
use super::layout::{Nav, WebPage, bar, head};
use super::links::{SiteLinks, encoded};
use super::parts::{columns, count, empty, first_line, things, was};
use super::site::Site;
use super::visitor::Visitor;
use crate::proto::line_diff::shown_diff;
use crate::rpc::Scope;

/// Begins the names of the fields of parameters.
const FIELD: &str = "param-";

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

/// The texts of the form, and the reason why it was refused.
#[derive(Default)]
struct RunDraft {
    texts: Map<String, Value>,
    error: String,
}

impl RunDraft {
    fn text(&self, name: &str) -> &str {
        self.texts.get(name).and_then(Value::as_str).unwrap_or_default()
    }
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
        @if visitor.may(Scope::Submit) { (run_form(&script, links, visitor, draft)) }
        @if let Some(older) = &older { (difference(older, &script)) }
        section {
            (bar("Script", script.text("digest"), None))
            pre tabindex="0" { (script.text("script")) }
        }
        (history(name, &versions, number, links, visitor, now))
    })
}

/// Returns the form of a script's parameters; of a script that declares none, one field for all as JSON.
fn run_form(script: &JobDoc, links: &SiteLinks, visitor: &Visitor, draft: &RunDraft) -> Markup {
    let properties = properties(script);
    let number = script.whole("version").unwrap_or_default();
    html! {
        section {
            (bar("Run", "", None))
            form.form method="post" action=(address(links, script.text("name"))) {
                (visitor.forgery_field())
                input type="hidden" name="version" value=(number);
                @if !draft.error.is_empty() {
                    div.note-err #why role="alert" { p { "No job was submitted." } pre { (sentence(&draft.error)) } }
                }
                @match &properties {
                    None => {
                        div.f-l {
                            label for=(FIELD) { "Parameters" }
                            textarea #(FIELD) name=(FIELD) rows="3" spellcheck="false" { (draft.text("")) }
                            small { "A JSON object; the script declares no parameters" }
                        }
                    }
                    Some(properties) => {
                        @for (name, schema) in properties { (input(name, schema, is_required(script, name), draft)) }
                    }
                }
                div.actions { button.main name="do" value="run" { "Run" } }
            }
        }
    }
}

fn properties(script: &JobDoc) -> Option<Map<String, Value>> {
    let schema = script.get("parameters").filter(|schema| schema.is_object())?;
    schema.get("properties")?.as_object().cloned()
}

fn is_required(script: &JobDoc, name: &str) -> bool {
    let required = script.get("parameters").and_then(|schema| schema.get("required"));
    required.and_then(Value::as_array).is_some_and(|all| all.iter().any(|of| of == name))
}

fn input(name: &str, schema: &Value, is_required: bool, draft: &RunDraft) -> Markup {
    let id = format!("{FIELD}{name}");
    let hint = format!("{id}-hint");
    let text = |of: &str| schema.get(of).and_then(Value::as_str).unwrap_or_default();
    let kind = text("type");
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let default = schema.get("default").map(&shown).unwrap_or_default();
    let given = draft.text(name);
    let values: Option<Vec<String>> = match (kind, schema.get("enum").and_then(Value::as_array)) {
        (_, Some(values)) => Some(values.iter().map(&shown).collect()),
        ("boolean", None) => Some(vec!["true".to_owned(), "false".to_owned()]),
        _ => None,
    };
    let number = |of: &str| schema.get(of).filter(|of| of.is_number()).map(ToString::to_string);
    html! {
        div.f-l {
            label for=(id) { (name) }
            @if let Some(values) = values {
                select #(id) name=(id) aria-describedby=(hint) required[is_required] {
                    option value="" selected[given.is_empty()] {
                        @if default.is_empty() { "–" } @else { "default: " (default) }
                    }
                    @for value in &values { option value=(value) selected[value == given] { (value) } }
                }
            } @else if matches!(kind, "array" | "object") {
                textarea #(id) name=(id) rows="3" spellcheck="false" placeholder=(default) aria-describedby=(hint)
                    required[is_required] { (given) }
            } @else {
                input #(id) name=(id) value=(given) placeholder=(default) autocomplete="off" spellcheck="false"
                    inputmode=[matches!(kind, "integer" | "number").then_some("decimal")]
                    minlength=[number("minLength")] maxlength=[number("maxLength")]
                    aria-describedby=(hint) required[is_required];
            }
            small #(hint) {
                (text("description")) @if !text("description").is_empty() { "; " } (kind)
                @if let Some(least) = number("minimum") { ", at least " (least) }
                @if let Some(most) = number("maximum") { ", at most " (most) }
                @if !text("pattern").is_empty() { ", " code { (text("pattern")) } }
                @if is_required { ", required" }
            }
        }
    }
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

/// Returns the parameters of the texts of a form. A text that is no value of its type stays a text, which the check of
/// the parameters explains.
fn given(script: &JobDoc, texts: &Map<String, Value>) -> Value {
    let text_of =
        |name: &str| texts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(properties) = properties(script) else {
        let text = text_of("");
        return match text.trim() {
            "" => json!({}),
            some => serde_json::from_str(some).unwrap_or(Value::String(text)),
        };
    };
    let values = texts.keys().map(|name| {
        let text = text_of(name);
        let is_text = properties.get(name).is_none_or(|of| of["type"] == "string");
        let value = if is_text { None } else { serde_json::from_str(text.trim()).ok() };
        (name.clone(), value.unwrap_or(Value::String(text)))
    });
    Value::Object(values.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::named_script::Parameters;

    fn hostile() -> JobDoc {
        let evil = "<script>alert(1)</script>";
        let declared: Parameters = serde_json::from_value(json!({
            "text": { "description": evil, "pattern": evil, "default": evil, "required": false },
            "choice": { "enum": [evil], "required": true },
            "list": { "type": "array", "default": [evil] },
            "number": { "type": "integer", "minimum": 1 },
            "flag": { "type": "boolean" },
        }))
        .expect("parameters");
        JobDoc::from(json!({
            "name": "evil", "version": 1, "description": evil, "published_by": evil, "script_type": evil,
            "digest": evil, "script": evil, "parameters": declared.schema(),
        }))
    }

    #[test]
    fn texts_of_a_script_are_escaped() {
        let (links, now) = (SiteLinks::new("/"), Timestamp::UNIX_EPOCH);
        let draft = RunDraft::default();
        let script = hostile();
        let inputs: String = properties(&script)
            .expect("declared")
            .iter()
            .map(|(name, schema)| {
                input(name, schema, is_required(&script, name), &draft).into_string()
            })
            .collect();
        let text = [
            table(&[hostile()], &links, now).into_string(),
            difference(&JobDoc::default(), &script).into_string(),
            inputs,
        ]
        .concat();
        assert!(text.contains("&lt;script&gt;") && !text.contains("<script"), "{text}");
    }

    #[test]
    fn texts_of_the_form_become_values_of_the_declared_types() {
        let texts = json!({
            "text": "5", "number": "5", "flag": "true", "list": "[1]", "choice": "x", "unknown": "7",
        });
        let expected = json!({
            "text": "5", "number": 5, "flag": true, "list": [1], "choice": "x", "unknown": "7",
        });
        assert_eq!(given(&hostile(), texts.as_object().expect("an object")), expected);
        let wrong = json!({ "number": "five" });
        assert_eq!(given(&hostile(), wrong.as_object().expect("an object")), wrong);
        let free = JobDoc::from(json!({ "parameters": null }));
        let all = json!({ "": "{\"a\": 1}" });
        assert_eq!(given(&free, all.as_object().expect("an object")), json!({ "a": 1 }));
        assert_eq!(given(&free, &Map::new()), json!({}));
    }
}
