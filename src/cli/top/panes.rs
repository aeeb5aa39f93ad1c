//! The four lists of the screen, as rows.

use jiff::Timestamp;

use super::snapshot::Snapshot;
use crate::cli::time::{age, between, brief};
use crate::proto::job::JobId;
use crate::proto::message::ActorState;
use crate::proto::text::escape;
use crate::store::JobSummary;
use crate::view::health::lacks_actor;

/// A list of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Queues,
    Actors,
    Running,
    Failures,
}

/// A row of a list.
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

/// A column: its title, and its width in characters; 0 takes the rest.
pub(super) struct ListColumn {
    pub(super) title: &'static str,
    pub(super) width: u16,
    pub(super) is_number: bool,
}

const fn text(title: &'static str, width: u16) -> ListColumn {
    ListColumn { title, width, is_number: false }
}

const fn number(title: &'static str, width: u16) -> ListColumn {
    ListColumn { title, width, is_number: true }
}

impl Pane {
    pub(super) const ALL: [Self; 4] = [Self::Queues, Self::Actors, Self::Running, Self::Failures];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Queues => "Queues",
            Self::Actors => "Actors",
            Self::Running => "Running",
            Self::Failures => "Failures",
        }
    }

    /// The sentence in place of an empty list.
    pub(super) fn when_empty(self) -> &'static str {
        match self {
            Self::Queues => "No queue has jobs.",
            Self::Actors => "No actor is live.",
            Self::Running => "No job runs.",
            Self::Failures => "No job has failed.",
        }
    }

    pub(super) fn columns(self) -> &'static [ListColumn] {
        const QUEUES: [ListColumn; 5] = [
            text("QUEUE", 0),
            number("QUEUED", 6),
            number("HELD", 4),
            number("WAIT", 6),
            number("ACTORS", 6),
        ];
        const ACTORS: [ListColumn; 4] =
            [text("ACTOR", 17), text("STATE", 8), number("BUSY", 5), text("HOST", 0)];
        const RUNNING: [ListColumn; 5] = [
            text("JOB", 14),
            text("TYPE", 10),
            number("TIME", 8),
            text("PROGRESS", 0),
            text("ACTOR", 18),
        ];
        const FAILURES: [ListColumn; 4] =
            [text("JOB", 14), text("TYPE", 10), number("AGO", 8), text("ERROR", 0)];
        match self {
            Self::Queues => &QUEUES,
            Self::Actors => &ACTORS,
            Self::Running => &RUNNING,
            Self::Failures => &FAILURES,
        }
    }

    /// The rows of a list that have `filter` in a cell or their name.
    pub(super) fn rows(self, snapshot: &Snapshot, filter: &str) -> Vec<ListRow> {
        let mut rows = match self {
            Self::Queues => queues(snapshot),
            Self::Actors => actors(snapshot),
            Self::Running => {
                snapshot.latest.running.iter().map(|job| running(job, snapshot.moment.at)).collect()
            }
            Self::Failures => {
                snapshot.latest.failed.iter().map(|job| failure(job, snapshot.moment.at)).collect()
            }
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

fn queues(snapshot: &Snapshot) -> Vec<ListRow> {
    let rows = snapshot.moment.queues.iter().map(|(state, actors)| {
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

fn actors(snapshot: &Snapshot) -> Vec<ListRow> {
    let rows = snapshot.moment.actors.iter().map(|of| {
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
    let fraction = job.fields.get("progress").and_then(|text| text.parse::<f64>().ok());
    let words = field(job, "progress_text");
    let progress = match fraction {
        Some(fraction) => format!("{} {:3.0}% {words}", bar(fraction), fraction * 100.0),
        None => words.to_owned(),
    };
    ListRow {
        key: job.id.to_string(),
        cells: vec![
            cell(named(job), Tone::Running),
            cell(field(job, "script_type"), Tone::Plain),
            cell(time.unwrap_or_default(), Tone::Plain),
            cell(progress, Tone::Plain),
            cell(field(job, "actor"), Tone::Dim),
        ],
    }
}

fn failure(job: &JobSummary, now: Timestamp) -> ListRow {
    let ago = job.time("finished_at").map(|time| age(time, now));
    let error = field(job, "error").lines().next().unwrap_or_default();
    ListRow {
        key: job.id.to_string(),
        cells: vec![
            cell(named(job), Tone::Bad),
            cell(field(job, "script_type"), Tone::Plain),
            cell(ago.unwrap_or_default(), Tone::Plain),
            cell(error, Tone::Plain),
        ],
    }
}

fn field<'a>(job: &'a JobSummary, name: &str) -> &'a str {
    job.fields.get(name).map_or("", String::as_str)
}

/// The name of a job, or its id: eight characters of a generated one.
fn named(job: &JobSummary) -> String {
    match field(job, "name") {
        "" => short(&job.id),
        name => name.to_owned(),
    }
}

pub(super) fn short(id: &JobId) -> String {
    let id = id.as_str();
    let is_generated = id.len() == 36 && id.matches('-').count() == 4;
    if is_generated { id[..8].to_owned() } else { id.to_owned() }
}

/// A bar of ten characters, in ASCII, which every terminal has.
fn bar(fraction: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 10")]
    let done = (fraction.clamp(0.0, 1.0) * 10.0).round() as usize;
    format!("[{}{}]", "#".repeat(done), ".".repeat(10 - done))
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::tests::snapshot;
    use super::*;

    fn texts(row: &ListRow) -> Vec<&str> {
        row.cells.iter().map(|cell| cell.text.as_str()).collect()
    }

    #[test]
    fn running_job_shows_its_time_and_progress_without_control_characters() {
        let rows = Pane::Running.rows(&snapshot(), "");
        let shown =
            ["7f9c2ba4", "osis", "12.00s", "[#####.....]  50% half\\u{1b}[2J", "osis:default:1"];
        assert_eq!(texts(&rows[0]), shown);
    }

    #[test]
    fn failure_shows_the_first_line_of_its_error() {
        let rows = Pane::Failures.rows(&snapshot(), "");
        assert_eq!(texts(&rows[0])[3], "no such file");
    }

    #[test]
    fn filter_leaves_the_rows_that_have_it_in_a_cell() {
        let rows = Pane::Failures.rows(&snapshot(), "TIMED");
        assert_eq!(rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["early"]);
        assert!(Pane::Queues.rows(&snapshot(), "python").is_empty());
    }
}
