//! `hero job find`: finds the job of a process of this machine.

use clap::Args;
use serde_json::{Value, json};

use super::{Show, list, show};
use crate::cli::Global;
use crate::cli::api::ApiMethods;
use crate::client::host_name;
use crate::engine::process::ProcessRun;
use crate::error::{Error, Exit};
use crate::rpc::results::LiveActors;
use crate::store::ListQuery;

/// Show the job of a process of this machine
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero job find --pid 4711\n\n\
                        Processes that a script starts belong to its job, also those that leave its process group. Scripts of \
                        osis, sal and heroscript run inside their actor and have no process: hero job list --status running has them.")]
pub(in crate::cli) struct FindJob {
    /// The id of the process
    #[arg(long, value_name = "NUMBER")]
    pid: u32,
}

impl FindJob {
    pub(super) async fn run(self, api: &ApiMethods, global: &Global) -> Result<(), Error> {
        let pid = self.pid;
        let none = |why: &str| Error::new(Exit::NotFound, format!("process {pid} {why}"));
        let Some(run) = ProcessRun::of_process(pid) else {
            return Err(none("is not there, or belongs to no job"));
        };
        let host = host_name();
        let (_, LiveActors { actors, .. }) = api.typed("actor.list", json!({})).await?;
        let here = actors.into_iter().filter(|of| of.presence.hostname == host);
        let here = here.filter(|of| of.presence.pid == run.actor_pid);
        let actors: Vec<String> = here.map(|of| of.actor).collect();
        let mut params = serde_json::Map::from_iter([("status".to_owned(), json!("started"))]);
        loop {
            let (page, found) = list::find(api, params.clone(), ListQuery::LIMIT_MAX).await?;
            let is_of_process = |job: &&Value| {
                let of_actor =
                    job["actor"].as_str().is_some_and(|of| actors.iter().any(|one| one == of));
                of_actor && job["id"].as_str().is_some_and(|id| run.may_be_of(id))
            };
            let job = page["jobs"].as_array().into_iter().flatten().find(is_of_process);
            if let Some(id) = job.and_then(|job| job["id"].as_str()) {
                return show::run(api, &Show { id: id.to_owned(), raw: false }, false, global)
                    .await;
            }
            let Some(next) = found.next else {
                return Err(none(
                    "was started for a job that no actor of this machine runs any more",
                ));
            };
            params.insert("cursor".to_owned(), json!(next.to_string()));
        }
    }
}
