//! A graph of jobs that wait for each other by names, as its submitter builds it.

use std::collections::{BTreeMap, HashMap};

use super::completion::set_key_of_content;
use super::placement::{at_random, rename, shard_of_all};
use super::{Client, ClientError, Result};
use crate::config::format_size;
use crate::proto::graph::GraphCallback;
use crate::proto::graph_plan::{GraphPlan, PlannedJob};
use crate::proto::job::{
    FileBody, INPUT_FILES, InvalidJob, Job, JobFiles, JobId, JobName, NotifyName, TraceParent,
    notify_names,
};
use crate::proto::shard::{Shard, ShardCount};
use crate::proto::text::nearest;
use crate::proto::window::GraphWindow;
use crate::store::NewGraph;

/// Jobs that wait for each other by names, which are known in this graph alone.
///
/// ```
/// # use hero_client::{Graph, JobBuilder};
/// # fn example() -> Result<Graph, Box<dyn std::error::Error>> {
/// let mut graph = Graph::new();
/// graph.add("fetch", JobBuilder::new("python", "print(1)").build()?);
/// graph.add("count", JobBuilder::new("osis", "INPUTS.fetch.len()").build()?).after("fetch");
/// # Ok(graph) }
/// # example().unwrap();
/// ```
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// The graph as it is stored, but for the caller, and the names of callbacks without one.
    pub(super) new: NewGraph,
    /// True if its id stays: its submitter chose it, or it tells its shard already.
    has_fixed_id: bool,
    nodes: Vec<GraphNode>,
}

#[derive(Debug, Clone)]
pub struct GraphNode {
    name: String,
    job: Job,
    after: Vec<String>,
    after_any: Vec<String>,
    files: JobFiles,
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

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its job, without ids in place of names.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Gives its script files. They count together for the whole graph: [`Graph::FILES_BYTES_MAX`] in Redis.
    pub fn files(&mut self, files: JobFiles) -> &mut Self {
        self.files = files;
        self
    }

    /// Adds the prerequisites of a document: those that must finish, and those that must end, first.
    pub fn waits_for<N: Into<String>>(
        &mut self,
        after: impl IntoIterator<Item = N>,
        after_any: impl IntoIterator<Item = N>,
    ) {
        self.after.extend(after.into_iter().map(Into::into));
        self.after_any.extend(after_any.into_iter().map(Into::into));
    }
}

impl Graph {
    /// The maximum number of bytes of all files of its jobs in Redis.
    pub const FILES_BYTES_MAX: u64 = 64 << 20;

    /// Creates an empty graph with a random id.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the graph of a plan.
    ///
    /// # Errors
    /// [`InvalidJob`] if a notification has an illegal name.
    pub fn of(plan: GraphPlan<Job>) -> Result<Self, InvalidJob> {
        let mut graph = Self::new();
        graph.set_window(plan.window());
        let notify = notify_names(plan.notify.iter().map(String::as_str));
        graph.notify(notify.map_err(|reason| InvalidJob::new("notify", reason))?);
        let callbacks: Vec<_> =
            plan.callbacks().map(|(callback, job)| (callback, job.clone())).collect();
        for (callback, job) in callbacks {
            graph.on(callback, job);
        }
        if let Some(id) = plan.id {
            graph.set_id(id);
        }
        graph.new.name = plan.name;
        for PlannedJob { name, job, after, after_any, .. } in plan.jobs {
            graph.add(name, job).waits_for(after, after_any);
        }
        Ok(graph)
    }

    pub fn id(&self) -> &JobId {
        &self.new.id
    }

    pub fn set_id(&mut self, id: JobId) {
        (self.new.id, self.has_fixed_id) = (id, true);
    }

    /// Puts it on a shard: gives it and its jobs ids that tell it, except for those that stay.
    pub(super) fn settle(&mut self, shard: Shard) {
        if !self.has_fixed_id {
            self.set_id(shard.id(&self.new.id));
        }
        let mut renamed = HashMap::new();
        for job in self.nodes.iter_mut().map(|node| &mut node.job).filter(|job| !job.has_fixed_id) {
            let new = shard.id(&job.id);
            let old = std::mem::replace(&mut job.id, new);
            job.has_fixed_id = true;
            renamed.insert(old, job.id.clone());
        }
        for node in &mut self.nodes {
            rename(&mut node.job, &renamed);
            for name in node.after.iter_mut().chain(&mut node.after_any) {
                if let Some(id) = name.parse().ok().and_then(|id: JobId| renamed.get(&id)) {
                    *name = id.to_string();
                }
            }
        }
    }

    /// Gives it a name for lists; several may have the same.
    pub fn set_name(&mut self, name: JobName) {
        self.new.name = Some(name);
    }

    /// Lets notifications tell of its end, beside those that it has.
    pub fn notify(&mut self, names: impl IntoIterator<Item = NotifyName>) {
        self.new.notify.extend(names);
    }

    /// Changes its window: how many of its jobs run at once, and after how many failures no other starts.
    pub fn set_window(&mut self, window: GraphWindow) {
        self.new.window = self.new.window.changed_by(window);
    }

    pub fn window(&self) -> GraphWindow {
        self.new.window
    }

    /// Puts its jobs and callbacks into a trace, unless they are in one. Without a trace, the first of its jobs that
    /// has one gives it to all.
    pub fn join_trace(&mut self, trace: Option<TraceParent>) {
        let all: Vec<&mut Job> = self.all_jobs_mut().collect();
        let trace = all.iter().find_map(|job| job.spec.traceparent).or(trace);
        for job in all {
            job.spec.traceparent = job.spec.traceparent.or(trace);
        }
    }

    /// Asks for a job at the end of the graph, which gets the id, the name, the state and the counts of the
    /// graph in its environment. Its id, its time and its prerequisites do not count.
    pub fn on(&mut self, callback: GraphCallback, mut job: Job) {
        set_key_of_content(&mut job.spec);
        job.spec.run_at = None;
        job.spec.prerequisites.clear();
        job.spec.after_any.clear();
        job.spec.prerequisite_names.clear();
        self.new.callbacks.insert(callback, job);
    }

    /// The jobs that it asks for at its end.
    pub fn callbacks(&self) -> impl Iterator<Item = (GraphCallback, &Job)> {
        self.new.callbacks.iter().map(|(callback, job)| (*callback, job))
    }

    /// Adds a job under a name, for others to wait for it. Prerequisites of its builder
    /// stay in force.
    pub fn add(&mut self, name: impl Into<String>, job: Job) -> &mut GraphNode {
        let (after, after_any, files) = (Vec::new(), Vec::new(), JobFiles::default());
        let node = GraphNode { name: name.into(), job, after, after_any, files };
        let place = self.nodes.len();
        self.nodes.push(node);
        &mut self.nodes[place]
    }

    pub fn nodes(&self) -> &[GraphNode] {
        &self.nodes
    }

    /// The jobs with their names, then those that it asks for at its end.
    pub fn jobs_and_callbacks(&self) -> impl Iterator<Item = (&str, &Job)> {
        let jobs = self.nodes.iter().map(|node| (node.name.as_str(), &node.job));
        jobs.chain(self.new.callbacks.iter().map(|(callback, job)| (callback.as_str(), job)))
    }

    /// The same to change.
    pub(super) fn all_jobs_mut(&mut self) -> impl Iterator<Item = &mut Job> {
        let jobs = self.nodes.iter_mut().map(|node| &mut node.job);
        jobs.chain(self.new.callbacks.values_mut())
    }

    /// The files of its jobs, by the places of these; jobs without files are left out.
    pub(super) fn files(&self) -> impl Iterator<Item = (usize, &JobFiles)> {
        let files = self.nodes.iter().map(|node| &node.files).enumerate();
        files.filter(|(_, files)| !files.is_empty())
    }

    pub(super) fn check_files(&self) -> Result<(), InvalidJob> {
        let contents = self.files().flat_map(|(_, files)| files.contents());
        if contents.map(FileBody::redis_bytes).sum::<u64>() <= Self::FILES_BYTES_MAX {
            return Ok(());
        }
        let most = format_size(Self::FILES_BYTES_MAX);
        let reason = format!(
            "of all jobs of the graph have more than {most}; artifacts.dir has no such limit"
        );
        Err(InvalidJob::new(INPUT_FILES, reason))
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn ids(&self) -> BTreeMap<String, JobId> {
        self.nodes.iter().map(|node| (node.name.clone(), node.job.id.clone())).collect()
    }

    pub(super) fn name(&self, place: usize) -> String {
        self.nodes.get(place).map(|node| node.name.clone()).unwrap_or_default()
    }

    /// Returns the jobs with ids in place of names. Each keeps the names of its prerequisites.
    pub fn jobs(&self) -> Result<Vec<Job>> {
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

    fn job(&self, node: &GraphNode, ids: &HashMap<&str, &JobId>) -> Result<Job> {
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

    pub(super) fn unknown(&self, job: &str, prerequisite: &str) -> ClientError {
        let names = self.nodes.iter().map(|node| node.name.as_str());
        ClientError::UnknownInGraph {
            job: job.to_owned(),
            prerequisite: prerequisite.to_owned(),
            nearest: nearest(prerequisite, names).map(ToOwned::to_owned),
        }
    }
}

impl Client {
    /// Decides which shard a graph goes to. Its jobs and itself get ids that tell it.
    pub(super) fn place_graph(&self, graph: &mut Graph) -> Result<()> {
        let count = self.shards.count();
        if count == ShardCount::ONE {
            return Ok(());
        }
        let shard = if graph.has_fixed_id {
            count.shard_of(graph.id().as_str())?
        } else {
            shard_of_all(&graph.jobs()?, count).unwrap_or_else(|| at_random(graph.id(), count))
        };
        graph.settle(shard);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::JobBuilder;

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
            "job `count` waits for `fetch al`, which is neither a job of the graph nor an \
             existing job; did you mean `fetch all`?"
        );
    }
}
