//! The answer of a command: a result, a list, or a line for each change; as JSON one document.

use std::fmt::Display;
use std::io::{self, IsTerminal};

use serde_json::{Value, json};

use super::no_results::NoResults;
use super::table::TextTable;
use super::{Global, output};
use crate::error::Error;
use crate::proto::text::escape_lines;

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
    pub(super) fn list(
        &self,
        document: impl FnOnce() -> Value,
        table: impl FnOnce() -> TextTable,
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
