//! Prerequisites and dependents of jobs, for display.

use super::submission::ANY;
use super::text::{HashFields, Legal};
use super::{JobStore, Result};
use crate::proto::job::{JobId, JobStatus};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobDependents {
    /// Its state; none if the job does not exist.
    pub status: Option<JobStatus>,
    pub name: Option<String>,
    /// The jobs it waits or waited for: those that must finish, then those that may end in any way.
    pub prerequisites: Vec<JobId>,
    /// The number of those that may end in any way.
    pub after_any: usize,
    /// The first jobs that wait or waited for it.
    pub dependents: Vec<JobId>,
    pub dependents_more: u64,
    /// The graph or batch that its hash names.
    pub graph: Option<String>,
}

const FIELDS: [&str; 7] =
    ["status", "name", "prerequisites", "after_any", "dependents", "dependents_more", "graph_id"];

impl JobStore<'_> {
    /// Reads the prerequisites and dependents of jobs, in one round trip.
    pub async fn dependents(self, ids: &[JobId]) -> Result<Vec<JobDependents>> {
        let fields = |id| ("HMGET", (self.store.keys.job(id), &FIELDS));
        // A key of another type is no job.
        let answers = self.store.link.each("reading the dependents of jobs", ids, fields).await?;
        let read = |texts| JobDependents::read(&HashFields::of(&FIELDS, texts));
        Ok(answers.into_iter().map(read).collect())
    }

    /// Reads the prerequisites that jobs still wait for, in one round trip.
    pub async fn pending(self, ids: Vec<JobId>) -> Result<Vec<Vec<JobId>>> {
        let pending = |id| ("SMEMBERS", self.store.keys.pending(id));
        let answers: Vec<Option<Vec<String>>> =
            self.store.link.each("reading the prerequisites of jobs", &ids, pending).await?;
        let sorted = |entries: Option<Vec<String>>| {
            let entries = entries.unwrap_or_default();
            let bare = entries.iter().map(|entry| entry.strip_prefix(ANY).unwrap_or(entry));
            let mut ids: Vec<JobId> = bare.filter_map(|id| id.parse().ok()).collect();
            ids.sort();
            ids
        };
        Ok(answers.into_iter().map(sorted).collect())
    }

    /// Some dependents of a job beyond those in its hash: so many behind a number of them.
    pub async fn more_dependents(self, id: &JobId, skip: usize, most: usize) -> Result<Vec<JobId>> {
        let arguments = (self.store.keys.dependents(id), skip, skip + most - 1);
        let Legal(ids) =
            self.store.link.command("reading the dependents of a job", "LRANGE", arguments).await?;
        Ok(ids)
    }
}

impl JobDependents {
    fn read(of: &HashFields) -> Self {
        let ids = |name| of.text(name).and_then(|text| serde_json::from_str(text).ok());
        let mut prerequisites: Vec<JobId> = ids("prerequisites").unwrap_or_default();
        let after_any = ids("after_any").unwrap_or_default();
        let any = after_any.len();
        prerequisites.extend(after_any);
        Self {
            status: of.parsed("status"),
            name: of.text("name").map(str::to_owned),
            prerequisites,
            after_any: any,
            dependents: ids("dependents").unwrap_or_default(),
            dependents_more: of.parsed("dependents_more").unwrap_or_default(),
            graph: of.text("graph_id").map(str::to_owned),
        }
    }
}
