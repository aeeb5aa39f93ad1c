//! The sentence of an empty result.

use std::fmt::{Display, Write};

use super::{Global, output};
use crate::proto::text::{counted, shown};
use crate::store::FoundJobs;

/// A sentence such as `no job is in error of type python since yesterday 18:00`.
pub(super) struct NoResults {
    /// The words of the filters.
    what: String,
    /// True for a page after another, which may have had some.
    is_further: bool,
    /// The end of a search that has not seen all: nobody knows that there is none.
    among: Option<String>,
}

impl NoResults {
    /// Begins the sentence; `what` is such as `job is in error`.
    pub(super) fn new(what: &str) -> Self {
        Self { what: what.to_owned(), is_further: false, among: None }
    }

    /// Adds words and the value of a filter, if it is given.
    pub(super) fn by(mut self, words: &str, value: Option<impl Display>) -> Self {
        if let Some(value) = value {
            let _ = write!(self.what, " {words} {}", shown(&value.to_string()));
        }
        self
    }

    /// Begins after another page, if its end is given.
    pub(super) fn after<T>(mut self, page: Option<&T>) -> Self {
        self.is_further = page.is_some();
        self
    }

    /// Adds how far a search came, unless it has seen all.
    pub(super) fn among(self, found: &FoundJobs) -> Self {
        let back = found.back_to().map(|time| format!(", back to {}", output::time(time)));
        let back = back.unwrap_or_else(|| {
            ": an upgrade still sorts the ended jobs of the version before, as the log of a supervisor tells".to_owned()
        });
        self.searched(found.searched, &back, found.complete)
    }

    /// The same, with the words for the place where the search ended.
    pub(super) fn searched(mut self, searched: usize, back: &str, complete: bool) -> Self {
        let searched = counted(searched as u64, "job", "jobs");
        self.among = (!complete).then(|| format!("{searched}{back}"));
        self
    }

    pub(super) fn text(&self) -> String {
        let (further, order) = if self.is_further { ("further ", "next") } else { ("", "latest") };
        match &self.among {
            None => format!("no {further}{}", self.what),
            Some(among) => format!("found no {further}{} among the {order} {among}", self.what),
        }
    }

    /// Writes the sentence to standard error if nothing was found. Documents are empty without words.
    pub(super) fn report(self, global: &Global, is_empty: bool) {
        if is_empty && !global.json {
            output::note(&format!("hero: {}", self.text()));
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
        let nothing: Option<&String> = None;
        let since = Some("yesterday 18:00");
        let none =
            NoResults::new("job is in error").by("of type", Some("python")).by("since", since);
        assert_eq!(none.text(), "no job is in error of type python since yesterday 18:00");
        let text = "can\u{1b}t".to_owned();
        let none = NoResults::new("dead letter").by("of type", nothing);
        let none = none.by("with an error that contains", Some(format!("`{text}`")));
        assert_eq!(none.text(), "no dead letter with an error that contains `can\\u{1b}t`");
        let next = "1767225600000000.a".parse().ok();
        let found = FoundJobs { searched: 340, next, ..FoundJobs::default() };
        let text = NoResults::new("job").by("of caller", Some("ann")).among(&found).text();
        let start = "found no job of caller ann among the latest 340 jobs, back to 2026-01-01T";
        assert!(text.starts_with(start), "{text}");
        let place = Some("1767225600000000.a");
        let text = NoResults::new("job").after(place.as_ref()).among(&found).text();
        assert!(text.starts_with("found no further job among the next 340 jobs"), "{text}");
        let all = FoundJobs { complete: true, ..FoundJobs::default() };
        assert_eq!(NoResults::new("job").among(&all).text(), "no job");
        let after = NoResults::new("job").after(place.as_ref()).among(&all).text();
        assert_eq!(after, "no further job", "the page before may have had some");
    }
}
