//! `hero queue drain`: pauses queues and waits for the end of their running jobs.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use super::QueueChoice;
use crate::cli::api::ApiMethods;
use crate::cli::time::brief;
use crate::cli::{Global, output};
use crate::config::parse_duration;
use crate::error::{Error, Exit};
use crate::proto::text::counted;
use crate::rpc::results::Drained;

const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Pause queues, and wait until their running jobs have ended: before a deployment
///
/// The queues stay paused, and jobs may be submitted to them, until `hero queue resume`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero queue drain --all --wait 10m\n  \
                        hero queue drain type:python\n  hero queue resume --all\n\n\
                        Exit code 75: jobs still ran after the time of --wait.")]
pub(in crate::cli) struct Drain {
    #[command(flatten)]
    which: QueueChoice,
    /// Give up after this time; the queues stay paused, and the jobs go on
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
}

impl Drain {
    pub(super) async fn run(self, methods: &ApiMethods, global: &Global) -> Result<(), Error> {
        let (began, mut told) = (Instant::now(), None);
        let mut changed = None;
        loop {
            // A queue that is resumed meanwhile is paused again.
            let (_, Drained { paused, running }) =
                methods.typed("queue.drain", self.which.params()?).await?;
            let changed = changed.get_or_insert(paused);
            if told.is_none() && !global.json {
                self.which.print(["paused", "was paused already"], changed)?;
            }
            if running == 0 {
                global.print(
                    || json!({ "paused": changed, "running": 0 }),
                    || "drained: no job of these queues runs\n".to_owned(),
                )?;
                global.hint(&format!("afterwards: {}", self.which.resume()));
                return Ok(());
            }
            let jobs = counted(running, "job still runs", "jobs still run");
            if let Some(patience) = self.wait.filter(|patience| began.elapsed() >= *patience) {
                let message = format!(
                    "gave up waiting after {}: {jobs}: hero job list --status started; the queues \
                     stay paused: {}",
                    brief(patience),
                    self.which.resume()
                );
                return Err(Error::new(Exit::GaveUp, message));
            }
            if told != Some(running) {
                output::note(&format!("hero: {jobs}"));
                told = Some(running);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
