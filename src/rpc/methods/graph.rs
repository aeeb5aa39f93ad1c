//! `graph.submit`: jobs that wait for each other by name.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::caller::Scope;
use super::super::error::RpcError;
use super::super::method::{CallContext, Method};
use super::job_types::JobSettings;
use crate::client::{ClientError, Graph};
use crate::store::Store;

pub(super) fn methods() -> [Method; 1] {
    [Method::new(
        "graph.submit",
        Scope::Submit,
        "Submits jobs that wait for each other by name: all or none.",
        submit,
    )]
}

/// The jobs of a graph.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GivenGraph {
    /// The jobs.
    jobs: Vec<GivenNode>,
}

/// A job of a graph.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GivenNode {
    /// Its name, unique in the graph.
    name: String,
    /// The job.
    job: JobSettings,
    /// The jobs that must finish first: names in the graph, or ids of other jobs.
    #[serde(default)]
    after: Vec<String>,
    /// The jobs that must end first, finished or failed.
    #[serde(default)]
    after_any: Vec<String>,
}

/// The jobs of a submitted graph.
#[derive(Serialize, JsonSchema)]
struct SubmittedGraph {
    /// The ids of the jobs, by their names.
    jobs: BTreeMap<String, String>,
}

async fn submit(context: CallContext, given: GivenGraph) -> Result<SubmittedGraph, RpcError> {
    if given.jobs.len() > Store::WHOLE_MAX {
        let error = ClientError::TooMany { jobs: given.jobs.len(), most: Store::WHOLE_MAX };
        return Err(RpcError::from(error).with("field", "jobs"));
    }
    let mut graph = Graph::new();
    for GivenNode { name, job, after, after_any } in given.jobs {
        let job = job.job(&context).map_err(|error| {
            let message = format!("{name}: {}", error.message);
            RpcError { message, ..error }.with("name", name.as_str())
        })?;
        graph.add(name, job).waits_for(after, after_any);
    }
    context.check_new(&graph.jobs()?).await?;
    let ids = context.client.submit_graph(&graph).await?;
    let ids = ids.into_iter().map(|(name, id)| (name, id.to_string()));
    Ok(SubmittedGraph { jobs: ids.collect() })
}
