//! The last hour as tiles: from the samples of supervisors, minute by minute, or without a history.

use std::time::Duration;

use super::super::parts::{Tile, count, duration, percent, rate, things};
use super::super::snapshot::SiteSnapshot;
use crate::store::LastHour;
use crate::view::Minute;

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

pub(super) fn percent_of(part: u64, whole: u64) -> String {
    percent(float(part), float(whole))
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

#[cfg(test)]
mod tests {
    use super::super::super::snapshot::tests::site_snapshot;
    use super::*;

    fn minute(submitted: u64, finished: u64, failed: u64) -> Minute {
        let wait_p95 = Some(Duration::from_millis(1800));
        let length = Duration::from_mins(1);
        Minute { length, submitted, finished, failed, running: 3, wait_p95 }
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
}
