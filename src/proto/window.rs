//! The window of a graph or batch: how many of its jobs run at once, and after how many failures no other starts.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The window of a graph or batch, or a change of it. Zero is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GraphWindow {
    /// The number of its jobs that run at once.
    pub at_a_time: Option<u32>,
    /// The failures after which its other jobs are stopped.
    pub stop_after: Option<StopAfter>,
}

impl GraphWindow {
    /// Returns the fields of both bounds.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, String)> {
        let at_a_time = self.at_a_time.map(|number| ("at_a_time", number.to_string()));
        let stop_after = self.stop_after.map(|failures| ("stop_after", failures.to_string()));
        at_a_time.into_iter().chain(stop_after)
    }

    /// Returns whether its bound of failures depends on the number of all jobs.
    pub fn has_share(&self) -> bool {
        matches!(self.stop_after, Some(StopAfter::Share(_)))
    }

    /// Returns it with those bounds of another that this has.
    #[must_use]
    pub fn changed_by(self, other: Self) -> Self {
        Self {
            at_a_time: other.at_a_time.or(self.at_a_time),
            stop_after: other.stop_after.or(self.stop_after),
        }
    }
}

/// `4 at a time, stops after 5% failed`.
impl fmt::Display for GraphWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at_a_time {
            Some(number) => write!(f, "{number} at a time")?,
            None => f.write_str("all at a time")?,
        }
        self.stop_after.map_or(Ok(()), |failures| write!(f, ", stops after {failures} failed"))
    }
}

/// The failures after which the other jobs of a graph or batch are stopped, written `2` or `5%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopAfter {
    /// So many failures.
    Failures(u32),
    /// So many of a hundred jobs, rounded up.
    Share(u8),
}

/// The form of its text.
const FORM: &str = "expected a number of failures such as 2, or a share of all jobs such as 5%";

impl fmt::Display for StopAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failures(number) => write!(f, "{number}"),
            Self::Share(percent) => write!(f, "{percent}%"),
        }
    }
}

impl FromStr for StopAfter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_suffix('%');
        if !digits.unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(FORM);
        }
        match digits.map(str::parse) {
            None => text.parse().map(Self::Failures).map_err(|_| FORM),
            Some(Ok(percent @ 1..=100)) => Ok(Self::Share(percent)),
            Some(_) => Err(FORM),
        }
    }
}

impl Serialize for StopAfter {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Failures(number) => to.serialize_u32(*number),
            Self::Share(_) => to.collect_str(self),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number of failures such as 2, or a share such as \"5%\"")]
enum NumberOrText {
    Number(u32),
    Text(String),
}

impl<'de> Deserialize<'de> for StopAfter {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match NumberOrText::deserialize(from)? {
            NumberOrText::Number(number) => Ok(Self::Failures(number)),
            NumberOrText::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

impl JsonSchema for StopAfter {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StopAfter".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+%?$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_of_failures_is_a_number_or_a_share_and_reads_back() {
        for (text, read) in [
            ("0", StopAfter::Failures(0)),
            ("2", StopAfter::Failures(2)),
            ("1%", StopAfter::Share(1)),
            ("100%", StopAfter::Share(100)),
        ] {
            assert_eq!(text.parse(), Ok(read));
            assert_eq!(read.to_string(), text);
            let json = serde_json::to_string(&read).expect("JSON");
            assert_eq!(serde_json::from_str::<StopAfter>(&json).expect("it reads back"), read);
        }
        for bad in ["", "%", "0%", "101%", "5 %", "-1", "+1", "1.5%", "two", "99999999999"] {
            assert!(bad.parse::<StopAfter>().is_err(), "{bad} was accepted");
        }
    }
}
