//! The functions of declared types, as the published herolib names them: `osis_project_task_set`
//! and its like store the objects of the type `project_task`, which have their id as `sid`.

use ::rhai::{Array, Dynamic, Engine, INT, Map};

use super::context::{CallResult, OsisJob, UNEXPECTED, operation};
use super::objects::{exists, get, list, listed, remove};
use super::values::{self, ObjectInput};
use crate::config::OsisConfig;
use crate::proto::object::{
    Ask, Change, ObjectError, ObjectId, ObjectType, Right, SID, WordQuery, Write,
};

/// The length of a new sid, in digits of base 36: it is one of two thousand million.
const SID_LEN: usize = 6;
/// The sids that are tried for one object: one may be taken.
const SID_TRIES_MAX: usize = 8;

pub(crate) fn register(engine: &mut Engine, config: &OsisConfig) {
    for (object_type, _) in config.declared() {
        register_type(engine, &object_type);
    }
}

fn register_type(engine: &mut Engine, object_type: &ObjectType) {
    let name = |verb: &str| format!("osis_{object_type}_{verb}");
    let of = |verb: &str| (name(verb), object_type.clone());

    let (called, of_type) = of("new");
    engine.register_fn(name("new"), move || operation(&called, "", |job| new(job, &of_type)));

    let (called, of_type) = of("set");
    engine.register_fn(name("set"), move |object: &mut Map| {
        let sid = object.get(SID).map(ToString::to_string).unwrap_or_default();
        operation(&called, &sid, |job| set(job, &of_type, object))
    });

    let (called, of_type) = of("get");
    engine.register_fn(name("get"), move |sid: Dynamic| {
        operation(&called, &sid.to_string(), |job| found(get(job, of_type.as_str(), &sid)?))
    });

    let (called, of_type) = of("exists");
    engine.register_fn(name("exists"), move |sid: Dynamic| {
        operation(&called, &sid.to_string(), |job| exists(job, of_type.clone(), values::id(&sid)?))
    });

    let (called, of_type) = of("delete");
    engine.register_fn(name("delete"), move |sid: Dynamic| {
        operation(&called, &sid.to_string(), |job| {
            remove(job, of_type.clone(), values::id(&sid)?, None)
        })
    });

    let (called, of_type) = of("list");
    engine.register_fn(name("list"), move || {
        operation(&called, "", |job| -> CallResult<Array> { list(job, of_type.as_str(), None) })
    });
    let (called, of_type) = of("find");
    engine.register_fn(name("find"), move |query: &str| {
        operation(&called, "", |job| find(job, &of_type, query, None))
    });
    let (called, of_type) = of("find");
    engine.register_fn(name("find"), move |query: &str, after: &str, limit: INT| {
        operation(&called, "", |job| find(job, &of_type, query, Some((after, limit))))
    });

    let (called, of_type) = of("list");
    engine.register_fn(name("list"), move |after: &str, limit: INT| {
        operation(&called, after, |job| list(job, of_type.as_str(), Some((after, limit))))
    });
}

fn new(job: OsisJob<'_>, object_type: &ObjectType) -> CallResult<Map> {
    job.check_right(object_type, Right::Write)?;
    for _ in 0..SID_TRIES_MAX {
        let sid = random_sid(job)?;
        if !exists(job, object_type.clone(), sid.clone())? {
            let mut object = values::new_object(&sid, job.now_ms());
            object.insert(SID.into(), sid.to_string().into());
            return Ok(object);
        }
    }
    Err("found no free sid; try again".into())
}

fn random_sid(job: OsisJob<'_>) -> CallResult<ObjectId> {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let text = job.random(|rng| {
        let digit = |_| char::from(DIGITS[rng.usize(..DIGITS.len())]);
        (0..SID_LEN).map(digit).collect::<String>()
    });
    Ok(text.parse()?)
}

/// Stores an object. One without a sid gets one, also in the variable of the script.
fn set(job: OsisJob<'_>, object_type: &ObjectType, object: &mut Map) -> CallResult<String> {
    let ObjectInput { id, version, created_ms, body } = values::object_input(object, true)?;
    let write = |id: ObjectId, expected| Write {
        object_type: object_type.clone(),
        id,
        expected,
        change: Change::Set { body: body.clone(), created_ms },
    };
    let (id, written) = if let Some(id) = id {
        (id.clone(), job.write(vec![write(id, version)])?)
    } else {
        let mut tries = SID_TRIES_MAX;
        loop {
            let sid = random_sid(job)?;
            tries -= 1;
            match job.try_write(vec![write(sid.clone(), Some(0))])? {
                Ok(written) => break (sid, written),
                Err(ObjectError::Stale { .. }) if tries > 0 => {}
                Err(error) => return Err(error.into()),
            }
        }
    };
    object.insert(SID.into(), id.to_string().into());
    if version.is_some() {
        let now = written.first().map_or(0, |written| written.version);
        object.insert("version".into(), INT::try_from(now).unwrap_or(INT::MAX).into());
    }
    Ok(id.to_string())
}

/// Returns an object with its sid; without an object, the error for it.
fn found(object: Dynamic) -> CallResult<Dynamic> {
    let Some(mut object) = object.try_cast::<Map>() else {
        return Err("object not found".into());
    };
    let sid = object.get("id").cloned().unwrap_or_default();
    object.insert(SID.into(), sid);
    Ok(object.into())
}

/// Finds the sids of the objects that have words.
fn find(
    job: OsisJob<'_>,
    object_type: &ObjectType,
    query: &str,
    page: Option<(&str, INT)>,
) -> CallResult<Array> {
    let Some((key, schema)) = job.settings.osis.schema_of(object_type) else {
        return Err(UNEXPECTED.into());
    };
    if schema.text.is_empty() {
        return Err(format!("no text fields; declare some: {key}.text").into());
    }
    let query = WordQuery::parse(query, schema)?;
    listed(job, page, |after, limit| Ask::Search {
        object_type: object_type.clone(),
        query,
        after,
        limit,
    })
}
