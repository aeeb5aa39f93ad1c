//! The words of an empty result: what was looked for.

use std::fmt::{Display, Write};

use super::{Global, output};
use crate::proto::text::shown;

/// A sentence such as `no job is in error of type python since yesterday 18:00`.
pub(super) struct Sought(String);

impl Sought {
    /// Begins the sentence; `what` is such as `job is in error`.
    pub(super) fn new(what: &str) -> Self {
        Self(format!("no {what}"))
    }

    /// Adds words and the value of a filter, if it is given.
    pub(super) fn by(mut self, words: &str, value: Option<impl Display>) -> Self {
        if let Some(value) = value {
            let _ = write!(self.0, " {words} {}", shown(&value.to_string()));
        }
        self
    }

    /// Adds words and the text of a filter in quotes, if it is given.
    pub(super) fn quoting(self, words: &str, text: Option<&String>) -> Self {
        self.by(words, text.map(|text| format!("`{text}`")))
    }

    /// Returns the sentence.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Writes the sentence to standard error if nothing was found. Documents are empty without words.
    pub(super) fn tell(self, global: &Global, is_empty: bool) {
        if is_empty && !global.json {
            output::note(&format!("hero: {}", self.0));
        }
    }
}

/// Quotes a word for a shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_has_the_filters_that_are_given() {
        let none: Option<&String> = None;
        let since = Some("yesterday 18:00");
        let sought =
            Sought::new("job is in error").by("of type", Some("python")).by("since", since);
        assert_eq!(sought.text(), "no job is in error of type python since yesterday 18:00");
        let text = "can\u{1b}t".to_owned();
        let sought = Sought::new("dead letter").by("of type", none);
        let sought = sought.quoting("with an error that contains", Some(&text));
        assert_eq!(sought.text(), "no dead letter with an error that contains `can\\u{1b}t`");
    }
}
