//! The figures of all runs as one table: medians, ranges, and ratios to plain commands of Redis.

use serde_json::{Map, Value, json};

use super::Figures;
use crate::cli::table::TextTable;
use crate::proto::text::grouped;

/// The base of a figure's ratio, measured in the same run: its name, and the words after the ratio.
type Baseline = Option<(&'static str, &'static str)>;

/// Rates: the share of sequential PING round trips.
const PINGS: Baseline = Some(("ping_ms", "of PINGs/s"));
/// Rates: the share of pipelined pushes.
const PUSHES: Baseline = Some(("rpush_per_s", "of RPUSHes/s"));
/// Times: the number of PING round trips.
const PING: Baseline = Some(("ping_ms", "PINGs"));
const PYTHON: Baseline = Some(("python_bare_ms", "x bare"));
const BASH: Baseline = Some(("bash_bare_ms", "x bare"));

struct Row {
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    decimals: usize,
    baseline: Baseline,
}

const fn row(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    decimals: usize,
    baseline: Baseline,
) -> Row {
    Row { name, title, unit, decimals, baseline }
}

/// The rows in the order of the table: plain Redis first.
const ROWS: [Row; 20] = [
    row("ping_ms", "redis: PING round trip, p50", "ms", 3, None),
    row("rpush_per_s", "redis: RPUSH, pipelined", "/s", 0, None),
    row("enqueue_per_s", "enqueue one by one", "jobs/s", 0, PINGS),
    row("bulk_per_s", "enqueue in bulk", "jobs/s", 0, PUSHES),
    row("drain_per_s", "drain, one actor process", "jobs/s", 0, PUSHES),
    row("wait_p50_ms", "run and wait, p50", "ms", 3, PING),
    row("wait_p99_ms", "run and wait, p99", "ms", 3, PING),
    row("wait_max_ms", "run and wait, max", "ms", 3, PING),
    row("link_ms", "chain: from job to job, mean", "ms", 3, PING),
    row("graph_ms", "submit a graph of 10 000", "ms", 1, None),
    row("python_bare_ms", "python3 FILE, bare, p50", "ms", 2, None),
    row("python_wait_ms", "python: run and wait, p50", "ms", 2, PYTHON),
    row("bash_bare_ms", "bash FILE, bare, p50", "ms", 2, None),
    row("bash_wait_ms", "bash: run and wait, p50", "ms", 2, BASH),
    row("bash_open_ms", "bash: the same, no sandbox, p50", "ms", 2, BASH),
    row("bash_sandbox_ms", "bash: added by the sandbox", "ms", 2, None),
    row("ready_ms", "actor: start to ready", "ms", 1, None),
    row("idle_rss_mb", "idle actor: resident memory", "MB", 1, None),
    row("queued_bytes", "redis memory per queued job", "bytes", 0, None),
    row("finished_bytes", "redis memory per finished job", "bytes", 0, None),
];

pub(super) struct ReportLine {
    row: &'static Row,
    spread: Spread,
    /// The ratio and the words after it.
    ratio: Option<(f64, &'static str)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
    runs: usize,
}

/// Returns the figures of all runs together.
pub(super) fn lines(runs: &[Figures]) -> Vec<ReportLine> {
    let spread = |name: &str| Spread::of(runs.iter().filter_map(|run| run.get(name).copied()));
    let line = |row: &'static Row| {
        let of_row = spread(row.name)?;
        let ratio = row.baseline.and_then(|(base, what)| {
            let base = spread(base)?.median;
            // Beside a time, a rate is a share of the calls of a second.
            let share = of_row.median * base / 1000.0;
            Some((if row.baseline == PINGS { share } else { of_row.median / base }, what))
        });
        Some(ReportLine { row, spread: of_row, ratio })
    };
    ROWS.iter().filter_map(line).collect()
}

pub(super) fn table(lines: &[ReportLine]) -> String {
    let number = |of: &ReportLine, value: f64| grouped(&format!("{value:.*}", of.row.decimals));
    let ratio = |of: &ReportLine| of.ratio.map(|(it, what)| format!("{it:.2} {what}"));
    TextTable::of(lines)
        .column("MEASURE", &|of| of.row.title.to_owned())
        .column(">MEDIAN", &|of| number(of, of.spread.median))
        .column(">MIN", &|of| number(of, of.spread.min))
        .column(">MAX", &|of| number(of, of.spread.max))
        .column("UNIT", &|of| of.row.unit.to_owned())
        .column("RATIO", &|of| ratio(of).unwrap_or_default())
        .render()
}

pub(super) fn document(lines: &[ReportLine], settings: &Value) -> Value {
    let measure = |ReportLine { row, spread, ratio }: &ReportLine| {
        let figure = json!({
            "median": spread.median, "min": spread.min, "max": spread.max,
            "runs": spread.runs, "unit": row.unit,
            "ratio": ratio.map(|(ratio, _)| ratio),
            "ratio_to": ratio.map(|(_, what)| what),
        });
        (row.name.to_owned(), figure)
    };
    let measures: Map<String, Value> = lines.iter().map(measure).collect();
    json!({ "settings": settings, "measures": measures })
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = match values.len() {
            0 => return None,
            odd if odd % 2 == 1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Some(Self { median, min: values[0], max: *values.last()?, runs: values.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_shows_the_median_with_its_ratio_to_redis() {
        let run = |ping, enqueue| Figures::from([("ping_ms", ping), ("enqueue_per_s", enqueue)]);
        let lines = lines(&[run(0.05, 9000.0), run(0.04, 12_000.0), run(0.06, 10_000.0)]);
        assert_eq!(
            table(&lines),
            "MEASURE                      MEDIAN    MIN     MAX  UNIT    RATIO\n\
             redis: PING round trip, p50   0.050  0.040   0.060  ms      -\n\
             enqueue one by one           10 000  9 000  12 000  jobs/s  0.50 of PINGs/s\n"
        );
        let document = document(&lines, &json!({ "jobs": 1 }));
        assert_eq!(document["measures"]["enqueue_per_s"]["median"], 10_000.0);
        assert_eq!(document["measures"]["ping_ms"]["runs"], 3);
    }

    #[test]
    fn median_of_an_even_number_of_runs_is_between_two() {
        let spread = Spread::of([4.0, 1.0].into_iter()).expect("two");
        assert_eq!(spread, Spread { median: 2.5, min: 1.0, max: 4.0, runs: 2 });
        assert_eq!(Spread::of(std::iter::empty()), None);
    }
}
