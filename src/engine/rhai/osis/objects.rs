//! The functions that store and find objects.

use ::rhai::{Array, Dynamic, INT, ImmutableString, Map};

use super::context::{CallError, CallResult, OsisJob, RhaiResult, UNEXPECTED, excerpt, operation};
use super::values::{self, ObjectInput};
use crate::engine::rhai::functions::Functions;
use crate::proto::object::{
    Answer, Ask, Change, Context, Field, ObjectId, ObjectType, Query, Write,
};

const BATCH_MAX: usize = 1000;

pub(crate) fn register(functions: &mut Functions<'_>) {
    functions.group(
        "osis",
        "Objects that outlive the script, separate for each context (CONTEXT_ID). An object is a \
         map; the store sets its `id`, `version`, `created_at` and `modified_at`. Strings, numbers, \
         booleans, (), arrays and maps are returned unchanged; other values are rejected.",
    );
    one_by_one(functions);
    many(functions);
}

fn one_by_one(functions: &mut Functions<'_>) {
    functions.add(
        "osis_new",
        ["type"],
        "Returns a new object of a type: a map with a unique id, the time, and the version 0. osis_set stores it; \
         stored again by the same script, it must not have been changed by another since.",
        r#"
let ann = osis_new("person");
ann.name = "Ann";
osis_set("person", ann) == ann.id
// → true"#,
        |object_type: &str| operation("osis_new", object_type, |job| new(job, object_type)),
    );
    functions.add(
        "osis_set",
        ["type", "object"],
        "Stores an object and returns its id; an object without an id gets one. An object with a \
         version, as from osis_get, is stored only if it was not changed since; otherwise the error \
         is `stale version`. Without a version it replaces the stored object. After a deletion the \
         version starts at 1 again.",
        r#"
let id = osis_set("person", #{id: "bob", name: "Bob"});
let bob = osis_get("person", id);
osis_set("person", bob);
let seen = "";
try { osis_set("person", bob) } catch (error) { seen = error; }
seen.contains("stale version")
// → true"#,
        |object_type: &str, object: Map| {
            operation("osis_set", &named(object_type, &object), |job| {
                set(job, object_type, &object)
            })
        },
    );
    functions
        .add(
            "osis_get",
            ["type", "id"],
            "Returns an object, or () if it does not exist.",
            r#"
osis_set("person", #{id: "cas", age: 41});
[osis_get("person", "cas").age, osis_get("person", "nobody") == ()]
// → [41,true]"#,
            |object_type: &str, id: Dynamic| {
                operation("osis_get", &format!("{object_type} {id}"), |job| {
                    get(job, object_type, &id)
                })
            },
        )
        .returns("map or ()");
    existence(functions);
}

fn existence(functions: &mut Functions<'_>) {
    functions.add(
        "osis_exists",
        ["type", "id"],
        "Returns whether an object exists.",
        r#"
osis_set("person", #{id: "dora"});
[osis_exists("person", "dora"), osis_exists("person", "nobody")]
// → [true,false]"#,
        |object_type: &str, id: Dynamic| {
            operation("osis_exists", &format!("{object_type} {id}"), |job| {
                exists(job, object_type.parse()?, values::id(&id)?)
            })
        },
    );
    functions
        .add(
            "osis_delete",
            ["type", "id"],
            "Deletes an object, and returns whether it existed. With a version, only if the object \
             was not changed since.",
            r#"
osis_set("person", #{id: "eve"});
[osis_delete("person", "eve"), osis_delete("person", "eve")]
// → [true,false]"#,
            |object_type: &str, id: Dynamic| delete(object_type, &id, None),
        )
        .overload(["type", "id", "version"], |object_type: &str, id: Dynamic, version: INT| {
            delete(object_type, &id, Some(version))
        });
}

fn many(functions: &mut Functions<'_>) {
    functions
        .add(
            "osis_list",
            ["type"],
            "Returns the sorted ids of all objects of a type. If these exceed the array limit, take \
             them in pages: at most `limit` ids after the id `after`.",
            r#"
for id in ["a", "b", "c"] { osis_set("letter", #{id: id}); }
[osis_list("letter"), osis_list("letter", "a", 1)]
// → [["a","b","c"],["b"]]"#,
            |object_type: &str| {
                operation("osis_list", object_type, |job| list(job, object_type, None))
            },
        )
        .overload(["type", "after", "limit"], |object_type: &str, after: &str, limit: INT| {
            operation("osis_list", object_type, |job| list(job, object_type, Some((after, limit))))
        });
    functions
        .add(
            "osis_find",
            ["type", "query"],
            "Returns the objects that match a query: conditions with =, !=, <, <=, >, >=, `in [..]`, \
             `starts with`, joined by `and`, `or` and parentheses, then `order by FIELD asc` or \
             `desc`, then `limit N`. The default order is by id. A map matches objects with equal \
             fields. The fields must be indexed by [osis.index] of the configuration; id always is. \
             The last object of a page as `after` returns the next page. docs/objects.md describes \
             the language.",
            r#"
for n in 1..6 { osis_set("track", #{id: `t${n}`, title: `Song ${n}`}); }
let query = `id > "t1" order by id desc limit 2`;
let page = osis_find("track", query);
let next = osis_find("track", query, page[1]);
[page.map(|track| track.id), next.map(|track| track.id)]
// → [["t5","t4"],["t3","t2"]]"#,
            |object_type: &str, query: &str| find_by(object_type, query, None),
        )
        .overload(["type", "values"], |object_type: &str, values: Map| {
            operation("osis_find", object_type, |job| find(job, object_type, equal(&values)?, None))
        })
        .overload(["type", "query", "after"], |object_type: &str, query: &str, after: Map| {
            find_by(object_type, query, Some(&after))
        });
    together(functions);
}

fn together(functions: &mut Functions<'_>) {
    functions.add(
        "osis_batch",
        ["changes"],
        "Makes several changes atomically: maps with `set` and `object`, or with `delete` and `id`; \
         the value of `set` or `delete` is the type. Returns for each change the stored id, or \
         whether the deleted object existed.",
        r#"
osis_set("account", #{id: "a", cents: 500});
osis_set("account", #{id: "b", cents: 0});
let from = osis_get("account", "a");
let to = osis_get("account", "b");
from.cents -= 200;
to.cents += 200;
osis_batch([
    #{set: "account", object: from},
    #{set: "account", object: to},
    #{delete: "account", id: "closed"},
])
// → ["a","b",false]"#,
        |changes: Array| operation("osis_batch", "", |job| batch(job, &changes)),
    );
    functions.add(
        "osis_use",
        ["context"],
        "Makes the following calls of this script use the objects of another context, if \
         [osis.access] of the configuration grants it to the caller. Returns the previous context.",
        r"
let own = osis_use(CONTEXT_ID);
own == CONTEXT_ID
// → true",
        |context: &str| operation("osis_use", context, |job| use_context(job, context)),
    );
}

fn named(object_type: &str, object: &Map) -> String {
    match object.get("id").filter(|id| !id.is_unit()) {
        Some(id) => format!("{object_type} {id}"),
        None => object_type.to_owned(),
    }
}

fn new(job: OsisJob<'_>, object_type: &str) -> CallResult<Map> {
    let _: ObjectType = object_type.parse()?;
    let id = job.new_id()?;
    job.note_made(&id);
    Ok(values::new_object(&id, job.now_ms()))
}

fn write_of(job: OsisJob<'_>, object_type: &str, object: &Map) -> CallResult<Write> {
    let has_sid = job.is_declared(object_type);
    let ObjectInput { id, version, created_ms, body } = values::object_input(object, has_sid)?;
    Ok(Write {
        object_type: object_type.parse()?,
        id: id.map_or_else(|| job.new_id(), Ok)?,
        expected: version,
        change: Change::Set { body, created_ms },
    })
}

fn set(job: OsisJob<'_>, object_type: &str, object: &Map) -> CallResult<String> {
    let write = write_of(job, object_type, object)?;
    let id = write.id.to_string();
    job.write_made(vec![write])?;
    Ok(id)
}

pub(super) fn get(job: OsisJob<'_>, object_type: &str, id: &Dynamic) -> CallResult<Dynamic> {
    match job.ask(Ask::Get(object_type.parse()?, values::id(id)?))? {
        Answer::Object(None) => Ok(Dynamic::UNIT),
        Answer::Object(Some(object)) => {
            Ok(values::of_object(object, &mut values::budget(job.run.limits))?.into())
        }
        _ => Err(UNEXPECTED.into()),
    }
}

pub(super) fn exists(job: OsisJob<'_>, object_type: ObjectType, id: ObjectId) -> CallResult<bool> {
    match job.ask(Ask::Exists(object_type, id))? {
        Answer::Exists(is_there) => Ok(is_there),
        _ => Err(UNEXPECTED.into()),
    }
}

fn delete(object_type: &str, id: &Dynamic, version: Option<INT>) -> RhaiResult<bool> {
    operation("osis_delete", &format!("{object_type} {id}"), |job| {
        let expected = version.map(|version| values::version(&version.into())).transpose()?;
        remove(job, object_type.parse()?, values::id(id)?, expected)
    })
}

pub(super) fn remove(
    job: OsisJob<'_>,
    object_type: ObjectType,
    id: ObjectId,
    expected: Option<u64>,
) -> CallResult<bool> {
    let written = job.write(vec![Write { object_type, id, expected, change: Change::Delete }])?;
    Ok(written.first().is_some_and(|written| written.existed))
}

pub(super) fn list(
    job: OsisJob<'_>,
    object_type: &str,
    page: Option<(&str, INT)>,
) -> CallResult<Array> {
    let object_type: ObjectType = object_type.parse()?;
    listed(job, page, |after, limit| Ask::Ids { object_type, after, limit })
}

/// Returns the ids of all that `ask` names, or of a page: at most so many after an id.
pub(super) fn listed(
    job: OsisJob<'_>,
    page: Option<(&str, INT)>,
    ask: impl FnOnce(Option<ObjectId>, usize) -> Ask,
) -> CallResult<Array> {
    let max = job.run.limits.array_len_max.min(9_999);
    let (after, limit) = match page {
        None => (None, max + 1),
        Some((after, limit)) => {
            let after = (!after.is_empty()).then(|| after.parse()).transpose()?;
            (after, limited(limit, max)?)
        }
    };
    let Answer::Ids(ids) = job.ask(ask(after, limit))? else {
        return Err(UNEXPECTED.into());
    };
    if ids.len() > max {
        return Err(format!(
            "more than {max} objects; take them in pages: give the id before the page's start \
             and a limit"
        )
        .into());
    }
    Ok(ids.into_iter().map(|id| id.to_string().into()).collect())
}

fn limited(limit: INT, max: usize) -> CallResult<usize> {
    match usize::try_from(limit) {
        Ok(limit) if (1..=max).contains(&limit) => Ok(limit),
        _ => Err(format!("the limit must be a number from 1 to {max}").into()),
    }
}

fn equal(values: &Map) -> CallResult<Query> {
    let mut pairs: Vec<(Field, serde_json::Value)> = Vec::new();
    for (name, value) in values {
        pairs.push((name.parse()?, values::to_json(value, name, 1)?));
    }
    Ok(Query::equal(&pairs)?)
}

fn find_by(object_type: &str, query: &str, after: Option<&Map>) -> RhaiResult<Array> {
    operation("osis_find", object_type, |job| find(job, object_type, Query::parse(query)?, after))
}

fn find(
    job: OsisJob<'_>,
    object_type: &str,
    query: Query,
    after: Option<&Map>,
) -> CallResult<Array> {
    let max = job.run.limits.array_len_max.min(9_999);
    if query.limit.is_some_and(|limit| limit > max) {
        return Err(format!("the limit must be a number from 1 to {max}").into());
    }
    let has_sid = job.is_declared(object_type);
    let after = match after.map(|after| values::object_input(after, has_sid)).transpose()? {
        None => None,
        Some(ObjectInput { id: Some(id), body, .. }) => Some((id, body)),
        Some(ObjectInput { id: None, .. }) => {
            return Err("the object to start the page after has no id".into());
        }
    };
    let object_type: ObjectType = object_type.parse()?;
    let ask = Ask::Find { object_type, query, after, limit: max + 1 };
    let Answer::Objects(objects) = job.ask(ask)? else { return Err(UNEXPECTED.into()) };
    if objects.len() > max {
        return Err(format!("more than {max} objects match; add `limit` to the query").into());
    }
    Ok(values::of_objects(objects, job.run.limits)?)
}

fn batch(job: OsisJob<'_>, changes: &Array) -> CallResult<Array> {
    if changes.len() > BATCH_MAX {
        return Err(format!("a batch has at most {BATCH_MAX} changes").into());
    }
    let mut writes = Vec::with_capacity(changes.len());
    for (index, change) in changes.iter().enumerate() {
        let write = change_of(job, change).map_err(|failed| match failed {
            CallError::Failed(why) => CallError::Failed(format!("change {index}: {why}")),
            CallError::JobEnded => CallError::JobEnded,
        })?;
        writes.push(write);
    }
    if writes.is_empty() {
        return Ok(Array::new());
    }
    let ids: Vec<Option<String>> = writes
        .iter()
        .map(|write| matches!(write.change, Change::Set { .. }).then(|| write.id.to_string()))
        .collect();
    let written = job.write_made(writes)?;
    let results = ids.into_iter().zip(written);
    Ok(results.map(|(id, written)| id.map_or_else(|| written.existed.into(), Into::into)).collect())
}

fn change_of(job: OsisJob<'_>, change: &Dynamic) -> CallResult<Write> {
    const FORM: &str = "expected a map with `set` and `object`, or with `delete` and `id`";
    let change = change.flatten_clone();
    let map = change.read_lock::<Map>().ok_or(FORM)?;
    let text = |name: &str| map.get(name)?.read_lock::<ImmutableString>().map(|text| text.clone());
    match (text("set"), text("delete")) {
        (Some(object_type), None) => {
            let object = map.get("object").ok_or(FORM)?.flatten_clone();
            let object = object.read_lock::<Map>().ok_or(FORM)?;
            write_of(job, &object_type, &object)
        }
        (None, Some(object_type)) => Ok(Write {
            object_type: object_type.parse()?,
            id: values::id(map.get("id").ok_or(FORM)?)?,
            expected: map.get("version").map(values::version).transpose()?,
            change: Change::Delete,
        }),
        _ => Err(FORM.into()),
    }
}

fn use_context(job: OsisJob<'_>, context: &str) -> CallResult<String> {
    let _: Context = context.parse()?;
    let script = job.run.script;
    let is_own = context == script.context_id;
    if !is_own && !job.settings.osis.grants(script.caller_id, context) {
        return Err(format!(
            "not allowed: osis.access does not grant it to the caller `{}`",
            excerpt(script.caller_id)
        )
        .into());
    }
    job.check_bounds(context)?;
    let before = job.run.context.replace(Some(context.to_owned()));
    Ok(before.unwrap_or_else(|| script.context_id.to_owned()))
}
