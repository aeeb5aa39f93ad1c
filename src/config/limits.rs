//! `[limit.NAME]`: how many jobs may run at once, and how many may start within a time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::units::{format_duration, parse_duration};
use crate::proto::job::LimitKey;
use crate::proto::target::{Group, IllegalName, ScriptType, name};

name!(
    /// What a limit is called: in the configuration, in Redis, and in the jobs that it holds back.
    LimitName,
    "name of a limit",
    "a letter a-z or digit, then at most 63 of a-z, 0-9, _, . and -",
    |name| matches!(name.first(), Some(b'a'..=b'z' | b'0'..=b'9'))
        && name.len() <= 64
        && name.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-'))
);

/// One limit: which jobs are under it, what it counts separately, and how many it lets through.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct LimitConfig {
    /// What it counts separately; all jobs under it together without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per: Option<Per>,
    /// Only jobs of this script type are under it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub script_type: Option<ScriptType>,
    /// Only jobs for this group; one that names none is for `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// Only jobs of this caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Only jobs with this limit key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<LimitKey>,
    /// How many of them run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
    /// How many of them start within a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// What a limit counts separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// Each script type.
    Type,
    /// Each group of a script type.
    Group,
    /// Each caller.
    Caller,
    /// Each limit key that jobs name.
    Key,
}

impl Per {
    /// As the configuration spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Group => "group",
            Self::Caller => "caller",
            Self::Key => "key",
        }
    }
}

/// So many starts within a time, written `10/s`, `100/m`, `5/10s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub number: u32,
    /// Within which time, whenever that begins.
    pub period: Duration,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = format_duration(self.period);
        // One second is written `s`; eleven are not `1s` with something before it.
        let unit = period.strip_prefix('1').filter(|unit| unit.starts_with(char::is_alphabetic));
        write!(f, "{}/{}", self.number, unit.unwrap_or(&period))
    }
}

impl FromStr for Rate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "expected so many starts within a time, such as \"10/s\" or \"100/5m\"";
        let (number, period) = text.split_once('/').ok_or(FORM)?;
        let number = number.parse().map_err(|_| FORM)?;
        let bare = period.starts_with(char::is_alphabetic);
        let period = if bare { format!("1{period}") } else { period.to_owned() };
        let period = parse_duration(&period).map_err(|_| FORM)?;
        Ok(Self { number, period })
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_reads_back_as_it_is_written() {
        for text in ["10/s", "1/ms", "100/m", "5/10s", "7/11s", "3/1500ms", "0/s"] {
            assert_eq!(text.parse::<Rate>().map(|rate| rate.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("4/60s".parse::<Rate>().expect("legal").to_string(), "4/m");
        for bad in ["", "10", "/s", "10/", "s/10", "-1/s", "1/2/s", "10/fortnight", "1.5/s"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad} was accepted");
        }
    }
}
