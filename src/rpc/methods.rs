//! The methods, one file per noun. Each calls the functions of the client library that the command line
//! calls.

/// Declares the methods of one noun: the doc comment of each is its purpose; its name, the scope that its caller needs
/// and its function follow.
macro_rules! methods {
    ($($(#[doc = $line:literal])+ $name:literal, $scope:expr => $function:expr;)+) => {
        pub(super) fn methods() -> Vec<super::super::method::Method> {
            use super::super::method::Method;
            vec![$(Method::new($name, $scope, concat!($($line),+).trim_start(), $function)),+]
        }
    };
}

mod access;
mod actor;
mod audit;
mod batch;
mod batch_every;
mod correction_rights;
mod cron;
mod dead;
mod follow;
mod graph;
mod graph_window;
mod hook;
mod job;
mod job_change;
mod job_files;
mod job_list;
mod job_many;
mod job_types;
mod limit;
mod machine;
mod notify;
mod object;
mod older;
mod params;
mod queue;
mod script;
mod session;
mod submitted;
mod system;
mod visible_reads;

use super::caller::Scope;
use super::caller_work::{BoundedWork, PATIENCE};
use super::method::{CallContext, Method};
use super::rpc_error::{Result, RpcError, code};

pub(super) use follow::{EndSubscription, UNSUBSCRIBE};
pub(crate) use graph::names_graph;
pub(super) use job::found_output;
pub(crate) use job::submitted_awaited;
pub(crate) use job_files::found_file;
pub(super) use params::patience;

/// The results that the page reads.
pub(crate) mod results {
    pub(crate) use super::actor::{LiveActors, NotifiedActors, Pong};
    pub(crate) use super::audit::AuditList;
    pub(crate) use super::batch::{FleetMemberDocument, Refused, SubmittedBatch};
    pub(crate) use super::cron::{FiringList, PeriodicJobList, Switched};
    pub(crate) use super::graph::{ListedGraphs, ShownGraph, SubmittedGraph};
    pub(crate) use super::hook::{ConfiguredWebhook, WebhookList, WebhookTest};
    pub(crate) use super::job::{Deleted, Id};
    pub(crate) use super::job_change::JobChangeResult;
    pub(crate) use super::job_files::ListedFiles;
    pub(crate) use super::job_many::ManyChangedDocument;
    pub(crate) use super::job_types::JobDocument;
    pub(crate) use super::limit::LimitList;
    pub(crate) use super::machine::{ForgottenMachine, MachineChange, MachineList};
    pub(crate) use super::notify::{ConfiguredNotification, DeliveryList, TestResult};
    pub(crate) use super::object::{ObjectPage, TypeCount, TypeCounts};
    pub(crate) use super::queue::{Drained, Purged, QueueList, UnservedList};
    pub(crate) use super::script::{Documented, Findings, ScriptList, ScriptVersions};
    pub(crate) use super::submitted::{SubmittedId, UnservedJobs};
}

pub(super) fn all() -> Vec<Method> {
    [
        job::methods(),
        job_many::methods(),
        audit::methods(),
        batch::methods(),
        graph::methods(),
        graph_window::methods(),
        hook::methods(),
        queue::methods(),
        actor::methods(),
        cron::methods(),
        dead::methods(),
        limit::methods(),
        machine::methods(),
        notify::methods(),
        object::methods(),
        script::methods(),
        session::methods(),
        system::methods(),
        older::methods(),
        follow::methods(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Runs what would block on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(RpcError::new(code::INTERNAL, "the call ended without a result")))
}
