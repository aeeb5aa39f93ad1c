//! Declared types of objects: the fields that their objects have, each with its type.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Field, OWN_FIELDS, time_ms};
use crate::proto::target::is_identifier;

/// The id of an object of a declared type, in its script.
pub const SID: &str = "sid";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table with `fields`, `required` and `text`")]
pub struct Schema {
    pub fields: BTreeMap<String, FieldType>,
    pub required: BTreeSet<String>,
    #[serde(with = "text_fields")]
    pub text: BTreeSet<Field>,
}

/// The fields of `text` by their names alone.
mod text_fields {
    use super::{BTreeSet, Deserialize, Deserializer, Error, Field, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        text: &BTreeSet<Field>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        text.iter().map(Field::base).collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeSet<Field>, D::Error> {
        let names = BTreeSet::<String>::deserialize(from)?;
        let field = |name: &String| {
            Field::words_of(name)
                .ok_or_else(|| D::Error::custom(format!("`{name}` is not a field")))
        };
        names.iter().map(field).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldType {
    Any,
    Bool,
    Float,
    Int,
    Map,
    String,
    /// A time in RFC 3339.
    Time,
    List(Box<FieldType>),
    OneOf(Vec<String>),
}

const PLAIN: [(&str, FieldType); 7] = [
    ("any", FieldType::Any),
    ("bool", FieldType::Bool),
    ("float", FieldType::Float),
    ("int", FieldType::Int),
    ("map", FieldType::Map),
    ("string", FieldType::String),
    ("time", FieldType::Time),
];

const TEXT_MAX: usize = 16;

/// The deepest nesting of lists.
const LISTS_MAX: usize = 8;

impl Schema {
    /// Returns the first mistake of the declaration: the key, and the message.
    pub fn mistake(&self) -> Option<(&'static str, String)> {
        const FIELDS_MAX: usize = 256;
        if self.fields.is_empty() || self.fields.len() > FIELDS_MAX {
            return Some(("fields", format!("must have from 1 to {FIELDS_MAX} fields")));
        }
        for name in self.fields.keys() {
            if name == SID || OWN_FIELDS.contains(&name.as_str()) {
                return Some(("fields", format!("must not have {name}: the store sets it")));
            }
            if !is_identifier(name.as_bytes(), 64) {
                let form = "a letter or _, then at most 63 letters, digits and _";
                return Some((
                    "fields",
                    format!("has the field `{}`, which is not {form}", name.escape_debug()),
                ));
            }
        }
        let is_unknown = |field: &&Field| !self.fields.contains_key(field.base());
        if let Some(field) = self.text.iter().find(is_unknown) {
            return Some((
                "text",
                format!("has {}, which `fields` does not declare", field.base()),
            ));
        }
        if self.text.len() > TEXT_MAX {
            return Some(("text", format!("must have at most {TEXT_MAX} fields")));
        }
        let unknown = self.required.iter().find(|name| !self.fields.contains_key(*name));
        unknown.map(|name| ("required", format!("has {name}, which `fields` does not declare")))
    }

    pub fn check(&self, body: &Map<String, Value>) -> Result<(), String> {
        for (name, value) in body {
            let Some(of) = self.fields.get(name) else {
                let known: Vec<&str> = self.fields.keys().map(String::as_str).collect();
                let name = name.escape_debug();
                return Err(format!("unknown field `{name}`; the fields are {}", known.join(", ")));
            };
            if !value.is_null() && !of.has(value) {
                return Err(format!("{name} must be {of}, not {}", described(value)));
            }
        }
        let is_missing = |name: &&String| body.get(*name).is_none_or(Value::is_null);
        match self.required.iter().find(is_missing) {
            Some(name) => Err(format!("{name} is missing, which is required")),
            None => Ok(()),
        }
    }
}

fn described(value: &Value) -> String {
    const CHARS_MAX: usize = 40;
    let text = value.to_string();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl FieldType {
    fn has(&self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Bool => value.is_boolean(),
            Self::Float => value.is_number(),
            Self::Int => value.is_i64() || value.is_u64(),
            Self::Map => value.is_object(),
            Self::String => value.is_string(),
            Self::Time => value.as_str().is_some_and(|text| time_ms(text).is_some()),
            Self::List(of) => {
                value.as_array().is_some_and(|array| array.iter().all(|element| of.has(element)))
            }
            Self::OneOf(texts) => {
                value.as_str().is_some_and(|text| texts.iter().any(|t| t == text))
            }
        }
    }
}

impl fmt::Display for FieldType {
    /// Returns its description for a message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any value"),
            Self::Bool => f.write_str("true or false"),
            Self::Float => f.write_str("a number"),
            Self::Int => f.write_str("a whole number"),
            Self::Map => f.write_str("a map"),
            Self::String => f.write_str("a string"),
            Self::Time => f.write_str("a time such as 2026-01-31T12:00:00Z"),
            Self::List(of) => write!(f, "an array, each element {of}"),
            Self::OneOf(texts) => write!(f, "one of {}", texts.join(", ")),
        }
    }
}

impl FromStr for FieldType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut of, mut lists) = (text.trim(), 0);
        while let Some(inner) = of.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            (of, lists) = (inner.trim(), lists + 1);
        }
        let plain = PLAIN.into_iter().find(|(name, _)| *name == of).map(|(_, plain)| plain);
        match plain {
            Some(plain) if lists <= LISTS_MAX => {
                Ok((0..lists).fold(plain, |of, _| Self::List(Box::new(of))))
            }
            _ => {
                let names: Vec<&str> = PLAIN.iter().map(|(name, _)| *name).collect();
                Err(format!(
                    "`{}` is not a type: expected {}, one of them in brackets for an array, or an \
                     array of the strings that are allowed",
                    text.escape_debug(),
                    names.join(", ")
                ))
            }
        }
    }
}

impl FieldType {
    fn name(&self) -> String {
        match self {
            Self::List(of) => format!("[{}]", of.name()),
            plain => PLAIN
                .iter()
                .find(|(_, known)| known == plain)
                .map(|(name, _)| (*name).to_owned())
                .unwrap_or_default(),
        }
    }
}

impl Serialize for FieldType {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::OneOf(texts) => texts.serialize(to),
            other => to.serialize_str(&other.name()),
        }
    }
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a type such as \"string\", or an array of the strings that are allowed"
)]
enum NameOrTexts {
    Name(String),
    Texts(Vec<String>),
}

impl<'de> Deserialize<'de> for FieldType {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match NameOrTexts::deserialize(from)? {
            NameOrTexts::Name(name) => name.parse().map_err(D::Error::custom),
            NameOrTexts::Texts(texts) if texts.is_empty() => {
                Err(D::Error::custom("the array has no string that is allowed"))
            }
            NameOrTexts::Texts(texts) => Ok(Self::OneOf(texts)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn task() -> Schema {
        let schema = json!({
            "fields": {
                "title": "string", "status": ["open", "done"], "tags": "[string]", "due": "time",
                "hours": "float", "points": "int", "urgent": "bool", "more": "map", "x": "any",
                "grid": "[[int]]",
            },
            "required": ["title", "status"],
        });
        serde_json::from_value(schema).expect("a schema")
    }

    fn checked(body: &Value) -> Result<(), String> {
        let mut whole = json!({ "title": "a", "status": "open" });
        let fields = whole.as_object_mut().expect("a map");
        fields.extend(body.as_object().expect("a map").clone());
        task().check(fields)
    }

    #[test]
    fn an_object_of_its_types_is_accepted() {
        for body in [
            json!({}),
            json!({ "tags": ["x"], "hours": 1, "points": 2, "urgent": true, "more": {} }),
            json!({ "tags": [], "hours": 1.5, "due": "2026-01-31T12:00:00Z", "x": [1, "a"] }),
            json!({ "tags": null, "grid": [[1], []] }),
        ] {
            assert_eq!(checked(&body), Ok(()), "{body}");
        }
    }

    #[test]
    fn a_wrong_field_is_named_with_its_type() {
        for (body, expected) in [
            (json!({ "title": 1 }), "title must be a string, not 1"),
            (json!({ "title": null }), "title is missing, which is required"),
            (json!({ "status": "later" }), "status must be one of open, done, not \"later\""),
            (json!({ "tags": ["a", 1] }), "tags must be an array, each element a string, not"),
            (json!({ "tags": "a" }), "tags must be an array"),
            (json!({ "due": "soon" }), "due must be a time such as"),
            (json!({ "hours": "1" }), "hours must be a number"),
            (json!({ "points": 1.5 }), "points must be a whole number, not 1.5"),
            (json!({ "urgent": 1 }), "urgent must be true or false"),
            (json!({ "more": [] }), "more must be a map"),
            (json!({ "grid": [1] }), "grid must be an array, each element an array"),
            (json!({ "titel": 1 }), "unknown field `titel`; the fields are due, grid,"),
        ] {
            let message = checked(&body).expect_err(expected);
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn a_declaration_is_written_as_it_was_read() {
        let written = serde_json::to_value(task()).expect("JSON");
        let read: Schema = serde_json::from_value(written.clone()).expect("a schema");
        assert_eq!(read, task());
        assert_eq!(written["fields"]["grid"], json!("[[int]]"));
        for wrong in [json!("text"), json!("[string"), json!([]), json!(1), json!([1])] {
            assert!(serde_json::from_value::<FieldType>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_mistake_in_a_declaration_is_named() {
        for (schema, expected) in [
            (json!({}), "must have from 1 to 256 fields"),
            (json!({ "fields": { "sid": "string" } }), "must not have sid"),
            (json!({ "fields": { "version": "int" } }), "must not have version"),
            (json!({ "fields": { "a.b": "int" } }), "has the field `a.b`"),
            (json!({ "fields": { "a": "int" }, "required": ["b"] }), "has b, which `fields`"),
        ] {
            let schema: Schema = serde_json::from_value(schema).expect("read");
            let (_, message) = schema.mistake().expect(expected);
            assert!(message.starts_with(expected), "{message}");
        }
        assert_eq!(task().mistake(), None);
    }
}
