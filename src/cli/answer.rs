//! The answer of a command: a result, a list, or a line for each change; as JSON one document.

use std::fmt::{Display, Write};
use std::io::{self, IsTerminal};

use serde_json::{Value, json};

use super::table::TextTable;
use super::{Global, output};
use crate::error::Error;
use crate::proto::text::{counted, escape_lines, shown};
use crate::store::FoundJobs;

impl Global {
    /// Writes a result as one JSON document, or as text with its own line ends.
    pub(super) fn print(
        &self,
        document: impl FnOnce() -> Value,
        readable: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        if self.json { output::json(&document()) } else { output::text(&readable()) }
    }

    /// Writes a list as one JSON document, or as a table; without a row, what was looked for.
    pub(super) fn list<'t, T: 't>(
        &self,
        document: impl FnOnce() -> Value,
        table: impl FnOnce() -> TextTable<'t, T>,
        none: NoResults,
    ) -> Result<(), Error> {
        if self.json {
            return output::json(&document());
        }
        let table = table();
        output::text(&table.show(self.look()))?;
        none.report(self, table.is_empty());
        Ok(())
    }

    /// Writes the command for the next page to standard error, if there is one. Documents have its place instead.
    pub(super) fn more(&self, command: Option<String>) {
        if let Some(command) = command.filter(|_| !self.json) {
            output::note(&format!("more: {command}"));
        }
    }

    /// Writes what may come next to standard error, if a person reads both it and the result.
    pub(super) fn hint(&self, message: &str) {
        if !self.json && io::stdout().is_terminal() && io::stderr().is_terminal() {
            output::note(message);
        }
    }

    /// Changes each of what is named, and writes a line for each change, or one document: what was changed, under
    /// the word `done`.
    pub(super) async fn each<T: Display>(
        &self,
        names: &[T],
        done: &str,
        change: impl AsyncFn(&T) -> Result<(bool, String), Error>,
    ) -> Result<(), Error> {
        let mut changed = Vec::new();
        for name in names {
            let (is_new, said) = change(name).await?;
            let name = name.to_string();
            if !self.json {
                output::line(&format!("{} {said}", escape_lines(&name)))?;
            }
            changed.extend(is_new.then_some(name));
        }
        if self.json { output::json(&json!({ done: changed })) } else { Ok(()) }
    }

    /// Changes each of what is named, and writes that as [`Self::each`] does.
    pub(super) async fn each_done<T: Display>(
        &self,
        names: &[T],
        done: &str,
        change: impl AsyncFn(&T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let change = async |name: &T| change(name).await.map(|()| (true, done.to_owned()));
        self.each(names, done, change).await
    }
}

/// The sentence of an empty result, such as `no job is in error of type python since yesterday 18:00`.
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
