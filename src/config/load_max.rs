//! A load average of the configuration, kept in hundredths.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A load average, to the hundredth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LoadMax {
    hundredths: u32,
}

impl LoadMax {
    /// The highest legal value, far above any machine.
    const MAX: f64 = 100_000.0;

    /// Creates a load average, rounded to a hundredth; `None` if it is not from 0 to 100000.
    pub fn new(load: f64) -> Option<Self> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is within the bounds of the type"
        )]
        let load = (0.0..=Self::MAX)
            .contains(&load)
            .then(|| Self { hundredths: (load * 100.0).round() as u32 });
        load
    }

    pub fn get(self) -> f64 {
        f64::from(self.hundredths) / 100.0
    }
}

impl fmt::Display for LoadMax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl Serialize for LoadMax {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.get())
    }
}

impl<'de> Deserialize<'de> for LoadMax {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Number)
    }
}

struct Number;

impl Visitor<'_> for Number {
    type Value = LoadMax;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a load average from 0 to 100000, such as 8.0")
    }

    fn visit_f64<E: Error>(self, load: f64) -> Result<LoadMax, E> {
        LoadMax::new(load).ok_or_else(|| E::custom("expected a load average from 0 to 100000"))
    }

    fn visit_i64<E: Error>(self, load: i64) -> Result<LoadMax, E> {
        // A number that does not fit is out of bounds.
        self.visit_f64(u32::try_from(load).map_or(-1.0, f64::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_a_number_within_its_bounds() {
        #[derive(Deserialize, Debug)]
        struct Line {
            load: LoadMax,
        }
        let read = |text: &str| toml::from_str::<Line>(&format!("load = {text}"));
        for (text, load) in [("8", 8.0), ("8.0", 8.0), ("0", 0.0), ("0.25", 0.25), ("0.999", 1.0)] {
            let line = read(text).expect(text);
            assert!((line.load.get() - load).abs() < 1e-9, "{text}");
        }
        for text in ["-1", "-0.1", "nan", "inf", "100001", "\"8\"", "9223372036854775807"] {
            assert!(read(text).is_err(), "{text} was accepted");
        }
    }
}
