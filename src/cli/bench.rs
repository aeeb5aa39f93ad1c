//! `hero bench`: the speed of Hero on this machine, beside plain commands of the same Redis.

mod load;
mod measure;
mod report;
mod scripts;

use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::input::parsed;
use super::stage::{Stage, StageFolder, first_actor, unavailable};
use super::{Global, output};
use crate::client::Client;
use crate::config::{ActorConfig, Config};
use crate::daemon::Interrupts;
use crate::error::Error;

/// Measure Hero on a private Redis, beside plain commands of that Redis
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example:\n  hero bench --jobs 50000 --runs 5\n\n\
        The jobs are scripts of type osis that return a number, then short ones of Python and \
        bash, beside a bare start of the same interpreter. One actor process runs them, on the \
        same machine as Redis, which keeps an append-only file (everysec).\n\n\
        For a harness of your own, on the configured Redis; each prints one line of JSON:\n  \
        hero bench enqueue N  submit N jobs one by one:         {\"n\": N, \"seconds\": S}\n  \
        hero bench bulk N     submit N jobs, a thousand a call: {\"n\": N, \"seconds\": S}\n  \
        hero bench latency N  run and wait, after 20 warm-ups:  {\"n\": N, \"ms\": [...]}\n\
        They take --type TYPE and --script TEXT, where {i} stands for the number of the job."
)]
pub(super) struct Bench {
    #[command(subcommand)]
    harness: Option<Harness>,
    /// Jobs to enqueue and drain in a run
    #[arg(long, default_value_t = 20_000, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    jobs: u32,
    /// Runs; the table shows their median
    #[arg(long, default_value_t = 3, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Jobs that the actor runs at once
    #[arg(long, default_value_t = 16, value_name = "NUMBER",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    tasks: u16,
}

/// Single measures on the configured Redis.
#[derive(Debug, Subcommand)]
enum Harness {
    /// Submit jobs one by one
    #[command(hide = true, after_help = "Example:\n  hero bench enqueue 20000")]
    Enqueue(LoadArgs),
    /// Submit jobs, a thousand a call
    #[command(hide = true, after_help = "Example:\n  hero bench bulk 20000")]
    Bulk(LoadArgs),
    /// Run jobs one after the other and wait for each
    #[command(hide = true, after_help = "Example:\n  hero bench latency 500")]
    Latency(LoadArgs),
}

#[derive(Debug, Args)]
struct LoadArgs {
    /// The number of jobs
    n: usize,
    #[command(flatten)]
    kind: load::JobKind,
}

impl Bench {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        if let Some(harness) = self.harness {
            harness.run(&global.client()?).await?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut interrupts = Interrupts::listen()?;
        let mut runs: Vec<Figures> = Vec::new();
        for number in 1..=self.runs {
            output::note(&format!("run {number} of {}", self.runs));
            match Box::pin(self.run_once(&mut interrupts)).await? {
                Ok(figures) => runs.push(figures),
                Err(code) => return Ok(code),
            }
        }
        let lines = report::lines(&runs);
        let settings = json!({
            "jobs": self.jobs, "runs": self.runs, "tasks": self.tasks,
            "version": env!("CARGO_PKG_VERSION"),
        });
        global.print(|| report::document(&lines, &settings), || report::table(&lines))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Measures on a private stage and takes it down. An interrupt gives the exit code instead of
    /// figures.
    async fn run_once(
        &self,
        interrupts: &mut Interrupts,
    ) -> Result<Result<Figures, ExitCode>, Error> {
        let actor = ActorConfig { tasks: self.tasks.into(), ..ActorConfig::default() };
        let mut config = Config { actor, ..Config::default() };
        scripts::add_open_type(&mut config)?;
        let mut stage = Stage::open(StageFolder::temporary()?, config, false, false).await?;
        let measured = tokio::select! {
            measured = measure::measure(&mut stage, self.jobs as usize) => measured.map(Ok),
            signal = interrupts.next() => Ok(Err(ExitCode::from(128 + signal))),
        };
        let down = stage.take_down(interrupts).await;
        let measured = measured?;
        down.map(|()| measured)
    }
}

impl Harness {
    async fn run(self, client: &Client) -> Result<(), Error> {
        client.ping().await?;
        let (n, took) = match self {
            Self::Enqueue(LoadArgs { n, kind }) => (n, load::enqueue(client, &kind, n).await?),
            Self::Bulk(LoadArgs { n, kind }) => (n, load::bulk(client, &kind, n).await?),
            Self::Latency(LoadArgs { n, kind }) => {
                let times = load::latency(client, &kind, n).await?;
                let ms: Vec<f64> = times.into_iter().map(millis).collect();
                return output::json(&json!({ "n": n, "ms": ms }));
            }
        };
        output::json(&json!({ "n": n, "seconds": took.as_secs_f64() }))
    }
}

/// Starts the first actor of a type, and waits until its presence shows. Returns its process.
async fn start(stage: &mut Stage, script_type: &str) -> Result<i32, Error> {
    let actor = first_actor(parsed(script_type)?)?;
    let pid = stage.start_unit(&actor.unit(), &[("HERO_LOG", "warn")])?;
    stage.until_present(&[actor]).await?;
    Ok(pid)
}

/// The figures of one run, by their names in the report.
type Figures = BTreeMap<&'static str, f64>;

/// Returns the time below which the share `q` of all times lies; zero for no times.
pub fn quantile(times: &mut [Duration], q: f64) -> Duration {
    times.sort_unstable();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the index is within the few thousand times"
    )]
    let index = (times.len() as f64 * q) as usize;
    times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

fn resident_bytes(pid: i32) -> Result<u64, Error> {
    let file = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&file)
        .map_err(|error| unavailable(format!("cannot read {file}: {error}")))?;
    let kib = resident_kib(&status);
    kib.map(|kib| kib * 1024).ok_or_else(|| unavailable(format!("{file} has no VmRSS")))
}

fn resident_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_sorted_times() {
        let mut times: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(quantile(&mut times, 0.5), Duration::from_millis(51));
        assert_eq!(quantile(&mut times, 0.99), Duration::from_millis(100));
        assert_eq!(quantile(&mut times, 1.0), Duration::from_millis(100));
        assert_eq!(quantile(&mut [], 0.5), Duration::ZERO);
    }

    #[test]
    fn resident_memory_is_read_from_proc() {
        let pid = i32::try_from(std::process::id()).expect("a pid");
        assert!(resident_bytes(pid).expect("readable") > 100_000);
        assert_eq!(resident_kib("VmPeak: 9 kB\nVmRSS:\t   1234 kB\n"), Some(1234));
    }
}
