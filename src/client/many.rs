//! Batches of jobs, atomic or not, and graphs of jobs that wait for each other by name.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Client, ClientError, accepted};
use crate::proto::job::{InvalidJob, Job, JobId};
use crate::proto::text::nearest;
use crate::store::{BatchOutcome, Store, StoreError, TOO_SLOW};

/// Jobs that wait for each other by names, which are known in this graph alone.
///
/// ```
/// # use hero::client::{Graph, JobBuilder};
/// # fn example() -> Result<Graph, Box<dyn std::error::Error>> {
/// let mut graph = Graph::new();
/// graph.add("fetch", JobBuilder::new("python", "print(1)").build()?);
/// graph.add("count", JobBuilder::new("osis", "INPUTS.fetch.len()").build()?).after("fetch");
/// # Ok(graph) }
/// # example().unwrap();
/// ```
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<GraphNode>,
}

/// One job of a graph.
#[derive(Debug, Clone)]
pub struct GraphNode {
    name: String,
    job: Job,
    after: Vec<String>,
    after_any: Vec<String>,
}

impl GraphNode {
    /// Adds a prerequisite that must finish first: the name of a job of the graph, or the id of an
    /// existing job.
    pub fn after(&mut self, name: impl Into<String>) -> &mut Self {
        self.after.push(name.into());
        self
    }

    /// Adds a prerequisite that must end first, finished or failed.
    pub fn after_any(&mut self, name: impl Into<String>) -> &mut Self {
        self.after_any.push(name.into());
        self
    }

    /// Adds the prerequisites of a document: those that must finish, and those that must end, first.
    pub(crate) fn waits_for<N: Into<String>>(
        &mut self,
        after: impl IntoIterator<Item = N>,
        after_any: impl IntoIterator<Item = N>,
    ) {
        self.after.extend(after.into_iter().map(Into::into));
        self.after_any.extend(after_any.into_iter().map(Into::into));
    }
}

impl Graph {
    /// Creates an empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a job under a name, by which others may wait for it. Prerequisites of its builder
    /// stay in force.
    pub fn add(&mut self, name: impl Into<String>, job: Job) -> &mut GraphNode {
        let node = GraphNode { name: name.into(), job, after: Vec::new(), after_any: Vec::new() };
        let place = self.nodes.len();
        self.nodes.push(node);
        &mut self.nodes[place]
    }

    /// The number of its jobs.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether it has no job.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn name(&self, place: usize) -> String {
        self.nodes.get(place).map(|node| node.name.clone()).unwrap_or_default()
    }

    /// Returns the jobs with ids in place of names. Each keeps the names of its prerequisites.
    pub(crate) fn jobs(&self) -> Result<Vec<Job>, ClientError> {
        let mut ids = HashMap::new();
        for (place, node) in self.nodes.iter().enumerate() {
            if ids.insert(node.name.as_str(), &node.job.id).is_some() {
                let error =
                    InvalidJob::new("name", "is the name of another job of the graph").into();
                let name = node.name.clone();
                return Err(ClientError::Refused { place, name, error: Box::new(error) });
            }
        }
        self.nodes.iter().map(|node| self.job(node, &ids)).collect()
    }

    fn job(&self, node: &GraphNode, ids: &HashMap<&str, &JobId>) -> Result<Job, ClientError> {
        let mut job = node.job.clone();
        // A name that no job may have is known in the graph alone.
        if job.spec.name.is_none() {
            job.spec.name = node.name.parse().ok();
        }
        let mut resolve = |names: &[String], to: &mut Vec<JobId>| {
            for name in names {
                let id = if let Some(id) = ids.get(name.as_str()) {
                    job.spec.prerequisite_names.insert(name.clone(), (*id).clone());
                    (*id).clone()
                } else {
                    name.parse().map_err(|_| self.unknown(&node.name, name))?
                };
                to.push(id);
            }
            Ok::<_, ClientError>(())
        };
        resolve(&node.after, &mut job.spec.prerequisites)?;
        resolve(&node.after_any, &mut job.spec.after_any)?;
        Ok(job)
    }

    fn unknown(&self, job: &str, prerequisite: &str) -> ClientError {
        let names = self.nodes.iter().map(|node| node.name.as_str());
        ClientError::UnknownInGraph {
            job: job.to_owned(),
            prerequisite: prerequisite.to_owned(),
            nearest: nearest(prerequisite, names).map(ToOwned::to_owned),
        }
    }
}

impl Client {
    /// Submits a batch, some hundred jobs per round trip, fewer if they are large. Each job is
    /// accepted or rejected by itself; the results are in the order of the jobs.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] before anything is stored; [`ClientError::Store`] after the round
    /// trips before it.
    pub async fn submit_all(
        &self,
        jobs: &[Job],
    ) -> Result<Vec<Result<JobId, ClientError>>, ClientError> {
        for job in jobs {
            self.check(job)?;
        }
        let jobs = &*self.completed(jobs).await?;
        let submitted = self.store.submit(jobs, true, self.job.kept()).await?;
        Ok(jobs.iter().zip(submitted).map(|(job, what)| accepted(job, what)).collect())
    }

    /// Submits a graph as an atomic batch: no job of it is visible before all are stored. Returns
    /// the ids by name. It may have [`Store::WHOLE_MAX`] jobs.
    ///
    /// # Errors
    /// [`ClientError::Cycle`] names jobs that wait for each other; [`ClientError::UnknownInGraph`]
    /// an unknown prerequisite; [`ClientError::Refused`] a job that breaks a bound or cannot be
    /// stored; [`ClientError::TooMany`], [`ClientError::Store`].
    pub async fn submit_graph(
        &self,
        graph: &Graph,
    ) -> Result<BTreeMap<String, JobId>, ClientError> {
        let jobs = graph.jobs()?;
        let submitted = self.submit_batch(&jobs, &|place| graph.name(place)).await;
        submitted.map_err(|error| match error {
            ClientError::Refused { name, error, place } => match *error {
                ClientError::UnknownPrerequisite(id) => graph.unknown(&name, &id),
                error => ClientError::Refused { name, error: error.into(), place },
            },
            error => error,
        })?;
        Ok(graph.nodes.iter().map(|node| (node.name.clone(), node.job.id.clone())).collect())
    }

    /// Submits an atomic batch of up to [`Store::WHOLE_MAX`] jobs, which may wait for each other
    /// in any order.
    ///
    /// # Errors
    /// As [`Client::submit_graph`]; a prerequisite that does not exist is
    /// [`ClientError::Refused`].
    pub async fn submit_all_or_none(&self, jobs: &[Job]) -> Result<Vec<JobId>, ClientError> {
        self.submit_batch(jobs, &|place| jobs[place].id.to_string()).await?;
        Ok(jobs.iter().map(|job| job.id.clone()).collect())
    }

    async fn submit_batch(
        &self,
        jobs: &[Job],
        name: &(dyn Fn(usize) -> String + Sync),
    ) -> Result<(), ClientError> {
        if jobs.is_empty() {
            return Ok(());
        }
        if jobs.len() > Store::WHOLE_MAX {
            return Err(ClientError::TooMany { jobs: jobs.len(), most: Store::WHOLE_MAX });
        }
        let refused = |place, error| ClientError::Refused {
            place,
            name: name(place),
            error: Box::new(error),
        };
        for (place, job) in jobs.iter().enumerate() {
            self.check(job).map_err(|error| refused(place, error.into()))?;
        }
        let jobs = &*self.completed(jobs).await?;
        if let Some((place, error)) = clash(jobs) {
            return Err(refused(place, error));
        }
        let links = Links::of(jobs);
        if let Some(cycle) = links.cycle() {
            return Err(ClientError::Cycle(cycle.into_iter().map(name).collect()));
        }
        if links.others > Store::WHOLE_OTHERS_MAX {
            let (jobs, most) = (links.others, Store::WHOLE_OTHERS_MAX);
            return Err(ClientError::TooManyOthers { jobs, most });
        }
        let submitted = self.store.submit_atomic_batch(jobs, self.job.kept()).await;
        let submitted = submitted.map_err(|error| match error {
            // The first job stands for all.
            StoreError::Unreachable { sent: true, .. } => {
                ClientError::Unsure { id: jobs[0].id.clone(), error }
            }
            error => ClientError::Store(error),
        })?;
        match submitted {
            BatchOutcome::Accepted => Ok(()),
            BatchOutcome::Refused { place, why } => {
                // Submitted alone, the job would get the holder's id.
                let error = match why {
                    crate::store::Submitted::Duplicate(holder) => ClientError::KeyHeld(holder),
                    why => accepted(&jobs[place], why)
                        .err()
                        .unwrap_or_else(|| ClientError::IdTaken(jobs[place].id.clone())),
                };
                Err(refused(place, error))
            }
            BatchOutcome::TooSlow => Err(ClientError::Store(StoreError::Failed {
                doing: "submitting an atomic batch",
                reason: TOO_SLOW.to_owned(),
            })),
        }
    }
}

/// Returns the first job that has the id or the unique key of an earlier one.
fn clash(jobs: &[Job]) -> Option<(usize, ClientError)> {
    let (mut ids, mut keys) = (HashSet::new(), HashMap::new());
    for (place, job) in jobs.iter().enumerate() {
        if !ids.insert(&job.id) {
            return Some((place, ClientError::IdTaken(job.id.clone())));
        }
        let held = job.spec.unique_key.as_ref().and_then(|key| keys.insert(key, &job.id));
        if let Some(holder) = held {
            return Some((place, ClientError::KeyHeld(holder.clone())));
        }
    }
    None
}

/// The prerequisites within a batch, as indexes.
struct Links {
    waits_for: Vec<Vec<usize>>,
    /// The number of prerequisites outside of the batch.
    others: usize,
}

impl Links {
    fn of(jobs: &[Job]) -> Self {
        let places: HashMap<&JobId, usize> =
            jobs.iter().enumerate().map(|(place, job)| (&job.id, place)).collect();
        let mut others = 0;
        let waits_for = jobs
            .iter()
            .map(|job| {
                let all = job.spec.waits_for().map(|id| places.get(id).copied());
                let (within, outside): (Vec<_>, Vec<_>) = all.partition(Option::is_some);
                others += outside.len();
                within.into_iter().flatten().collect()
            })
            .collect();
        Self { waits_for, others }
    }

    /// Returns a cycle of jobs each of which waits for the next; the first comes again at the end.
    fn cycle(&self) -> Option<Vec<usize>> {
        // Jobs that lead to no cycle.
        let mut clear = vec![false; self.waits_for.len()];
        for start in 0..self.waits_for.len() {
            // The path from the start, each job with the index of the next link to follow.
            let mut way: Vec<(usize, usize)> = vec![(start, 0)];
            let mut on_way = HashMap::from([(start, 0)]);
            while let Some((job, link)) = way.last_mut() {
                match self.waits_for[*job].get(*link) {
                    _ if clear[*job] => {
                        on_way.remove(job);
                        way.pop();
                    }
                    None => clear[*job] = true,
                    Some(next) => {
                        *link += 1;
                        if let Some(first) = on_way.get(next) {
                            let cycle = way[*first..].iter().map(|(job, _)| *job);
                            return Some(cycle.chain([*next]).collect());
                        }
                        on_way.insert(*next, way.len());
                        way.push((*next, 0));
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::JobBuilder;

    fn links(waits_for: &[&[usize]]) -> Links {
        Links { waits_for: waits_for.iter().map(|of| of.to_vec()).collect(), others: 0 }
    }

    #[test]
    fn a_cycle_is_named_in_the_order_of_waiting() {
        assert_eq!(links(&[&[1], &[2], &[1]]).cycle(), Some(vec![1, 2, 1]));
        assert_eq!(links(&[&[], &[1]]).cycle(), Some(vec![1, 1]));
        assert_eq!(links(&[&[1, 2], &[3], &[3], &[]]).cycle(), None);
        assert_eq!(links(&[&[1, 2], &[3], &[3], &[2]]).cycle(), Some(vec![3, 2, 3]));
        assert_eq!(links(&[]).cycle(), None);
    }

    #[test]
    fn a_long_chain_and_a_dense_graph_are_searched_in_linear_time() {
        let chain: Vec<Vec<usize>> =
            (0..50_000).map(|n| if n == 0 { vec![] } else { vec![n - 1] }).collect();
        assert_eq!(Links { waits_for: chain, others: 0 }.cycle(), None);
        let dense: Vec<Vec<usize>> = (0..1000).map(|n| (0..n).collect()).collect();
        assert_eq!(Links { waits_for: dense, others: 0 }.cycle(), None);
    }

    #[test]
    fn names_become_ids_and_stay_known_to_the_job() {
        let job = |id: &str| JobBuilder::new("osis", "1").id(id).build().expect("legal");
        let mut graph = Graph::new();
        graph.add("first", job("a"));
        graph.add("second", job("b")).after("first").after("old-job").after_any("first");
        let jobs = graph.jobs().expect("legal");
        let ids = |ids: &[JobId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(ids(&jobs[1].spec.prerequisites), ["a", "old-job"]);
        assert_eq!(ids(&jobs[1].spec.after_any), ["a"]);
        assert_eq!(jobs[1].spec.prerequisite_names["first"].as_str(), "a");
        assert_eq!(jobs[1].spec.prerequisite_names.len(), 1);
        graph.add("first", job("c"));
        let twice = graph.jobs().expect_err("named twice").to_string();
        assert!(twice.starts_with("first: invalid job: name is the name of another"), "{twice}");
    }

    #[test]
    fn an_unknown_prerequisite_is_reported_with_the_nearest_name() {
        let job = JobBuilder::new("osis", "1").build().expect("legal");
        let mut graph = Graph::new();
        graph.add("fetch all", job.clone());
        graph.add("count", job).after("fetch al");
        assert_eq!(
            graph.jobs().expect_err("no such job").to_string(),
            "job `count` waits for `fetch al`, which is neither a job of the graph nor one that \
             exists; did you mean `fetch all`?"
        );
    }
}
