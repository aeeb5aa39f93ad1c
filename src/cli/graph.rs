//! `hero graph …`: lists, shows, awaits, retries, changes, continues, stops and deletes graphs and batches.

use std::fmt::Write;
use std::process::ExitCode;

use clap::{ArgGroup, Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::answer::NoResults;
use super::api::ApiMethods;
use super::correction::GraphCorrection;
use super::graph_wait::{GraphWait, with_state};
use super::input::parsed;
use super::table::{TextTable, facts, first_line, shortened};
use super::time::{age_of_text, between, brief, local_second_text, local_zone};
use super::window_options::WindowOptions;
use super::{Global, output};
use crate::client::{GraphChange, GraphDocument, GraphRetry, JobOfGraphDocument};
use crate::error::{Error, Exit};
use crate::proto::error_kind::failed_prerequisite;
use crate::proto::graph::{GraphJobOutcome, GraphState};
use crate::proto::job::JobId;
use crate::proto::text::counted;
use crate::rpc::results::{ListedGraphs, ShownGraph};
use crate::view::limit_title;

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
    /// Change how many jobs of a graph run at once, how many failures stop the others, and after how many jobs the others
    /// pause, also while it runs
    #[command(group = ArgGroup::new("Window").args(WindowOptions::IDS).required(true).multiple(true))]
    #[command(after_help = "Examples:\n  hero graph edit 7f9c2ba4 --at-a-time 8\n  \
                            hero graph edit 7f9c2ba4 --at-a-time 0 --stop-after 2\n  \
                            hero graph edit 7f9c2ba4 --pause-after '5 tell'\n\n\
                            No running job is stopped: with a lower number, others start once enough have ended. Failures of \
                            before count, jobs that started before do not.")]
    Edit {
        /// The graph or batch: its id, or the unique beginning of it
        id: String,
        #[command(flatten)]
        window: WindowOptions,
    },
    /// Tell a graph that pauses after its first jobs to go on
    #[command(after_help = "Example:\n  hero graph tell 7f9c2ba4 go")]
    Tell {
        /// The graph or batch: its id, or the unique beginning of it
        id: String,
        /// The order: `go` ends the pause, also one that is to come
        #[arg(value_parser = ["go"])]
        order: String,
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
                        hero graph show --json --limit 1000 7f9c2ba4 | jq -r '.jobs[].id' |\n      xargs hero job wait\n\n\
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

impl GraphCommand {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let methods = global.methods()?;
        match self {
            Self::List(list) => list.run(&methods, global).await?,
            Self::Show(show) => show.run(&methods, global).await?,
            Self::Wait(wait) => return wait.run(&methods, global).await,
            Self::Retry { id, correction } => {
                let GraphRetry { from, changes } = correction.retry(global.config()?)?;
                let params = json!({ "id": id, "from": from, "changes": changes });
                return changed(methods.typed("graph.retry", params).await?, "retried", global);
            }
            Self::Edit { id, window } => {
                let mut params = json!({ "id": id });
                WindowOptions::add_to(&mut params, window.window());
                let (document, graph) =
                    methods.typed::<GraphDocument>("graph.edit", params).await?;
                let window = graph.window().unwrap_or_default();
                let readable = || format!("{} {}: {window}\n", graph.kind, graph.id);
                global.print(|| document, readable)?;
            }
            Self::Tell { id, order } => {
                let params = json!({ "id": id, "order": order });
                let (document, graph) =
                    methods.typed::<GraphDocument>("graph.tell", params).await?;
                let state = match graph.state {
                    GraphState::Running => "goes on".to_owned(),
                    ended => format!("has ended: {ended}"),
                };
                global.print(|| document, || format!("{} {} {state}\n", graph.kind, graph.id))?;
            }
            Self::Stop(OneGraph { id }) => {
                let stopped = methods.typed("graph.stop", json!({ "id": id })).await?;
                return changed(stopped, "stopped", global);
            }
            Self::Delete(OneGraph { id }) => {
                let deleted = methods.typed("graph.delete", json!({ "id": id })).await?;
                return changed(deleted, "deleted", global);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints the changes, and the jobs that stay as they are.
fn changed(
    (document, change): (Value, GraphChange),
    done: &str,
    global: &Global,
) -> Result<ExitCode, Error> {
    let mut text = format!("{} {done}", counted(change.done, "job", "jobs"));
    if change.told > 0 {
        let _ = write!(text, ", {} told to stop", change.told);
    }
    global.print(|| document, || text + "\n")?;
    output::notes(change.problems.iter().map(|of| &of.problem));
    let named = change.problems.len() as u64;
    if change.left > named {
        output::note(&format!("hero: … and {} more", counted(change.left - named, "job", "jobs")));
    }
    Ok(if change.left == 0 { Exit::Ok } else { Exit::Data }.into())
}

impl GraphList {
    async fn run(&self, methods: &ApiMethods, global: &Global) -> Result<(), Error> {
        let GraphPageOptions { limit, cursor } = &self.page;
        let params = json!({ "limit": limit, "cursor": cursor });
        let (document, ListedGraphs { graphs, next }) = methods.typed("graph.list", params).await?;
        let none = NoResults::new("graph or batch").after(cursor.as_ref());
        global.list(|| document, || list(&graphs, Timestamp::now()), none)?;
        global.more(next.map(|next| format!("hero graph list --limit {limit} --cursor {next}")));
        Ok(())
    }
}

fn list(graphs: &[GraphDocument], now: Timestamp) -> TextTable<'_, GraphDocument> {
    TextTable::of(graphs)
        .column("#ID", &|of| of.id.clone())
        .column("!NAME", &|of| shortened(of.name.as_deref().unwrap_or_default()))
        .column("KIND", &|of| of.kind.to_string())
        .column("*STATE", &|of| of.state.as_str().to_owned())
        .column("PROGRESS", &|of| of.counts().to_string())
        .column(">AGE", &|of| age_of_text(&of.created_at, now))
        .column("?>TOOK", &|of| took(of).unwrap_or_default())
}

/// Returns the time from the submission to the end of the last job.
fn took(graph: &GraphDocument) -> Option<String> {
    let ended = graph.ended_at.as_ref()?.parse().ok()?;
    Some(brief(between(graph.created_at.parse().ok()?, ended)))
}

impl GraphShow {
    async fn run(&self, methods: &ApiMethods, global: &Global) -> Result<(), Error> {
        let outcome: Option<GraphJobOutcome> = self.outcome.as_deref().map(parsed).transpose()?;
        let GraphPageOptions { limit, cursor } = &self.page;
        let params = json!({ "id": self.id, "outcome": outcome, "limit": limit, "cursor": cursor });
        let (document, shown) = methods.typed("graph.get", params).await?;
        let ShownGraph { graph, jobs, next, waits_for } = shown;
        let rows = || rows(&jobs).show(global.look());
        global.print(|| document, || format!("{}\n{}", head(&graph, &waits_for), rows()))?;
        let none = NoResults::new("job of it").by("is", outcome).after(cursor.as_ref());
        none.report(global, jobs.is_empty());
        let outcome = outcome.map(|of| format!(" --outcome {of}")).unwrap_or_default();
        let page = format!("hero graph show {}{outcome} --limit {limit}", graph.id);
        global.more(next.map(|next| format!("{page} --cursor {next}")));
        Ok(())
    }
}

fn head(graph: &GraphDocument, waits_for: &[String]) -> String {
    let zone = local_zone();
    let time = |at: &str| local_second_text(at, &zone);
    let mut lines = vec![
        ("name", graph.name.clone().unwrap_or_default()),
        ("state", graph.state.to_string()),
        ("progress", graph.counts().to_string()),
        ("window", graph.window().map(|window| window.to_string()).unwrap_or_default()),
        ("stopped", graph.stopped.clone().unwrap_or_default()),
        ("paused", graph.pause(time).unwrap_or_default()),
    ];
    lines.extend(waits_for.iter().map(|reason| ("waits for", reason.clone())));
    lines.extend([
        ("caller", graph.caller_id.clone()),
        ("created", time(&graph.created_at)),
        ("ended", graph.ended_at.as_deref().map(time).unwrap_or_default()),
        ("took", took(graph).unwrap_or_default()),
    ]);
    let callbacks = graph.callbacks.iter();
    lines.extend(callbacks.map(|(name, id)| (name.as_str(), with_state(name, id, graph))));
    format!("{} {}\n{}", graph.kind, graph.id, facts(10, lines))
}

fn rows(jobs: &[JobOfGraphDocument]) -> TextTable<'_, JobOfGraphDocument> {
    let name_of = |id: &JobId| {
        let of = jobs.iter().find(|of| of.id == id.as_str())?;
        of.name.as_ref().map(|name| format!("prerequisite failed: {name}"))
    };
    let state = |of: &JobOfGraphDocument| match (of.outcome, of.status) {
        (GraphJobOutcome::Cancelled | GraphJobOutcome::Failed, _) | (_, None) => {
            of.outcome.as_str().to_owned()
        }
        (_, Some(status)) => status.as_str().to_owned(),
    };
    let error = |of: &JobOfGraphDocument| {
        let error = of.error.clone().unwrap_or_default();
        let named = failed_prerequisite(&error).as_ref().and_then(name_of);
        first_line(&named.unwrap_or(error))
    };
    TextTable::of(jobs)
        .column("#ID", &|of| of.id.clone())
        .column("~NAME", &|of| shortened(of.name.as_deref().unwrap_or_default()))
        .column("*STATUS", &state)
        .column("?HELD BY", &|of| of.held_by.as_deref().map(limit_title).unwrap_or_default())
        .column("!ERROR", &error)
}
