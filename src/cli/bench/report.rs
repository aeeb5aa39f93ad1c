//! The figures of all runs as one table: medians, their range, and what they are beside the floor.

use serde_json::{Map, Value, json};

use super::measure::Figures;
use crate::cli::table::Table;

/// What a figure stands beside, measured in the same run.
#[derive(Clone, Copy)]
enum Beside {
    Nothing,
    /// Rates: the share of one PING round trip after the other.
    Pings,
    /// Rates: the share of pipelined pushes.
    Pushes,
    /// Times: how many PING round trips.
    Ping,
    /// How many times another figure.
    Times(&'static str, &'static str),
}

struct Row {
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    decimals: usize,
    beside: Beside,
}

const fn row(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    decimals: usize,
    beside: Beside,
) -> Row {
    Row { name, title, unit, decimals, beside }
}

/// In the order in which they are shown: Redis's own first.
const ROWS: [Row; 37] = [
    row("ping_ms", "redis: PING round trip, p50", "ms", 3, Beside::Nothing),
    row("rpush_per_s", "redis: RPUSH, pipelined", "/s", 0, Beside::Nothing),
    row("enqueue_per_s", "enqueue one by one", "jobs/s", 0, Beside::Pings),
    row("bulk_per_s", "enqueue in bulk", "jobs/s", 0, Beside::Pushes),
    row("drain_per_s", "drain, one actor process", "jobs/s", 0, Beside::Pushes),
    row("wait_p50_ms", "run and wait, p50", "ms", 3, Beside::Ping),
    row("wait_p99_ms", "run and wait, p99", "ms", 3, Beside::Ping),
    row("wait_max_ms", "run and wait, max", "ms", 3, Beside::Ping),
    row("link_ms", "chain: from job to job, mean", "ms", 3, Beside::Ping),
    row("graph_ms", "submit a graph of 10 000", "ms", 1, Beside::Nothing),
    row("python_bare_ms", "python3 FILE, bare, p50", "ms", 2, Beside::Nothing),
    row("python_wait_ms", "python: run and wait, p50", "ms", 2, beside_bare("python_bare_ms")),
    row("bash_bare_ms", "bash FILE, bare, p50", "ms", 2, Beside::Nothing),
    row("bash_wait_ms", "bash: run and wait, p50", "ms", 2, beside_bare("bash_bare_ms")),
    row("bash_open_ms", "bash: the same, no sandbox, p50", "ms", 2, beside_bare("bash_bare_ms")),
    row("bash_sandbox_ms", "bash: what the sandbox adds", "ms", 2, Beside::Nothing),
    row("ready_ms", "actor: start to ready", "ms", 1, Beside::Nothing),
    row("idle_rss_mb", "idle actor: resident memory", "MB", 1, Beside::Nothing),
    row("idle_cpu_percent", "idle actor: share of a core", "%", 3, Beside::Nothing),
    row("queued_bytes", "redis memory per queued job", "bytes", 0, Beside::Nothing),
    row("finished_bytes", "redis memory per finished job", "bytes", 0, Beside::Nothing),
    row(
        "dual_enqueue_per_s",
        "dual: enqueue one by one",
        "jobs/s",
        0,
        Beside::Times("enqueue_per_s", "canonical"),
    ),
    row(
        "dual_drain_per_s",
        "dual: drain, one actor process",
        "jobs/s",
        0,
        Beside::Times("drain_per_s", "canonical"),
    ),
    row("beside_tasks_p50_ms", "rhailib: a plain job beside, p50", "ms", 3, Beside::Ping),
    row("beside_tasks_p99_ms", "rhailib: a plain job beside, p99", "ms", 3, Beside::Ping),
    row("task_added_p50_ms", "rhailib: a task takes longer by, p50", "ms", 3, Beside::Nothing),
    row("task_added_p99_ms", "rhailib: a task takes longer by, p99", "ms", 3, Beside::Nothing),
    row(
        "task_id_first_added_p50_ms",
        "rhailib: its id pushed first, p50",
        "ms",
        3,
        Beside::Nothing,
    ),
    row(
        "task_id_first_added_p99_ms",
        "rhailib: its id pushed first, p99",
        "ms",
        3,
        Beside::Nothing,
    ),
    row("page_of_few_ms", "page of 50 among 1 000 jobs", "ms", 3, Beside::Ping),
    row("page_of_many_ms", "page of 50 among 1 000 000", "ms", 3, beside_few("page_of_few_ms")),
    row("claim_of_few_ms", "claim among 1 000 jobs", "ms", 3, Beside::Ping),
    row("claim_of_many_ms", "claim among 1 000 000", "ms", 3, beside_few("claim_of_few_ms")),
    row("object_get_of_few_ms", "get an object among 1 000", "ms", 3, Beside::Ping),
    row(
        "object_get_of_many_ms",
        "get one among 1 000 000",
        "ms",
        3,
        beside_few("object_get_of_few_ms"),
    ),
    row("object_find_of_few_ms", "find an object among 1 000", "ms", 3, Beside::Ping),
    row(
        "object_find_of_many_ms",
        "find one among 1 000 000",
        "ms",
        3,
        beside_few("object_find_of_few_ms"),
    ),
];

const fn beside_few(name: &'static str) -> Beside {
    Beside::Times(name, "among 1 000")
}

const fn beside_bare(name: &'static str) -> Beside {
    Beside::Times(name, "bare")
}

/// The figures of all runs together.
pub(super) struct Report {
    lines: Vec<Line>,
}

struct Line {
    row: &'static Row,
    spread: Spread,
    /// How much of what, or how many times what.
    ratio: Option<(f64, String)>,
}

/// What several runs make of one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
    runs: usize,
}

impl Report {
    pub(super) fn new(runs: &[Figures]) -> Self {
        let spread = |name: &str| Spread::of(runs.iter().filter_map(|run| run.get(name).copied()));
        let lines = ROWS
            .iter()
            .filter_map(|row| {
                let of_row = spread(row.name)?;
                let ratio = ratio(row.beside, of_row.median, spread);
                Some(Line { row, spread: of_row, ratio })
            })
            .collect();
        Self { lines }
    }

    pub(super) fn table(&self) -> String {
        let mut table = Table::new(&["MEASURE", ">MEDIAN", ">MIN", ">MAX", "UNIT", "BESIDE"]);
        for Line { row, spread, ratio } in &self.lines {
            let number = |value| grouped(value, row.decimals);
            table.row([
                row.title.to_owned(),
                number(spread.median),
                number(spread.min),
                number(spread.max),
                row.unit.to_owned(),
                ratio
                    .as_ref()
                    .map(|(ratio, what)| format!("{ratio:.2} {what}"))
                    .unwrap_or_default(),
            ]);
        }
        table.render()
    }

    pub(super) fn document(&self, settings: &Value) -> Value {
        let measures: Map<String, Value> = self
            .lines
            .iter()
            .map(|Line { row, spread, ratio }| {
                let figure = json!({
                    "median": spread.median, "min": spread.min, "max": spread.max,
                    "runs": spread.runs, "unit": row.unit,
                    "ratio": ratio.as_ref().map(|(ratio, _)| ratio),
                    "ratio_to": ratio.as_ref().map(|(_, what)| what),
                });
                (row.name.to_owned(), figure)
            })
            .collect();
        json!({ "settings": settings, "measures": measures })
    }
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

fn ratio(
    beside: Beside,
    median: f64,
    spread: impl Fn(&str) -> Option<Spread>,
) -> Option<(f64, String)> {
    let ping_ms = || Some(spread("ping_ms")?.median);
    match beside {
        Beside::Nothing => None,
        Beside::Pings => Some((median * ping_ms()? / 1000.0, "of PINGs/s".to_owned())),
        Beside::Pushes => Some((median / spread("rpush_per_s")?.median, "of RPUSHes/s".to_owned())),
        Beside::Ping => Some((median / ping_ms()?, "PINGs".to_owned())),
        Beside::Times(name, what) => Some((median / spread(name)?.median, format!("x {what}"))),
    }
}

/// A number with its thousands apart.
fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.split_at(whole.len() - whole.trim_start_matches('-').len());
    let mut shown = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(' ');
        }
        shown.push(digit);
    }
    shown + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_runs_is_shown_beside_the_floor() {
        let run = |ping, enqueue| Figures::from([("ping_ms", ping), ("enqueue_per_s", enqueue)]);
        let report = Report::new(&[run(0.05, 9000.0), run(0.04, 12_000.0), run(0.06, 10_000.0)]);
        assert_eq!(
            report.table(),
            "MEASURE                      MEDIAN    MIN     MAX  UNIT    BESIDE\n\
             redis: PING round trip, p50   0.050  0.040   0.060  ms      -\n\
             enqueue one by one           10 000  9 000  12 000  jobs/s  0.50 of PINGs/s\n"
        );
        let document = report.document(&json!({ "jobs": 1 }));
        assert_eq!(document["measures"]["enqueue_per_s"]["median"], 10_000.0);
        assert_eq!(document["measures"]["ping_ms"]["runs"], 3);
    }

    #[test]
    fn an_even_number_of_runs_has_its_median_between_two() {
        let spread = Spread::of([4.0, 1.0].into_iter()).expect("two");
        assert_eq!(spread, Spread { median: 2.5, min: 1.0, max: 4.0, runs: 2 });
        assert_eq!(Spread::of(std::iter::empty()), None);
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(grouped(1_234_567.4, 0), "1 234 567");
        assert_eq!(grouped(-1234.5, 1), "-1 234.5");
        assert_eq!(grouped(0.0421, 3), "0.042");
    }
}
