//! The types of parameters, as JSON Schema names them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::proto::json_text::refuse_wide_integers;
use crate::proto::word_table::words;

words! {
    /// The type of a parameter's value, as JSON Schema names it.
    #[derive(Deserialize)]
    ParameterKind;
    String = "string",
    Integer = "integer",
    Number = "number",
    Boolean = "boolean",
    Array = "array",
    Object = "object",
}

impl ParameterKind {
    pub(super) fn has(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            // As JSON Schema has it, 1.0 is a whole number.
            Self::Integer => {
                value.is_i64()
                    || value.is_u64()
                    || value.as_f64().is_some_and(|of| of.fract() == 0.0)
            }
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }

    /// Reads a word; `None` if it is no value of this type, or is text anyway.
    pub(super) fn of_word(self, word: &str) -> Option<Value> {
        if self == Self::String || refuse_wide_integers(word.as_bytes()).is_err() {
            return None;
        }
        serde_json::from_str(word).ok().filter(|value| self.has(value))
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Number)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { type = \"string\" }")]
pub struct Items {
    #[serde(rename = "type")]
    pub kind: ParameterKind,
}
