//! `/dead`: dead letters, jobs that used up their attempts; retry and delete.

use axum::extract::{Query, State};
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::doc::JobDoc;
use super::error::PageError;
use super::fields::Fields;
use super::layout::{Nav, WebPage, head};
use super::links::SiteLinks;
use super::parts::{
    Confirm, ago, bulk, columns, count, empty, first_line, pager, pick, pick_all, short_id, things,
};
use super::site::Site;
use super::visitor::Visitor;
use crate::rpc::Scope;

const ROWS: usize = 50;

/// The filters of the list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct DeadQuery {
    #[serde(rename = "type")]
    script_type: String,
    /// A part of the error.
    q: String,
    cursor: String,
}

impl DeadQuery {
    fn params(&self) -> Map<String, Value> {
        let given = [("script_type", self.script_type.trim()), ("error", self.q.trim())];
        let given = given.into_iter().filter(|(_, text)| !text.is_empty());
        given.map(|(name, text)| (name.to_owned(), json!(text))).collect()
    }

    fn address(&self, links: &SiteLinks, cursor: &str) -> String {
        links.with("/dead", &[("type", &self.script_type), ("q", &self.q), ("cursor", cursor)])
    }
}

/// Lists dead letters.
pub(super) async fn list(
    State(site): State<Site>,
    visitor: Visitor,
    Query(query): Query<DeadQuery>,
) -> Result<Response, PageError> {
    let now = site.snapshot(&visitor).await?;
    let mut params = query.params();
    params.insert("limit".to_owned(), json!(ROWS));
    if !query.cursor.is_empty() {
        params.insert("cursor".to_owned(), json!(query.cursor));
    }
    let answer = site.ask(&visitor, "dead.list", Value::Object(params)).await?;
    let (letters, next) = JobDoc::page(answer);
    let links = site.links();
    let next = next.map(|next| query.address(links, &next));
    let first = (!query.cursor.is_empty()).then(|| query.address(links, ""));
    let line = html! { @if let Some(number) = now.dead() { (things(number, "job")) } @else { "Jobs" } " used up their attempts. Each keeps its script until it is retried or deleted." };
    let shown = things(letters.len() as u64, "dead letter");
    let main = html! {
        (head("Dead letters", &line, &html! {}))
        (filters(&site, &query))
        @if letters.is_empty() {
            (empty(&html! { @if query.params().is_empty() { "No dead letters." } @else { "No dead letter matches. " a href=(links.to("/dead")) { "Clear the filters." } } }))
        } @else {
            form method="post" action=(links.to("/dead")) {
                (visitor.forgery_field())
                input type="hidden" name="type" value=(query.script_type);
                input type="hidden" name="q" value=(query.q);
                (table(&letters, links, now.moment.at, visitor.may(Scope::Operate)))
                @if visitor.may(Scope::Operate) { (buttons(&visitor)) }
                (pager(&shown, first.as_deref(), next.as_deref()))
            }
        }
    };
    Ok(site.page(&visitor, &now, &WebPage::still("Dead letters", Nav::DeadLetters, main)))
}

fn filters(site: &Site, query: &DeadQuery) -> Markup {
    let types: Vec<String> = site.config().types.keys().map(ToString::to_string).collect();
    html! {
        form.filters action=(site.links().to("/dead")) role="search" aria-label="Filter dead letters" {
            label.grow {
                span.sr { "Error" }
                input.w type="search" name="q" value=(query.q) placeholder="Error contains";
            }
            label {
                "Type "
                select name="type" data-submit {
                    option value="" { "any" }
                    @for name in &types { option value=(name) selected[*name == query.script_type] { (name) } }
                }
            }
            button { "Filter" }
        }
    }
}

fn buttons(visitor: &Visitor) -> Markup {
    let buttons = html! {
        button name="do" value="retry" { "Retry" }
        button.danger name="do" value="delete" { "Delete…" }
        label {
            input type="checkbox" name="all" value="1";
            @if visitor.may(Scope::Admin) { " all that match" } @else { " all that match (retry only)" }
        }
    };
    bulk("dead letters", &buttons)
}

fn table(letters: &[JobDoc], links: &SiteLinks, now: Timestamp, picks: bool) -> Markup {
    html! {
        table.stack.fix.jobs role="table" {
            caption.sr { "Dead letters" }
            thead role="rowgroup" {
                tr role="row" {
                    @if picks { (pick_all()) }
                    (columns(&[
                        ("c-id", "Job"), ("", "Error"), ("c-tg", "Type, group"), ("c-ca", "Caller"),
                        ("num c-at", "Attempts"), ("num c-tk", "Died"),
                    ]))
                }
            }
            tbody role="rowgroup" { @for letter in letters { (row(letter, links, now, picks)) } }
        }
    }
}

fn row(letter: &JobDoc, links: &SiteLinks, now: Timestamp, picks: bool) -> Markup {
    let (id, error) = (letter.id(), letter.text("error"));
    html! {
        tr role="row" {
            @if picks { (pick("id", id, short_id(id))) }
            td.cut.m1 role="cell" { (letter.link(links)) }
            td.why.cut.m5.in role="cell" { span.err title=(error) { (first_line(error)) } }
            td.dim.wide.cut role="cell" { (letter.type_and_group()) }
            td.dim.wide.cut role="cell" { (letter.text("caller_id")) }
            td.num.dim.wide role="cell" { (letter.attempts()) }
            td.num.dim.mr role="cell" {
                @if let Some(at) = letter.time("finished_at") { (ago(at, now)) } @else { "–" }
            }
        }
    }
}

/// Retries or deletes dead letters.
pub(super) async fn change(
    State(site): State<Site>,
    visitor: Visitor,
    fields: Fields,
) -> Result<Response, PageError> {
    let verb @ ("retry" | "delete") = fields.get("do") else {
        return Err(PageError::wrong("The form asks for nothing that dead letters can do."));
    };
    visitor.needs(Scope::Operate, &format!("{verb} dead letters"))?;
    let query = DeadQuery {
        script_type: fields.get("type").to_owned(),
        q: fields.get("q").to_owned(),
        cursor: String::new(),
    };
    let ids: Vec<&str> = fields.all("id").collect();
    let all = fields.get("all") == "1";
    if !all && ids.is_empty() {
        return Err(PageError::wrong("The form names no dead letter."));
    }
    if verb == "delete" && fields.get("sure") != "1" {
        return ask(&site, &visitor, &query, &ids, all).await;
    }
    let mut params = if all { query.params() } else { Map::new() };
    if all {
        params.insert("all".to_owned(), json!(true));
    } else {
        params.insert("ids".to_owned(), json!(ids));
    }
    let answer = site.call(&visitor, &format!("dead.{verb}"), Value::Object(params)).await?;
    site.snapshots_are_old();
    let number = |name: &str| answer.get(name).and_then(Value::as_u64).unwrap_or_default();
    let said = tally(verb, number("done"), number("left"));
    Ok(site.done(&query.address(&SiteLinks::new(""), ""), &said))
}

fn tally(verb: &str, done: u64, left: u64) -> String {
    let word = if verb == "retry" { "Retried" } else { "Deleted" };
    let first = format!("{word} {}.", things(done, "dead letter"));
    if left == 0 { first } else { format!("{first} {} could not be.", count(left)) }
}

async fn ask(
    site: &Site,
    visitor: &Visitor,
    query: &DeadQuery,
    ids: &[&str],
    all: bool,
) -> Result<Response, PageError> {
    let what = if all {
        "all dead letters that match".to_owned()
    } else {
        things(ids.len() as u64, "dead letter")
    };
    let mut fields: Vec<(&str, String)> = ids.iter().map(|id| ("id", (*id).to_owned())).collect();
    fields.push(("type", query.script_type.clone()));
    fields.push(("q", query.q.clone()));
    fields.push(("do", "delete".to_owned()));
    fields.push(("sure", "1".to_owned()));
    if all {
        fields.push(("all", "1".to_owned()));
    }
    let question = Confirm {
        title: format!("Delete {what}?"),
        text: "Their scripts and errors are gone for good.".to_owned(),
        back: query.address(site.links(), ""),
        action: site.links().to("/dead"),
        fields,
        verb: "Delete them",
    };
    site.question(visitor, Nav::DeadLetters, &question).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_counts_those_that_stayed() {
        assert_eq!(tally("retry", 1, 0), "Retried 1 dead letter.");
        assert_eq!(tally("delete", 2, 3), "Deleted 2 dead letters. 3 could not be.");
    }

    #[test]
    fn hostile_dead_letter_is_escaped() {
        let hostile = "<script>alert(1)</script>";
        let letter = JobDoc::from(json!({
            "id": hostile, "name": hostile, "error": hostile, "script_type": hostile,
            "group": hostile, "caller_id": hostile,
        }));
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        let text = table(&[letter], &SiteLinks::new("/"), now, true).into_string();
        assert!(!text.contains("<script"), "{text}");
    }
}
