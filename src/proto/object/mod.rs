//! Objects that scripts keep: their names, what is asked of the store that holds them, and what
//! it answers. The language of queries is in `query`, the order of values in `term`.

mod document;
mod query;
mod term;

pub use document::{time_ms, time_text};
pub use query::{Direction, Every, Query, QueryError};
pub use term::{Interval, Term, entry, id_of};

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde_json::{Map, Value};

use super::target::{IllegalName, name};

name!(
    /// What kind of object it is: `person`, `invoice`, …
    ObjectType,
    "object type",
    "a letter or _, then at most 63 of A-Z, a-z, 0-9 and _",
    |name| matches!(name.first(), Some(b'A'..=b'Z' | b'a'..=b'z' | b'_'))
        && name.len() <= 64
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
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
        && field.split(|byte| *byte == b'.').all(|name| {
            matches!(name.first(), Some(b'A'..=b'Z' | b'a'..=b'z' | b'_'))
                && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        })
);

impl Field {
    /// Whether it is the id, which every object has and which needs no declared index.
    pub fn is_id(&self) -> bool {
        self.0 == "id"
    }

    /// The field's value in an object.
    pub fn of<'a>(&self, body: &'a Map<String, Value>) -> Option<&'a Value> {
        let mut names = self.0.split('.');
        let mut value = body.get(names.next()?)?;
        for name in names {
            value = value.as_object()?.get(name)?;
        }
        Some(value)
    }

    /// The term by which an object is found under this field.
    pub fn term(&self, body: &Map<String, Value>) -> Term {
        Term::of(self.of(body).unwrap_or(&Value::Null))
    }
}

/// Whose objects they are: the `context_id` of jobs, as a part of keys. What users write there is
/// escaped, so it reaches no key that is not its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Context(String);

impl Context {
    /// The most bytes of a context's text.
    pub const TEXT_BYTES_MAX: usize = 256;
    /// The part of keys for the empty context. No other one can look like it.
    const EMPTY: &'static str = "%";

    /// The part of keys that it is.
    pub fn as_key_part(&self) -> &str {
        &self.0
    }

    /// Its text, as jobs have it.
    pub fn text(&self) -> String {
        let mut bytes = Vec::with_capacity(self.0.len());
        let mut rest = self.0.as_bytes();
        while let [first, tail @ ..] = rest {
            match (first, tail) {
                (b'%', [high, low, after @ ..]) => {
                    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or_default();
                    bytes.push(u8::try_from(digit(high) * 16 + digit(low)).unwrap_or_default());
                    rest = after;
                }
                (b'%', _) => rest = &[],
                (byte, after) => {
                    bytes.push(*byte);
                    rest = after;
                }
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A context by the part of keys that it is, as the store keeps it.
    pub fn from_key_part(part: &str) -> Option<Self> {
        let context = Self(part.to_owned());
        context.text().parse().ok().filter(|same| *same == context)
    }
}

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
            return Err(IllegalName { what: "context", value: text.to_owned(), form });
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

/// An object as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Its name within its type.
    pub id: ObjectId,
    /// Counts its writes, from 1.
    pub version: u64,
    /// When it was first written, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was last written.
    pub modified_ms: i64,
    /// Its own fields, without those above.
    pub body: Map<String, Value>,
}

/// The fields that the store itself sees to. They are no part of a body.
pub const OWN_FIELDS: [&str; 4] = ["id", "version", "created_at", "modified_at"];

/// One change of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The type of the object.
    pub object_type: ObjectType,
    /// The object.
    pub id: ObjectId,
    /// The version it must have, 0 for none at all; nothing to write it whatever is there.
    pub expected: Option<u64>,
    /// What becomes of it.
    pub change: Change,
}

/// What becomes of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It is made, or replaced.
    Set {
        /// Its fields.
        body: Map<String, Value>,
        /// When it was made, for one that is new; nothing for now.
        created_ms: Option<i64>,
    },
    /// It is gone.
    Delete,
}

/// What a write left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The version now; 0 if there is no such object any more.
    pub version: u64,
    /// Whether there was one before.
    pub existed: bool,
}

/// What is asked of the objects of one context.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// One object.
    Get(ObjectType, ObjectId),
    /// Whether there is one.
    Exists(ObjectType, ObjectId),
    /// Changes, all of them or none.
    Write(Vec<Write>),
    /// Ids in their order, those after one.
    Ids {
        /// Of this type.
        object_type: ObjectType,
        /// Where the page before ended.
        after: Option<ObjectId>,
        /// How many at the most.
        limit: usize,
    },
    /// Objects that a query means.
    Find {
        /// Of this type.
        object_type: ObjectType,
        /// The query.
        query: Query,
        /// The last object of the page before: its id, and its fields.
        after: Option<(ObjectId, Map<String, Value>)>,
        /// How many at the most.
        limit: usize,
    },
}

/// What the store answers; each to its own question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// To [`Ask::Get`].
    Object(Option<Object>),
    /// To [`Ask::Exists`].
    Exists(bool),
    /// To [`Ask::Write`], in the order of the changes.
    Written(Vec<Written>),
    /// To [`Ask::Ids`].
    Ids(Vec<ObjectId>),
    /// To [`Ask::Find`], in the order of the query.
    Objects(Vec<Object>),
}

/// Why the store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// Somebody else has written the object since it was read.
    #[error(
        "stale version: {object_type} {id} has version {found}, not {expected}; \
         get it again before you change it"
    )]
    Stale {
        /// The type of the object.
        object_type: ObjectType,
        /// The object.
        id: ObjectId,
        /// The version that the write named.
        expected: u64,
        /// The version that it has; 0 for none.
        found: u64,
    },
    /// An object is larger than one may be.
    #[error("the object is larger than {max} bytes, which osis.object_size_max allows")]
    TooLarge {
        /// The most bytes.
        max: u64,
    },
    /// The context holds as many objects as it may.
    #[error(
        "the context holds {max} objects, as many as osis.objects_max allows; delete some, or \
         raise it"
    )]
    Full {
        /// The most objects.
        max: u64,
    },
    /// More was asked for at once than one answer may hold.
    #[error("{0}")]
    TooMuch(String),
    /// A query names a field by which nothing can be found.
    #[error(
        "no index on {object_type}.{field}; declare it: [osis.index] {object_type} = [\"{field}\"]"
    )]
    NotIndexed {
        /// The type.
        object_type: ObjectType,
        /// The field.
        field: Field,
    },
    /// The index that a query needs is not whole yet.
    #[error(
        "the index on {object_type}.{field} is being built, {done} of {objects} objects are in \
         it; try again a little later"
    )]
    Building {
        /// The type.
        object_type: ObjectType,
        /// The field.
        field: Field,
        /// How many objects are in it.
        done: u64,
        /// How many there are.
        objects: u64,
    },
    /// The store could not be asked; the reason.
    #[error("{0}")]
    Unavailable(String),
}

impl fmt::Display for Context {
    /// Its text, in a form that is fit for a message.
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
    fn a_context_that_is_too_long_and_a_part_that_is_none_are_refused() {
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
    fn a_field_is_found_within_fields() {
        let body = serde_json::json!({ "a": { "b": 1 }, "c": 2 });
        let body = body.as_object().expect("an object");
        let value = |field: &str| field.parse::<Field>().expect("legal").of(body).cloned();
        assert_eq!(value("a.b"), Some(1.into()));
        assert_eq!(value("c"), Some(2.into()));
        assert_eq!((value("c.d"), value("x"), value("a.x")), (None, None, None));
    }
}
