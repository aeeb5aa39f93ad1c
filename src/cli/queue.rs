//! `hero queue …`: lists, pauses, resumes and purges queues.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

use super::table::TextTable;
use super::time::brief;
use super::{Global, output};
use crate::client::{Client, QueueDocument};
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::proto::queue;
use crate::proto::text::counted;
use crate::store::QueueState;

/// List, pause, resume or purge queues
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero queue list\n  hero queue pause type:python")]
pub(super) enum QueueCommand {
    /// List the queues: waiting jobs, wait of the first, jobs ended per second
    #[command(after_help = "Example:\n  hero queue list --json\n\n\
                            HELD jobs wait for a slot in a limit. JOBS/S is the rate of the whole \
                            script type,\nsampled by the supervisor.")]
    List,
    /// Stop actors from taking jobs of these queues; running jobs continue, new ones are accepted
    #[command(after_help = "Examples:\n  hero queue pause type:python\n  \
                            hero queue pause type:osis:group:io:prio:2")]
    Pause(QueueNames),
    /// Resume paused queues
    #[command(after_help = "Example:\n  hero queue resume type:python")]
    Resume(QueueNames),
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
        if let Self::Pause(which) | Self::Resume(which) | Self::Purge(Purge { which, .. }) = &self {
            which.check(&client, &config).await?;
        }
        match self {
            Self::List => list(&client, global.json).await,
            Self::Pause(which) => {
                let words = Wording { done: "paused", before: "was paused already" };
                which.each(global, &words, async |queue| client.pause_queue(queue).await).await
            }
            Self::Resume(which) => {
                let words = Wording { done: "resumed", before: "was not paused" };
                which.each(global, &words, async |queue| client.resume_queue(queue).await).await
            }
            Self::Purge(purge) => purge.run(&client, global.json).await,
        }
    }
}

async fn list(client: &Client, json: bool) -> Result<ExitCode, Error> {
    let queues = client.list_queues().await?;
    output::print(
        json,
        || json!({ "queues": queues.iter().map(QueueDocument::from).collect::<Vec<_>>() }),
        || table(&queues),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The words for a changed and an unchanged queue.
struct Wording {
    done: &'static str,
    before: &'static str,
}

impl QueueNames {
    fn queues(&self) -> Result<Vec<queue::Queue>, Error> {
        let mut all = Vec::new();
        for name in &self.queues {
            let named = queue::Queue::all_named(name)
                .map_err(|error| Error::new(Exit::Data, error.to_string()))?;
            all.extend(named);
        }
        Ok(all)
    }

    /// Rejects queues that nothing knows, which are mistyped or of a later time.
    async fn check(&self, client: &Client, config: &Config) -> Result<(), Error> {
        let queues = self.queues()?;
        if self.force {
            return Ok(());
        }
        client.check_known(&queues, config).await
    }

    async fn each(
        &self,
        global: &Global,
        words: &Wording,
        change: impl AsyncFn(&queue::Queue) -> Result<bool, crate::client::ClientError>,
    ) -> Result<ExitCode, Error> {
        let mut changed = Vec::new();
        for queue in self.queues()? {
            let news = change(&queue).await?;
            if !global.json {
                output::line(&format!("{queue} {}", if news { words.done } else { words.before }))?;
            }
            if news {
                changed.push(queue.to_string());
            }
        }
        if global.json {
            output::json(&json!({ words.done: changed }))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Purge {
    async fn run(&self, client: &Client, json: bool) -> Result<ExitCode, Error> {
        let queues = self.which.queues()?;
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

fn table(queues: &[QueueState]) -> String {
    let mut table =
        TextTable::new(&["QUEUE", ">DEPTH", ">HELD", ">OLDEST WAIT", ">JOBS/S", "STATE"]);
    for state in queues {
        table.row([
            state.queue.to_string(),
            state.depth.to_string(),
            state.held.to_string(),
            state.oldest_wait.map(brief).unwrap_or_default(),
            state.type_throughput_per_s.map(|rate| format!("{rate:.1}")).unwrap_or_default(),
            if state.paused { "paused" } else { "open" }.to_owned(),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn queue_shows_depth_wait_and_state() {
        let mut state = QueueState {
            queue: "type:osis:prio:0".parse().expect("legal"),
            depth: 3,
            held: 1,
            oldest_wait: Some(Duration::from_millis(1500)),
            type_throughput_per_s: None,
            paused: false,
        };
        assert_eq!(
            table(std::slice::from_ref(&state)),
            "QUEUE             DEPTH  HELD  OLDEST WAIT  JOBS/S  STATE\n\
             type:osis:prio:0      3     1        1.50s       -  open\n"
        );
        assert_eq!(QueueDocument::from(&state).oldest_wait_s, Some(1.5));
        state.paused = true;
        assert!(table(std::slice::from_ref(&state)).contains("paused"));
        assert!(QueueDocument::from(&state).paused);
    }
}
