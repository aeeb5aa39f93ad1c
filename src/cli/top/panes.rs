//! The lists of the screen, as rows.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::screen_data::ScreenData;
use crate::cli::time::{age, between, brief};
use crate::proto::job::{JobId, JobStatus};
use crate::proto::message::ActorState;
use crate::proto::text::escape;
use crate::store::{JobSummary, QueueState};
use crate::view::LatestJobs;
use crate::view::health::lacks_actor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Queues,
    Actors,
    Running,
    Failures,
    /// Jobs of a queue or in a state. It is shown alone.
    Jobs,
}

/// An order of the queues: its word, and the number by which those with the most come first.
type QueueOrder = (&'static str, fn(&QueueState) -> u128);

/// The orders in turn. Queues come by name.
pub(super) const ORDERS: [QueueOrder; 4] = [
    ("name", |_| 0),
    ("queued", |of| of.depth.into()),
    ("held", |of| of.held.into()),
    ("wait", |of| of.oldest_wait.map_or(0, |wait| wait.as_nanos())),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListRow {
    /// The name of what it shows: a queue, an actor or a job.
    pub(super) key: String,
    pub(super) cells: Vec<Cell>,
}

/// A cell, without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// The meaning of a colour. Normal is without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Dim,
    Warning,
    Bad,
    Running,
}

/// A column: its title, behind `>` if it has numbers, and its width in characters; 0 takes the rest.
pub(super) type ListColumn = (&'static str, u16);

pub(super) struct PaneAbout {
    pub(super) title: &'static str,
    /// The sentence in place of an empty list.
    pub(super) when_empty: &'static str,
    pub(super) columns: &'static [ListColumn],
}

/// The lists in the order of [`Pane`].
const PANES: [PaneAbout; 5] = [
    PaneAbout {
        title: "Queues",
        when_empty: "No queue has jobs.",
        columns: &[("QUEUE", 0), (">QUEUED", 6), (">HELD", 4), (">WAIT", 6), (">ACTORS", 6)],
    },
    PaneAbout {
        title: "Actors",
        when_empty: "No actor is live.",
        columns: &[("ACTOR", 17), ("STATE", 8), (">BUSY", 5), ("HOST", 0)],
    },
    PaneAbout {
        title: "Running",
        when_empty: "No job runs.",
        columns: &[("JOB", 14), ("TYPE", 10), (">TIME", 8), ("PROGRESS", 0), ("ACTOR", 18)],
    },
    PaneAbout {
        title: "Failures",
        when_empty: "No job has failed.",
        columns: &[("JOB", 14), ("TYPE", 10), (">AGO", 8), ("ERROR", 0)],
    },
    PaneAbout {
        title: "Jobs",
        when_empty: "No job matches.",
        columns: &[("JOB", 14), ("TYPE", 10), ("STATE", 10), (">AGE", 8), ("PROGRESS, ERROR", 0)],
    },
];

impl Pane {
    /// The lists that are shown together.
    pub(super) const ALL: [Self; 4] = [Self::Queues, Self::Actors, Self::Running, Self::Failures];

    pub(super) fn about(self) -> &'static PaneAbout {
        &PANES[self as usize]
    }

    /// The rows of a list that have `filter` in a cell or their name; queues in one of [`ORDERS`].
    pub(super) fn rows(self, snapshot: &ScreenData, order: usize, filter: &str) -> Vec<ListRow> {
        let (latest, now) = (&snapshot.latest, snapshot.snapshot.at);
        let mut rows = match self {
            // Redis has filtered them.
            Self::Jobs => return Vec::new(),
            Self::Queues => queues(snapshot, order),
            Self::Actors => actors(snapshot),
            Self::Running => latest.running.iter().map(|job| running(job, now)).collect(),
            Self::Failures => latest.failed.iter().map(|job| failure(job, latest, now)).collect(),
        };
        let filter = filter.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&filter);
        rows.retain(|row| has(&row.key) || row.cells.iter().any(|cell| has(&cell.text)));
        rows
    }
}

fn cell(text: impl AsRef<str>, tone: Tone) -> Cell {
    Cell { text: escape(text.as_ref()), tone }
}

/// A number that is dim if it is zero, as most are.
fn count(number: u64, tone: Tone) -> Cell {
    cell(number.to_string(), if number == 0 { Tone::Dim } else { tone })
}

fn queues(snapshot: &ScreenData, order: usize) -> Vec<ListRow> {
    let mut queues: Vec<&(QueueState, u64)> = snapshot.snapshot.queues.iter().collect();
    queues.sort_by_key(|(state, _)| Reverse(ORDERS[order].1(state)));
    let rows = queues.into_iter().map(|(state, actors)| {
        let name = state.queue.to_string();
        let wait = match state.oldest_wait {
            _ if state.paused => cell("paused", Tone::Warning),
            Some(wait) => cell(brief(wait), Tone::Plain),
            None => cell("-", Tone::Dim),
        };
        let lacks_actor = lacks_actor(state, *actors);
        ListRow {
            cells: vec![
                cell(&name, Tone::Plain),
                count(state.depth, Tone::Plain),
                count(state.held, Tone::Warning),
                wait,
                cell(actors.to_string(), if lacks_actor { Tone::Bad } else { Tone::Plain }),
            ],
            key: name,
        }
    });
    rows.collect()
}

fn actors(snapshot: &ScreenData) -> Vec<ListRow> {
    let rows = snapshot.snapshot.actors.iter().map(|of| {
        let presence = &of.presence;
        let (state, tone) = match (&presence.state, &presence.holding) {
            (ActorState::Ready, Some(_)) => ("holding", Tone::Warning),
            (ActorState::Draining, _) => ("draining", Tone::Warning),
            (state, _) => (state.as_str(), Tone::Plain),
        };
        ListRow {
            key: of.actor.to_string(),
            cells: vec![
                cell(of.actor.to_string(), Tone::Plain),
                cell(state, tone),
                cell(format!("{}/{}", presence.running, presence.tasks), Tone::Plain),
                cell(&presence.hostname, Tone::Dim),
            ],
        }
    });
    rows.collect()
}

fn running(job: &JobSummary, now: Timestamp) -> ListRow {
    let time = job.time("started_at").map(|from| brief(between(from, now)));
    let time = cell(time.unwrap_or_default(), Tone::Plain);
    let progress = cell(progress(job), Tone::Plain);
    job_row(job, Tone::Running, [time, progress, cell(job.text("actor"), Tone::Dim)])
}

/// The row of a job: its name in a tone, its type, and further cells.
fn job_row<const N: usize>(job: &JobSummary, tone: Tone, further: [Cell; N]) -> ListRow {
    let own = [cell(named(job), tone), cell(job.text("script_type"), Tone::Plain)];
    ListRow { key: job.id.to_string(), cells: own.into_iter().chain(further).collect() }
}

fn progress(job: &JobSummary) -> String {
    let words = job.text("progress_text");
    match job.text("progress").parse::<f64>() {
        Ok(fraction) => format!("{} {:3.0}% {words}", bar(fraction), fraction * 100.0),
        Err(_) => words.to_owned(),
    }
}

pub(super) fn any_job(job: &JobSummary, now: Timestamp) -> ListRow {
    let (state, tone) = match job.status {
        JobStatus::WaitingForPrerequisites => ("waiting", Tone::Plain),
        JobStatus::Dispatched if !job.text("held_by").is_empty() => ("held", Tone::Warning),
        JobStatus::Started => (job.state(), Tone::Running),
        JobStatus::Error if job.intended_end().is_none() => (job.state(), Tone::Bad),
        _ => (job.state(), Tone::Plain),
    };
    let note = match job.status {
        JobStatus::Started => progress(job),
        JobStatus::Dispatched if state == "held" => format!("by {}", job.text("held_by")),
        _ => job.text("error").lines().next().unwrap_or_default().to_owned(),
    };
    let created = job.time("created_at").map(|time| age(time, now));
    let created = cell(created.unwrap_or_default(), Tone::Plain);
    job_row(job, Tone::Plain, [cell(state, tone), created, cell(note, Tone::Plain)])
}

fn failure(job: &JobSummary, latest: &LatestJobs, now: Timestamp) -> ListRow {
    let ago = job.time("finished_at").map(|time| age(time, now));
    let error = match latest.prerequisite(job) {
        Some(prerequisite) => format!("prerequisite failed: {}", named(prerequisite)),
        None => job.text("error").lines().next().unwrap_or_default().to_owned(),
    };
    let ago = cell(ago.unwrap_or_default(), Tone::Plain);
    job_row(job, Tone::Bad, [ago, cell(error, Tone::Plain)])
}

/// The name of a job, or its id: eight characters of a generated one.
fn named(job: &JobSummary) -> String {
    match (job.text("name"), job.id.as_str()) {
        ("", id) if JobId::is_uuid(id) => id[..8].to_owned(),
        ("", id) => id.to_owned(),
        (name, _) => name.to_owned(),
    }
}

/// A bar of ten characters, in ASCII, which every terminal has.
fn bar(fraction: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 10")]
    let done = (fraction.clamp(0.0, 1.0) * 10.0).round() as usize;
    format!("[{}{}]", "#".repeat(done), ".".repeat(10 - done))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::screen_data::tests::{job, screen_data};
    use super::*;

    fn texts(row: &ListRow) -> Vec<&str> {
        row.cells.iter().map(|cell| cell.text.as_str()).collect()
    }

    #[test]
    fn running_job_shows_its_time_and_progress_without_control_characters() {
        let rows = Pane::Running.rows(&screen_data(), 0, "");
        let shown =
            ["7f9c2ba4", "osis", "12.00s", "[#####.....]  50% half\\u{1b}[2J", "osis:default:1"];
        assert_eq!(texts(&rows[0]), shown);
    }

    #[test]
    fn failure_shows_the_first_line_of_its_error() {
        let rows = Pane::Failures.rows(&screen_data(), 0, "");
        assert_eq!(texts(&rows[0])[3], "no such file");
    }

    #[test]
    fn queues_are_sorted_by_name_or_by_what_is_most() {
        let mut snapshot = screen_data();
        let state = snapshot.snapshot.queues[0].0.clone();
        let queue = |name: &str, depth, held, wait_s| {
            let queue = name.parse().expect("legal");
            let oldest_wait = Some(Duration::from_secs(wait_s)).filter(|wait| !wait.is_zero());
            (QueueState { queue, depth, held, oldest_wait, ..state.clone() }, 1)
        };
        snapshot.snapshot.queues = vec![
            queue("type:bash", 0, 3, 0),
            queue("type:osis", 1, 0, 9),
            queue("type:python", 7, 1, 2),
        ];
        let mut seen = Vec::new();
        for (order, (word, _)) in ORDERS.iter().enumerate() {
            let rows = Pane::Queues.rows(&snapshot, order, "");
            let names: Vec<&str> =
                rows.iter().map(|row| row.key.trim_start_matches("type:")).collect();
            seen.push(format!("{word}: {}", names.join(" ")));
        }
        assert_eq!(
            seen,
            [
                "name: bash osis python",
                "queued: python osis bash",
                "held: bash python osis",
                "wait: osis python bash",
            ]
        );
    }

    #[test]
    fn job_in_any_state_shows_what_it_is_at() {
        let now = screen_data().snapshot.at;
        let shown = |status, fields: &[(&'static str, &str)]| {
            let row = any_job(&job("a", status, fields), now);
            [texts(&row)[2], texts(&row)[4]].join(": ")
        };
        let held = [("held_by", "license")];
        assert_eq!(shown(JobStatus::Dispatched, &held), "held: by license");
        assert_eq!(shown(JobStatus::WaitingForPrerequisites, &[]), "waiting: ");
        let at = [("progress", "0.25"), ("progress_text", "read")];
        assert_eq!(shown(JobStatus::Started, &at), "started: [###.......]  25% read");
        assert_eq!(shown(JobStatus::Error, &[("error", "no luck\nat 3")]), "failed: no luck");
        assert_eq!(shown(JobStatus::Error, &[("error", "stopped")]), "cancelled: stopped");
    }

    #[test]
    fn filter_leaves_the_rows_that_have_it_in_a_cell() {
        let rows = Pane::Failures.rows(&screen_data(), 0, "TIMED");
        assert_eq!(rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["early"]);
        assert!(Pane::Queues.rows(&screen_data(), 0, "python").is_empty());
    }
}
