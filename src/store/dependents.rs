//! Prerequisites and dependents of jobs, for display.

use super::submission::ANY;
use super::text::Legal;
use super::{Result, Store};
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

impl Store {
    /// Reads the prerequisites and dependents of jobs, in one round trip.
    pub async fn dependents(&self, ids: &[JobId]) -> Result<Vec<JobDependents>> {
        let fields = |id| ("HMGET", (self.keys.job(id), &FIELDS));
        // A key of another type is no job.
        let answers: Vec<Option<Vec<Option<Vec<u8>>>>> =
            self.link.each("reading the dependents of jobs", ids, fields).await?;
        Ok(answers.into_iter().map(|values| read(values.unwrap_or_default())).collect())
    }

    /// Reads the prerequisites that jobs still wait for, in one round trip.
    pub async fn pending(&self, ids: Vec<JobId>) -> Result<Vec<Vec<JobId>>> {
        let pending = |id| ("SMEMBERS", self.keys.pending(id));
        let answers: Vec<Option<Vec<String>>> =
            self.link.each("reading the prerequisites of jobs", &ids, pending).await?;
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
    pub async fn more_dependents(
        &self,
        id: &JobId,
        skip: usize,
        most: usize,
    ) -> Result<Vec<JobId>> {
        let arguments = (self.keys.dependents(id), skip, skip + most - 1);
        let Legal(ids) =
            self.link.command("reading the dependents of a job", "LRANGE", arguments).await?;
        Ok(ids)
    }
}

fn read(values: Vec<Option<Vec<u8>>>) -> JobDependents {
    let mut values = values.into_iter();
    let mut next = || {
        values.next().flatten().and_then(|text| String::from_utf8(text).ok()).unwrap_or_default()
    };
    let ids = |text: String| serde_json::from_str::<Vec<JobId>>(&text).unwrap_or_default();
    let (status, name) = (next(), next());
    let mut prerequisites = ids(next());
    let after_any = ids(next());
    let any = after_any.len();
    prerequisites.extend(after_any);
    JobDependents {
        status: status.parse().ok(),
        name: (!name.is_empty()).then_some(name),
        prerequisites,
        after_any: any,
        dependents: ids(next()),
        dependents_more: next().parse().unwrap_or_default(),
        graph: Some(next()).filter(|graph| !graph.is_empty()),
    }
}
