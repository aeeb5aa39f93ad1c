//! The live table of a job for every machine or actor, at a terminal while it waits.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};

use ratatui::crossterm::terminal::size;
use serde_json::json;

use super::Global;
use super::api::ApiMethods;
use super::progress::{BEGIN, END};
use super::table::TextTable;
use super::terminal_style::TerminalStyle;
use crate::client::JobOfGraphDocument;
use crate::proto::graph::GraphJobOutcome;
use crate::proto::job::JobStatus;
use crate::rpc::results::ShownGraph;

/// The most jobs that one look reads; further ones are numbers alone.
const JOBS_MAX: usize = 1000;
/// A narrower terminal cuts the lines at its edge.
const COLUMNS_MIN: usize = 40;
/// The size of a terminal that does not tell its own.
const SIZE_UNKNOWN: (u16, u16) = (80, 24);
const RUNNING: &str = "running";
/// The states, in the order of the rows.
const STATES: [&str; 5] = ["failed", "cancelled", RUNNING, "waiting", "finished"];

/// The rows of the jobs, drawn in place. Dropping it clears them.
pub(super) struct FleetTable {
    /// The machines or actors, by the ids of their jobs.
    names: HashMap<String, String>,
    title: &'static str,
    colour: bool,
    drawn_lines: usize,
}

impl FleetTable {
    /// Returns a table of these machines or actors; `None` where nobody would see it.
    pub(super) fn of(
        names: HashMap<String, String>,
        title: &'static str,
        global: &Global,
    ) -> Option<Self> {
        let is_seen = io::stderr().is_terminal() && !global.json;
        let colour = global.color.is_on(true);
        is_seen.then_some(Self { names, title, colour, drawn_lines: 0 })
    }

    /// Draws the jobs as they are now, by one call. Without an answer the table stays as it is.
    pub(super) async fn show(&mut self, methods: &ApiMethods, id: &str) {
        let params = json!({ "id": id, "limit": JOBS_MAX });
        let Ok((_, shown)) = methods.typed::<ShownGraph>("graph.get", params).await else { return };
        let (columns, lines) = size().ok().filter(|size| size.0 > 0).unwrap_or(SIZE_UNKNOWN);
        let text = self.text(&shown, columns.into(), lines.into());
        let lines: Vec<&str> = text.lines().collect();
        let begin = self.beginning();
        let _ = write!(io::stderr().lock(), "{begin}{BEGIN}{}{END}", lines.join("\r\n"));
        self.drawn_lines = lines.len();
    }

    pub(super) fn clear(&mut self) {
        if self.drawn_lines > 0 {
            let _ = write!(io::stderr().lock(), "{}", self.beginning());
            self.drawn_lines = 0;
        }
    }

    /// Goes to the first line of the table and clears all.
    fn beginning(&self) -> String {
        let up = self.drawn_lines.saturating_sub(1);
        if up > 0 { format!("\r\u{1b}[{up}A\u{1b}[J") } else { "\r\u{1b}[J".to_owned() }
    }

    /// Returns the rows that fit, the failed first, and a line with the number of the others.
    fn text(&self, shown: &ShownGraph, columns: usize, lines: usize) -> String {
        let mut jobs: Vec<_> = shown.jobs.iter().map(|job| (state(job), job)).collect();
        jobs.sort_by_key(|(state, _)| STATES.iter().position(|word| word == state));
        let number = |jobs: &[(&str, _)], word: &str| {
            jobs.iter().filter(|(state, _)| *state == word).count() as u64
        };
        let counts = shown.graph.counts();
        let running = number(&jobs, RUNNING);
        let waiting = counts.waiting().saturating_sub(running);
        let all = [counts.failed, counts.cancelled, running, waiting, counts.finished];
        // The titles, and the line of the cursor.
        let room = lines.saturating_sub(2).max(2);
        if counts.jobs > room as u64 {
            jobs.truncate(room - 1);
        }
        let left = STATES.iter().zip(all).filter_map(|(word, all)| {
            let left = all.saturating_sub(number(&jobs, word));
            (left > 0).then(|| format!("{left} {word}"))
        });
        let left: Vec<String> = left.collect();
        let more = counts.jobs.saturating_sub(jobs.len() as u64);
        let name = |job: &JobOfGraphDocument| {
            self.names.get(&job.id).or(job.name.as_ref()).cloned().unwrap_or_default()
        };
        let exit = |code: Option<i64>| code.map(|code| code.to_string()).unwrap_or_default();
        let look = TerminalStyle { columns: Some(columns.max(COLUMNS_MIN)), colour: self.colour };
        let rows = TextTable::of(&jobs)
            .column(self.title, &|(_, job)| name(job))
            .column("*STATE", &|(state, _)| (*state).to_owned())
            .column(">EXIT", &|(_, job)| exit(job.exit_code))
            .column("~LAST LINE", &|(_, job)| job.last_line.clone().unwrap_or_default())
            .show(look);
        match more {
            0 => rows,
            _ => format!("{rows}… and {more} more: {}\n", left.join(", ")),
        }
    }
}

impl Drop for FleetTable {
    fn drop(&mut self) {
        self.clear();
    }
}

fn state(job: &JobOfGraphDocument) -> &'static str {
    match job.outcome {
        // Its graph learns of an end in the next step.
        GraphJobOutcome::Waiting
            if job.status.is_some_and(|of| of == JobStatus::Started || of.is_terminal()) =>
        {
            RUNNING
        }
        outcome => outcome.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_the_terminal_and_the_others_are_numbers() {
        let job = |place: usize| {
            let outcome = match place {
                0 => "failed",
                1..190 => "waiting",
                _ => "finished",
            };
            let status = if place < 21 { "started" } else { "dispatched" };
            json!({
                "id": format!("j{place}"), "outcome": outcome, "place": place, "status": status,
                "exit_code": (place == 0).then_some(3), "last_line": "a\u{1b}[2J".repeat(40),
            })
        };
        let graph = json!({
            "id": "b", "kind": "batch", "state": "running", "jobs": 200, "finished": 10, "failed": 1,
            "cancelled": 0, "waiting": 189, "caller_id": "", "created_at": "",
        });
        let shown =
            json!({ "graph": graph, "jobs": (0..200).map(job).collect::<Vec<_>>(), "next": null });
        let shown: ShownGraph = serde_json::from_value(shown).expect("a graph");
        let names = (0..200).map(|place| (format!("j{place}"), format!("web{place}"))).collect();
        let table = FleetTable { names, title: "~MACHINE", colour: false, drawn_lines: 0 };
        let text = table.text(&shown, 60, 32);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 31);
        assert!(lines[0].starts_with("MACHINE  STATE    EXIT  LAST LINE"), "{text}");
        assert!(lines[1].starts_with("web0     failed      3  a\\u{1b}[2J"), "{text}");
        assert!(lines[2].starts_with("web1     running     -  a"), "{text}");
        assert_eq!(lines[30], "… and 171 more: 161 waiting, 10 finished");
        assert!(lines.iter().all(|line| line.chars().count() <= 60), "{text}");
        let text = table.text(&shown, 60, 2);
        assert_eq!(text.lines().count(), 3, "a row and the numbers are always there");
    }
}
