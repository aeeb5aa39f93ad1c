//! `graph.edit`, `graph.tell`: changes the window of a graph or batch, and ends its pause.

use schemars::JsonSchema;
use serde::Deserialize;

use super::graph::{document, own};
use super::{CallContext, Result, RpcError, Scope, code};
use crate::client::{ClientError, GraphDocument};
use crate::proto::job::JobId;
use crate::proto::window::{GraphWindow, PauseAfter, StopAfter};
use crate::proto::word_table::words;
use crate::store::Store;

methods! {
    /// Changes how many jobs of a graph or batch run at once, how many failures stop the others, and after how many jobs
    /// the others pause, also while it runs.
    "graph.edit", Scope::Submit => edit;
    /// Continues a graph or batch that pauses after its first jobs.
    "graph.tell", Scope::Submit => tell;
}

/// A graph or batch with other bounds: at least one of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditGraph {
    /// The id of the graph or batch, its beginning, or its name, if no other has it.
    id: String,
    /// The number of its jobs that run at once; 0 for no bound.
    at_a_time: Option<u32>,
    /// The failures that stop its jobs that have not started, earlier ones included: a number, or a share of all
    /// jobs such as `5%`; 0 for no bound.
    stop_after: Option<StopAfter>,
    /// The number of its jobs, up to 100, that start before the others from now on, and how long these pause once the first
    /// have ended well, up to 30d, such as `1 10m`; `1 tell` pauses until `graph.tell`; 0 for no pause.
    pause_after: Option<PauseAfter>,
}

async fn edit(context: CallContext, params: EditGraph) -> Result<GraphDocument> {
    let EditGraph { id, at_a_time, stop_after, pause_after } = params;
    let window = GraphWindow { at_a_time, stop_after, pause_after };
    if window == GraphWindow::default() {
        let message = "the graph stays as it is: give at_a_time, stop_after or pause_after";
        return Err(RpcError::wrong("at_a_time", message));
    }
    let id = own(&context, &id, "change").await?;
    may_change_all(&context, &id).await?;
    context.client.graphs().edit(&id, window).await?;
    document(&context, &id).await
}

/// An order, and the graph or batch that gets it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TellGraph {
    /// The id of the graph or batch, its beginning, or its name, if no other has it.
    id: String,
    /// The order: `go` ends its pause, or the one that is to come.
    order: GraphOrder,
}

words! {
    /// An order to a graph or batch.
    #[derive(Deserialize, JsonSchema)]
    GraphOrder;
    /// Start the jobs that wait for the end of its pause.
    Go = "go",
}

async fn tell(context: CallContext, params: TellGraph) -> Result<GraphDocument> {
    let (id, GraphOrder::Go) = (own(&context, &params.id, "tell").await?, params.order);
    may_change_all(&context, &id).await?;
    if !context.client.graphs().end_pause(&id).await? {
        let message = format!("graph {id} has no pause to end: hero graph show {id}");
        return Err(RpcError::new(code::CONFLICT, message).with("id", id.as_str()));
    }
    document(&context, &id).await
}

/// Refuses to change the window of a graph with a job that the caller may not change: a window stops and holds all of them.
async fn may_change_all(context: &CallContext, id: &JobId) -> Result<()> {
    let (mut is_whole, mut cursor) = (context.changes_any_job(), None);
    while !is_whole {
        let most = Store::GRAPHS_PER_PAGE_MAX;
        let page = context.client.graphs().jobs(id, None, cursor, most).await?;
        for job in page.iter().filter_map(|of| of.job.as_ref()) {
            if !context.caller.sees(job) {
                return Err(ClientError::NoSuchGraph(id.clone()).into());
            }
            let is_own = job.fields.get("caller_id") == Some(&context.caller.name);
            if !is_own && !context.caller.operates() {
                return Err(context.may_not(format!("change graph {id}: it has jobs of others")));
            }
        }
        (is_whole, cursor) = (page.len() < most, page.last().map(|of| of.member.score));
    }
    Ok(())
}
