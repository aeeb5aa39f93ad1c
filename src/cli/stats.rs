//! `hero stats`: rates, errors and times of jobs, by script type.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::table::Table;
use super::time::brief;
use super::{Global, output};
use crate::client::Client;
use crate::config::parse_duration;
use crate::error::Error;
use crate::proto::target::ScriptType;
use crate::proto::times::{TimeHistogram, Times};

/// Show how many jobs came and ended, how many failed, and how long they waited and ran
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero stats\n  hero stats --for 10s\n\n\
                  Without --for, everything that was counted since the first job of each type. With it, \
                  the command waits so long and shows what happened meanwhile, per second. P95: 95 of \
                  100 attempts were shorter; it is estimated from a histogram.")]
pub(super) struct Stats {
    /// Wait so long, and show what happens meanwhile
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    period: Option<Duration>,
}

/// The counters of a type over a time.
struct TypeStats {
    script_type: ScriptType,
    submitted: u64,
    finished: u64,
    failed: u64,
    wait: Times,
    run: Times,
}

type Counters = BTreeMap<String, u64>;

impl Stats {
    pub(super) async fn run(&self, global: &Global) -> Result<ExitCode, Error> {
        let client = global.client()?;
        let (stats, took) = match self.period {
            None => (read(&client).await?, None),
            Some(period) => {
                let (before, began) = (read(&client).await?, Instant::now());
                tokio::time::sleep(period).await;
                let after = read(&client).await?;
                (grown(after, &before), Some(began.elapsed()))
            }
        };
        let stats: Vec<TypeStats> = stats.into_iter().map(TypeStats::of).collect();
        output::print(global.json, || document(&stats, took), || table(&stats, took))?;
        Ok(ExitCode::SUCCESS)
    }
}

async fn read(client: &Client) -> Result<Vec<(ScriptType, Counters)>, Error> {
    let types: Vec<ScriptType> =
        client.list_types().await?.into_iter().map(|of| of.script_type).collect();
    let counters = client.counters_of(&types).await?;
    Ok(types.into_iter().zip(counters).collect())
}

/// Returns by how much the counters of each type have grown.
fn grown(
    after: Vec<(ScriptType, Counters)>,
    before: &[(ScriptType, Counters)],
) -> Vec<(ScriptType, Counters)> {
    let none = Counters::new();
    after
        .into_iter()
        .map(|(script_type, mut counters)| {
            let of_type = before.iter().find(|(of, _)| *of == script_type);
            let before = of_type.map_or(&none, |(_, counters)| counters);
            for (name, number) in &mut counters {
                *number = number.saturating_sub(before.get(name).copied().unwrap_or_default());
            }
            (script_type, counters)
        })
        .collect()
}

impl TypeStats {
    fn of((script_type, counters): (ScriptType, Counters)) -> Self {
        let counter = |name: &str| counters.get(name).copied().unwrap_or_default();
        Self {
            script_type,
            submitted: counter("submitted"),
            finished: counter("finished"),
            failed: counter("failed"),
            wait: TimeHistogram::Wait.read(counter),
            run: TimeHistogram::Run.read(counter),
        }
    }

    /// The share of ended jobs that failed, in per cent.
    fn failed_percent(&self) -> Option<f64> {
        let ended = self.finished + self.failed;
        (ended > 0).then(|| 100.0 * float(self.failed) / float(ended))
    }
}

fn document(stats: &[TypeStats], took: Option<Duration>) -> Value {
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    let times = |times: &Times| {
        json!({
            "number": times.number,
            "mean_s": seconds(times.mean()),
            "p95_s": seconds(times.quantile(0.95)),
        })
    };
    let types: Vec<Value> = stats
        .iter()
        .map(|of| {
            json!({
                "script_type": of.script_type,
                "submitted": of.submitted,
                "finished": of.finished,
                "failed": of.failed,
                "failed_percent": of.failed_percent(),
                "wait": times(&of.wait),
                "run": times(&of.run),
            })
        })
        .collect();
    json!({ "seconds": seconds(took), "types": types })
}

fn table(stats: &[TypeStats], took: Option<Duration>) -> String {
    let ends = match took {
        Some(_) => [">SUBMITTED/S", ">FINISHED/S", ">FAILED/S"],
        None => [">SUBMITTED", ">FINISHED", ">FAILED"],
    };
    let [submitted, finished, failed] = ends;
    let mut table = Table::new(&[
        "TYPE",
        submitted,
        finished,
        failed,
        ">FAILED%",
        ">WAIT",
        ">WAIT P95",
        ">RUN",
        ">RUN P95",
    ]);
    let number = |number: u64| match took {
        Some(took) => format!("{:.1}", float(number) / took.as_secs_f64()),
        None => number.to_string(),
    };
    let time = |time: Option<Duration>| time.map_or_else(|| "-".to_owned(), brief);
    for of in stats {
        table.row([
            of.script_type.to_string(),
            number(of.submitted),
            number(of.finished),
            number(of.failed),
            of.failed_percent().map_or_else(|| "-".to_owned(), |share| format!("{share:.1}")),
            time(of.wait.mean()),
            time(of.wait.quantile(0.95)),
            time(of.run.mean()),
            time(of.run.quantile(0.95)),
        ]);
    }
    table.render()
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn osis(counters: &[(&str, u64)]) -> (ScriptType, Counters) {
        let counters = counters.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        ("osis".parse().expect("legal"), counters)
    }

    #[test]
    fn all_that_was_counted_is_shown_by_type() {
        let counters = [
            ("submitted", 5),
            ("finished", 3),
            ("failed", 1),
            ("run_le_0.1", 4),
            ("run_us", 200_000),
        ];
        let shown = table(&[TypeStats::of(osis(&counters))], None);
        let cells: Vec<&str> = shown.lines().nth(1).expect("a row").split_whitespace().collect();
        assert_eq!(cells, ["osis", "5", "3", "1", "25.0", "-", "-", "50ms", "96ms"]);
    }

    #[test]
    fn what_happened_in_a_time_is_shown_per_second() {
        let (before, after) = ([("submitted", 5)], [("submitted", 25), ("finished", 10)]);
        let types = grown(vec![osis(&after)], &[osis(&before)]);
        let stats: Vec<TypeStats> = types.into_iter().map(TypeStats::of).collect();
        let shown = table(&stats, Some(Duration::from_secs(4)));
        assert!(shown.starts_with("TYPE  SUBMITTED/S"), "{shown}");
        let cells: Vec<&str> = shown.lines().nth(1).expect("a row").split_whitespace().collect();
        assert_eq!(cells[..5], ["osis", "5.0", "2.5", "0.0", "0.0"]);
    }
}
