//! The labels of an actor: words and numbers by name, some given by Hero, others from the configuration.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::target::{IllegalName, is_small_word, name};
use super::text::is_invisible;
use super::units::parse_size;

name!(
    LabelName,
    "label",
    "a letter a-z, then at most 63 of a-z, 0-9, _, . and -; not `and`, `or`, `not` or `in`",
    |name| is_small_word(name, 64, b"_.-")
        && name[0].is_ascii_lowercase()
        && ![&b"and"[..], b"or", b"not", b"in"].contains(&name)
);

pub type Labels = BTreeMap<LabelName, LabelValue>;

pub fn label<'a>(labels: &'a Labels, name: &str) -> Option<&'a LabelValue> {
    labels.iter().find(|(of, _)| of.as_str() == name).map(|(_, value)| value)
}

/// The maximum number of labels that a configuration gives an actor.
pub const LABELS_MAX: usize = 32;

/// The labels that every actor of Hero has without being configured.
pub const GIVEN_LABELS: [&str; 10] =
    ["arch", "cores", "group", "host", "instance", "kernel", "machine", "memory", "os", "release"];

/// The value of a label: a word, or a number, which may be a size such as 16GiB.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelValue(String);

impl LabelValue {
    pub const FORM: &'static str = "a number, or 1 to 64 visible characters without \"";
    const CHARS_MAX: usize = 64;
    /// So many digits are exact in a number with decimals.
    const DIGITS_MAX: usize = 15;

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the number that it is. A text with leading zeros or an exponent is a word, as ids of machines are.
    pub fn number(&self) -> Option<f64> {
        let digits = self.0.strip_prefix('-').unwrap_or(&self.0);
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_number = is_digits(whole)
            && is_digits(decimals)
            && (whole == "0" || !whole.starts_with('0'))
            && whole.len() + decimals.len() <= Self::DIGITS_MAX + 1;
        // Without the sign of zero.
        if is_number { self.0.parse().ok().map(|number: f64| number + 0.0) } else { self.size() }
    }

    fn size(&self) -> Option<f64> {
        const BYTES_MAX: u64 = 1_000_000_000_000_000;
        let bytes = self.0.ends_with("iB").then(|| parse_size(&self.0).ok()).flatten()?;
        // As many digits as a number may have.
        if bytes < BYTES_MAX { bytes.to_string().parse().ok() } else { None }
    }

    /// Returns the value in the one spelling that equal numbers have.
    pub(super) fn canonical(self) -> Self {
        match self.number() {
            Some(number) => Self(number.to_string()),
            None => self,
        }
    }

    /// Returns whether two values are equal: as numbers if both are, else as texts.
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self.number(), other.number()) {
            (Some(own), Some(other)) => own.total_cmp(&other) == Ordering::Equal,
            _ => self.0 == other.0,
        }
    }

    /// Compares two values: as numbers if both are, else as texts in which digits count as numbers, as in versions.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        match (self.number(), other.number()) {
            (Some(own), Some(other)) => own.total_cmp(&other),
            _ => order_of_versions(&self.0, &other.0),
        }
    }
}

fn order_of_versions(mut one: &str, mut other: &str) -> Ordering {
    loop {
        let digits =
            [one, other].map(|text| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let order = if digits[0] > 0 && digits[1] > 0 {
            let (own, rest) = one.split_at(digits[0]);
            let (theirs, other_rest) = other.split_at(digits[1]);
            (one, other) = (rest, other_rest);
            let [own, theirs] = [own, theirs].map(|text| text.trim_start_matches('0'));
            own.len().cmp(&theirs.len()).then_with(|| own.cmp(theirs))
        } else {
            let (mut own, mut theirs) = (one.chars(), other.chars());
            let next = (own.next(), theirs.next());
            if next == (None, None) {
                return Ordering::Equal;
            }
            (one, other) = (own.as_str(), theirs.as_str());
            next.0.cmp(&next.1)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

impl FromStr for LabelValue {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        let is_legal = !value.is_empty()
            && value.chars().count() <= Self::CHARS_MAX
            && !value.contains(|c: char| is_invisible(c) || c == '"');
        if is_legal {
            Ok(Self(value.to_owned()))
        } else {
            Err(IllegalName::new("value of a label", value, Self::FORM))
        }
    }
}

impl fmt::Display for LabelValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A whole number is written as one.
impl Serialize for LabelValue {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let whole = self.0.parse::<i64>().ok().filter(|number| number.to_string() == self.0);
        match whole {
            Some(number) => to.serialize_i64(number),
            None => to.serialize_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for LabelValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a text or a number")]
        enum Given {
            Whole(i64),
            Decimal(f64),
            Text(String),
        }
        let text = match Given::deserialize(from)? {
            Given::Whole(number) => number.to_string(),
            Given::Decimal(number) => number.to_string(),
            Given::Text(text) => text,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> LabelValue {
        text.parse().expect("legal")
    }

    #[test]
    fn numbers_compare_as_numbers_and_versions_by_their_numbers() {
        for (one, other, order) in [
            ("9", "10", Ordering::Less),
            ("12", "12.0", Ordering::Equal),
            ("-3", "2", Ordering::Less),
            ("16GiB", "17179869184", Ordering::Equal),
            ("6.1.0-18-amd64", "6.1.0-9-amd64", Ordering::Greater),
            ("6.12.3", "6.2", Ordering::Greater),
            ("6.1.0", "6.1", Ordering::Greater),
            ("web", "db", Ordering::Greater),
        ] {
            assert_eq!(value(one).order(&value(other)), order, "{one} {other}");
        }
    }

    #[test]
    fn value_has_no_invisible_character() {
        for bad in ["a\u{200b}", "\u{202e}a", "a\u{7}", "\u{feff}", "a\"b", ""] {
            assert!(bad.parse::<LabelValue>().is_err(), "{bad:?}");
        }
        assert!("grün 東京".parse::<LabelValue>().is_ok());
    }

    #[test]
    fn ids_of_digits_are_words() {
        for word in ["1e100000", "00123456", "1.2.3", "1.", ".5", "1234567890123456", "0x10"] {
            assert_eq!(value(word).number(), None, "{word}");
        }
        assert!(!value("1e100").equals(&value("1e101")) && !value("01").equals(&value("1")));
        assert!(value("1.50").equals(&value("1.5")) && value("0").equals(&value("-0")));
        assert_eq!(value("-0.0").canonical(), value("0"));
    }

    #[test]
    fn values_are_texts_or_numbers_in_toml_and_json() {
        let labels: Labels = toml::from_str("role = \"web\"\nrack = 4\nload = 1.5").expect("read");
        let json = serde_json::to_string(&labels).expect("written");
        assert_eq!(json, r#"{"load":"1.5","rack":4,"role":"web"}"#);
        assert_eq!(serde_json::from_str::<Labels>(&json).expect("read"), labels);
        for illegal in
            ["role = \"\"", "Role = \"a\"", "in = 1", "a = \"b\\\"c\"", "a = true", "a = [1]"]
        {
            assert!(toml::from_str::<Labels>(illegal).is_err(), "{illegal}");
        }
        assert!("a".repeat(65).parse::<LabelValue>().is_err());
    }
}
