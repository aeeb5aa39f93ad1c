//! `hero queue …`: the queues that hold jobs.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::table::Table;
use super::time::brief;
use super::{Global, output};
use crate::error::Error;
use crate::store::QueueState;

/// Look at queues
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  hero queue list")]
pub(super) enum Queue {
    /// List the queues: how many jobs wait, how long the first has waited, jobs ended per second
    #[command(after_help = "Example:\n  hero queue list --json\n\n\
                            JOBS/S is that of the whole script type, sampled by the supervisor.")]
    List,
}

impl Queue {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let Self::List = self;
        let queues = global.client()?.list_queues().await?;
        output::print(
            global.json,
            || json!({ "queues": queues.iter().map(document).collect::<Vec<Value>>() }),
            || table(&queues),
        )?;
        Ok(ExitCode::SUCCESS)
    }
}

fn table(queues: &[QueueState]) -> String {
    let mut table = Table::new(&["QUEUE", ">DEPTH", ">OLDEST WAIT", ">JOBS/S"]);
    for state in queues {
        table.row([
            state.queue.to_string(),
            state.depth.to_string(),
            state.oldest_wait.map(brief).unwrap_or_default(),
            state.type_throughput_per_s.map(|rate| format!("{rate:.1}")).unwrap_or_default(),
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_queue_shows_depth_and_wait() {
        let state = QueueState {
            queue: "type:osis:prio:0".parse().expect("legal"),
            depth: 3,
            oldest_wait: Some(Duration::from_millis(1500)),
            type_throughput_per_s: None,
        };
        assert_eq!(
            table(std::slice::from_ref(&state)),
            "QUEUE             DEPTH  OLDEST WAIT  JOBS/S\n\
             type:osis:prio:0      3        1.50s       -\n"
        );
        assert_eq!(document(&state)["oldest_wait_s"], 1.5);
    }
}
