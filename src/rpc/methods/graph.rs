//! `graph.*`: submits jobs that wait for each other by name; reads, retries, stops and deletes graphs
//! and batches.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::job_files::given_files;
use super::job_types::JobSettings;
use super::params::{page_size, patience};
use super::submitted::{UnservedJobs, check_number, unserved};
use super::{CallContext, Result, RpcError, Scope, code};
use crate::client::{
    ClientError, Graph, GraphChange, GraphDocument, GraphNode, GraphRetry, JobOfGraph,
    JobOfGraphDocument,
};
use crate::proto::graph::{GraphCallback, GraphInfo, GraphJobOutcome};
use crate::proto::graph_plan::{GraphPlan, PlannedJob};
use crate::proto::job::{InvalidJob, Job, JobId, NotifyName, notify_names};
use crate::store::{Blocker, Store};
use crate::view::blocker_words;

/// The maximum number of graphs that are looked at for a page.
const LOOKED_MAX: usize = 100_000;
/// The maximum number of jobs of a graph that are asked why they wait.
const EXPLAINED_MAX: usize = 20;

methods! {
    /// Submits jobs that wait for each other by name: all or none.
    "graph.submit", Scope::Submit => submit;
    /// Lists graphs and batches, the newest first, page by page.
    "graph.list", Scope::Read => list;
    /// Returns a graph or batch with a page of its jobs: failed, cancelled, waiting, finished.
    "graph.get", Scope::Read => get;
    /// Waits until all jobs of a graph or batch have ended and returns it; if the wait ends first, as it is then.
    "graph.wait", Scope::Read => wait;
    /// Runs those jobs of a graph or batch again that failed or were stopped, with corrected scripts and settings.
    "graph.retry", Scope::Submit => retry;
    /// Stops all jobs of a graph or batch that have not ended.
    "graph.stop", Scope::Submit => stop;
    /// Deletes a graph or batch with all its jobs, unless one of them runs.
    "graph.delete", Scope::Submit => delete;
}

/// The longest last line of a job of a graph, in characters.
const LINE_CHARS_MAX: usize = 200;

/// The jobs of a submitted graph.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct SubmittedGraph {
    /// The id of the graph.
    pub(crate) id: String,
    /// The same, by its older name.
    graph_id: String,
    /// The ids of the jobs, by their names.
    pub(crate) jobs: BTreeMap<String, String>,
    /// The jobs that no live actor claims now; for callers that see all actors.
    #[serde(default)]
    pub(crate) unserved: Vec<UnservedJobs>,
}

async fn submit(context: CallContext, params: GraphPlan<JobSettings>) -> Result<SubmittedGraph> {
    check_number("graph", params.jobs.len(), Store::WHOLE_MAX)?;
    let mut graph = Graph::new();
    graph.set_window(params.window());
    graph.notify(notifications(&params.notify)?);
    if let Some(id) = params.id {
        graph.set_id(id);
    }
    if let Some(name) = params.name {
        graph.set_name(name);
    }
    for (place, of) in params.jobs.into_iter().enumerate() {
        let PlannedJob { name, job, after, after_any, inputs, stdin } = of;
        let files = |job: &Job| given_files(&context, (place, job), inputs, stdin);
        let read = job.job(&context).await.and_then(|job| Ok((files(&job)?, job)));
        let (files, job) = read.map_err(|error| {
            let message = format!("{name}: {}", error.message);
            RpcError { message, ..error }.with("name", name.as_str())
        })?;
        graph.add(name, job).files(files).waits_for(after, after_any);
    }
    let params = [params.on_success, params.on_failure, params.on_end];
    for (callback, job) in callbacks(&context, params).await? {
        graph.on(callback, job);
    }
    context.check_new(&graph.jobs()?).await?;
    let ids = context.client.graphs().submit(&mut graph).await?;
    let ids = ids.into_iter().map(|(name, id)| (name, id.to_string()));
    let unserved = unserved(&context, graph.nodes().iter().map(GraphNode::job)).await;
    let id = graph.id().to_string();
    Ok(SubmittedGraph { graph_id: id.clone(), id, jobs: ids.collect(), unserved })
}

pub(super) fn notifications(names: &[String]) -> Result<Vec<NotifyName>> {
    notify_names(names.iter().map(String::as_str))
        .map_err(|reason| ClientError::from(InvalidJob::new("notify", reason)).into())
}

/// Reads the callbacks of a graph or batch, in the order of [`GraphCallback::ALL`].
pub(super) async fn callbacks(
    context: &CallContext,
    params: [Option<JobSettings>; 3],
) -> Result<BTreeMap<GraphCallback, Job>> {
    let mut callbacks = BTreeMap::new();
    for (callback, settings) in GraphCallback::ALL.into_iter().zip(params) {
        let Some(settings) = settings else { continue };
        let job = settings.job(context).await?;
        context.has_type(&job)?;
        if job.spec.run_at.is_some() || job.spec.waits_for().next().is_some() {
            let name = callback.as_str();
            let message = format!("{name}: the end of its graph alone starts a callback");
            return Err(RpcError::new(code::INVALID_PARAMS, message).with("name", name));
        }
        callbacks.insert(callback, job);
    }
    let jobs: Vec<Job> = callbacks.values().cloned().collect();
    context.check_new(&jobs).await?;
    Ok(callbacks)
}

/// A page of graphs and batches to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListGraphs {
    /// The size of the page, up to 1000; 50 without it.
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<u64>,
}

/// A page of graphs and batches.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ListedGraphs {
    /// The graphs and batches. A caller with bounds gets its own alone; there may be less than a page with
    /// more to come.
    pub(crate) graphs: Vec<GraphDocument>,
    /// The cursor of the next page, if there may be one.
    pub(crate) next: Option<u64>,
}

async fn list(context: CallContext, params: ListGraphs) -> Result<ListedGraphs> {
    let limit = page_size(params.limit, Store::GRAPHS_PER_PAGE_MAX)?;
    let (mut graphs, mut next, mut looked) = (Vec::new(), params.cursor, 0);
    loop {
        // A page ends with a graph that the caller sees: another one's time would tell of it.
        let wanted = limit.saturating_sub(graphs.len()).max(1);
        let most = if context.caller.is_bound() { Store::GRAPHS_PER_PAGE_MAX } else { wanted };
        let mut page = context.client.graphs().list(most, next).await?;
        looked += page.items.len();
        let visible =
            page.items.iter().enumerate().filter(|(_, graph)| is_visible(&context, graph));
        let last = visible.map(|(place, _)| place + 1).nth(wanted - 1);
        if let Some(to_last) = last.filter(|number| *number < page.items.len()) {
            page = context.client.graphs().list(to_last, next).await?;
        }
        let seen = page.items.iter().filter(|graph| is_visible(&context, graph));
        graphs.extend(seen.map(GraphDocument::from));
        next = page.next;
        if next.is_none() || graphs.len() >= limit || looked >= LOOKED_MAX {
            return Ok(ListedGraphs { graphs, next });
        }
    }
}

/// Returns whether the caller may see a graph: one with bounds sees its own alone.
fn is_visible(context: &CallContext, graph: &GraphInfo) -> bool {
    !context.caller.is_bound() || graph.caller == context.caller.name
}

/// Returns the graph of an id, or of a beginning or a name that is unique among the graphs that the caller may
/// see.
async fn named(context: &CallContext, id: &str) -> Result<JobId> {
    let sees =
        |of: &GraphInfo| is_visible(context, of) && context.reads_of(Some(of.caller.as_str()));
    Ok(context.client.graphs().id_among(id, Some(&context.caller.name), sees).await?)
}

/// Returns an error that no job has an id as one that a graph has it, if the caller may see the graph.
pub(crate) async fn names_graph(context: &CallContext, mut error: RpcError) -> RpcError {
    let id = error.data.as_ref().and_then(|data| data["id"].as_str()?.parse::<JobId>().ok());
    if let Some(id) =
        id.filter(|id| error.message == ClientError::NoSuchJob(id.clone()).to_string())
        && let Ok(graph) = named(context, id.as_str()).await
        && let Ok(graph) = visible(context, &graph).await
        && context.reads_of(Some(graph.caller.as_str()))
    {
        error.message = ClientError::IsGraph(id).to_string();
    }
    error
}

/// Reads a graph that the caller may see.
pub(super) async fn visible(context: &CallContext, id: &JobId) -> Result<GraphInfo> {
    let graph = context.client.graphs().get(id).await?;
    if is_visible(context, &graph) {
        return Ok(graph);
    }
    Err(ClientError::NoSuchGraph(id.clone()).into())
}

/// Returns the same of a graph that the caller may change.
pub(super) async fn own(context: &CallContext, id: &str, doing: &str) -> Result<JobId> {
    let id = named(context, id).await?;
    let graph = visible(context, &id).await?;
    let absent = ClientError::NoSuchGraph(id.clone());
    context.may_change_of(&graph.caller, ("graph", &id), absent, doing)?;
    Ok(id)
}

/// A graph or batch, and the page of its jobs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetGraph {
    /// The id of the graph or batch, its beginning, or its name, if no other has it. `id:` before it takes it as an id alone.
    id: String,
    /// Only jobs with this outcome.
    outcome: Option<GraphJobOutcome>,
    /// The size of the page, up to 1000; 50 without it.
    limit: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<u64>,
}

/// A graph or batch with a page of its jobs.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ShownGraph {
    /// The graph or batch.
    pub(crate) graph: GraphDocument,
    /// Its jobs: those that failed, the cancelled, those that have not ended, the finished.
    pub(crate) jobs: Vec<JobOfGraphDocument>,
    /// The cursor of the next page, if there may be one.
    pub(crate) next: Option<u64>,
    /// Reasons, other than prerequisites, for which the first of its jobs that have not ended wait; empty for a caller with
    /// bounds.
    #[serde(default)]
    pub(crate) waits_for: Vec<String>,
}

/// Returns why the first jobs of a graph that have not ended do not start, each reason once.
async fn reasons(context: &CallContext, id: &JobId) -> Result<Vec<String>> {
    let (waiting, mut reasons) = (Some(GraphJobOutcome::Waiting), Vec::new());
    for of in context.client.graphs().jobs(id, waiting, None, EXPLAINED_MAX).await? {
        let Some(blocker) = context.client.queues().blocker(&of.member.id).await? else { continue };
        let reason = match &blocker {
            Blocker::Limit(limit) if *limit == format!("@graph={id}") => {
                "a slot in its window".to_owned()
            }
            Blocker::Limit(limit) if *limit == format!("@paused={id}") => {
                "the end of its pause".to_owned()
            }
            other => blocker_words(&of.member.id, other),
        };
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    Ok(reasons)
}

async fn get(context: CallContext, params: GetGraph) -> Result<ShownGraph> {
    let limit = page_size(params.limit, Store::GRAPHS_PER_PAGE_MAX)?;
    let id = named(&context, &params.id).await?;
    let graph = visible(&context, &id).await?;
    let page = || context.client.graphs().jobs(&id, params.outcome, params.cursor, limit);
    let (mut jobs, mut lines) = (page().await?, HashMap::new());
    if graph.every.is_some() {
        let ids: Vec<&JobId> = jobs.iter().map(|job| &job.member.id).collect();
        let last = context.client.jobs().last_lines(&id, &ids).await?;
        lines = ids.into_iter().cloned().zip(last).collect();
        // A job that is in the graph after its line was read has written it.
        jobs = page().await?;
    }
    let next = jobs.last().filter(|_| jobs.len() == limit).map(|job| job.member.score);
    jobs.retain(|job| job.job.as_ref().is_none_or(|job| context.caller.sees(job)));
    let document = |of: &JobOfGraph| {
        let line = of.job.as_ref().and_then(|_| lines.get(&of.member.id));
        let line = line.filter(|line| !line.is_empty());
        JobOfGraphDocument {
            last_line: line.map(|line| line.chars().take(LINE_CHARS_MAX).collect()),
            ..JobOfGraphDocument::from(of)
        }
    };
    let jobs = jobs.iter().map(document).collect();
    let is_open = graph.counts.waiting() > 0 && !context.caller.is_bound();
    let waits_for = if is_open { reasons(&context, &id).await? } else { Vec::new() };
    let graph = context.client.graphs().document(&graph).await?;
    Ok(ShownGraph { graph, jobs, next, waits_for })
}

/// A graph or batch to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AwaitGraph {
    /// The id of the graph or batch, its beginning, or its name, if no other has it. `id:` before it takes it as an id alone.
    id: String,
    /// The longest time to wait, in seconds, up to 3600; 60 without it. The jobs go on after it.
    wait: Option<f64>,
}

async fn wait(context: CallContext, params: AwaitGraph) -> Result<GraphDocument> {
    let patience = patience(params.wait)?;
    let id = named(&context, &params.id).await?;
    visible(&context, &id).await?;
    match context.client.graphs().wait(&id, Some(patience), |_| {}).await {
        Ok(_) | Err(ClientError::GaveUp { .. }) => document(&context, &id).await,
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn document(context: &CallContext, id: &JobId) -> Result<GraphDocument> {
    let graph = visible(context, id).await?;
    Ok(context.client.graphs().document(&graph).await?)
}

/// A graph or batch to change.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NamedGraph {
    /// The id of the graph or batch, its beginning, or its name, if no other has it. `id:` before it takes it as an id alone.
    id: String,
}

/// A graph or batch to resume.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResumeGraph {
    /// The id of the graph or batch, its beginning, or its name, if no other has it. `id:` before it takes it as an id alone.
    id: String,
    /// The name or id of a job that runs again with all jobs that depend on it, also if they finished. Without it the
    /// jobs that failed or were stopped run again.
    from: Option<String>,
    /// New settings of jobs that run again, by the names of the jobs, each with members as in a job to submit, such as
    /// `{"transform": {"script": "…"}}`; null removes one.
    #[serde(default)]
    changes: BTreeMap<String, Map<String, Value>>,
}

async fn retry(context: CallContext, params: ResumeGraph) -> Result<GraphChange> {
    let ResumeGraph { id, from, mut changes } = params;
    let id = own(&context, &id, "retry").await?;
    let mut checked = Vec::new();
    if !changes.is_empty() {
        let jobs = context.client.graphs().steps_named(&id, changes.keys()).await?;
        for (job, changes) in jobs.iter().zip(changes.values_mut()) {
            context.keep_groups(changes);
            checked.push(context.may_correct(job, changes, "retry").await?);
        }
    }
    let how = GraphRetry { from, changes };
    Ok(context.client.pinned(checked).graphs().retry(&id, &how).await?)
}

async fn stop(context: CallContext, params: NamedGraph) -> Result<GraphChange> {
    let id = own(&context, &params.id, "stop").await?;
    Ok(context.client.graphs().stop(&id).await?)
}

async fn delete(context: CallContext, params: NamedGraph) -> Result<GraphChange> {
    let id = own(&context, &params.id, "delete").await?;
    Ok(context.client.graphs().delete(&id).await?)
}
