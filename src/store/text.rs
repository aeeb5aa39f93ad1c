//! Text that another program may have written into Redis.

use std::ops::Deref;

use redis::{FromRedisValue, ParsingError, Value};

use crate::proto::text::text_of;

/// A text of Redis, with bytes that are not UTF-8 as `\xNN`. In a list one such member, which is no legal name, must
/// not hide the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoredText(String);

impl Deref for StoredText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
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
