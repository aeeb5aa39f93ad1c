//! The names of the members of a type that is read by serde.

use serde::de::value::Error as NoValue;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Returns the names of the members of a struct, as it reads them.
pub fn member_names<'de, T: Deserialize<'de>>() -> Vec<&'static str> {
    let mut names = Vec::new();
    // It has no value: it only learns the names.
    let _ = T::deserialize(Names(&mut names));
    names
}

struct Names<'a>(&'a mut Vec<&'static str>);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = NoValue;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoValue> {
        Err(NoValue::custom("it has no members"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NoValue> {
        self.0.extend(fields);
        // A struct that has further members from elsewhere reads them here.
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
