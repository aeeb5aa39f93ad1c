//! `hero bench`: how fast Hero is here, beside what the same Redis can do at most.

mod bridge;
mod large;
mod load;
mod measure;
mod objects;
mod process;
mod report;
mod scripts;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use self::measure::{Figures, Plan};
use super::exec::parsed;
use super::stage::{Stage, unavailable};
use super::{Global, output};
use crate::client::Client;
use crate::config::{ActorConfig, Config, LegacyQueue, Migration, SupervisorConfig};
use crate::daemon::Interrupts;
use crate::error::Error;
use crate::proto::keys::Keys;
use crate::proto::target::Group;

/// Measure Hero on a private Redis, beside what that Redis can do at most
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example:\n  hero bench --jobs 50000 --runs 5\n\n\
        The jobs do nothing: scripts of type osis that are one number, then short ones of Python\n\
        and bash beside a bare start of the same interpreter. One actor process runs\n\
        them, on the same machine as Redis, which keeps an append-only file (everysec).\n\n\
        For a harness of your own, against the configured Redis, each printing one line of JSON:\n  \
        hero bench enqueue N   submit N jobs one by one:           {\"n\": N, \"seconds\": S}\n  \
        hero bench bulk N      submit N jobs, a thousand a call:   {\"n\": N, \"seconds\": S}\n  \
        hero bench latency N   run and wait, after 20 not counted: {\"n\": N, \"ms\": [...]}\n\
        They take --type TYPE and --script TEXT, in which {i} stands for the job's number."
)]
pub(super) struct Bench {
    #[command(subcommand)]
    harness: Option<Harness>,
    /// How many jobs to enqueue and drain
    #[arg(long, default_value_t = 20_000, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    jobs: u32,
    /// How often to measure; the table has the median of the runs
    #[arg(long, default_value_t = 3, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// How many jobs the actor runs at once
    #[arg(long, default_value_t = 16, value_name = "NUMBER",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    tasks: u16,
    /// Also measure a page of jobs and a claim among 1 000 and among 1 000 000 jobs, once, and
    /// what --objects measures
    #[arg(long)]
    large: bool,
    /// Also get and find objects of scripts among 1 000 and among 1 000 000 of them, once
    #[arg(long)]
    objects: bool,
    /// Also measure enqueueing and draining beside a legacy queue (supervisor.migration = "dual"),
    /// and what the bridge adds to a round trip of a client of rhailib
    #[arg(long)]
    dual: bool,
}

/// Single measures against the configured Redis.
#[derive(Debug, Subcommand)]
enum Harness {
    /// Submit jobs one by one
    #[command(hide = true, after_help = "Example:\n  hero bench enqueue 20000")]
    Enqueue(Load),
    /// Submit jobs, a thousand a call
    #[command(hide = true, after_help = "Example:\n  hero bench bulk 20000")]
    Bulk(Load),
    /// Run jobs one after the other and wait for each
    #[command(hide = true, after_help = "Example:\n  hero bench latency 500")]
    Latency(Load),
}

#[derive(Debug, Args)]
struct Load {
    /// How many jobs
    n: usize,
    #[command(flatten)]
    kind: load::Kind,
}

impl Bench {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        if let Some(harness) = self.harness {
            return harness.run(&global.client()?).await;
        }
        let mut interrupts = Interrupts::listen()
            .map_err(|error| unavailable(format!("cannot take signals: {error}")))?;
        let jobs = self.jobs as usize;
        let mut runs: Vec<Figures> = Vec::new();
        for number in 1..=self.runs {
            output::note(&format!("run {number} of {}", self.runs));
            let run = async |stage: &mut Stage| Plan { jobs }.measure(stage).await;
            match self.on_a_stage(&mut interrupts, SupervisorConfig::default(), run).await? {
                Ok(figures) => runs.push(figures),
                Err(code) => return Ok(code),
            }
            if self.dual {
                let run = async |stage: &mut Stage| Plan { jobs }.measure_dual(stage).await;
                match self.on_a_stage(&mut interrupts, dual()?, run).await? {
                    Ok(figures) => runs.push(figures),
                    Err(code) => return Ok(code),
                }
                let run = async |stage: &mut Stage| bridge::measure(stage).await;
                match self.on_a_stage(&mut interrupts, bridge::supervisor()?, run).await? {
                    Ok(figures) => runs.push(figures),
                    Err(code) => return Ok(code),
                }
            }
        }
        if self.large {
            output::note("among 1 000 and among 1 000 000 jobs");
            let run = async |stage: &mut Stage| large::measure(stage).await;
            match self.on_a_stage(&mut interrupts, SupervisorConfig::default(), run).await? {
                Ok(figures) => runs.push(figures),
                Err(code) => return Ok(code),
            }
        }
        if self.large || self.objects {
            output::note("objects of scripts, among 1 000 and among 1 000 000");
            let run = async |stage: &mut Stage| objects::measure(stage).await;
            match self.on_a_stage(&mut interrupts, SupervisorConfig::default(), run).await? {
                Ok(figures) => runs.push(figures),
                Err(code) => return Ok(code),
            }
        }
        let report = report::Report::new(&runs);
        let settings = serde_json::json!({
            "jobs": self.jobs, "runs": self.runs, "tasks": self.tasks,
            "version": env!("CARGO_PKG_VERSION"),
        });
        output::print(global.json, || report.document(&settings), || report.table())?;
        Ok(ExitCode::SUCCESS)
    }

    /// Measures on a stage of its own, which is taken down whatever happens. An interrupt gives
    /// the exit code instead of figures.
    async fn on_a_stage(
        &self,
        interrupts: &mut Interrupts,
        supervisor: SupervisorConfig,
        run: impl AsyncFnOnce(&mut Stage) -> Result<Figures, Error>,
    ) -> Result<Result<Figures, ExitCode>, Error> {
        let actor = ActorConfig { tasks: self.tasks.into(), ..ActorConfig::default() };
        let mut config = Config { supervisor, actor, ..Config::default() };
        scripts::add_open_type(&mut config)?;
        let mut stage = Stage::open(config, false).await?;
        let measured = tokio::select! {
            measured = run(&mut stage) => measured.map(Ok),
            signal = interrupts.next() => Ok(Err(ExitCode::from(128 + signal))),
        };
        let down = stage.take_down(interrupts).await;
        let measured = measured?;
        down.map(|()| measured)
    }
}

/// Beside one legacy queue, from which nobody else takes.
fn dual() -> Result<SupervisorConfig, Error> {
    let legacy = LegacyQueue {
        legacy: Keys::default().legacy_queue("bench"),
        script_type: parsed("osis")?,
        group: Group::default(),
        instance: None,
    };
    let legacy_queues = vec![legacy];
    Ok(SupervisorConfig {
        migration: Migration::Dual,
        legacy_queues,
        ..SupervisorConfig::default()
    })
}

impl Harness {
    async fn run(self, client: &Client) -> Result<ExitCode, Error> {
        client.ping().await?;
        let document = match self {
            Self::Enqueue(Load { n, kind }) => {
                let took = load::enqueue(client, &kind, n).await?;
                serde_json::json!({ "n": n, "seconds": took.as_secs_f64() })
            }
            Self::Bulk(Load { n, kind }) => {
                let took = load::bulk(client, &kind, n).await?;
                serde_json::json!({ "n": n, "seconds": took.as_secs_f64() })
            }
            Self::Latency(Load { n, kind }) => {
                let times = load::latency(client, &kind, n).await?;
                let ms: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1000.0).collect();
                serde_json::json!({ "n": n, "ms": ms })
            }
        };
        output::json(&document)?;
        Ok(ExitCode::SUCCESS)
    }
}
