//! `hero queue …`: lists, pauses, drains, resumes and purges queues.

mod drain;
mod list;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Global, output};
use crate::client::{Client, ClientError};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::proto::queue::Queue;
use crate::proto::text::{counted, did_you_mean};

/// List, pause, drain, resume or purge queues
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  hero queue list\n  hero queue pause type:python\n  hero queue drain --all"
)]
pub(super) enum QueueCommand {
    /// List the queues: waiting jobs, wait of the first, jobs ended per second
    #[command(after_help = "Example:\n  hero queue list --json\n\n\
                            URGENT, NORMAL and BACKGROUND are the jobs that wait, by priority. \
                            HELD jobs wait\nfor a slot in a limit. JOBS/S is the rate of the whole \
                            script type,\nsampled by the supervisor.")]
    List,
    /// Stop actors from taking jobs of these queues; running jobs continue, new ones are accepted
    #[command(after_help = "Examples:\n  hero queue pause type:python\n  \
                            hero queue pause type:osis:group:io:prio:2\n  hero queue pause --all")]
    Pause(QueueChoice),
    Drain(drain::Drain),
    /// Resume paused queues
    #[command(after_help = "Examples:\n  hero queue resume type:python\n  hero queue resume --all")]
    Resume(QueueChoice),
    /// End all waiting jobs of these queues in error, as `hero job stop` does
    #[command(after_help = "Example:\n  hero queue purge --yes type:osis:group:io\n\n\
                            Their dependents fail as well. Running jobs are not affected.")]
    Purge(Purge),
}

#[derive(Debug, Args)]
pub(super) struct QueueNames {
    /// The queues: type:T, type:T:group:G or type:T:group:G:inst:I, for all priorities; with
    /// :prio:0, :prio:1 or :prio:2 at the end, for one
    #[arg(required = true, value_name = "QUEUE")]
    queues: Vec<String>,
    /// Accept queues that no configured or live actor serves and that hold no jobs
    #[arg(long)]
    force: bool,
}

/// Named queues, or all.
#[derive(Debug, Args)]
pub(super) struct QueueChoice {
    /// The queues: type:T, type:T:group:G or type:T:group:G:inst:I, for all priorities; with
    /// :prio:0, :prio:1 or :prio:2 at the end, for one
    #[arg(required_unless_present = "all", value_name = "QUEUE")]
    queues: Vec<String>,
    /// Accept queues that no configured or live actor serves and that hold no jobs
    #[arg(long)]
    force: bool,
    /// All queues that hold jobs, that a configured or live actor serves, or that are paused
    #[arg(long, conflicts_with_all = ["queues", "force"])]
    all: bool,
}

#[derive(Debug, Args)]
pub(super) struct Purge {
    #[command(flatten)]
    which: QueueNames,
    /// Confirm; required on a terminal
    #[arg(long)]
    yes: bool,
}

impl QueueCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let config = global.config()?;
        let client = Client::open(&config)?;
        match self {
            Self::List => list::run(&client, global).await,
            Self::Pause(which) => {
                let queues = which.queues(&client, &config).await?;
                each(global, &PAUSED, &queues, async |queue| client.pause_queue(queue).await)
                    .await?;
                output::hint(global, "running jobs go on: hero queue drain waits for their end");
                Ok(ExitCode::SUCCESS)
            }
            Self::Drain(drain) => drain.run(&client, &config, global).await,
            Self::Resume(which) => {
                let queues = if which.all {
                    client.paused_queues().await?
                } else {
                    which.queues(&client, &config).await?
                };
                let words = Wording { done: "resumed", before: "was not paused" };
                each(global, &words, &queues, async |queue| client.resume_queue(queue).await)
                    .await?;
                Ok(ExitCode::SUCCESS)
            }
            Self::Purge(purge) => purge.run(&client, &config, global.json).await,
        }
    }
}

/// The words for a changed and an unchanged queue.
struct Wording {
    done: &'static str,
    before: &'static str,
}

const PAUSED: Wording = Wording { done: "paused", before: "was paused already" };

/// Returns the named queues. Rejects those that nothing knows, which are mistyped or of a later time,
/// unless `force`.
async fn checked(
    names: &[String],
    force: bool,
    client: &Client,
    config: &Config,
) -> Result<Vec<Queue>, Error> {
    let mut all = Vec::new();
    for name in names {
        let of_name = Queue::all_named(name).map_err(|error| {
            let with_type = format!("type:{name}");
            let meant = Queue::all_named(&with_type).is_ok().then_some(with_type.as_str());
            Error::new(Exit::Data, format!("{error}{}", did_you_mean(meant)))
        })?;
        all.extend(of_name);
    }
    if !force {
        client.check_known(&all, config).await?;
    }
    Ok(all)
}

impl QueueChoice {
    async fn queues(&self, client: &Client, config: &Config) -> Result<Vec<Queue>, Error> {
        if self.all {
            return Ok(client.all_queues(config).await?);
        }
        checked(&self.queues, self.force, client, config).await
    }
}

/// The most queues that are printed by their names.
const LISTED_MAX: usize = 12;

/// Changes each queue. Returns the names of those that were changed.
async fn change(
    json: bool,
    words: &Wording,
    queues: &[Queue],
    change: impl AsyncFn(&Queue) -> Result<bool, ClientError>,
) -> Result<Vec<String>, Error> {
    let mut changed = Vec::new();
    let is_listed = !json && queues.len() <= LISTED_MAX;
    for queue in queues {
        let news = change(queue).await?;
        if is_listed {
            output::line(&format!("{queue} {}", if news { words.done } else { words.before }))?;
        }
        if news {
            changed.push(queue.to_string());
        }
    }
    if !json && !is_listed {
        let number = counted(changed.len() as u64, "queue", "queues");
        output::line(&format!("{number} {}", words.done))?;
    }
    Ok(changed)
}

/// Changes each queue, and prints what was changed.
async fn each(
    global: &Global,
    words: &Wording,
    queues: &[Queue],
    act: impl AsyncFn(&Queue) -> Result<bool, ClientError>,
) -> Result<(), Error> {
    let changed = change(global.json, words, queues, act).await?;
    if global.json { output::json(&json!({ words.done: changed })) } else { Ok(()) }
}

impl Purge {
    async fn run(&self, client: &Client, config: &Config, json: bool) -> Result<ExitCode, Error> {
        let QueueNames { queues, force } = &self.which;
        let queues = checked(queues, *force, client, config).await?;
        if !self.yes && std::io::stdin().is_terminal() {
            let message = "cannot purge without confirmation: every waiting job of these queues ends \
                           in error; add --yes to purge them";
            return Err(Error::new(Exit::Usage, message));
        }
        let mut purged = 0;
        for queue in &queues {
            purged += client.purge_queue(queue).await?;
        }
        output::print(
            json,
            || json!({ "purged": purged }),
            || format!("{} purged\n", counted(purged, "job", "jobs")),
        )?;
        Ok(ExitCode::SUCCESS)
    }
}
