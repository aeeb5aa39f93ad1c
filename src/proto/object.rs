//! Objects of scripts: their names, and the requests to and answers of their store. The query
//! language is in `query`, the order of values in `term`.

mod document;
mod query;
mod rights;
mod schema;
mod term;
mod words;

pub use document::{time_ms, time_text};
pub use query::{Direction, Every, Query, QueryError};
pub use rights::{GroupRights, Right, groups_of};
pub use schema::{FieldType, SID, Schema};
pub use term::{Interval, Term, entry, id_of, word_range};
pub use words::WordQuery;

use std::fmt::{self, Write as _};
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::target::{IllegalName, is_identifier, name};
use super::word_table::{from_text, inline_schema};

name!(
    /// The type of an object: `person`, `invoice`, …
    ObjectType,
    "object type",
    "a letter or _, then at most 63 of A-Z, a-z, 0-9 and _",
    |name| is_identifier(name, 64)
);

name!(
    /// The name of an object within its type.
    ObjectId,
    "object id",
    "1 to 256 bytes of text without control characters",
    |id| (1..=256).contains(&id.len()) && !id.iter().any(u8::is_ascii_control)
);

name!(
    /// A field of objects, or a field within a field: `email`, `address.city`.
    Field,
    "field",
    "names joined by dots, each a letter or _ and then letters, digits and _; 128 bytes at most",
    |field| field.len() <= 128
        && field
            .strip_suffix(b"~")
            .unwrap_or(field)
            .split(|byte| *byte == b'.')
            .all(|name| is_identifier(name, 128))
);

impl Field {
    /// Returns whether it is the id, which needs no declared index.
    pub fn is_id(&self) -> bool {
        self.0 == "id"
    }

    /// Returns the name of the index of a field's words: `title~`.
    pub fn words_of(name: &str) -> Option<Self> {
        format!("{name}~").parse().ok()
    }

    /// Returns whether it stands for the words of a field.
    pub fn has_words(&self) -> bool {
        self.0.ends_with('~')
    }

    /// Returns the name of the field, also for its words.
    pub fn base(&self) -> &str {
        self.0.strip_suffix('~').unwrap_or(&self.0)
    }

    pub fn of<'a>(&self, body: &'a Map<String, Value>) -> Option<&'a Value> {
        let mut names = self.base().split('.');
        let mut value = body.get(names.next()?)?;
        for name in names {
            value = value.as_object()?.get(name)?;
        }
        Some(value)
    }

    /// Returns the terms of an object in the index of this field, as the index writes them: a
    /// term for each word, or the one term of the whole field.
    pub fn terms(&self, body: &Map<String, Value>) -> Vec<String> {
        let indexed = |term: Term| term.indexed().to_owned();
        if !self.has_words() {
            return vec![indexed(self.term(body))];
        }
        let words = self.of(body).map(words::words_of).unwrap_or_default();
        let mut terms: Vec<String> =
            words.into_iter().map(|word| indexed(Term::of(&Value::String(word)))).collect();
        if terms.is_empty() {
            terms.push(indexed(Term::of(&Value::Null)));
        }
        terms
    }

    pub fn term(&self, body: &Map<String, Value>) -> Term {
        Term::of(self.of(body).unwrap_or(&Value::Null))
    }
}

/// The owner of objects: the `context_id` of jobs, as a part of keys. It is escaped, so that it
/// cannot reach a key of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Context(String);

impl Context {
    /// The maximum number of bytes of a context's text.
    pub const TEXT_BYTES_MAX: usize = 256;
    /// The part of keys for the empty context, different from any other.
    const EMPTY: &'static str = "%";

    pub fn as_key_part(&self) -> &str {
        &self.0
    }

    /// Returns the `context_id` of jobs.
    pub fn text(&self) -> String {
        let part = if self.0 == Self::EMPTY { "" } else { &self.0 };
        percent_decode_str(part).decode_utf8_lossy().into_owned()
    }

    /// Parses the part of keys, as the store keeps it.
    pub fn from_key_part(part: &str) -> Option<Self> {
        let context = Self(part.to_owned());
        context.text().parse().ok().filter(|same| *same == context)
    }
}

from_text!(Context);
inline_schema!(Context);

impl Default for Context {
    fn default() -> Self {
        Self(Self::EMPTY.to_owned())
    }
}

impl FromStr for Context {
    type Err = IllegalName;

    fn from_str(text: &str) -> Result<Self, IllegalName> {
        if text.len() > Self::TEXT_BYTES_MAX {
            let form = "at most 256 bytes of text";
            return Err(IllegalName::new("context", text, form));
        }
        if text.is_empty() {
            return Ok(Self::default());
        }
        let mut part = String::with_capacity(text.len());
        for byte in text.bytes() {
            if byte.is_ascii_alphanumeric() || b"_.-".contains(&byte) {
                part.push(char::from(byte));
            } else {
                let _ = write!(part, "%{byte:02x}");
            }
        }
        Ok(Self(part))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    pub id: ObjectId,
    /// The number of its writes.
    pub version: u64,
    /// The time of its first write, in milliseconds since 1970.
    pub created_ms: i64,
    /// The time of its last write.
    pub modified_ms: i64,
    /// Its fields, without those above.
    pub body: Map<String, Value>,
}

/// The fields that the store sets. A body does not have them.
pub const OWN_FIELDS: [&str; 4] = ["id", "version", "created_at", "modified_at"];

#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    pub object_type: ObjectType,
    pub id: ObjectId,
    /// The version that it must have, 0 if it must not exist; `None` for any.
    pub expected: Option<u64>,
    pub change: Change,
}

/// The mark of a message whose changes are applied once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteMark {
    /// The message, as a part of a key.
    pub name: String,
    pub digest: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    Set {
        body: Map<String, Value>,
        /// The time of creation of a new object; now without one.
        created_ms: Option<i64>,
    },
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The new version; 0 if it does not exist any more.
    pub version: u64,
    pub existed: bool,
}

/// A request about the objects of one context.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    Get(ObjectType, ObjectId),
    Exists(ObjectType, ObjectId),
    /// Applies changes, all or none.
    Write(Vec<Write>),
    /// Applies changes, all or none, unless this message's changes were applied: then it returns their
    /// results.
    WriteOnce(Vec<Write>, WriteMark),
    /// Returns the results of the changes of a message that were applied; none if they were not.
    Applied(WriteMark),
    /// Lists ids in order, after a given one.
    Ids {
        object_type: ObjectType,
        /// The last id of the previous page.
        after: Option<ObjectId>,
        limit: usize,
    },
    /// Finds the ids of objects by their words.
    Search {
        object_type: ObjectType,
        query: WordQuery,
        after: Option<ObjectId>,
        limit: usize,
    },
    Find {
        object_type: ObjectType,
        query: Query,
        /// The last object of the previous page: its id and its fields.
        after: Option<(ObjectId, Map<String, Value>)>,
        limit: usize,
    },
}

impl Ask {
    /// Returns the right that the request needs, on each of these types.
    pub fn needs(&self) -> (Right, Vec<&ObjectType>) {
        match self {
            Self::Get(object_type, _)
            | Self::Exists(object_type, _)
            | Self::Ids { object_type, .. }
            | Self::Search { object_type, .. }
            | Self::Find { object_type, .. } => (Right::Read, vec![object_type]),
            Self::Write(writes) | Self::WriteOnce(writes, _) => {
                (Right::Write, writes.iter().map(|write| &write.object_type).collect())
            }
            Self::Applied(_) => (Right::Read, Vec::new()),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// To [`Ask::Get`].
    Object(Option<Object>),
    Exists(bool),
    /// To [`Ask::Write`], [`Ask::WriteOnce`] and [`Ask::Applied`], in the order of the changes.
    Written(Vec<Written>),
    /// To [`Ask::Ids`] and [`Ask::Search`].
    Ids(Vec<ObjectId>),
    /// To [`Ask::Find`], in the order of the query.
    Objects(Vec<Object>),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    #[error(
        "stale version: {object_type} {id} has version {found}, not {expected}; \
         get it again before you change it"
    )]
    Stale {
        object_type: ObjectType,
        id: ObjectId,
        expected: u64,
        /// The stored version; 0 for none.
        found: u64,
    },
    #[error(
        "another message with this id has changed objects; each message needs an id of its own"
    )]
    OtherMessage,
    #[error("the object is larger than {max} bytes, which osis.object_size_max allows")]
    TooLarge { max: u64 },
    #[error(
        "the context holds {max} objects, as many as osis.objects_max allows; delete some, or \
         raise it"
    )]
    Full { max: u64 },
    #[error("{0}")]
    TooMuch(String),
    #[error(
        "no index on {object_type}.{}; write below [osis.index] in hero.toml: {object_type} = {all:?}, then reload",
        missing.iter().map(Field::as_str).collect::<Vec<_>>().join(&format!(", {object_type}."))
    )]
    NotIndexed {
        object_type: ObjectType,
        missing: Vec<Field>,
        /// The names of these fields and those that have an index.
        all: Vec<String>,
    },
    #[error(
        "the index on {object_type}.{field} is being built, {done} of {objects} objects are in \
         it; try again a little later"
    )]
    Building { object_type: ObjectType, field: Field, done: u64, objects: u64 },
    /// The store cannot be reached, with the reason.
    #[error("{0}")]
    Unavailable(String),
    /// The store denies access, with the reason.
    #[error("{0}")]
    NotPermitted(String),
}

impl fmt::Display for Context {
    /// Returns its text for a message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().escape_debug().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_context_is_a_key_part_without_colon_and_reads_back(text in "\\PC{0,40}") {
            let context: Context = text.parse().expect("short enough");
            let part = context.as_key_part();
            let legal = |b: u8| b.is_ascii_alphanumeric() || b"_.-%".contains(&b);
            prop_assert!(!part.is_empty() && part.bytes().all(legal), "{part}");
            prop_assert_eq!(context.text(), text);
            prop_assert_eq!(Context::from_key_part(part), Some(context));
        }

        #[test]
        fn different_contexts_have_different_key_parts(a in "[a:%{}\u{0}é]{0,4}", b in "[a:%{}\u{0}é]{0,4}") {
            let part = |text: &str| text.parse::<Context>().expect("short enough");
            prop_assert_eq!(part(&a) == part(&b), a == b);
        }
    }

    #[test]
    fn a_context_that_is_too_long_and_an_illegal_key_part_are_rejected() {
        assert!("x".repeat(256).parse::<Context>().is_ok());
        assert!("x".repeat(257).parse::<Context>().is_err());
        for part in ["", "a:b", "%4", "%41", "é"] {
            assert_eq!(Context::from_key_part(part), None, "{part}");
        }
    }

    #[test]
    fn names_keep_to_their_form() {
        for legal in ["person", "_x", "Invoice2"] {
            assert!(legal.parse::<ObjectType>().is_ok(), "{legal}");
        }
        for illegal in ["", "2x", "a:b", "a b", "é", "a.b"] {
            assert!(illegal.parse::<ObjectType>().is_err(), "{illegal}");
        }
        for legal in ["a b", "a:b", "é", "*", "{x}", "%"] {
            assert!(legal.parse::<ObjectId>().is_ok(), "{legal}");
        }
        for illegal in ["", "a\nb", "\u{0}"] {
            assert!(illegal.parse::<ObjectId>().is_err(), "{illegal:?}");
        }
        assert!("x".repeat(257).parse::<ObjectId>().is_err());
        for (field, legal) in
            [("a.b_c", true), ("a", true), ("a..b", false), (".a", false), ("", false)]
        {
            assert_eq!(field.parse::<Field>().is_ok(), legal, "{field}");
        }
    }

    #[test]
    fn a_nested_field_is_found() {
        let body = serde_json::json!({ "a": { "b": 1 }, "c": 2 });
        let body = body.as_object().expect("an object");
        let value = |field: &str| field.parse::<Field>().expect("legal").of(body).cloned();
        assert_eq!(value("a.b"), Some(1.into()));
        assert_eq!(value("c"), Some(2.into()));
        assert_eq!((value("c.d"), value("x"), value("a.x")), (None, None, None));
    }
}
