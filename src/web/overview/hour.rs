//! The last hour as tiles: from the samples of supervisors, minute by minute, or without a history. A tile has a label, a
//! number with its unit, a note, and the last hour as one line.

use std::fmt::Write as _;
use std::time::Duration;

use maud::{Markup, html};

use super::super::parts::{count, duration, percent_of, rate, things};
use super::super::snapshot::SiteSnapshot;
use crate::store::LastHour;
use crate::view::Minute;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tile {
    label: &'static str,
    value: String,
    unit: String,
    note: String,
    /// The class of the colour.
    class: &'static str,
    /// One value a minute, the oldest first. Empty without samples.
    history: Vec<f64>,
}

/// Returns the tiles. Without samples they have numbers and no history.
pub(super) fn tiles_of(now: &SiteSnapshot) -> Vec<Tile> {
    match now.snapshot.minutes.as_ref() {
        minutes @ [_, .., last] => with_history(now, minutes, last),
        _ => without_history(now),
    }
}

fn with_history(now: &SiteSnapshot, minutes: &[Minute], last: &Minute) -> Vec<Tile> {
    let history = |of: fn(&Minute) -> f64| minutes.iter().map(of).collect::<Vec<f64>>();
    let rates = |label, class, of: fn(&Minute) -> u64, note| {
        let history: Vec<f64> =
            minutes.iter().map(|minute| minute.per_second(of(minute))).collect();
        tile(label, rate(last.per_second(of(last))), "/s", note, class, history)
    };
    let in_hour = |of: fn(&Minute) -> u64| format!("{} in this hour", count(sum(minutes, of)));
    let hour = percent_of(sum(minutes, |of| of.failed), sum(minutes, |of| of.failed + of.finished));
    let failures = percent_of(last.failed, last.failed + last.finished);
    let failures = format!("{failures}, in this hour {hour}");
    vec![
        rates("Submitted", "", |of| of.submitted, in_hour(|of| of.submitted)),
        rates("Finished", "finished", |of| of.finished, in_hour(|of| of.finished)),
        rates("Failed", "error", |of| of.failed, failures),
        waiting_time(last, history(|of| of.wait_p95.unwrap_or_default().as_secs_f64())),
        busy(now, history(|of| float(of.running))),
    ]
}

fn waiting_time(last: &Minute, history: Vec<f64>) -> Tile {
    let text = last.wait_p95.map_or_else(|| "–".to_owned(), duration);
    let (value, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let note = "95 % waited no longer".to_owned();
    tile("Waiting time", value.to_owned(), unit, note, "queued", history)
}

fn busy(now: &SiteSnapshot, history: Vec<f64>) -> Tile {
    let actors = || now.snapshot.actor_counts.values();
    let live: u64 = actors().map(|of| of.live).sum();
    let running: usize = actors().map(|of| of.running).sum();
    let tasks: usize = actors().map(|of| of.tasks).sum();
    let note = format!("on {}", things(live, "actor"));
    tile("Tasks busy", running.to_string(), &format!("of {tasks}"), note, "running", history)
}

fn without_history(now: &SiteSnapshot) -> Vec<Tile> {
    let snapshot = &now.snapshot;
    let hours: Vec<LastHour> = snapshot.types.iter().filter_map(|of| of.hour).collect();
    let sum = |of: fn(&LastHour) -> u64| hours.iter().map(of).sum::<u64>();
    let (finished, failed) = (sum(|hour| hour.finished), sum(|hour| hour.failed));
    let waiting: u64 = snapshot.queues.iter().map(|(state, _)| state.depth).sum();
    let first = snapshot.queues.iter().filter_map(|(state, _)| state.oldest_wait).max();
    let wait = match first {
        Some(wait) => format!("the first for {}", duration(wait)),
        None => "nothing waits".to_owned(),
    };
    let failures = format!("{} of those that ended", percent_of(failed, finished + failed));
    let none = Vec::new;
    let jobs = |number| if number == 1 { "job" } else { "jobs" };
    let waiting = tile("Waiting in queues", count(waiting), jobs(waiting), wait, "queued", none());
    let Some(all_dead) = now.dead() else {
        // The others count jobs that the visitor may not see.
        return vec![waiting, busy(now, none())];
    };
    let dead = format!("{} new", count(sum(|hour| hour.dead)));
    let ended = "in this hour".to_owned();
    vec![
        waiting,
        tile("Finished", count(finished), jobs(finished), ended, "finished", none()),
        tile("Failed", count(failed), jobs(failed), failures, "error", none()),
        tile("Dead letters", count(all_dead), "", dead, "error", none()),
        busy(now, none()),
    ]
}

fn tile(
    label: &'static str,
    value: String,
    unit: &str,
    note: String,
    class: &'static str,
    history: Vec<f64>,
) -> Tile {
    Tile { label, value, unit: unit.to_owned(), note, class, history }
}

fn sum(minutes: &[Minute], of: fn(&Minute) -> u64) -> u64 {
    minutes.iter().map(of).sum()
}

#[expect(clippy::cast_precision_loss, reason = "no counter comes near 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}

impl Minute {
    fn per_second(&self, number: u64) -> f64 {
        float(number) / self.length.max(Duration::from_secs(1)).as_secs_f64()
    }
}

/// Returns a strip of tiles. It has no id of its own: each tile is `tile-N`.
pub(super) fn tiles(all: &[Tile]) -> Markup {
    html! { dl #tiles .tiles { @for tile in all { (one(tile)) } } }
}

fn one(tile: &Tile) -> Markup {
    html! {
        div.tile {
            dt { (tile.label) }
            dd.v { (tile.value) small { (tile.unit) } }
            dd.note.cut title=(tile.note) { (tile.note) }
            @if tile.history.len() > 1 { dd { (spark(tile)) } }
        }
    }
}

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 36.0;

/// Draws the history as one path from zero.
fn spark(tile: &Tile) -> Markup {
    let line = line(&tile.history);
    let (least, most) = bounds(&tile.history);
    let label =
        format!("{} over the last hour, between {} and {}", tile.label, rate(least), rate(most));
    html! {
        svg class={ "spark " (tile.class) } viewBox="0 0 120 36" preserveAspectRatio="none" role="img"
            aria-label=(label) {
            path.a d={ (line) " 120,36 0,36Z" } {}
            path.l d=(line) {}
        }
    }
}

fn bounds(history: &[f64]) -> (f64, f64) {
    history.iter().fold((f64::MAX, 0.0), |(least, most), value| {
        (f64::min(least, *value), f64::max(most, *value))
    })
}

fn line(history: &[f64]) -> String {
    let (_, most) = bounds(history);
    let most = if most > 0.0 { most } else { 1.0 };
    #[expect(clippy::cast_precision_loss, reason = "an hour has 60 samples")]
    let step = WIDTH / (history.len() - 1) as f64;
    let mut path = String::with_capacity(history.len() * 12);
    let mut x = 0.0;
    for value in history {
        let y = HEIGHT - 1.0 - value / most * (HEIGHT - 8.0);
        let _ = write!(path, "{}{x:.1},{y:.1}", if path.is_empty() { "M" } else { " " });
        x += step;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::super::super::snapshot::tests::site_snapshot;
    use super::*;

    fn minute(submitted: u64, finished: u64, failed: u64) -> Minute {
        let wait_p95 = Some(Duration::from_millis(1800));
        let length = Duration::from_mins(1);
        Minute { at: None, length, submitted, finished, failed, running: 3, wait_p95 }
    }

    #[test]
    fn tiles_have_the_last_minute_and_the_history_of_the_hour() {
        let mut now = site_snapshot();
        now.snapshot.minutes = vec![minute(60, 30, 0), minute(120, 54, 6)].into();
        let tiles = tiles_of(&now);
        let shown: Vec<String> =
            tiles.iter().map(|of| format!("{} {} {}", of.label, of.value, of.unit)).collect();
        assert_eq!(
            shown,
            [
                "Submitted 2.0 /s",
                "Finished 0.9 /s",
                "Failed 0.1 /s",
                "Waiting time 1.8 s",
                "Tasks busy 1 of 8"
            ]
        );
        assert_eq!(tiles[0].history, [1.0, 2.0]);
        assert_eq!(tiles[2].note, "10 %, in this hour 6.7 %");
    }

    #[test]
    fn without_samples_tiles_have_numbers_alone() {
        let tiles = tiles_of(&site_snapshot());
        assert!(tiles.iter().all(|tile| tile.history.is_empty()));
        assert_eq!((tiles[0].label, tiles[0].value.as_str()), ("Waiting in queues", "3"));
    }

    #[test]
    fn history_is_a_line_from_zero_with_a_text_label() {
        assert_eq!(line(&[0.0, 2.0, 1.0]), "M0.0,35.0 60.0,7.0 120.0,21.0");
        assert_eq!(line(&[0.0, 0.0]), "M0.0,35.0 120.0,35.0");
        let tile = Tile {
            label: "Submitted",
            value: "1.0".to_owned(),
            unit: "/s".to_owned(),
            note: String::new(),
            class: "finished",
            history: vec![1.0, 3.0],
        };
        let markup = tiles(&[tile]).into_string();
        assert!(markup.contains("Submitted over the last hour, between 1.0 and 3.0"), "{markup}");
    }
}
