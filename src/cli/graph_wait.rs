//! `hero graph wait`: waits for the end of a graph or batch.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::api::{ApiMethods, CALL_WAIT};
use super::fleet_table::FleetTable;
use super::job_notes::{blocker, report_blocker};
use super::progress::Bar;
use super::{Global, output};
use crate::client::GraphDocument;
use crate::config::{format_duration, parse_duration};
use crate::daemon::Interrupts;
use crate::error::{Error, Exit};
use crate::proto::graph::{GraphJobOutcome, GraphState};
use crate::rpc::results::ShownGraph;

/// The time between two looks at the progress of a graph.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// The longest outage during a wait without a bound, as of a wait for a job.
const OUTAGE_MAX: Duration = Duration::from_secs(30);

/// Wait until all jobs of a graph or batch have ended
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero graph wait --wait 1h 7f9c2ba4\n\n\
                        Exit code 1: not all jobs finished. At a terminal, the progress is on standard \
                        error.")]
pub(super) struct GraphWait {
    /// The graph or batch: its id, or the unique beginning of it
    pub(super) id: String,
    /// Give up after this time; the jobs go on
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) wait: Option<Duration>,
}

/// Returns the id of the job of a callback, with its state unless it has expired.
pub(super) fn with_state(name: &str, id: &str, graph: &GraphDocument) -> String {
    let job = graph.callback_jobs.iter().find(|job| job.callback == name);
    format!("{id}{}", job.map(|job| format!(" {}", job.status)).unwrap_or_default())
}

/// Reports why the first job of a graph that has not ended does not start. Without an answer it reports nothing.
async fn report_first_blocker(methods: &ApiMethods, id: &str) {
    let params = json!({ "id": id, "outcome": GraphJobOutcome::Waiting, "limit": 20 });
    let shown = methods.typed::<ShownGraph>("graph.get", params).await;
    for job in shown.map(|(_, shown)| shown.jobs).unwrap_or_default() {
        if let Some(reason) = blocker(methods, &job.id).await {
            return report_blocker(&job.id, &reason);
        }
    }
}

impl GraphWait {
    /// Waits for the end of a graph; a table shows its jobs meanwhile. Returns the exit code if a signal ends the wait.
    pub(super) async fn awaited(
        &self,
        methods: &ApiMethods,
        table: Option<FleetTable>,
    ) -> Result<Result<(Value, GraphDocument), ExitCode>, Error> {
        let mut interrupts = Interrupts::listen()?;
        tokio::select! {
            ended = self.ended(methods, table) => ended.map(Ok),
            signal = interrupts.next() => {
                let id = &self.id;
                output::note(&format!(
                    "hero: stopped waiting; graph {id} goes on: hero graph wait {id}, \
                     hero graph stop {id}"
                ));
                Ok(Err(ExitCode::from(output::SIGNALLED + signal)))
            }
        }
    }

    pub(super) async fn run(
        &self,
        methods: &ApiMethods,
        global: &Global,
    ) -> Result<ExitCode, Error> {
        let (document, graph) = match self.awaited(methods, None).await? {
            Ok(ended) => ended,
            Err(interrupted) => return Ok(interrupted),
        };
        global.print(|| document, || format!("{}\n", graph.counts()))?;
        for (name, id) in &graph.callbacks {
            let job = with_state(name, id, &graph);
            output::note(&format!("hero: {name}: job {job}: hero job wait {id}"));
        }
        if graph.state == GraphState::Finished {
            return Ok(ExitCode::SUCCESS);
        }
        let (kind, id, state) = (graph.kind, &graph.id, graph.state);
        Err(Error::new(Exit::JobError, format!("{kind} {id} {state}: hero graph show {id}")))
    }

    /// Waits for the end, with its progress at a terminal: the table, or a bar.
    async fn ended(
        &self,
        methods: &ApiMethods,
        mut table: Option<FleetTable>,
    ) -> Result<(Value, GraphDocument), Error> {
        let (began, mut bar, mut is_known) = (Instant::now(), Bar::new(), false);
        let (mut noted, mut away) = (None, None);
        let step = if io::stderr().is_terminal() { PROGRESS_EVERY } else { CALL_WAIT };
        loop {
            // The first call learns at once whether there is such a graph.
            let step = if is_known { step } else { Duration::ZERO };
            let left = self.wait.map_or(step, |most| most.saturating_sub(began.elapsed()));
            let params = json!({ "id": self.id, "wait": left.min(step).as_secs_f64() });
            let waited = methods.typed::<GraphDocument>("graph.wait", params).await;
            let is_over = self.wait.is_some_and(|most| began.elapsed() >= most);
            // An outage ends no wait that has a bound; another one only once it has lasted for long.
            let goes_on = match self.wait {
                Some(_) => !is_over,
                None => is_known && away.is_none_or(|since: Instant| since.elapsed() < OUTAGE_MAX),
            };
            let (document, graph) = match waited {
                Err(error) if error.exit == Exit::Unavailable && goes_on => {
                    if away.is_none() {
                        output::note(&format!("hero: {}; waiting for it", error.message));
                    }
                    away.get_or_insert_with(Instant::now);
                    tokio::time::sleep(PROGRESS_EVERY).await;
                    continue;
                }
                waited => waited?,
            };
            (is_known, away) = (true, None);
            if graph.state != GraphState::Running {
                return Ok((document, graph));
            }
            let pause = graph.pause(str::to_owned);
            if let Some(pause) = pause.as_ref().filter(|_| pause != noted) {
                bar.clear();
                table.iter_mut().for_each(FleetTable::clear);
                output::note(&format!("hero: {} {} pauses {pause}", graph.kind, graph.id));
            }
            noted = pause;
            let counts = graph.counts();
            if is_over {
                drop((bar, table));
                let (kind, id) = (&graph.kind, &graph.id);
                report_first_blocker(methods, id).await;
                let after = self.wait.map(format_duration).unwrap_or_default();
                let message = format!(
                    "gave up waiting for {kind} {id} after {after}, {counts}: hero graph wait {id}"
                );
                return Err(Error::new(Exit::GaveUp, message));
            }
            if let Some(table) = &mut table {
                table.show(methods, &graph.id).await;
                continue;
            }
            #[expect(clippy::cast_precision_loss, reason = "a share, for a person")]
            let share = (counts.jobs - counts.waiting()) as f64 / counts.jobs.max(1) as f64;
            bar.tell(share, &counts.to_string());
        }
    }
}
