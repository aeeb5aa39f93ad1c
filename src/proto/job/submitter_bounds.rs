//! The bounds of the token that submitted a job, as its hash has them.

use serde_json::json;

use super::value::{FieldKind, HashValue};
use crate::proto::access::Bounds;
use crate::proto::text::shown;

impl HashValue for Bounds {
    const KIND: FieldKind = FieldKind::Object;

    fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("`{}`: {error}", shown(text)))
    }

    fn write(&self) -> String {
        json!(self).to_string()
    }
}
