//! The periodic jobs that were added by command.

use super::{Store, StoreError};
use crate::proto::cron::{ADDED_MAX, CronName};

/// The field of the revision; no periodic job has such a name.
const REVISION: &str = "#";

/// A change of the periodic jobs in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CronEdit<'a> {
    /// Adds one with this definition.
    Add(&'a str),
    /// Replaces a definition by another.
    Edit {
        /// The definition that was read.
        before: &'a str,
        /// The new one.
        after: &'a str,
    },
    /// Restores one, and leaves an existing one and its state as they are.
    Restore(&'a str),
    /// Deletes one, with its history.
    Delete,
}

/// The answer to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CronEdited {
    /// The change was made.
    Done,
    /// The name is taken.
    Exists,
    /// No periodic job in Redis has this name.
    Missing,
    /// Another caller changed it meanwhile.
    Changed,
    /// The limit of periodic jobs in Redis is reached.
    Full,
}

impl Store {
    /// The revision of the periodic jobs in Redis, which each change renews; none before the first.
    pub async fn cron_revision(&self) -> Result<Option<String>, StoreError> {
        let arguments = (self.keys.cron_added(), REVISION);
        self.link.command("looking at periodic jobs", "HGET", arguments).await
    }

    /// The definitions of the periodic jobs in Redis, by name.
    pub async fn cron_added(&self) -> Result<Vec<(CronName, String)>, StoreError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.keys.cron_added());
        let all: Vec<(String, Vec<u8>)> =
            self.link.query("reading the periodic jobs in redis", &command).await?;
        let mut added: Vec<(CronName, String)> = all
            .into_iter()
            .filter_map(|(name, text)| Some((name.parse().ok()?, String::from_utf8(text).ok()?)))
            .take(ADDED_MAX)
            .collect();
        added.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(added)
    }

    /// Changes the periodic jobs in Redis.
    pub async fn edit_cron(
        &self,
        name: &CronName,
        edit: CronEdit<'_>,
    ) -> Result<CronEdited, StoreError> {
        const DOING: &str = "changing the periodic jobs in redis";
        let (action, before, after) = match edit {
            CronEdit::Add(after) => ("add", "", after),
            CronEdit::Edit { before, after } => ("edit", before, after),
            CronEdit::Restore(text) => ("restore", "", text),
            CronEdit::Delete => ("delete", "", ""),
        };
        let arguments = (action, name.as_str(), after, before, ADDED_MAX);
        let answer: String = self.run_script(DOING, &self.scripts.define_cron, arguments).await?;
        match answer.as_str() {
            "ok" => Ok(CronEdited::Done),
            "exists" => Ok(CronEdited::Exists),
            "missing" => Ok(CronEdited::Missing),
            "changed" => Ok(CronEdited::Changed),
            "full" => Ok(CronEdited::Full),
            _ => Err(StoreError::unexpected(DOING)),
        }
    }
}
