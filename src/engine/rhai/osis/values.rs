//! Conversion between script values and stored JSON, without loss. A value without a JSON form is rejected.

use ::rhai::{Array, Dynamic, INT, ImmutableString, Map};
use serde_json::Value;

use crate::config::RhaiLimits;
use crate::engine::rhai::formats::{Budget, from_json};
use crate::engine::rhai::runtime::json_form::{JsonForm, JsonRules, OtherText};
use crate::proto::object::{OWN_FIELDS, Object, ObjectId, SID, time_ms, time_text};

/// An object from a script: its own fields apart from the store's.
#[derive(Debug)]
pub(super) struct ObjectInput {
    pub(super) id: Option<ObjectId>,
    pub(super) version: Option<u64>,
    pub(super) created_ms: Option<i64>,
    pub(super) body: serde_json::Map<String, Value>,
}

/// Reads an object from a script. With `has_sid` the field `sid` is its id; an empty one is none.
pub(super) fn object_input(map: &Map, has_sid: bool) -> Result<ObjectInput, String> {
    let of = |name: &str| map.get(name).filter(|value| !value.is_unit());
    let time = |value: &Dynamic| {
        let time = value.read_lock::<ImmutableString>().and_then(|text| time_ms(&text));
        time.ok_or("created_at must be a time such as 2026-01-31T12:00:00.000Z")
    };
    let created_ms = of("created_at").map(time).transpose()?;
    let version = of("version").map(version).transpose()?;
    let own = |name: &str| OWN_FIELDS.contains(&name) || has_sid && name == SID;
    let body = map.iter().filter(|(name, _)| !own(name));
    let body = body.map(|(name, value)| Ok((name.to_string(), to_json(value, name, 1)?)));
    let is_given =
        |value: &&Dynamic| value.read_lock::<ImmutableString>().is_none_or(|t| !t.is_empty());
    let sid = of(SID).filter(|_| has_sid).filter(is_given).map(id).transpose()?;
    let plain = of("id").map(id).transpose()?;
    if sid.as_ref().is_some_and(|sid| plain.as_ref().is_some_and(|plain| plain != sid)) {
        return Err("its sid and its id differ; give one of them".to_owned());
    }
    Ok(ObjectInput {
        id: sid.or(plain),
        version,
        created_ms,
        body: body.collect::<Result<_, String>>()?,
    })
}

/// Returns a new object. Its version 0 lets a store of it fail if there is an object of this id.
pub(super) fn new_object(id: &ObjectId, now_ms: i64) -> Map {
    let now = time_text(now_ms);
    Map::from([
        ("id".into(), id.to_string().into()),
        ("version".into(), INT::from(0).into()),
        ("created_at".into(), now.clone().into()),
        ("modified_at".into(), now.into()),
    ])
}

/// Reads an id from a script: a string or a whole number.
pub(super) fn id(value: &Dynamic) -> Result<ObjectId, String> {
    let text = match (value.as_int(), value.read_lock::<ImmutableString>()) {
        (Ok(number), _) => number.to_string(),
        (_, Some(text)) => text.to_string(),
        _ => return Err(format!("an id must be a string, not {}", value.type_name())),
    };
    text.parse().map_err(|error| format!("{error}"))
}

pub(super) fn version(value: &Dynamic) -> Result<u64, String> {
    let number = value.as_int().ok().and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| "a version must be a whole number from 0".to_owned())
}

/// Converts a value to JSON. `field` is its name, for error messages.
pub(super) fn to_json(value: &Dynamic, field: &str, nesting: usize) -> Result<Value, String> {
    const TOO_DEEP: &str = "the object is nested deeper than 127 levels";
    let rules = JsonRules { too_deep: TOO_DEEP, other: &rejected };
    let form = JsonForm { value, field, depth: nesting, rules };
    serde_json::to_value(form).map_err(|error| error.to_string())
}

fn rejected(value: &Dynamic, field: &str) -> OtherText {
    if value.is_float() {
        return Err(format!("{field} is not a finite number"));
    }
    let type_name = value.type_name();
    Err(format!("{field} has the type {type_name}, which cannot be stored; store a string instead"))
}

pub(super) fn of_objects(objects: Vec<Object>, limits: &RhaiLimits) -> Result<Array, String> {
    let mut budget = budget(limits);
    let maps = objects.into_iter().map(|object| {
        budget.element()?;
        Ok(of_object(object, &mut budget)?.into())
    });
    maps.collect()
}

/// Returns a stored object within the limits of the script; Rhai checks only its own values.
pub(super) fn of_object(object: Object, budget: &mut Budget<'_>) -> Result<Map, String> {
    let mut map = Map::new();
    for (name, value) in object.body {
        budget.entry(&name)?;
        map.insert(name.into(), from_json(value, budget)?);
    }
    let version = INT::try_from(object.version).unwrap_or(INT::MAX);
    for (name, value) in [
        ("id", object.id.to_string().into()),
        ("version", version.into()),
        ("created_at", time_text(object.created_ms).into()),
        ("modified_at", time_text(object.modified_ms).into()),
    ] {
        budget.entry(name)?;
        map.insert(name.into(), value);
    }
    Ok(map)
}

pub(super) fn budget(limits: &RhaiLimits) -> Budget<'_> {
    Budget::new(limits, "request fewer objects")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Dynamic> {
        let leaf = prop_oneof![
            Just(Dynamic::UNIT),
            any::<bool>().prop_map(Dynamic::from),
            any::<INT>().prop_map(Dynamic::from),
            any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Dynamic::from),
            ".{0,8}".prop_map(Dynamic::from),
        ];
        leaf.prop_recursive(6, 60, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Dynamic::from),
                proptest::collection::btree_map(".{0,6}", inner, 0..6).prop_map(|map| {
                    map.into_iter().map(|(k, v)| (k.into(), v)).collect::<Map>().into()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_is_returned_unchanged(value in value()) {
            let json = to_json(&value, "x", 1).expect("JSON");
            let text = serde_json::to_string(&json).expect("JSON");
            let read: Value = serde_json::from_str(&text).expect("JSON");
            let back = from_json(read, &mut budget(&RhaiLimits::default())).expect("within limits");
            // The same type and value: 1 is not 1.0.
            prop_assert_eq!(format!("{back:?}"), format!("{value:?}"));
        }
    }

    #[test]
    fn value_without_a_json_form_is_rejected_with_its_field() {
        for (value, expected) in [
            (Dynamic::from(f64::NAN), "x is not a finite number"),
            (Dynamic::from(vec![1_u8]), "x has the type blob, which cannot be stored"),
            (Dynamic::from('c'), "x has the type char"),
        ] {
            let message = to_json(&value, "x", 1).expect_err(expected);
            assert!(message.starts_with(expected), "{message}");
        }
        let mut deep = Dynamic::UNIT;
        for _ in 0..1000 {
            deep = vec![deep].into();
        }
        let message = to_json(&deep, "x", 1).expect_err("too deep");
        assert_eq!(message, "the object is nested deeper than 127 levels");
    }

    #[test]
    fn stored_objects_obey_the_limits_of_the_script() {
        let limits = RhaiLimits {
            map_len_max: 6,
            array_len_max: 3,
            string_size_max: 60,
            ..RhaiLimits::default()
        };
        let object = |body: Value| Object {
            id: "a".parse().expect("legal"),
            version: 1,
            created_ms: 0,
            modified_ms: 1,
            body: body.as_object().cloned().expect("a map"),
        };
        let made = |body: Value| of_object(object(body), &mut budget(&limits));
        let map = made(serde_json::json!({ "a": [1, 2], "b": "text" })).expect("fits");
        assert_eq!(map["created_at"].to_string(), "1970-01-01T00:00:00.000Z");
        for (body, limit) in [
            (serde_json::json!({ "a": 1, "b": 2, "c": 3 }), "map_len_max"),
            (serde_json::json!({ "a": [1, 2, 3, 4] }), "array_len_max"),
            (serde_json::json!({ "a": "x".repeat(60) }), "string_size_max"),
        ] {
            assert!(made(body).expect_err(limit).contains(limit), "{limit}");
        }
    }
}
