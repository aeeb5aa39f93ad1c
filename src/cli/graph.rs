//! `hero graph …`: lists, shows, awaits, retries, stops and deletes graphs and batches.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;

use super::correction::GraphCorrection;
use super::exec::{SIGNALLED, report_blocker};
use super::input::parsed;
use super::no_results::NoResults;
use super::progress::Bar;
use super::table::{TextTable, first_line, shortened};
use super::time::{age, between, brief, local_text, local_zone};
use super::{Global, output};
use crate::client::{
    Client, ClientError, GraphChange, GraphDocument, JobOfGraph, JobOfGraphDocument,
};
use crate::config::parse_duration;
use crate::daemon::Interrupts;
use crate::error::{Error, Exit};
use crate::proto::error_kind::failed_prerequisite;
use crate::proto::graph::{GraphInfo, GraphJobOutcome, GraphKind, GraphState};
use crate::proto::job::JobId;
use crate::proto::text::{counted, escape};
use crate::store::GraphPage;

/// List graphs and batches, wait for them, retry, stop or delete them
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  hero graph list\n  hero graph show ID\n  hero graph wait ID")]
pub(super) enum GraphCommand {
    List(GraphList),
    Show(GraphShow),
    Wait(GraphWait),
    /// Run those jobs of a graph again that failed or were stopped
    #[command(after_help = "Examples:\n  hero graph retry 7f9c2ba4\n  \
                            hero graph retry 7f9c2ba4 --file transform=tr.py --set transform.timeout=5m\n  \
                            hero graph retry 7f9c2ba4 --from transform\n\n\
                            Without --from, jobs that finished stay as they are. Each other job waits again for its \
                            prerequisites.")]
    Retry {
        /// The graph or batch: its id, or the unique beginning of it
        id: String,
        #[command(flatten)]
        correction: GraphCorrection,
    },
    /// Stop all jobs of a graph that have not ended
    #[command(after_help = "Example:\n  hero graph stop 7f9c2ba4")]
    Stop(OneGraph),
    /// Delete a graph with all its jobs, unless one of them runs
    #[command(after_help = "Example:\n  hero graph delete 7f9c2ba4")]
    Delete(OneGraph),
}

#[derive(Debug, Args)]
pub(super) struct OneGraph {
    /// The graph or batch: its id, or the unique beginning of it
    id: String,
}

/// The page of a list.
#[derive(Debug, Args)]
struct GraphPageOptions {
    /// The page size, up to 1000
    #[arg(long, default_value_t = 50, value_name = "NUMBER",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// The end of the previous page, as printed with it
    #[arg(long, value_name = "NUMBER")]
    cursor: Option<u64>,
}

/// List graphs and batches, the newest first
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero graph list --limit 20\n\n\
                        The command for the next page, if there is one, is on standard error.")]
pub(super) struct GraphList {
    #[command(flatten)]
    page: GraphPageOptions,
}

/// Show a graph or batch with its jobs: first those that failed, last those that finished
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero graph show 7f9c2ba4\n  \
                        hero graph show --outcome failed 7f9c2ba4\n  \
                        hero graph show --json --limit 1000 7f9c2ba4 | jq -r '.jobs[].id' | xargs hero job wait   # all outputs\n\n\
                        The command for the next page, if there is one, is on standard error.")]
pub(super) struct GraphShow {
    /// The graph or batch: its id, or the unique beginning of it
    id: String,
    /// Only jobs that are waiting, finished, failed or cancelled
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,
    #[command(flatten)]
    page: GraphPageOptions,
}

/// Wait until all jobs of a graph or batch have ended
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hero graph wait --wait 1h 7f9c2ba4\n\n\
                        Exit code 1: not all jobs finished. At a terminal, the progress is on standard \
                        error.")]
pub(super) struct GraphWait {
    /// The graph or batch: its id, or the unique beginning of it
    id: String,
    /// Give up after this time; the jobs go on
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
}

impl GraphCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let client = global.client()?;
        match self {
            Self::List(list) => list.run(&client, global).await?,
            Self::Show(show) => show.run(&client, global).await?,
            Self::Wait(wait) => return wait.run(&client, global).await,
            Self::Retry { id, correction } => {
                let id = client.graph_id(&id).await?;
                let how = correction.checked(&client, &id, global.config()?).await?;
                return told(&client.retry_graph(&id, &how).await?, "retried", global);
            }
            Self::Stop(OneGraph { id }) => {
                let change = client.stop_graph(&client.graph_id(&id).await?).await?;
                return told(&change, "stopped", global);
            }
            Self::Delete(OneGraph { id }) => {
                let change = client.delete_graph(&client.graph_id(&id).await?).await?;
                return told(&change, "deleted", global);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints the changes, and the jobs that stay as they are.
fn told(change: &GraphChange, done: &str, global: &Global) -> Result<ExitCode, Error> {
    let mut text = format!("{} {done}", counted(change.done, "job", "jobs"));
    if change.told > 0 {
        let _ = write!(text, ", {} told to stop", change.told);
    }
    global.print(|| json!(change), || text + "\n")?;
    for problem in &change.problems {
        output::note(&format!("hero: {}", problem.problem));
    }
    let named = change.problems.len() as u64;
    if change.left > named {
        output::note(&format!("hero: … and {} more", counted(change.left - named, "job", "jobs")));
    }
    Ok(if change.left == 0 { Exit::Ok } else { Exit::Data }.into())
}

impl GraphList {
    async fn run(&self, client: &Client, global: &Global) -> Result<(), Error> {
        let after = self.page.cursor;
        let GraphPage { items, next } = client.graphs(self.page.limit.into(), after).await?;
        let document = || {
            let graphs: Vec<GraphDocument> = items.iter().map(GraphDocument::from).collect();
            json!({ "graphs": graphs, "next": next })
        };
        global.list(
            document,
            || list(&items, Timestamp::now()),
            NoResults::new("graph or batch").after(after.as_ref()),
        )?;
        let limit = self.page.limit;
        global.more(next.map(|next| format!("hero graph list --limit {limit} --cursor {next}")));
        Ok(())
    }
}

fn list(graphs: &[GraphInfo], now: Timestamp) -> TextTable {
    let age = |of: &GraphInfo| of.created_at.parse().map(|at| age(at, now)).unwrap_or_default();
    TextTable::of(graphs)
        .column("#ID", &|of| of.id.to_string())
        .column("!NAME", &|of| shortened(of.name.as_deref().unwrap_or_default()))
        .column("KIND", &|of| kind(of).to_owned())
        .column("*STATE", &|of| of.counts.state().as_str().to_owned())
        .column("PROGRESS", &|of| of.counts.to_string())
        .column(">AGE", &age)
        .column("?>TOOK", &|of| took(of).unwrap_or_default())
        .table()
}

fn kind(graph: &GraphInfo) -> &'static str {
    match graph.kind {
        GraphKind::Graph => "graph",
        GraphKind::Batch => "batch",
    }
}

/// Returns the time from the submission to the end of the last job.
fn took(graph: &GraphInfo) -> Option<String> {
    let ended = graph.ended_at.as_ref()?.parse().ok()?;
    Some(brief(between(graph.created_at.parse().ok()?, ended)))
}

impl GraphShow {
    async fn run(&self, client: &Client, global: &Global) -> Result<(), Error> {
        let id = client.graph_id(&self.id).await?;
        let outcome: Option<GraphJobOutcome> = self.outcome.as_deref().map(parsed).transpose()?;
        let graph = client.graph(&id).await?;
        let limit = usize::from(self.page.limit);
        let after = self.page.cursor;
        let jobs = client.jobs_of_graph(&id, outcome, after, limit).await?;
        let next = jobs.last().filter(|_| jobs.len() == limit).map(|job| job.member.score);
        let document = client.graph_document(&graph).await?;
        if global.json {
            let jobs: Vec<JobOfGraphDocument> = jobs.iter().map(JobOfGraphDocument::from).collect();
            return output::json(&json!({ "graph": document, "jobs": jobs, "next": next }));
        }
        let (head, rows) = (head(&graph, &document), rows(&jobs).show(global.look()));
        output::text(&format!("{head}\n{rows}"))?;
        let none = NoResults::new("job of it").by("is", outcome).after(after.as_ref());
        none.report(global, jobs.is_empty());
        let outcome = outcome.map(|of| format!(" --outcome {of}")).unwrap_or_default();
        let page = format!("hero graph show {id}{outcome} --limit {limit}");
        global.more(next.map(|next| format!("{page} --cursor {next}")));
        Ok(())
    }
}

fn head(graph: &GraphInfo, document: &GraphDocument) -> String {
    let mut text = format!("{} {}\n", kind(graph), graph.id);
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "{name:10} {}", escape(value));
        }
    };
    line("name", graph.name.as_deref().unwrap_or_default());
    line("state", graph.counts.state().as_str());
    line("progress", &graph.counts.to_string());
    line("caller", &graph.caller);
    let zone = local_zone();
    line("created", &local_text(&graph.created_at, &zone));
    line("ended", &graph.ended_at.as_deref().map(|at| local_text(at, &zone)).unwrap_or_default());
    line("took", &took(graph).unwrap_or_default());
    for (name, id) in &document.callbacks {
        line(name, &with_state(name, id, document));
    }
    text
}

/// Returns the id of the job of a callback, with its state unless it has expired.
fn with_state(name: &str, id: &str, graph: &GraphDocument) -> String {
    let job = graph.callback_jobs.iter().find(|job| job.callback == name);
    format!("{id}{}", job.map(|job| format!(" {}", job.status)).unwrap_or_default())
}

fn rows(jobs: &[JobOfGraph]) -> TextTable {
    let name_of = |id: &JobId| {
        let of = jobs.iter().find(|of| of.member.id == *id)?.job.as_ref()?;
        of.fields.get("name").map(|name| format!("prerequisite failed: {name}"))
    };
    let field = |of: &JobOfGraph, name| {
        of.job.as_ref().and_then(|job| job.fields.get(name)).cloned().unwrap_or_default()
    };
    let state = |of: &JobOfGraph| match &of.job {
        Some(job) => job.state().to_owned(),
        // Deleted, or expired.
        None => of.member.outcome().as_str().to_owned(),
    };
    let error = |of: &JobOfGraph| {
        let error = field(of, "error");
        let named = failed_prerequisite(&error).as_ref().and_then(name_of);
        first_line(&named.unwrap_or(error))
    };
    TextTable::of(jobs)
        .column("#ID", &|of| of.member.id.to_string())
        .column("~NAME", &|of| shortened(&field(of, "name")))
        .column("*STATUS", &state)
        .column("!ERROR", &error)
        .table()
}

/// Reports why the first job of a graph that has not ended does not start. Without an answer it reports nothing.
async fn report_first_blocker(client: &Client, id: &JobId) {
    const JOBS: usize = 20;
    let waiting = Some(GraphJobOutcome::Waiting);
    for of in client.jobs_of_graph(id, waiting, None, JOBS).await.unwrap_or_default() {
        if let Ok(Some(blocker)) = client.blocker(&of.member.id).await {
            return report_blocker(&of.member.id, &blocker);
        }
    }
}

impl GraphWait {
    async fn run(&self, client: &Client, global: &Global) -> Result<ExitCode, Error> {
        let id = client.graph_id(&self.id).await?;
        let mut interrupts = Interrupts::listen()?;
        let mut bar = Bar::new();
        let ended = client.await_graph(&id, self.wait, |graph| {
            let counts = &graph.counts;
            #[expect(clippy::cast_precision_loss, reason = "a share, for a person")]
            let share = |part: u64| part as f64 / counts.jobs.max(1) as f64;
            bar.tell(share(counts.jobs - counts.waiting()), &counts.to_string());
        });
        let graph = tokio::select! {
            ended = ended => ended,
            signal = interrupts.next() => {
                output::note(&format!(
                    "hero: stopped waiting; graph {id} goes on: hero graph wait {id}, \
                     hero graph stop {id}"
                ));
                return Ok(ExitCode::from(SIGNALLED + signal));
            }
        };
        drop(bar);
        if matches!(graph, Err(ClientError::GaveUp { unknown: None, .. })) {
            report_first_blocker(client, &id).await;
        }
        let graph = graph.map_err(|error| match error {
            ClientError::GaveUp { .. } => {
                Error::new(error.exit(), format!("{error}: hero graph wait {id}"))
            }
            other => other.into(),
        })?;
        let readable = || format!("{}\n", graph.counts);
        let document = client.graph_document(&graph).await?;
        global.print(|| json!(document), readable)?;
        for (name, id) in &document.callbacks {
            let job = with_state(name, id, &document);
            output::note(&format!("hero: {name}: job {job}: hero job wait {id}"));
        }
        let state = graph.counts.state();
        if state == GraphState::Finished {
            return Ok(ExitCode::SUCCESS);
        }
        let (kind, state) = (kind(&graph), state.as_str());
        Err(Error::new(Exit::JobError, format!("{kind} {id} {state}: hero graph show {id}")))
    }
}
