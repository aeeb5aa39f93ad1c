//! `hero stats`: rates, errors and times of jobs, by script type.

use std::str::FromStr as _;
use std::time::{Duration, Instant};

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::answer::NoResults;
use super::input::parsed;
use super::table::TextTable;
use super::time::{PastZone, brief, local_second, local_zone};
use super::{Global, output};
use crate::client::{
    Counters, PlaceStatsDocument, StatsBy, StatsDocument, TimesDocument, TypeStatsDocument,
};
use crate::config::parse_duration;
use crate::error::Error;
use crate::proto::target::ScriptType;
use crate::proto::units::readable_size;

/// Show how many jobs came and ended, how many failed, and how long they waited and ran
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero stats\n  hero stats --for 10s\n  hero stats --by host --since 1h -t bash\n  hero stats --since 'yesterday 18:00' --until 08:00\n\n\
                  Without --for, everything that was counted since the first job of each type. With it, \
                  the command waits so long and shows what happened meanwhile, per second. With --since, what \
                  happened from then on or until --until, by samples that supervisors keep: of every minute of the \
                  last hour, of every hour of the last 30 days. The period begins and ends at a sample.\n\n\
                  SUBMITTED: with periodic jobs and jobs of graphs; a job that is retried on request counts \
                  once more, as it ends once more. CANCELLED: jobs that were stopped, or replaced by a later one with \
                  their unique key; they count neither in FAILED nor in FAILED%. WAIT and RUN: \
                  the means of all attempts. P95: 95 of 100 attempts or more took no longer. It is \
                  an upper bound from a histogram (≤), as the times are not kept, and may be above the longest of them.\n\n\
                  --by reads ended jobs that have not expired, and needs no samples: --since and --until are of their ends. WAIT is then \
                  from the submission of a job, or the time for which it was due, to the start of its last attempt; RUN the \
                  time from there to the record of its end, MEMORY the largest peak of a last attempt."
)]
pub(super) struct Stats {
    /// Wait so long, and show what happens meanwhile
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    period: Option<Duration>,
    /// Show what happened since then: 24h (ago), 09:00, yesterday 18:00, friday, 2026-12-24, or RFC 3339
    #[arg(long, value_name = "DURATION|TIME", conflicts_with = "period")]
    since: Option<String>,
    /// Show what happened until then
    #[arg(long, value_name = "DURATION|TIME", requires = "since")]
    until: Option<String>,
    /// Count ended jobs by the machine or actor that ran them, or by their name, the slowest first: the latest that can be
    /// read within two seconds
    #[arg(long, value_name = "host|actor|name", value_parser = StatsBy::from_str, conflicts_with = "period")]
    by: Option<StatsBy>,
    /// Only this script type
    #[arg(short = 't', long = "type", value_name = "TYPE", conflicts_with = "period")]
    script_type: Option<String>,
    #[command(flatten)]
    zone: PastZone,
}

impl Stats {
    pub(super) async fn run(&self, global: &Global) -> Result<(), Error> {
        if let Some(period) = self.period {
            let client = global.client()?;
            let (before, began) = (client.stats().all_counters().await?, Instant::now());
            tokio::time::sleep(period).await;
            let (stats, took) = (client.stats().all_counters().await?, began.elapsed());
            let stats = StatsDocument::of(&grown(stats, &before), Some(took));
            let none = NoResults::new("job was counted yet");
            return global.list(|| json!(stats), || by_type(&stats.types, Some(took)), none);
        }
        let methods = global.methods()?;
        let now = methods.now().await?;
        let since = self.zone.read_given("--since", self.since.as_ref(), now)?;
        let until = self.zone.read_given("--until", self.until.as_ref(), now)?;
        let text = |time: Option<Timestamp>| time.map(|time| time.to_string());
        let script_type = self.script_type.as_deref().map(parsed::<ScriptType>).transpose()?;
        let params = json!({
            "since": text(since), "until": text(until), "by": self.by, "script_type": script_type,
        });
        let (document, stats) = methods.typed::<StatsDocument>("stats.get", params).await?;
        if let Some(by) = self.by {
            let none = NoResults::new("ended job").by("of type", script_type.as_ref());
            global.list(|| document, || by_place(by, &stats.places), none)?;
            if stats.complete == Some(false) {
                let searched = stats.searched.unwrap_or_default();
                output::note(&format!(
                    "hero: of the latest {searched} ended jobs: older ones were not read"
                ));
            }
        } else {
            let none = NoResults::new("job was counted yet");
            global.list(|| document, || by_type(&stats.types, None), none)?;
        }
        let time = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
        if let (Some(from), Some(to)) = (time(&stats.from), time(&stats.to)) {
            let zone = local_zone();
            let [from, to] = [from, to].map(|time| local_second(time, &zone));
            output::note(&format!("hero: from {from} to {to}"));
        }
        Ok(())
    }
}

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

fn shown_time(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |time| brief(Duration::from_secs_f64(time)))
}

/// Returns a time that others are not above.
fn shown_bound(seconds: Option<f64>) -> String {
    let bound = if seconds.is_some() { "≤" } else { "" };
    format!("{bound}{}", shown_time(seconds))
}

/// The share of failed jobs, and the times that jobs waited and ran.
type EndsAndTimes<'a> = (Option<f64>, &'a TimesDocument, &'a TimesDocument);

/// Adds the columns that all tables of statistics end with.
fn with_times<T>(table: TextTable<'_, T>, of: fn(&T) -> EndsAndTimes<'_>) -> TextTable<'_, T> {
    table
        .column("?>FAILED%", &|item| of(item).0.map(|of| format!("{of:.1}")).unwrap_or_default())
        .column(">WAIT", &|item| shown_time(of(item).1.mean_s))
        .column("?>WAIT P95", &|item| shown_bound(of(item).1.p95_s))
        .column(">RUN", &|item| shown_time(of(item).2.mean_s))
        .column("?>RUN P95", &|item| shown_bound(of(item).2.p95_s))
}

fn by_place(by: StatsBy, stats: &[PlaceStatsDocument]) -> TextTable<'_, PlaceStatsDocument> {
    let head = match by {
        StatsBy::Host => "!HOST",
        StatsBy::Actor => "!ACTOR",
        StatsBy::Name => "!NAME",
    };
    let table = TextTable::of(stats)
        .column(head, &|of| of.name.clone())
        .column(">FINISHED", &|of| of.finished.to_string())
        .column(">FAILED", &|of| of.failed.to_string())
        .column("?>CANCELLED", &|of| of.cancelled.to_string())
        .column("?>MEMORY", &|of| of.memory_peak.map(readable_size).unwrap_or_default());
    with_times(table, |of| (of.failed_percent, &of.wait, &of.run))
}

fn by_type(
    stats: &[TypeStatsDocument],
    took: Option<Duration>,
) -> TextTable<'_, TypeStatsDocument> {
    let ends = match took {
        Some(_) => [">SUBMITTED/S", ">FINISHED/S", ">FAILED/S", "?>CANCELLED/S"],
        None => [">SUBMITTED", ">FINISHED", ">FAILED", "?>CANCELLED"],
    };
    let [submitted, finished, failed, cancelled] = ends;
    let number = |number: u64| match took {
        Some(took) => format!("{:.1}", float(number) / took.as_secs_f64()),
        None => number.to_string(),
    };
    let table = TextTable::of(stats)
        .column("TYPE", &|of| of.script_type.clone())
        .column(submitted, &|of| number(of.submitted))
        .column(finished, &|of| number(of.finished))
        .column(failed, &|of| number(of.failed))
        .column(cancelled, &|of| number(of.cancelled + of.replaced));
    with_times(table, |of| (of.failed_percent, &of.wait, &of.run))
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(stats: &[(ScriptType, Counters)]) -> Vec<TypeStatsDocument> {
        stats.iter().map(|(of, counters)| TypeStatsDocument::of(of.as_str(), counters)).collect()
    }

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
            ("cancelled", 1),
            ("replaced", 2),
            ("run_le_0.1", 4),
            ("run_us", 200_000),
        ];
        let shown = by_type(&documents(&[osis(&counters)]), None).render();
        let cells: Vec<&str> = shown.lines().nth(1).expect("a row").split_whitespace().collect();
        assert_eq!(cells, ["osis", "5", "3", "1", "3", "25.0", "-", "-", "50ms", "≤100ms"]);
    }

    #[test]
    fn what_happened_in_a_time_is_shown_per_second() {
        let (before, after) = ([("submitted", 5)], [("submitted", 25), ("finished", 10)]);
        let grown = grown(vec![osis(&after)], &[osis(&before)]);
        let shown = by_type(&documents(&grown), Some(Duration::from_secs(4))).render();
        assert!(shown.starts_with("TYPE  SUBMITTED/S"), "{shown}");
        let cells: Vec<&str> = shown.lines().nth(1).expect("a row").split_whitespace().collect();
        assert_eq!(cells[..6], ["osis", "5.0", "2.5", "0.0", "0.0", "0.0"]);
    }
}
