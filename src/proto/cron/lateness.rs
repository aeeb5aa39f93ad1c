//! The lateness of a periodic job: firings that were missed, and the time from which it is overdue.

use std::time::Duration;

use jiff::Timestamp;

use super::{CatchUp, MISSED_AFTER, Schedule};

const MISSED_COUNTED_MAX: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissedFirings {
    pub latest: Timestamp,
    /// Their number, at most 10 000.
    pub number: usize,
    /// False if there are more of them, which are not counted.
    pub is_exact: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverdueTime {
    pub twice: Duration,
    /// The time from which it is overdue.
    pub at: Timestamp,
}

impl Schedule {
    /// Returns the firings after `last`, the latest that was fired or left out, that are missed at `now` and are
    /// not caught up; none if no firing was missed.
    pub fn missed(
        &self,
        last: Timestamp,
        now: Timestamp,
        catch_up: CatchUp,
    ) -> Option<MissedFirings> {
        let until = now.checked_sub(MISSED_AFTER).ok().filter(|until| *until > last)?;
        let caught_up = catch_up.most();
        let mut found = self.latest(last, until, MISSED_COUNTED_MAX + caught_up);
        found.truncate(found.len().saturating_sub(caught_up));
        let (latest, number) = (*found.last()?, found.len());
        let is_exact = number < MISSED_COUNTED_MAX || found[0] <= self.next_after(last)?;
        Some(MissedFirings { latest, number, is_exact })
    }

    /// Returns the time from which a periodic job is overdue that succeeded last at `from`, or counts from then on,
    /// and whose last job took a time: its second firing after it, when a job of this duration would have ended. A
    /// supervisor may fire a minute late.
    pub fn overdue(&self, from: Timestamp, took: Duration) -> Option<OverdueTime> {
        let second = self.next_after(self.next_after(from)?)?;
        let twice = Duration::try_from(second.duration_since(from)).ok()?;
        let at = second.checked_add(took).ok()?.checked_add(MISSED_AFTER).ok()?;
        Some(OverdueTime { twice, at })
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use jiff::tz::TimeZone;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn schedule(line: &str) -> Schedule {
        Schedule::new(line, TimeZone::UTC).expect(line)
    }

    #[test]
    fn firings_that_nobody_catches_up_are_missed() {
        let hourly = schedule("@hourly");
        let (last, now) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T05:00:10Z"));
        let missed = |catch_up| {
            let missed = hourly.missed(last, now, catch_up);
            missed.map(|missed| (missed.latest.to_string(), missed.number))
        };
        assert_eq!(missed(CatchUp::Skip), Some(("2026-01-01T04:00:00Z".to_owned(), 4)));
        assert_eq!(missed(CatchUp::Once), Some(("2026-01-01T03:00:00Z".to_owned(), 3)));
        assert_eq!(missed(CatchUp::All), None);
        let soon = at("2026-01-01T01:00:30Z");
        assert_eq!(hourly.missed(last, soon, CatchUp::Skip), None, "it still fires");
        let missed = schedule("* * * * * *").missed(Timestamp::UNIX_EPOCH, now, CatchUp::All);
        let missed = missed.expect("many");
        assert_eq!((missed.number, missed.is_exact), (MISSED_COUNTED_MAX, false), "bounded");
        for (seconds, is_exact) in [(10_000, true), (10_001, false)] {
            let last = now - SignedDuration::from_secs(seconds) - MISSED_AFTER;
            let missed = schedule("* * * * * *").missed(last, now, CatchUp::Skip).expect("many");
            assert_eq!((missed.number, missed.is_exact), (MISSED_COUNTED_MAX, is_exact));
        }
    }

    #[test]
    fn periodic_job_is_overdue_from_its_second_firing_on() {
        for (line, from, took_s, overdue) in [
            ("0 3 * * *", "2026-11-23T03:10:00Z", 600, "2026-11-25T03:11:00Z"),
            // After a Friday the second firing is on Tuesday.
            ("0 9 * * 1-5", "2026-11-27T09:00:01Z", 1, "2026-12-01T09:01:01Z"),
            // One that runs for longer than its interval.
            ("* * * * *", "2026-11-23T12:10:00Z", 600, "2026-11-23T12:23:00Z"),
        ] {
            let overdue_at = schedule(line).overdue(at(from), Duration::from_secs(took_s));
            let overdue_at = overdue_at.expect("it fires");
            assert_eq!(overdue_at.at, at(overdue), "{line}");
            assert!(at(from) + overdue_at.twice <= at(overdue), "{line}");
        }
    }
}
