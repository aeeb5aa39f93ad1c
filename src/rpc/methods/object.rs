//! `object.*`: the objects that scripts store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::job::Deleted;
use super::params::page_size;
use super::{CallContext, Result, RpcError, Scope, code};
use crate::proto::object::{self, Answer, Ask, Change, Object, ObjectId, ObjectType, Query, Write};

const PAGE_MAX: usize = 1000;
const CONTEXTS_MAX: usize = 100;

methods! {
    /// Counts the objects of each type by context, page by page.
    "object.types", Scope::Read => types;
    /// Lists the objects of one type by id, page by page.
    "object.list", Scope::Read => list;
    /// Finds the objects that match a query.
    "object.find", Scope::Read => find;
    /// Returns one object.
    "object.get", Scope::Read => get;
    /// Deletes objects of one type.
    "object.delete", Scope::Operate => delete;
}

/// Contexts to count the objects of.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Types {
    /// Only this context; all without it.
    context: Option<object::Context>,
    /// The `next` of the page before.
    after: Option<object::Context>,
}

/// Numbers of objects.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TypeCounts {
    /// Each type of each context.
    pub(crate) types: Vec<TypeCount>,
    /// The value of `after` for the next page, if there may be one.
    pub(crate) next: Option<String>,
}

/// The objects of one type in one context.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TypeCount {
    /// The context.
    pub(crate) context: String,
    /// The type.
    #[serde(rename = "type")]
    pub(crate) object_type: String,
    /// The number of objects.
    pub(crate) objects: u64,
}

async fn types(context: CallContext, params: Types) -> Result<TypeCounts> {
    let (contexts, next) = if let Some(named) = params.context {
        context.admits_context(&named.text())?;
        (vec![named], None)
    } else {
        if context.caller.bounds.contexts.is_none() {
            context.admits_context("")?;
        }
        if let Some(own) = &context.caller.bounds.contexts {
            // No cursor names a context of others.
            (own.iter().filter_map(|name| name.parse().ok()).collect(), None)
        } else {
            let page =
                context.client.objects().contexts(params.after.as_ref(), CONTEXTS_MAX).await?;
            let last = page.last().filter(|_| page.len() == CONTEXTS_MAX);
            let next = last.map(object::Context::text);
            (page, next)
        }
    };
    let mut types = Vec::new();
    for of in contexts {
        let text = of.text();
        if context.admits_context(&text).is_err() {
            continue;
        }
        for (object_type, objects) in context.client.objects().counts(&of).await? {
            let object_type = object_type.to_string();
            types.push(TypeCount { context: text.clone(), object_type, objects });
        }
    }
    Ok(TypeCounts { types, next })
}

/// A page of objects to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListObjects {
    /// The type of the objects.
    #[serde(rename = "type")]
    object_type: ObjectType,
    /// The context; the empty one without it.
    #[serde(default)]
    context: String,
    /// Only objects after this one, such as `next` of the page before.
    after: Option<ObjectId>,
    /// The size of the page, up to 1000; 50 without it.
    limit: Option<usize>,
}

/// A page of objects.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ObjectPage {
    /// The objects, each with its `id`, `version`, `created_at` and `modified_at`.
    pub(crate) objects: Vec<Map<String, Value>>,
    /// The value of `after` for the next page, if there may be one.
    pub(crate) next: Option<String>,
}

fn named(context: &CallContext, name: &str) -> Result<object::Context> {
    context.admits_context(name)?;
    Ok(name.parse()?)
}

async fn list(context: CallContext, params: ListObjects) -> Result<ObjectPage> {
    let of = named(&context, &params.context)?;
    let limit = page_size(params.limit, PAGE_MAX)?;
    let (object_type, after) = (&params.object_type, params.after.as_ref());
    let (objects, next) = context.client.objects().page(&of, object_type, after, limit).await?;
    Ok(ObjectPage {
        objects: objects.iter().map(Object::document).collect(),
        next: next.map(|id| id.to_string()),
    })
}

/// Objects to find.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Find {
    /// The type of the objects.
    #[serde(rename = "type")]
    object_type: ObjectType,
    /// The query, such as `age > 30 order by name`.
    query: String,
    /// The context; the empty one without it.
    #[serde(default)]
    context: String,
    /// The maximum number of objects, up to 1000; 50 without it.
    limit: Option<usize>,
}

async fn find(context: CallContext, params: Find) -> Result<ObjectPage> {
    let of = named(&context, &params.context)?;
    let (object_type, limit) = (params.object_type, page_size(params.limit, PAGE_MAX)?);
    let query =
        Query::parse(&params.query).map_err(|error| RpcError::wrong("query", error.to_string()))?;
    let ask = Ask::Find { object_type, query, after: None, limit };
    let objects = match context.client.objects().list(&of, ask, &context.config.osis).await? {
        Answer::Objects(objects) => objects.iter().map(Object::document).collect(),
        _ => Vec::new(),
    };
    Ok(ObjectPage { objects, next: None })
}

/// One object.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneObject {
    /// The type of the object.
    #[serde(rename = "type")]
    object_type: ObjectType,
    /// The id of the object.
    id: ObjectId,
    /// The context; the empty one without it.
    #[serde(default)]
    context: String,
}

async fn get(context: CallContext, params: OneObject) -> Result<Map<String, Value>> {
    let of = named(&context, &params.context)?;
    let (object_type, id) = (params.object_type, params.id);
    let ask = Ask::Get(object_type.clone(), id.clone());
    let answer = context.client.objects().list(&of, ask, &context.config.osis).await?;
    if let Answer::Object(Some(object)) = answer {
        return Ok(object.document());
    }
    let message = format!("no such object: {object_type} {}", id.as_str().escape_debug());
    Err(RpcError::new(code::NOT_FOUND, message))
}

/// Objects of one type.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SomeObjects {
    /// The type of the objects.
    #[serde(rename = "type")]
    object_type: ObjectType,
    /// The ids of the objects, up to 1000.
    ids: Vec<ObjectId>,
    /// The context; the empty one without it.
    #[serde(default)]
    context: String,
}

async fn delete(context: CallContext, params: SomeObjects) -> Result<Deleted> {
    let of = named(&context, &params.context)?;
    if params.ids.len() > PAGE_MAX {
        let message = format!("`ids` names more than {PAGE_MAX} objects");
        return Err(RpcError::wrong("ids", message));
    }
    let write = |id: ObjectId| {
        let object_type = params.object_type.clone();
        Write { object_type, id, expected: None, change: Change::Delete }
    };
    let writes = params.ids.into_iter().map(write).collect();
    let written = context.client.objects().change(&of, writes, &context.config.osis).await?;
    let deleted = written.iter().filter(|written| written.existed).count();
    Ok(Deleted { deleted: deleted as u64 })
}
