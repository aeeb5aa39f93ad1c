//! The secrets of a job: values of its environment variables that its log must not show.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::proto::pattern;

/// The shortest value that is replaced, in bytes. A shorter one stands in many lines by chance.
const VALUE_BYTES_MIN: usize = 4;
/// Printed in place of a value.
const HIDDEN: &str = "***";

/// The values to hide, the longest first: one may contain another.
#[derive(Debug, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// Selects the variables whose names match one of the patterns, in capitals or not. Of a value
    /// of several lines each line is a secret, since a log has lines.
    pub(super) fn of(variables: &BTreeMap<String, String>, patterns: &[String]) -> Self {
        let is_secret = |name: &str| {
            let name = name.to_ascii_uppercase();
            patterns.iter().any(|pattern| pattern::matches(&pattern.to_ascii_uppercase(), &name))
        };
        let mut values: Vec<String> = variables
            .iter()
            .filter(|(name, _)| is_secret(name))
            .flat_map(|(_, value)| value.lines())
            .filter(|value| value.len() >= VALUE_BYTES_MIN)
            .map(ToOwned::to_owned)
            .collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self(values)
    }

    /// Returns a line without the secrets.
    pub(super) fn hide<'t>(&self, line: &'t str) -> Cow<'t, str> {
        let mut shown = Cow::Borrowed(line);
        for value in &self.0 {
            if shown.contains(value.as_str()) {
                shown = Cow::Owned(shown.replace(value.as_str(), HIDDEN));
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(variables: &[(&str, &str)]) -> Secrets {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let patterns = ["*_TOKEN", "*_KEY", "PIN"].map(ToOwned::to_owned);
        Secrets::of(&variables.iter().map(own).collect(), &patterns)
    }

    #[test]
    fn values_of_variables_with_such_names_are_hidden() {
        let secrets = secrets(&[("API_TOKEN", "s3cret"), ("db_key", "other"), ("USER", "visible")]);
        assert_eq!(secrets.hide("s3cret, s3cretother and visible"), "***, ****** and visible");
        assert!(matches!(secrets.hide("nothing"), Cow::Borrowed("nothing")));
    }

    #[test]
    fn short_values_stay_and_long_ones_go_first() {
        let secrets = secrets(&[("PIN", "123"), ("A_KEY", "abcd"), ("B_KEY", "abcdef")]);
        assert_eq!(secrets.hide("123 abcdef abcd"), "123 *** ***");
    }

    #[test]
    fn each_line_of_a_value_is_hidden() {
        let secrets = secrets(&[("TLS_KEY", "-----\nMIIE+x\r\n\nend\n")]);
        assert_eq!(secrets.hide("key: MIIE+x"), "key: ***");
        assert_eq!(secrets.hide("the end"), "the end");
    }
}
