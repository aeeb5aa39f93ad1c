//! Durations, sizes and load averages in the configuration file.

use std::time::Duration;

use serde::de::{Deserializer, Error, Visitor};
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

impl Visitor<'_> for Text {
    type Value = u64;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with its unit, such as \"{}\"", self.0.what, self.0.example)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        parse(text, self.0).map_err(E::custom)
    }
}

/// Reads a load average, to the hundredth and without the sign of zero.
pub(super) fn load_average<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    f64::deserialize(from).map(|load| (load * 100.0).round() / 100.0 + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_a_number_to_the_hundredth() {
        #[derive(Deserialize, Debug)]
        struct Line {
            #[serde(deserialize_with = "load_average")]
            load: f64,
        }
        let read = |text: &str| toml::from_str::<Line>(&format!("load = {text}"));
        for (text, load) in [("8", 8.0), ("8.0", 8.0), ("0", 0.0), ("0.25", 0.25), ("0.999", 1.0)] {
            let line = read(text).expect(text);
            assert!((line.load - load).abs() < 1e-9, "{text}");
        }
        assert!(read("\"8\"").is_err() && read("-0.0").expect("zero").load.is_sign_positive());
    }
}
