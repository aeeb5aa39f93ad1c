//! The heartbeat: asks the fetch loop for progress, keeps presence and lease fresh, and only then
//! says that the process is alive. It shares nothing with the scripts.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::time::MissedTickBehavior;
use tracing::{debug, info, warn};

use super::identity::presence_of_all;
use super::life::Life;
use super::machine;
use crate::proto::report::Report;
use crate::store::Backoff;

/// A fetch loop that has not gone round for this long is stuck: five times what it takes at most.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// Beats until the lease is lost; never returns otherwise. With Redis away it beats more often: a
/// lease that ran out meanwhile must be renewed before any supervisor takes this boot for dead.
pub(super) async fn run(life: &Life, every: Duration, started_at: Timestamp) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut backoff = Backoff::default();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = life.vitals.news.notified() => {}
            () = life.vitals.lease_lost.notified() => return,
        }
        look_at_machine(life);
        let presence = presence_of_all(life, started_at);
        let asked_at = Instant::now();
        match life.store.heartbeat(&life.boot, life.lease, &presence).await {
            Ok(true) => {
                life.vitals.leased(asked_at, life.lease);
                backoff.succeeded();
                debug!("heartbeat");
            }
            Ok(false) => return,
            Err(error) if error.is_transient() => {
                ticks.reset_after(backoff.failed().min(every));
                if life.vitals.redis_went(Instant::now()) {
                    warn!("{error}; running jobs go on, trying again");
                }
            }
            Err(error) => warn!("cannot keep presence and lease: {error}"),
        }
        if life.vitals.since_turn() < STUCK_AFTER {
            (life.report)(Report::Alive(status(life)));
        } else {
            warn!("the fetch loop makes no progress");
        }
    }
}

/// Looks whether the machine is past what it may be used for, and lets the fetch loop know.
pub(super) fn look_at_machine(life: &Life) {
    let strain = machine::strain(&life.settings().actor);
    let said = strain.clone();
    if life.vitals.strained(strain) {
        if let Some(reason) = said {
            warn!("takes no jobs for now: {reason}");
        } else {
            info!("takes jobs again: the machine is within its bounds");
        }
        life.vitals.strain_changed.notify_one();
    }
}

/// One line for a person: `2 of 4 tasks busy, 18 231 done, redis ok`.
fn status(life: &Life) -> String {
    let vitals = &life.vitals;
    let running: usize = vitals.actors.iter().map(|a| a.running.load(Ordering::Relaxed)).sum();
    let tasks: usize = life.settings().actors.iter().map(|actor| actor.tasks).sum();
    let done = grouped(vitals.done.load(Ordering::Relaxed));
    let redis = match vitals.away_since() {
        Some(since) => format!("redis away for {} s", since.elapsed().as_secs()),
        None => "redis ok".to_owned(),
    };
    let draining = vitals.actors.iter().filter(|a| a.draining.load(Ordering::Relaxed)).count();
    let held = vitals.strain().map(|reason| format!(", holding: {reason}")).unwrap_or_default();
    let drains = if draining > 0 { ", draining" } else { "" };
    format!("{running} of {tasks} tasks busy, {done} done, {redis}{held}{drains}")
}

/// A number in groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (18_231, "18 231")] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped(1_234_567), "1 234 567");
    }
}
