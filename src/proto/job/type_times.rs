//! The times that jobs of a script type have unless they say, as Redis keeps them.

use std::time::Duration;

use super::value::HashValue;
use crate::proto::target::ScriptType;

/// The times of all script types: seconds by setting and type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeTimes(Vec<(String, String)>);

impl TypeTimes {
    /// Returns the fields of the hash, each with its text.
    pub fn fields(&self) -> impl Iterator<Item = &(String, String)> {
        self.0.iter()
    }
}

/// A setting, a script type and the time, zero for none.
impl<'a> FromIterator<(&'static str, &'a ScriptType, Duration)> for TypeTimes {
    fn from_iter<I: IntoIterator<Item = (&'static str, &'a ScriptType, Duration)>>(all: I) -> Self {
        let set = all.into_iter().filter(|(.., time)| !time.is_zero());
        Self(set.map(|(field, of, time)| (format!("{field}:{of}"), time.write())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_by_setting_and_type_without_those_that_are_not_set() {
        let (bash, osis) = ("bash".parse().expect("legal"), "osis".parse().expect("legal"));
        let times: TypeTimes = [
            ("expect_within", &bash, Duration::from_mins(10)),
            ("slow_after", &bash, Duration::ZERO),
            ("slow_after", &osis, Duration::from_millis(1)),
        ]
        .into_iter()
        .collect();
        let fields: Vec<_> = times.fields().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(fields, [("expect_within:bash", "600"), ("slow_after:osis", "0.001")]);
    }
}
