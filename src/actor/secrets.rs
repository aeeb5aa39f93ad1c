//! The values that the log and the output of a job must not show: values of its secrets, and of
//! environment variables with certain names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::engine::{Failure, SecretValues, Success};
use crate::proto::job::JobOutput;
use crate::proto::pattern;

/// The shortest value that is replaced, in bytes. A shorter one stands in many lines by chance.
const VALUE_BYTES_MIN: usize = 4;
/// Printed in place of a value.
const HIDDEN: &str = "***";

/// The values to hide, the longest first: one may contain another.
#[derive(Clone, Default)]
pub(super) struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

impl Secrets {
    /// Selects the variables whose names match one of the patterns, in capitals or not. Of a value
    /// of several lines each line is a secret, since a log has lines.
    pub(super) fn of(variables: &BTreeMap<String, String>, patterns: &[String]) -> Self {
        let named = variables.iter().filter(|(name, _)| pattern::matches_name(patterns, name));
        Self::values(named.map(|(_, value)| value.as_str()))
    }

    /// Hides these values, also as JSON writes them.
    pub(super) fn values<'v>(texts: impl Iterator<Item = &'v str>) -> Self {
        let lines = texts.flat_map(str::lines).filter(|value| value.len() >= VALUE_BYTES_MIN);
        let values = lines
            .flat_map(|value| {
                let json = serde_json::Value::from(value).to_string();
                let json = json[1..json.len() - 1].to_owned();
                [Some(value.to_owned()), Some(json).filter(|json| json != value)]
            })
            .flatten()
            .collect();
        let mut all = Self::default();
        all.add(Self(values));
        all
    }

    pub(super) fn add(&mut self, others: Self) {
        self.0.extend(others.0);
        self.0.sort_by_key(|value| std::cmp::Reverse(value.len()));
        self.0.dedup();
    }

    pub(super) fn of_values(secrets: &SecretValues) -> Self {
        let files = secrets.files.values().filter_map(|content| std::str::from_utf8(content).ok());
        Self::values(secrets.by_name.values().map(String::as_str).chain(files))
    }

    pub(super) fn hide_in_result(
        &self,
        result: Result<Success, Failure>,
    ) -> Result<Success, Failure> {
        if self.0.is_empty() {
            return result;
        }
        match result {
            Ok(Success { output, exit_code }) => {
                Ok(Success { output: self.hide_in(output), exit_code })
            }
            Err(Failure::Waits { wait, exit_code }) => {
                let text = wait.to_json();
                if self.hide(&text) == text {
                    return Err(Failure::Waits { wait, exit_code });
                }
                let message = "the wait has the value of a secret, which is not stored".to_owned();
                Err(Failure::Script { message, exit_code })
            }
            Err(mut failure) => {
                if let Failure::Script { message, .. }
                | Failure::Postponed { message, .. }
                | Failure::Discarded { message, .. }
                | Failure::Machine { message }
                | Failure::Killed { message, .. }
                | Failure::Invalid { message } = &mut failure
                {
                    *message = self.hide(message).into_owned();
                }
                Err(failure)
            }
        }
    }

    pub(super) fn hide_in(&self, output: JobOutput) -> JobOutput {
        match output {
            JobOutput::Text(text) => JobOutput::Text(self.hide(&text).into_owned()),
            JobOutput::Bytes(bytes) => {
                let hidden = |bytes: Vec<u8>, value: &String| without(&bytes, value.as_bytes());
                self.0.iter().fold(bytes, hidden).into()
            }
        }
    }

    pub(super) fn hide<'t>(&self, line: &'t str) -> Cow<'t, str> {
        let mut shown = Cow::Borrowed(line);
        for value in &self.0 {
            if shown.contains(value.as_str()) {
                shown = Cow::Owned(shown.replace(value.as_str(), HIDDEN));
            }
        }
        shown
    }

    /// Returns the bytes at the end of a text that may be the start of a secret whose rest is not there yet.
    pub(super) fn begin_at_end_of(&self, text: &str) -> usize {
        let longest = |value: &String| {
            let most = value.len().saturating_sub(1).min(text.len());
            let begins = |bytes: &usize| {
                text.is_char_boundary(text.len() - bytes)
                    && value.starts_with(&text[text.len() - bytes..])
            };
            (1..=most).rev().find(begins)
        };
        self.0.iter().filter_map(longest).max().unwrap_or(0)
    }
}

/// Returns bytes with [`HIDDEN`] in place of a value.
fn without(bytes: &[u8], value: &[u8]) -> Vec<u8> {
    let (mut shown, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    while let Some(first) = rest.first() {
        if rest.starts_with(value) {
            shown.extend_from_slice(HIDDEN.as_bytes());
            rest = &rest[value.len()..];
        } else {
            shown.push(*first);
            rest = &rest[1..];
        }
    }
    shown
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
    fn outputs_of_any_kind_show_no_value() {
        let secrets = Secrets::values(["pass\"word", "two\nlines"].into_iter());
        let text = JobOutput::from("{\"a\":\"pass\\\"word\"} pass\"word lines two".to_owned());
        assert_eq!(secrets.hide_in(text), "{\"a\":\"***\"} *** *** two");
        let bytes = JobOutput::from(b"\xffpass\"word\xfflinesx".to_vec());
        assert_eq!(secrets.hide_in(bytes).as_bytes(), b"\xff***\xff***x");
    }

    #[test]
    fn begin_of_a_value_at_the_end_of_a_text_is_found() {
        let secrets = secrets(&[("API_TOKEN", "s3crét"), ("B_KEY", "crypto")]);
        for (text, bytes) in
            [("", 0), ("Continue? ", 0), ("as", 1), ("token=s3cr", 4), ("s3cré", 6)]
        {
            assert_eq!(secrets.begin_at_end_of(text), bytes, "{text}");
        }
    }

    #[test]
    fn each_line_of_a_value_is_hidden() {
        let secrets = secrets(&[("TLS_KEY", "-----\nMIIE+x\r\n\nend\n")]);
        assert_eq!(secrets.hide("key: MIIE+x"), "key: ***");
        assert_eq!(secrets.hide("the end"), "the end");
    }
}
