//! `/objects`: the objects that scripts store, by context and type; delete.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::parts::{Confirm, PageTable, bulk, count, empty, given, head, pager, things, tick};
use super::prelude::*;
use crate::rpc::Scope;
use crate::rpc::results::{Deleted, ObjectPage, TypeCount, TypeCounts};
use crate::view::job_csv::plain;

/// The longest text of an object in a row, in characters.
const SHOWN_MAX: usize = 400;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ObjectQuery {
    context: String,
    #[serde(rename = "type")]
    object_type: String,
    after: String,
}

/// Shows the types of objects, or the objects of one type.
pub(super) async fn list(visit: Visit, PageQuery(query): PageQuery<ObjectQuery>) -> PageResult {
    let now = visit.snapshot().await?;
    let main = if query.object_type.is_empty() {
        types(&visit, &query).await?
    } else {
        of_type(&visit, &query).await?
    };
    Ok(visit.page(&now, &WebPage::still("Objects", Nav::Objects, main)))
}

async fn types(visit: &Visit, query: &ObjectQuery) -> PageResult<Markup> {
    let params = json!({ "after": given(&query.after) });
    let TypeCounts { types, next } = visit.ask("object.types", params).await?;
    let links = visit.links();
    let further = |after: &str| links.with("/objects", &[("after", after)]);
    let line = html! { "Maps that osis scripts store, with an id, a type and a version." };
    Ok(html! {
        (head("Objects", &line, &html! {}))
        (type_table(&types, links))
        (pager(&things(types.len() as u64, "type"), ("", next.as_deref()), further))
    })
}

fn type_table(types: &[TypeCount], links: &SiteLinks) -> Markup {
    PageTable::of(types, "nopick", "Types of objects by context")
        .column("Type", "m1", |TypeCount { object_type, context, .. }| {
            html! {
                a.id href=(links.with("/objects", &address(object_type, context))) { (object_type) }
            }
        })
        .column("Context", "dim m4", |of| {
            html! {
                @if of.context.is_empty() { span.faint { "no context" } } @else { (of.context) }
            }
        })
        .column("Objects", "num mr", |of| html! { (count(of.objects)) })
        .or(&html! { "No objects." })
}

async fn of_type(visit: &Visit, query: &ObjectQuery) -> PageResult<Markup> {
    let (name, context) = (query.object_type.as_str(), query.context.as_str());
    let params = json!({ "type": name, "context": context, "after": given(&query.after) });
    let ObjectPage { objects, next } = visit.ask("object.list", params).await?;
    let (links, own) = (visit.links(), address(name, context));
    let picks = visit.may(Scope::Operate);
    let further = |after: &str| links.with("/objects", &[&own[..], &[("after", after)]].concat());
    let line = html! { @if context.is_empty() { "without a context" } @else { "of the context " (context) } };
    Ok(html! {
        p.crumb { a href=(links.to("/objects")) { "Objects" } }
        (head(name, &line, &html! {}))
        @if objects.is_empty() {
            (empty(&html! { @if !query.after.is_empty() { "No further objects." } @else { "No objects of this type." } }))
        } @else {
            form method="post" action=(links.to("/objects")) {
                (visit.forgery_field())
                input type="hidden" name="type" value=(name);
                input type="hidden" name="context" value=(context);
                (object_table(&objects, picks))
                @if picks {
                    (bulk("objects", &html! { button.danger name="do" value="delete" { "Delete…" } }))
                }
            }
        }
        (pager(&things(objects.len() as u64, "object"), (&query.after, next.as_deref()), further))
    })
}

fn address<'a>(object_type: &'a str, context: &'a str) -> [(&'static str, &'a str); 2] {
    [("type", object_type), ("context", context)]
}

fn object_table(objects: &[Map<String, Value>], picks: bool) -> Markup {
    let id = |object: &Map<String, Value>| plain(object.get("id"));
    let classes = if picks { "fix" } else { "fix nopick" };
    PageTable::of(objects, classes, "Objects by id")
        .ticks_if(picks, |object| tick("id", &id(object), &id(object)))
        .column("Id", "id cut m1 c-tg", |object| html! { span title=(id(object)) { (id(object)) } })
        .column("Fields", "mono cut m5 in", |object| html! { (fields(object)) })
        .column("Version", "num mr c-at", |object| {
            html! {
                span.only-n.faint { "version " } (plain(object.get("version")))
            }
        })
        .markup()
}

/// Returns the fields of an object that its scripts wrote, cut.
fn fields(object: &Map<String, Value>) -> String {
    const OWN: [&str; 4] = ["id", "version", "created_at", "modified_at"];
    let mut others = object.clone();
    others.retain(|name, _| !OWN.contains(&name.as_str()));
    Value::Object(others).to_string().chars().take(SHOWN_MAX).collect()
}

/// Deletes the objects that are ticked, after a question.
pub(super) async fn change(visit: Visit, fields: Fields) -> PageResult {
    if fields.get("do") != "delete" {
        return Err(PageError::wrong("The form asks for nothing that objects can do."));
    }
    visit.needs(Scope::Operate, "delete objects")?;
    let (name, context) = (fields.get("type"), fields.get("context"));
    let ids: Vec<&str> = fields.all("id").collect();
    if ids.is_empty() {
        return Err(PageError::wrong("The form names no object."));
    }
    let back = |links: &SiteLinks| links.with("/objects", &address(name, context));
    if fields.get("sure") != "1" {
        let what = things(ids.len() as u64, "object");
        let given = [("type", name), ("context", context), ("do", "delete"), ("sure", "1")];
        let given = given.into_iter().chain(ids.iter().map(|id| ("id", *id)));
        let question = Confirm {
            title: format!("Delete {what} of the type {name}?"),
            text: "They are gone for good. Scripts that read them find nothing.".to_owned(),
            back: back(visit.links()),
            action: visit.links().to("/objects"),
            fields: given.collect(),
            verb: "Delete them",
        };
        return visit.question(Nav::Objects, &question).await;
    }
    let params = json!({ "type": name, "context": context, "ids": ids });
    let Deleted { deleted } = visit.call_for("object.delete", params).await?;
    Ok(visit.done(&back(&SiteLinks::default()), &format!("Deleted {}.", things(deleted, "object"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_objects_are_escaped_and_cut() {
        let hostile = "<script>alert(1)</script>";
        let object = json!({ "id": hostile, "version": 2, hostile: hostile.repeat(100) });
        let object = object.as_object().expect("an object");
        let [context, object_type] = [hostile; 2].map(str::to_owned);
        let types = [TypeCount { context, object_type, objects: 3 }];
        let links = SiteLinks::new("/");
        let tables = [object_table(std::slice::from_ref(object), true), type_table(&types, &links)];
        let text = tables.map(Markup::into_string).concat();
        assert!(!text.contains("<script"), "{text}");
        assert_eq!(fields(object).chars().count(), SHOWN_MAX);
    }
}
