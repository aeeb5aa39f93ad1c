//! Text that another program may have written into Redis.

use std::ops::Deref;
use std::str::FromStr;

use jiff::Timestamp;
use redis::streams::StreamId;
use redis::{FromRedisValue, ParsingError, Value};

use crate::proto::text::text_of;

/// A name and a value, or an entry and a reason, which another program may have written.
pub(super) type BytePair = (Vec<u8>, Vec<u8>);
/// Two fields of a hash.
pub(super) type FieldPair = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Returns pairs as text; invalid UTF-8 is replaced.
pub(super) fn lossy_pairs(pairs: Vec<BytePair>) -> Vec<(String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    pairs.into_iter().map(|(one, other)| (text(one), text(other))).collect()
}

/// Reads a value; `None` if it has another type.
pub(super) fn read<T: FromRedisValue>(value: Value) -> Option<T> {
    redis::from_redis_value(value).ok()
}

/// Returns when an entry of a stream was written, by Redis's clock. `place` is its id.
pub(super) fn written_at(place: &str) -> Option<Timestamp> {
    Timestamp::from_millisecond(place.split_once('-')?.0.parse().ok()?).ok()
}

/// Returns a field of an entry of a stream, which another program may have written; empty without it.
pub(super) fn stream_text(entry: &StreamId, name: &str) -> String {
    String::from_utf8_lossy(&entry.get::<Vec<u8>>(name).unwrap_or_default()).into_owned()
}

/// A text of Redis, with other bytes than UTF-8 as `\xNN`: in a list, one must not hide the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoredText(String);

impl Deref for StoredText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Fields of a hash, which another program may have written.
pub(super) struct HashFields {
    names: &'static [&'static str],
    texts: Vec<Option<StoredText>>,
}

impl HashFields {
    /// The answer to HMGET of these names; without one none is there.
    pub(super) fn of(
        names: &'static [&'static str],
        texts: Option<Vec<Option<StoredText>>>,
    ) -> Self {
        Self { names, texts: texts.unwrap_or_default() }
    }

    /// Returns a field; `None` if it is absent or empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let place = self.names.iter().position(|of| *of == name)?;
        self.texts.get(place)?.as_deref().filter(|text| !text.is_empty())
    }

    /// Returns a field; `None` if it cannot be parsed.
    pub(super) fn parsed<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }
}

/// The members of a list that are legal names or words, in its order.
pub(super) struct Legal<T>(pub(super) Vec<T>);

impl<T: FromStr> FromRedisValue for Legal<T> {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let texts: Vec<StoredText> = FromRedisValue::from_redis_value(value)?;
        Ok(Self(texts.iter().filter_map(|text| text.parse().ok()).collect()))
    }
}

impl From<StoredText> for String {
    fn from(text: StoredText) -> Self {
        text.0
    }
}

impl FromRedisValue for StoredText {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let bytes: Vec<u8> = FromRedisValue::from_redis_value(value)?;
        Ok(Self(text_of(&bytes)))
    }
}
