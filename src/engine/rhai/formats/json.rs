//! JSON to values, without a tree of JSON between.

use std::fmt;

use ::rhai::{Array, Dynamic, FLOAT, INT, Map};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::budget::Budget;
use crate::config::RhaiLimits;

/// Parses a JSON text; its parser limits the nesting.
pub(super) fn parse(text: &str, limits: &RhaiLimits) -> Result<Dynamic, String> {
    let mut budget = Budget::of_text(limits);
    let mut parser = serde_json::Deserializer::from_str(text);
    let value = ValueReader(&mut budget).deserialize(&mut parser);
    let value = value.and_then(|value| parser.end().map(|()| value));
    value.map_err(|error| error.to_string())
}

/// Returns a parsed value as one of the script.
pub(in crate::rhai) fn from_json(value: Value, budget: &mut Budget<'_>) -> Result<Dynamic, String> {
    ValueReader(budget).deserialize(value).map_err(|error| error.to_string())
}

struct ValueReader<'b, 'l>(&'b mut Budget<'l>);

impl<'de> DeserializeSeed<'de> for ValueReader<'_, '_> {
    type Value = Dynamic;

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<Dynamic, D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueReader<'_, '_> {
    type Value = Dynamic;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Dynamic, E> {
        Ok(Dynamic::UNIT)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Dynamic, E> {
        Ok(truth.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Dynamic, E> {
        Ok(number.into())
    }

    #[expect(clippy::cast_precision_loss, reason = "documented: such a number becomes a float")]
    fn visit_u64<E>(self, number: u64) -> Result<Dynamic, E> {
        Ok(INT::try_from(number).map_or_else(|_| (number as FLOAT).into(), Into::into))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Dynamic, E> {
        Ok(number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Dynamic, E> {
        self.0.text(text).map_err(E::custom)?;
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Dynamic, A::Error> {
        let mut array = Array::new();
        while let Some(element) = elements.next_element_seed(ValueReader(self.0))? {
            self.0.element().map_err(A::Error::custom)?;
            array.push(element);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Dynamic, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.0.entry(&key).map_err(A::Error::custom)?;
            let value = entries.next_value_seed(ValueReader(self.0))?;
            map.insert(key.into(), value);
        }
        Ok(map.into())
    }
}
