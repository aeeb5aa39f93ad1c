//! Many jobs at once: each by itself, or all or none, as a list or as a graph by names of its own.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Client, ClientError, accepted};
use crate::engine::rhai::nearest;
use crate::proto::job::{InvalidJob, Job, JobId};
use crate::store::{BatchOutcome, Store, StoreError};

/// Jobs that wait for each other, by names that mean something in this graph alone.
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
    /// Not before this one has finished: the name of a job of the graph, or the id of one that
    /// exists. May be said again for more.
    pub fn after(&mut self, name: impl Into<String>) -> &mut Self {
        self.after.push(name.into());
        self
    }

    /// Not before this one has ended, however.
    pub fn after_any(&mut self, name: impl Into<String>) -> &mut Self {
        self.after_any.push(name.into());
        self
    }
}

impl Graph {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a job under a name, by which others may wait for it. What its builder was told to wait
    /// for holds as well.
    pub fn add(&mut self, name: impl Into<String>, job: Job) -> &mut GraphNode {
        let node = GraphNode { name: name.into(), job, after: Vec::new(), after_any: Vec::new() };
        let place = self.nodes.len();
        self.nodes.push(node);
        &mut self.nodes[place]
    }

    /// How many jobs it has.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn name(&self, place: usize) -> String {
        self.nodes.get(place).map(|node| node.name.clone()).unwrap_or_default()
    }

    /// The jobs, with ids in the place of names. Each keeps the names by which it knows others.
    pub(crate) fn jobs(&self) -> Result<Vec<Job>, ClientError> {
        let mut ids = HashMap::new();
        for (place, node) in self.nodes.iter().enumerate() {
            if ids.insert(node.name.as_str(), &node.job.id).is_some() {
                let error = InvalidJob::new("name", "is that of another job of the graph").into();
                let name = node.name.clone();
                return Err(ClientError::Refused { place, name, error: Box::new(error) });
            }
        }
        self.nodes.iter().map(|node| self.job(node, &ids)).collect()
    }

    fn job(&self, node: &GraphNode, ids: &HashMap<&str, &JobId>) -> Result<Job, ClientError> {
        let mut job = node.job.clone();
        job.extra.insert("name".to_owned(), node.name.clone());
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
    /// Submits many jobs, a thousand in a round trip. Each job is accepted or refused by itself;
    /// the results come in the order of the jobs.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] before anything is stored; [`ClientError::Store`] with the
    /// round trips before it done.
    pub async fn submit_all(
        &self,
        jobs: &[Job],
    ) -> Result<Vec<Result<JobId, ClientError>>, ClientError> {
        for job in jobs {
            self.check(job)?;
        }
        let mut results = Vec::with_capacity(jobs.len());
        for batch in jobs.chunks(Store::SUBMIT_MAX) {
            let submitted = self.store.submit(batch, true, self.job.kept()).await?;
            results.extend(batch.iter().zip(submitted).map(|(job, what)| accepted(job, what)));
        }
        Ok(results)
    }

    /// Submits a graph, all of its jobs or none: no job of it can be seen, let alone run, before
    /// all are stored. Returns the ids by the names. At most [`Store::WHOLE_MAX`] jobs.
    ///
    /// # Errors
    /// [`ClientError::Cycle`] names the jobs that wait for each other in a circle,
    /// [`ClientError::UnknownInGraph`] who waits for a job that is none; [`ClientError::Refused`]
    /// says which job breaks a bound or cannot be stored, [`ClientError::TooMany`],
    /// [`ClientError::Store`].
    pub async fn submit_graph(
        &self,
        graph: &Graph,
    ) -> Result<BTreeMap<String, JobId>, ClientError> {
        let jobs = graph.jobs()?;
        let submitted = self.submit_whole(&jobs, &|place| graph.name(place)).await;
        submitted.map_err(|error| match error {
            ClientError::Refused { name, error, place } => match *error {
                ClientError::UnknownPrerequisite(id) => graph.unknown(&name, &id),
                error => ClientError::Refused { name, error: error.into(), place },
            },
            error => error,
        })?;
        Ok(graph.nodes.iter().map(|node| (node.name.clone(), node.job.id.clone())).collect())
    }

    /// Submits many jobs, all or none. They may wait for each other, in any order. At most
    /// [`Store::WHOLE_MAX`].
    ///
    /// # Errors
    /// As [`Client::submit_graph`]; a prerequisite that does not exist is
    /// [`ClientError::Refused`].
    pub async fn submit_all_or_none(&self, jobs: &[Job]) -> Result<Vec<JobId>, ClientError> {
        self.submit_whole(jobs, &|place| jobs[place].id.to_string()).await?;
        Ok(jobs.iter().map(|job| job.id.clone()).collect())
    }

    async fn submit_whole(
        &self,
        jobs: &[Job],
        name: &dyn Fn(usize) -> String,
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
        if let Some((place, error)) = clash(jobs) {
            return Err(refused(place, error));
        }
        let links = Links::of(jobs);
        if let Some(circle) = links.circle() {
            return Err(ClientError::Cycle(circle.into_iter().map(name).collect()));
        }
        if links.others > Store::WHOLE_OTHERS_MAX {
            let (jobs, most) = (links.others, Store::WHOLE_OTHERS_MAX);
            return Err(ClientError::TooManyOthers { jobs, most });
        }
        let submitted = self.store.submit_atomic_batch(jobs, self.job.kept()).await;
        let submitted = submitted.map_err(|error| match error {
            // The first tells of all.
            StoreError::Unreachable { sent: true, .. } => {
                ClientError::Unsure { id: jobs[0].id.clone(), error }
            }
            error => ClientError::Store(error),
        })?;
        match submitted {
            BatchOutcome::Accepted => Ok(()),
            BatchOutcome::Refused { place, why } => {
                // A key that is held gives a single submission the holder's id.
                let error = match why {
                    crate::store::Submitted::Duplicate(holder) => ClientError::KeyHeld(holder),
                    why => accepted(&jobs[place], why)
                        .err()
                        .unwrap_or_else(|| ClientError::IdTaken(jobs[place].id.clone())),
                };
                Err(refused(place, error))
            }
            BatchOutcome::TooSlow => Err(ClientError::Store(StoreError::Failed {
                doing: "submitting jobs all or none",
                reason: "storing them took longer than redis keeps what is not whole".to_owned(),
            })),
        }
    }
}

/// The first job that has the id or the unique key of one before it.
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

/// Which jobs of a whole wait for which of the same, as places.
struct Links {
    waits_for: Vec<Vec<usize>>,
    /// How many prerequisites are outside.
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

    /// A circle of jobs each of which waits for the next, the first of them again at the end.
    fn circle(&self) -> Option<Vec<usize>> {
        // Jobs that lead to no circle.
        let mut clear = vec![false; self.waits_for.len()];
        for start in 0..self.waits_for.len() {
            // The way from the start, each with the place of the next link to follow.
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
                            let circle = way[*first..].iter().map(|(job, _)| *job);
                            return Some(circle.chain([*next]).collect());
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
    fn a_circle_is_named_in_the_order_of_waiting() {
        assert_eq!(links(&[&[1], &[2], &[1]]).circle(), Some(vec![1, 2, 1]));
        assert_eq!(links(&[&[], &[1]]).circle(), Some(vec![1, 1]));
        assert_eq!(links(&[&[1, 2], &[3], &[3], &[]]).circle(), None);
        assert_eq!(links(&[&[1, 2], &[3], &[3], &[2]]).circle(), Some(vec![3, 2, 3]));
        assert_eq!(links(&[]).circle(), None);
    }

    #[test]
    fn a_long_chain_and_a_dense_graph_are_looked_through_in_no_time() {
        let chain: Vec<Vec<usize>> =
            (0..50_000).map(|n| if n == 0 { vec![] } else { vec![n - 1] }).collect();
        assert_eq!(Links { waits_for: chain, others: 0 }.circle(), None);
        let dense: Vec<Vec<usize>> = (0..1000).map(|n| (0..n).collect()).collect();
        assert_eq!(Links { waits_for: dense, others: 0 }.circle(), None);
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
        assert!(twice.starts_with("first: invalid job: name is that of another"), "{twice}");
    }

    #[test]
    fn a_name_that_is_nobodys_is_told_with_the_nearest() {
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
