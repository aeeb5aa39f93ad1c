//! The periodic jobs that were added by command.

use super::{Result, Store, StoreError};
use crate::proto::cron::{ADDED_MAX, CronName};
use crate::proto::word_table::words;

/// The field of the revision; no periodic job has such a name.
const REVISION: &str = "#";

/// A change of the periodic jobs in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CronEdit<'a> {
    Add(&'a str),
    /// Replaces a definition by another.
    Edit {
        before: &'a str,
        after: &'a str,
    },
    /// Restores one, and leaves an existing one and its state as they are.
    Restore(&'a str),
    /// Deletes one, with its history.
    Delete,
}

words! {
    /// The answer to a change.
    CronEdited, "answer", "a word of define_cron.lua";
    Done = "ok",
    Exists = "exists",
    /// No periodic job in Redis has this name.
    Missing = "missing",
    /// Another caller changed it meanwhile.
    Changed = "changed",
    /// The limit of periodic jobs in Redis is reached.
    Full = "full",
}

impl Store {
    /// The revision of the periodic jobs in Redis, which each change renews; none before the first.
    pub async fn cron_revision(&self) -> Result<Option<String>> {
        let arguments = (self.keys.cron_added(), REVISION);
        self.link.command("looking at periodic jobs", "HGET", arguments).await
    }

    /// The definitions of the periodic jobs in Redis, by name.
    pub async fn cron_added(&self) -> Result<Vec<(CronName, String)>> {
        let (doing, key) = ("reading the periodic jobs in redis", self.keys.cron_added());
        let all: Vec<(String, Vec<u8>)> = self.link.command(doing, "HGETALL", key).await?;
        let mut added: Vec<(CronName, String)> = all
            .into_iter()
            .filter_map(|(name, text)| Some((name.parse().ok()?, String::from_utf8(text).ok()?)))
            .take(ADDED_MAX)
            .collect();
        added.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(added)
    }

    pub async fn edit_cron(&self, name: &CronName, edit: CronEdit<'_>) -> Result<CronEdited> {
        const DOING: &str = "changing the periodic jobs in redis";
        let (action, before, after) = match edit {
            CronEdit::Add(after) => ("add", "", after),
            CronEdit::Edit { before, after } => ("edit", before, after),
            CronEdit::Restore(text) => ("restore", "", text),
            CronEdit::Delete => ("delete", "", ""),
        };
        let arguments = (action, name.as_str(), after, before, ADDED_MAX);
        let word: String = self.run_script(DOING, &self.scripts.define_cron, arguments).await?;
        StoreError::or_parsed(DOING, &word)
    }
}
