//! Durations and sizes in the configuration file.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::proto::units::{AmountKind, DURATION, SIZE, parse};

/// A duration with its unit, where an attribute of a field cannot stand: in a list or an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileDuration(#[serde(with = "duration")] pub Duration);

/// Durations, for `#[serde(with)]`.
pub(super) mod duration {
    use std::time::Duration;

    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&crate::proto::units::format_duration(*duration))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        from.deserialize_str(super::Text(&super::DURATION)).map(Duration::from_millis)
    }
}

/// Sizes in bytes, for `#[serde(with)]`.
pub(super) mod size {
    use serde::{Deserializer, Serializer};

    // Serde passes every field by reference.
    #[expect(clippy::trivially_copy_pass_by_ref)]
    pub(crate) fn serialize<S: Serializer>(bytes: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&crate::proto::units::format_size(*bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        from.deserialize_str(super::Text(&super::SIZE))
    }
}

/// Reads a string of the kind; anything else, such as a bare number, gets the expected form.
struct Text(&'static AmountKind);

impl serde::de::Visitor<'_> for Text {
    type Value = u64;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with its unit, such as \"{}\"", self.0.what, self.0.example)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<u64, E> {
        parse(text, self.0).map_err(E::custom)
    }
}
