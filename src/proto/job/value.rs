//! The types of job fields: how the hash spells each, and how the builder takes it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::asked_bounds::{MemorySize, NetworkAccess};
use super::attempts::JobAttempt;
use super::id::{BootId, ContentHash, JobId, JobName, LimitKey, ShardKey, UniqueKey};
use super::output::ReplyFormat;
use super::output_overflow::OutputOverflow;
use super::retry_delays::{ExitCodes, RetryDelays};
use super::signature::JobSignature;
use super::status::JobStatus;
use super::traceparent::TraceParent;
use super::uniqueness::{OnDuplicate, UniqueBy};
use crate::proto::access::Bounds;
use crate::proto::script_use::ScriptUse;
use crate::proto::selector::Selector;
use crate::proto::target::{
    ActorId, Fallback, Group, Instance, Priority, ScriptType, is_identifier,
};
use crate::proto::text::shown;

/// The maximum number of prerequisites, environment variables or dependents of one hash.
const LIST_LEN_MAX: usize = 100_000;

/// The shape of a field: tells each entrance how to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Text or a name.
    Text,
    /// A whole number.
    Number,
    /// Seconds in the hash; a number with its unit where people write it.
    Duration,
    /// `true` or `false`.
    Flag,
    /// RFC 3339.
    Time,
    /// A JSON array, of job ids where a submitter writes it.
    List,
    /// A JSON array of texts.
    Texts,
    /// A JSON object of texts.
    Map,
    /// A JSON object of any values.
    Object,
}

/// A type whose values the hash holds as text.
pub(super) trait HashValue: Sized {
    const KIND: FieldKind;

    /// Reads the text of the hash. The error follows the field's name in a message.
    fn read(text: &str) -> Result<Self, String>;

    fn write(&self) -> String;

    /// Returns the reason why no job may have this value, in any configuration.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Replaces the value by the value of a text; a map gains the text's entries.
    fn set(&mut self, text: &str) -> Result<(), String> {
        let value = Self::read(text)?;
        if let Some(fault) = value.fault() {
            return Err(fault);
        }
        *self = value;
        Ok(())
    }
}

impl<T: HashValue> HashValue for Option<T> {
    const KIND: FieldKind = T::KIND;

    fn read(text: &str) -> Result<Self, String> {
        T::read(text).map(Some)
    }

    fn write(&self) -> String {
        self.as_ref().map(T::write).unwrap_or_default()
    }

    fn fault(&self) -> Option<String> {
        self.as_ref().and_then(T::fault)
    }
}

/// Types of a kind that the hash holds as their text, with the function that tells why a text is none.
macro_rules! from_str {
    ($($kind:ident, $reason:ident => $($type:ty),+;)+) => {$($(
        impl HashValue for $type {
            const KIND: FieldKind = FieldKind::$kind;

            fn read(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error| $reason(text, &error))
            }

            fn write(&self) -> String {
                self.to_string()
            }
        }
    )+)+};
}

from_str! {
    Text, reason => ScriptType, Group, ReplyFormat, OutputOverflow, RetryDelays, ExitCodes, Fallback, JobId, JobStatus,
        UniqueKey, LimitKey, ShardKey, JobName, MemorySize, NetworkAccess, UniqueBy, OnDuplicate, ActorId, BootId,
        TraceParent, JobSignature, ScriptUse, ContentHash, String;
    Number, reason => Instance, Priority;
    Text, no_expression => Selector;
    Number, no_number => u32, u64, i32;
}

/// Values that Hero alone writes, as JSON.
macro_rules! from_json {
    ($($type:ty: $kind:ident;)+) => {$(
        impl HashValue for $type {
            const KIND: FieldKind = FieldKind::$kind;

            fn read(text: &str) -> Result<Self, String> {
                serde_json::from_str(text).map_err(|error| error.to_string())
            }

            fn write(&self) -> String {
                json!(self).to_string()
            }
        }
    )+};
}

from_json! {
    Bounds: Object;
    Vec<JobAttempt>: List;
}

/// The part of a name's error that follows the field's name.
fn reason(_: &str, error: &impl Display) -> String {
    let text = error.to_string();
    match text.split_once('`') {
        Some((_, value)) => format!("`{value}"),
        None => text,
    }
}

/// The error has no value of its own: it names the place in the text.
fn no_expression(text: &str, error: &impl Display) -> String {
    format!("`{}` is not an expression: {error}", shown(text))
}

fn no_number(text: &str, error: &ParseIntError) -> String {
    let text = shown(text);
    match error.kind() {
        IntErrorKind::PosOverflow => format!("`{text}` is too large"),
        _ => format!("`{text}` is not a whole number, 0 or more"),
    }
}

impl HashValue for bool {
    const KIND: FieldKind = FieldKind::Flag;

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            other => Err(format!("`{}` is not true or false", shown(other))),
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// A text in a JSON array of a field.
pub(super) trait ListItem: FromStr<Err: Display> + Display {
    const KIND: FieldKind = FieldKind::Texts;
    const EXPECTED: &str = "is not a JSON array of strings";

    /// Parses one, and says what is wrong with it.
    fn item(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: Self::Err| error.to_string())
    }

    /// Returns what is wrong with all of them together.
    fn fault(items: &[Self]) -> Option<String>;
}

impl ListItem for JobId {
    const KIND: FieldKind = FieldKind::List;
    const EXPECTED: &str = "is not a JSON array of job ids";

    fn item(text: &str) -> Result<Self, String> {
        Self::read(text)
    }

    fn fault(items: &[Self]) -> Option<String> {
        too_many(items.len(), "jobs")
    }
}

impl<T: ListItem> HashValue for Vec<T> {
    const KIND: FieldKind = T::KIND;

    fn read(text: &str) -> Result<Self, String> {
        let texts: Vec<String> = serde_json::from_str(text).map_err(|_| T::EXPECTED.to_owned())?;
        texts.iter().map(|text| T::item(text)).collect()
    }

    fn write(&self) -> String {
        json!(self.iter().map(ToString::to_string).collect::<Vec<_>>()).to_string()
    }

    fn fault(&self) -> Option<String> {
        T::fault(self)
    }
}

impl<T: ListItem> Give<&str> for Vec<T> {
    fn give(&mut self, text: &str) -> Result<(), String> {
        self.push(T::item(text)?);
        self.fault().map_or(Ok(()), Err)
    }
}

/// The maximum number of bytes of a variable with its name, `=` and the NUL after it that the kernel passes to a program.
const VARIABLE_BYTES_MAX: usize = 128 << 10;

/// The values of a map, and the faults that its entries can have.
pub(super) trait MapValue: Serialize + DeserializeOwned {
    const EXPECTED: &str;
    fn fault(entries: &BTreeMap<String, Self>) -> Option<String>;
}

impl MapValue for JobId {
    const EXPECTED: &str = "is not a JSON object of job ids";

    fn fault(entries: &BTreeMap<String, Self>) -> Option<String> {
        too_many(entries.len(), "jobs")
    }
}

impl MapValue for String {
    const EXPECTED: &str = "is not a JSON object of strings";

    fn fault(entries: &BTreeMap<String, Self>) -> Option<String> {
        if let Some(name) = entries.keys().find(|name| !is_variable_name(name)) {
            return Some(format!("has `{}`, which is not a legal variable name", shown(name)));
        }
        if entries.values().any(|value| value.contains('\0')) {
            return Some("has a value with a NUL byte".to_owned());
        }
        let bytes = |(name, value): (&String, &Self)| name.len() + value.len() + 2;
        let longest = entries.iter().find(|entry| bytes(*entry) > VARIABLE_BYTES_MAX);
        if let Some((name, value)) = longest {
            return Some(format!(
                "has `{name}` with {} bytes: the kernel passes at most {} of it; give the script a file",
                value.len(),
                VARIABLE_BYTES_MAX - name.len() - 2
            ));
        }
        too_many(entries.len(), "variables")
    }
}

impl<V: MapValue> HashValue for BTreeMap<String, V> {
    const KIND: FieldKind = FieldKind::Map;

    fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|_| V::EXPECTED.to_owned())
    }

    fn write(&self) -> String {
        json!(self).to_string()
    }

    fn fault(&self) -> Option<String> {
        V::fault(self)
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        self.extend(Self::read(text)?);
        self.fault().map_or(Ok(()), Err)
    }
}

fn too_many(len: usize, of: &str) -> Option<String> {
    (len > LIST_LEN_MAX).then(|| format!("has more than {LIST_LEN_MAX} {of}"))
}

/// A letter or `_`, then letters, digits and `_`: the names that every shell can read.
pub(crate) fn is_variable_name(name: &str) -> bool {
    is_identifier(name.as_bytes(), 256)
}

/// A field that the builder sets from an argument of type `A`.
pub trait Give<A> {
    fn give(&mut self, argument: A) -> Result<(), String>;
}

impl<T> Give<T> for Option<T> {
    fn give(&mut self, value: T) -> Result<(), String> {
        *self = Some(value);
        Ok(())
    }
}

impl Give<bool> for bool {
    fn give(&mut self, value: bool) -> Result<(), String> {
        *self = value;
        Ok(())
    }
}

impl<T: HashValue> Give<&str> for Option<T> {
    fn give(&mut self, text: &str) -> Result<(), String> {
        self.set(text)
    }
}

impl Give<&str> for String {
    fn give(&mut self, text: &str) -> Result<(), String> {
        self.set(text)
    }
}

impl Give<u16> for Option<Instance> {
    fn give(&mut self, number: u16) -> Result<(), String> {
        self.set(&number.to_string())
    }
}

impl Give<u8> for Priority {
    fn give(&mut self, number: u8) -> Result<(), String> {
        self.set(&number.to_string())
    }
}

impl<V: MapValue + FromStr<Err: Display>> Give<(&str, &str)> for BTreeMap<String, V> {
    fn give(&mut self, (name, value): (&str, &str)) -> Result<(), String> {
        let value = value.parse().map_err(|error| reason(value, &error))?;
        self.insert(name.to_owned(), value);
        V::fault(self).map_or(Ok(()), Err)
    }
}
