//! Reads the products of a graph or batch: the input of its callbacks.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::config::JobConfig;
use crate::engine::Inputs;
use crate::proto::graph::GraphJobOutcome;
use crate::proto::job::{Job, JobId};
use crate::store::{GraphMember, JobSummary, Store, StoreError};

/// The field of a job that a graph or batch started at its end: which callback it is.
const CALLBACK: &str = "graph_callback";
/// The input with the counts, and the ids of the jobs.
const SUMMARY: &str = "batch";
/// The ids that the summary names.
const IDS_MAX: usize = 10_000;
/// The jobs whose outputs are inputs.
const OUTPUTS_MAX: usize = 1000;
/// The outputs that one call reads.
const OUTPUTS_PER_CALL: usize = 20;

/// Reads the outputs of a callback's graph or batch; `None` for any other job, and once the graph is gone.
pub(super) async fn read(
    store: &Store,
    config: &JobConfig,
    job: &Job,
) -> Result<Option<Inputs>, StoreError> {
    let Some(graph) = job.graph_id.as_ref().filter(|_| job.extra.contains_key(CALLBACK)) else {
        return Ok(None);
    };
    let Some(info) = store.graphs().get(graph).await? else { return Ok(None) };
    // The graph that started it is gone, and a later one has its id.
    let began: Option<Timestamp> = info.created_at.parse().ok();
    if job.created_at.is_some_and(|created| began.is_none_or(|began| began > created)) {
        return Ok(None);
    }
    let members = members(store, graph).await?;
    let mut inputs = Inputs::default();
    let given = outputs(store, config, (graph, &members), &mut inputs).await?;
    let ids: Vec<&JobId> = members.iter().map(|member| &member.id).collect();
    let counts = info.counts;
    let summary = serde_json::json!({
        "id": graph,
        "jobs": counts.jobs,
        "finished": counts.finished,
        "failed": counts.failed,
        "cancelled": counts.cancelled,
        "ids": ids,
        "outputs": given,
    });
    inputs.by_name.insert(SUMMARY.to_owned(), Some(summary.to_string().into()));
    inputs.prerequisites.insert(0, SUMMARY.to_owned());
    Ok(Some(inputs))
}

/// The first jobs of a graph, in its order.
async fn members(store: &Store, graph: &JobId) -> Result<Vec<GraphMember>, StoreError> {
    let mut all: Vec<GraphMember> = Vec::new();
    while all.len() < IDS_MAX {
        let after = all.last().map(|member| member.score);
        let page = Store::GRAPHS_PER_PAGE_MAX;
        let found =
            store.graphs().members(graph, &GraphJobOutcome::WORST_FIRST, after, page).await?;
        let is_last = found.len() < page;
        all.extend(found);
        if is_last {
            break;
        }
    }
    all.sort_by_key(GraphMember::place);
    Ok(all)
}

/// Returns whether the hash of a job names the graph.
fn is_of(job: &JobSummary, graph: &JobId) -> bool {
    job.fields.get("graph_id").is_some_and(|of| of == graph.as_str())
}

/// Adds the outputs of jobs, up to the bounds. Returns how many it added.
async fn outputs(
    store: &Store,
    config: &JobConfig,
    (graph, members): (&JobId, &[GraphMember]),
    inputs: &mut Inputs,
) -> Result<usize, StoreError> {
    let (mut given, mut left) = (0, config.inputs_size_max);
    for chunk in members[..members.len().min(OUTPUTS_MAX)].chunks(OUTPUTS_PER_CALL) {
        // A later job may have the id of one that was deleted.
        let ids = chunk.iter().map(|member| member.id.clone()).collect();
        let jobs = store.jobs().summaries(ids).await?.into_iter().flatten();
        let own: BTreeSet<JobId> = jobs.filter(|job| is_of(job, graph)).map(|job| job.id).collect();
        let chunk: Vec<_> = chunk.iter().filter(|member| own.contains(&member.id)).collect();
        let asked: Vec<_> = chunk.iter().map(|member| vec![member.id.clone()].into()).collect();
        let (found, ..) = store.jobs().inputs(&asked, left).await?;
        for (member, outputs) in chunk.iter().zip(found) {
            // An output that is too large for the rest, or cannot be read, is the end of them.
            let Ok(mut outputs) = outputs else { return Ok(given) };
            let output = outputs.remove(&member.id).flatten();
            let size = output.as_ref().map_or(0, |text| text.len() as u64);
            let Some(rest) = left.checked_sub(size) else { return Ok(given) };
            left = rest;
            given += usize::from(output.is_some());
            inputs.prerequisites.push(member.id.to_string());
            inputs.by_name.insert(member.id.to_string(), output.map(Arc::from));
        }
    }
    Ok(given)
}
