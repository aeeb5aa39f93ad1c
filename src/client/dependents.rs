//! Prerequisites and dependents of a job: as trees, and as the graph of all jobs around it. And the members of a job document that no field
//! of the hash has: attempts, dependents, and the place in the queue; and dead letters.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{ClientError, GraphClient, JobClient, Result};
use crate::proto::job::{Job, JobAttempt, JobId, JobStatus, QUEUE_PLACE};
use crate::store::{JobDependents, JobSummary};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    pub id: JobId,
    pub name: Option<String>,
    /// Its state; `None` if it does not exist any more.
    pub status: Option<JobStatus>,
    pub branches: Vec<Branch>,
    /// The number of further ones that are left out.
    pub more: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTrees {
    pub prerequisites: Branch,
    pub dependents: Branch,
}

impl JobTrees {
    /// Returns whether the job has neither prerequisites nor dependents.
    pub fn is_empty(&self) -> bool {
        [&self.prerequisites, &self.dependents].iter().all(|of| of.is_leaf())
    }
}

impl Branch {
    /// Returns whether no job is below it.
    pub fn is_leaf(&self) -> bool {
        self.branches.is_empty() && self.more == 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TreeDirection {
    Prerequisites,
    Dependents,
}

/// The bounds of a tree: its depth, the branches of one job, and all jobs.
const LEVELS_MAX: usize = 4;
const WIDTH_MAX: usize = 10;
const JOBS_MAX: usize = 100;
/// The maximum number of dependents of one job that are followed in a graph.
const FOLLOWED_MAX: usize = 1_000;

/// A job of an unfinished tree, with the index of its parent.
struct Leaf {
    id: JobId,
    kin: JobDependents,
    parent: usize,
    more: u64,
}

impl JobClient<'_> {
    /// Reads the trees of a job. They are bounded in depth, width and size, and take one round trip per level.
    pub async fn trees(self, job: &Job) -> Result<JobTrees> {
        let prerequisites = self.tree(job, TreeDirection::Prerequisites).await?;
        let dependents = self.tree(job, TreeDirection::Dependents).await?;
        Ok(JobTrees { prerequisites, dependents })
    }

    async fn tree(self, job: &Job, way: TreeDirection) -> Result<Branch> {
        let kin = JobDependents {
            status: Some(job.status),
            name: job.spec.name.as_ref().map(ToString::to_string),
            prerequisites: job.spec.waits_for().cloned().collect(),
            after_any: job.spec.after_any.len(),
            dependents: job.dependents.clone(),
            dependents_more: job.dependents_more,
            graph: None,
        };
        let mut leaves = vec![Leaf { id: job.id.clone(), kin, parent: 0, more: 0 }];
        let mut level = 0..1;
        for depth in 0..=LEVELS_MAX {
            for parent in level.clone() {
                let shown = if depth == LEVELS_MAX { 0 } else { WIDTH_MAX };
                grow(&mut leaves, parent, way, shown);
            }
            level = level.end..leaves.len();
            let ids: Vec<JobId> = leaves[level.clone()].iter().map(|l| l.id.clone()).collect();
            let found = self.client.of(&job.id)?.jobs().dependents(&ids).await?;
            for (leaf, kin) in leaves[level.clone()].iter_mut().zip(found) {
                leaf.kin = kin;
            }
        }
        Ok(branch(&leaves))
    }

    /// Returns the jobs that each of these jobs still waits for; none for a job that does not wait.
    pub async fn awaited_by(self, ids: Vec<JobId>) -> Result<Vec<Vec<JobId>>> {
        Ok(self.client.shards.pending(ids).await?)
    }

    /// Lists some jobs that wait for a job, or did: those behind the first `skip` of them, at most `most`. Returns the number
    /// of them to skip for the next page, if there is one.
    pub async fn dependents(
        self,
        job: &Job,
        skip: usize,
        most: usize,
    ) -> Result<(Vec<JobId>, Option<usize>)> {
        let in_hash = job.dependents.len();
        let mut page: Vec<JobId> = job.dependents.iter().skip(skip).take(most).cloned().collect();
        let left = most - page.len();
        if left > 0 && job.dependents_more > 0 {
            let skip = skip.saturating_sub(in_hash);
            page.extend(
                self.client.of(&job.id)?.jobs().more_dependents(&job.id, skip, left).await?,
            );
        }
        let next = skip + page.len();
        let is_last = page.len() < most || next as u64 >= in_hash as u64 + job.dependents_more;
        Ok((page, (!is_last).then_some(next)))
    }

    /// Reads jobs as lists show them, in one round trip per shard. A job that does not exist is left out.
    pub async fn summaries(self, ids: Vec<JobId>) -> Result<Vec<JobSummary>> {
        Ok(self.client.shards.summaries(ids).await?.into_iter().flatten().collect())
    }
}

impl GraphClient<'_> {
    /// Reads the graph around a job, up to `most` jobs. Takes two round trips for each step away from the job.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`], [`ClientError::Store`].
    pub async fn around(self, id: &JobId, most: usize) -> Result<JobGraph> {
        let mut known: HashSet<JobId> = HashSet::from([id.clone()]);
        let mut graph = JobGraph { jobs: Vec::new(), is_cut: false };
        let (store, mut step) = (self.client.of(id)?, vec![id.clone()]);
        while !step.is_empty() {
            let relations = store.jobs().dependents(&step).await?;
            let summaries = store.jobs().summaries(step.clone()).await?;
            let mut summaries: HashMap<JobId, JobSummary> =
                summaries.into_iter().flatten().map(|job| (job.id.clone(), job)).collect();
            let mut near: Vec<JobId> = Vec::new();
            for (id, of) in step.into_iter().zip(relations) {
                let Some(job) = summaries.remove(&id) else { continue };
                let others = of.dependents.iter().take(FOLLOWED_MAX);
                near.extend(of.prerequisites.iter().chain(others).cloned());
                graph.is_cut |= of.dependents_more > 0;
                graph.jobs.push(GraphJob::new(job, of));
            }
            near.retain(|id| known.insert(id.clone()));
            let room = most.saturating_sub(graph.jobs.len());
            graph.is_cut |= near.len() > room;
            near.truncate(room);
            step = near;
        }
        if graph.jobs.is_empty() {
            return Err(ClientError::NoSuchJob(id.clone()));
        }
        Ok(graph)
    }

    /// Reads jobs of a graph with what they wait for, in two round trips. A job that does not exist is left out.
    pub async fn relations(self, graph: &JobId, ids: Vec<JobId>) -> Result<Vec<GraphJob>> {
        let store = self.client.of(graph)?;
        let relations = store.jobs().dependents(&ids).await?;
        let jobs = store.jobs().summaries(ids).await?.into_iter().zip(relations);
        // A later job may have the id of a deleted one.
        let jobs = jobs.filter(|(_, of)| of.graph.as_deref() == Some(graph.as_str()));
        Ok(jobs.filter_map(|(job, of)| Some(GraphJob::new(job?, of))).collect())
    }
}

fn grow(leaves: &mut Vec<Leaf>, parent: usize, way: TreeDirection, shown: usize) {
    let kin = &leaves[parent].kin;
    let (mut ids, beyond) = match way {
        TreeDirection::Prerequisites => (kin.prerequisites.clone(), 0),
        TreeDirection::Dependents => (kin.dependents.clone(), kin.dependents_more),
    };
    let all = ids.len() as u64 + beyond;
    ids.truncate(shown.min(JOBS_MAX.saturating_sub(leaves.len())));
    leaves[parent].more = all - ids.len() as u64;
    leaves.extend(ids.into_iter().map(|id| Leaf {
        id,
        kin: JobDependents::default(),
        parent,
        more: 0,
    }));
}

/// Builds the tree from its leaves. A leaf stands after its parent.
fn branch(leaves: &[Leaf]) -> Branch {
    let mut branches: Vec<Branch> = leaves
        .iter()
        .map(|leaf| Branch {
            id: leaf.id.clone(),
            name: leaf.kin.name.clone(),
            status: leaf.kin.status,
            branches: Vec::new(),
            more: leaf.more,
        })
        .collect();
    for place in (1..branches.len()).rev() {
        let last = branches.swap_remove(place);
        branches[leaves[place].parent].branches.insert(0, last);
    }
    branches.swap_remove(0)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphJob {
    pub job: JobSummary,
    /// The jobs that must finish before it.
    pub after: Vec<JobId>,
    /// The jobs that must end before it, in any way.
    pub after_any: Vec<JobId>,
}

impl GraphJob {
    fn new(job: JobSummary, mut of: JobDependents) -> Self {
        let after_any = of.prerequisites.split_off(of.prerequisites.len() - of.after_any);
        Self { job, after: of.prerequisites, after_any }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobGraph {
    /// Its jobs, those near the job first.
    pub jobs: Vec<GraphJob>,
    /// True if it has more jobs than were asked for.
    pub is_cut: bool,
}

const DEPENDENTS_NAMED_MAX: usize = 1000;

impl JobClient<'_> {
    /// Returns the latest attempts of a job, the running one included, the oldest first.
    pub async fn attempts(self, job: &Job) -> Result<Vec<JobAttempt>> {
        let mut all = job.attempts.clone();
        if let Some(mut last) = job.last_attempt() {
            if let (None, Some(boot)) = (&last.hostname, &job.boot_id) {
                // Unknown to a user of Redis whose access list is of an older version.
                last.hostname =
                    self.client.of(&job.id)?.actors().hostname_of(boot).await.unwrap_or_default();
            }
            all.push(last);
        }
        Ok(all)
    }

    /// Reads a job as one JSON object, its members named as the fields of the hash, with up to 1000 of its
    /// dependents, its attempts, and its place in its queue, on its shard.
    ///
    /// # Errors
    /// As [`Client::get_job`](super::Client::get_job).
    pub async fn document(self, id: &JobId) -> Result<serde_json::Value> {
        let mut job = self.client.get_job(id).await?;
        let all = job.dependents.len() as u64 + job.dependents_more;
        (job.dependents, _) = self.dependents(&job, 0, DEPENDENTS_NAMED_MAX).await?;
        job.dependents_more = all.saturating_sub(job.dependents.len() as u64);
        job.attempts = self.attempts(&job).await?;
        if let Some(place) = self.client.of(id)?.jobs().queue_place(&job).await? {
            job.extra.insert(QUEUE_PLACE.to_owned(), place.to_string());
        }
        Ok(job.to_json())
    }

    /// Reads a dead letter.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::NoDeadLetter`] if the job is not a dead letter.
    pub async fn dead_letter(self, id: &JobId) -> Result<Job> {
        let job = self.client.get_job(id).await?;
        let dead = match &job.spec.script_type {
            Some(script_type) if job.status == JobStatus::Error => {
                self.client.of(id)?.jobs().is_dead(script_type, id).await?
            }
            _ => false,
        };
        if dead {
            Ok(job)
        } else {
            Err(ClientError::NoDeadLetter { id: id.clone(), status: job.status })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(id: &str, parent: usize, prerequisites: usize) -> Leaf {
        let ids = (0..prerequisites).map(|n| format!("{id}-{n}").parse().expect("legal"));
        let kin = JobDependents {
            prerequisites: ids.collect(),
            dependents_more: 7,
            ..JobDependents::default()
        };
        Leaf { id: id.parse().expect("legal"), kin, parent, more: 0 }
    }

    #[test]
    fn a_tree_is_bounded_in_width_and_counts_the_branches_left_out() {
        let mut leaves = vec![leaf("a", 0, 12)];
        grow(&mut leaves, 0, TreeDirection::Prerequisites, WIDTH_MAX);
        grow(&mut leaves, 0, TreeDirection::Dependents, 0);
        assert_eq!((leaves.len(), leaves[0].more), (1 + WIDTH_MAX, 7));
        let mut full: Vec<Leaf> = (0..JOBS_MAX - 1).map(|_| leaf("a", 0, 3)).collect();
        grow(&mut full, 0, TreeDirection::Prerequisites, WIDTH_MAX);
        assert_eq!((full.len(), full[0].more), (JOBS_MAX, 2));
    }

    #[test]
    fn branches_keep_their_order() {
        let leaves =
            [leaf("a", 0, 0), leaf("b", 0, 0), leaf("c", 0, 0), leaf("d", 1, 0), leaf("e", 1, 0)];
        let root = branch(&leaves);
        let ids = |branches: &[Branch]| -> Vec<String> {
            branches.iter().map(|branch| branch.id.to_string()).collect()
        };
        assert_eq!(
            (ids(&root.branches), ids(&root.branches[0].branches)),
            (vec!["b".to_owned(), "c".to_owned()], vec!["d".to_owned(), "e".to_owned()],)
        );
    }
}
