//! Resumes graphs: with corrected jobs, and from a chosen step.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::graphs::NOT_FINISHED;
use super::{Client, ClientError, GraphChange, moved};
use crate::proto::graph::GraphJobOutcome;
use crate::proto::job::{Corrections, JobId};
use crate::proto::text::counted;
use crate::store::{GraphMember, JobDependents, RetryOutcome, Store};

/// The way to resume a graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphRetry {
    /// The step, by its name or id, that runs again with all jobs that depend on it, whether they failed or finished.
    /// Without it, the jobs that failed or were stopped.
    pub from: Option<String>,
    /// New values of settings by the names of their jobs, or by the ids of these. The members of a value are named
    /// as the fields of the hash; null takes one away.
    pub changes: BTreeMap<String, Map<String, Value>>,
}

/// A job of a graph with its prerequisites.
type Step = (GraphMember, JobDependents);

impl Client {
    /// Runs those jobs of a graph or batch again that failed or were stopped, or a step and what depends on it. Each
    /// waits for its prerequisites again.
    ///
    /// # Errors
    /// [`ClientError::NoSuchGraph`]; [`ClientError::Step`] for a name that is unknown or of a job that would not run,
    /// [`ClientError::Invalid`] for a change that is not legal, and then no job was retried;
    /// [`ClientError::Store`], and then the jobs before it were.
    pub async fn retry_graph(
        &self,
        id: &JobId,
        how: &GraphRetry,
    ) -> Result<GraphChange, ClientError> {
        self.of(id)?.finish_stop(id, self.job.kept()).await?;
        let (members, corrections) = self.to_retry(id, how).await?;
        let mut change = GraphChange::default();
        let (none, members_store) = (Corrections::new(), self.of(id)?.within_graph(id));
        // In the order of the graph: a job is retried after its prerequisites.
        for member in members {
            let own = corrections.get(&member.id).unwrap_or(&none);
            match members_store.retry_corrected(&member.id, own).await? {
                RetryOutcome::Moved(_) => change.done += 1,
                other => {
                    if let Err(error) = moved("retry", &member.id, other) {
                        change.problem(&member.id, &error);
                    }
                }
            }
        }
        let from = how.from.as_ref().map(|step| format!(" from {step}")).unwrap_or_default();
        let changed: Vec<&str> = how.changes.keys().map(String::as_str).collect();
        let changed = if changed.is_empty() {
            String::new()
        } else {
            format!(", changed {}", changed.join(", "))
        };
        let jobs = counted(change.done, "job", "jobs");
        self.note("graph.retry", format!("{id}{from}: {jobs}{changed}")).await;
        Ok(change)
    }

    /// Returns the jobs that run again, in the order of the graph, and their corrections.
    async fn to_retry(
        &self,
        id: &JobId,
        how: &GraphRetry,
    ) -> Result<(Vec<GraphMember>, BTreeMap<JobId, Corrections>), ClientError> {
        if *how == GraphRetry::default() {
            return Ok((self.all_members(id, &NOT_FINISHED).await?, BTreeMap::new()));
        }
        let steps = self.steps(id).await?;
        let chosen = if let Some(step) = &how.from {
            with_followers(&steps, &named(id, &steps, step)?.0.id)
        } else {
            let failed = |(member, _): &&Step| NOT_FINISHED.contains(&member.outcome());
            steps.iter().filter(failed).map(|(member, _)| member.id.clone()).collect()
        };
        let mut corrections = BTreeMap::new();
        for (step, changes) in &how.changes {
            let job = &named(id, &steps, step)?.0.id;
            if !chosen.contains(job) {
                let why =
                    "is not among the jobs that run again; to run it and all jobs after it: --from"
                        .to_owned();
                return Err(ClientError::Step { graph: id.clone(), step: step.clone(), why });
            }
            if !self.of(id)?.may_correct(job) {
                let why = "is another job since it was checked; try again".to_owned();
                return Err(ClientError::Step { graph: id.clone(), step: step.clone(), why });
            }
            corrections.insert(job.clone(), self.corrections(job, changes).await?);
        }
        let members = steps.into_iter().map(|(member, _)| member);
        Ok((members.filter(|member| chosen.contains(&member.id)).collect(), corrections))
    }

    /// Returns the ids of the jobs that changes of a graph name.
    ///
    /// # Errors
    /// As [`Client::retry_graph`].
    pub async fn steps_named<'a>(
        &self,
        id: &JobId,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Result<Vec<JobId>, ClientError> {
        let steps = self.steps(id).await?;
        let ids = names.into_iter().map(|name| Ok(named(id, &steps, name)?.0.id.clone()));
        ids.collect()
    }

    async fn steps(&self, id: &JobId) -> Result<Vec<Step>, ClientError> {
        let members = self.all_members(id, &GraphJobOutcome::WORST_FIRST).await?;
        let mut steps = Vec::with_capacity(members.len());
        for some in members.chunks(Store::GRAPHS_PER_PAGE_MAX) {
            let ids: Vec<JobId> = some.iter().map(|member| member.id.clone()).collect();
            let jobs = some.iter().cloned().zip(self.of(id)?.dependents(&ids).await?);
            // A later job may have the id of a deleted one.
            steps.extend(jobs.filter(|(_, job)| job.graph.as_deref() == Some(id.as_str())));
        }
        Ok(steps)
    }
}

fn named<'a>(graph: &JobId, steps: &'a [Step], name: &str) -> Result<&'a Step, ClientError> {
    let fits =
        |(member, job): &&Step| job.name.as_deref() == Some(name) || member.id.as_str() == name;
    let wrong =
        |why: String| ClientError::Step { graph: graph.clone(), step: name.to_owned(), why };
    let mut found = steps.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(step), None) => Ok(step),
        (Some(_), Some(_)) => Err(wrong("is the name of several jobs; give an id".to_owned())),
        (None, _) => {
            let known: Vec<&str> =
                steps.iter().filter_map(|(_, job)| job.name.as_deref()).take(20).collect();
            Err(wrong(format!("is not the name of a job; jobs: {}", known.join(", "))))
        }
    }
}

/// Returns a step and all that depend on it. Prerequisites come before their dependents.
fn with_followers(steps: &[Step], first: &JobId) -> BTreeSet<JobId> {
    let mut chosen = BTreeSet::from([first.clone()]);
    for (member, job) in steps {
        if job.prerequisites.iter().any(|before| chosen.contains(before)) {
            chosen.insert(member.id.clone());
        }
    }
    chosen
}
