//! `hero queue …`: the queues that hold jobs.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::table::Table;
use super::time::brief;
use super::{Global, output};
use crate::client::Client;
use crate::error::{Error, Exit};
use crate::proto::target;
use crate::store::QueueState;

/// Look at queues, pause them, empty them
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero queue list\n  hero queue pause type:python")]
pub(super) enum Queue {
    /// List the queues: how many jobs wait, how long the first has waited, jobs ended per second
    #[command(after_help = "Example:\n  hero queue list --json\n\n\
                            JOBS/S is that of the whole script type, sampled by the supervisor.")]
    List,
    /// Let no actor take jobs from queues; running ones go on, new ones may be submitted
    #[command(after_help = "Examples:\n  hero queue pause type:python\n  \
                            hero queue pause type:osis:group:io:prio:2")]
    Pause(Which),
    /// Let paused queues go on
    #[command(after_help = "Example:\n  hero queue resume type:python")]
    Resume(Which),
    /// End all jobs that wait in queues in error, as `hero job stop` would
    #[command(after_help = "Example:\n  hero queue purge --yes type:osis:group:io\n\n\
                            Jobs that wait for those fail as well. What runs is left alone.")]
    Purge(Purge),
}

#[derive(Debug, Args)]
pub(super) struct Which {
    /// The queues: type:T, type:T:group:G or type:T:group:G:inst:I; of all priorities, or of one
    /// with :prio:0, :prio:1 or :prio:2 after it
    #[arg(required = true, value_name = "QUEUE")]
    queues: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct Purge {
    #[command(flatten)]
    which: Which,
    /// Yes, end them; needed on a terminal
    #[arg(long)]
    yes: bool,
}

impl Queue {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let client = global.client()?;
        match self {
            Self::List => list(&client, global.json).await,
            Self::Pause(which) => {
                let words = Words { done: "paused", before: "was paused already" };
                which.each(global, &words, async |queue| client.pause_queue(queue).await).await
            }
            Self::Resume(which) => {
                let words = Words { done: "resumed", before: "was not paused" };
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
        || json!({ "queues": queues.iter().map(document).collect::<Vec<Value>>() }),
        || table(&queues),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// What is said of a queue.
struct Words {
    done: &'static str,
    before: &'static str,
}

impl Which {
    fn queues(&self) -> Result<Vec<target::Queue>, Error> {
        let mut all = Vec::new();
        for name in &self.queues {
            let named = target::Queue::all_named(name)
                .map_err(|error| Error::new(Exit::Data, error.to_string()))?;
            all.extend(named);
        }
        Ok(all)
    }

    async fn each(
        &self,
        global: &Global,
        words: &Words,
        change: impl AsyncFn(&target::Queue) -> Result<bool, crate::client::ClientError>,
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
            let message = "purging ends every job that waits there, and nothing brings them back \
                           but hero job retry; add --yes to do it";
            return Err(Error::new(Exit::Usage, message));
        }
        let mut purged = 0;
        for queue in &queues {
            purged += client.purge_queue(queue).await?;
        }
        output::print(
            json,
            || json!({ "purged": purged }),
            || format!("{purged} {} purged\n", if purged == 1 { "job" } else { "jobs" }),
        )?;
        Ok(ExitCode::SUCCESS)
    }
}

fn table(queues: &[QueueState]) -> String {
    let mut table = Table::new(&["QUEUE", ">DEPTH", ">OLDEST WAIT", ">JOBS/S", "STATE"]);
    for state in queues {
        table.row([
            state.queue.to_string(),
            state.depth.to_string(),
            state.oldest_wait.map(brief).unwrap_or_default(),
            state.type_throughput_per_s.map(|rate| format!("{rate:.1}")).unwrap_or_default(),
            if state.paused { "paused" } else { "open" }.to_owned(),
        ]);
    }
    table.render()
}

fn document(state: &QueueState) -> Value {
    json!({
        "queue": state.queue.to_string(),
        "script_type": state.queue.target.script_type(),
        "priority": state.queue.priority.to_string().parse::<u8>().ok(),
        "depth": state.depth,
        "oldest_wait_s": state.oldest_wait.map(|wait| wait.as_secs_f64()),
        "type_throughput_per_s": state.type_throughput_per_s,
        "paused": state.paused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_queue_shows_depth_and_wait_and_whether_it_is_paused() {
        let mut state = QueueState {
            queue: "type:osis:prio:0".parse().expect("legal"),
            depth: 3,
            oldest_wait: Some(Duration::from_millis(1500)),
            type_throughput_per_s: None,
            paused: false,
        };
        assert_eq!(
            table(std::slice::from_ref(&state)),
            "QUEUE             DEPTH  OLDEST WAIT  JOBS/S  STATE\n\
             type:osis:prio:0      3        1.50s       -  open\n"
        );
        assert_eq!(document(&state)["oldest_wait_s"], 1.5);
        state.paused = true;
        assert!(table(std::slice::from_ref(&state)).contains("paused"));
        assert_eq!(document(&state)["paused"], true);
    }
}
