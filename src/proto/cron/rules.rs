//! The firings of a schedule with its rules: a delay that spreads periodic jobs of one time, and days on which nothing fires.

use std::time::Duration;

use jiff::{Timestamp, ToSpan};
use ring::digest::{SHA256, digest};

use super::{Calendar, CronName, Schedule};

const SPREAD_MAX: Duration = Duration::from_hours(24);
/// The most days in a row that a calendar leaves out.
const LEFT_OUT_MAX: usize = 5000;

impl Schedule {
    /// Returns it with a delay of at most `spread`, which depends on the name alone.
    pub fn with_spread(mut self, name: &CronName, spread: Duration) -> Result<Self, String> {
        if spread > SPREAD_MAX {
            return Err("is longer than a day".to_owned());
        }
        self.rules.spread = spread;
        self.rules.delay = delay_of(name.as_str(), spread);
        Ok(self)
    }

    pub fn start_at_once(&mut self) {
        (self.rules.spread, self.rules.delay) = (Duration::ZERO, Duration::ZERO);
    }

    /// Returns it without the firings on the days of a calendar, in its time zone.
    pub fn with_calendar(mut self, calendar: Calendar) -> Result<Self, String> {
        let name = calendar.name().clone();
        self.rules.calendar = Some(calendar);
        match self.next_after(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(self),
            None => Err(format!("never fires: the calendar {name} leaves out all its days")),
        }
    }

    /// The longest delay of its firings, and the delay that they have.
    pub fn spread(&self) -> (Duration, Duration) {
        (self.rules.spread, self.rules.delay)
    }

    pub fn calendar(&self) -> Option<&Calendar> {
        self.rules.calendar.as_ref()
    }

    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let mut from = time.checked_sub(self.rules.delay).unwrap_or(Timestamp::MIN);
        for _ in 0..LEFT_OUT_MAX {
            let at = self.next_of_line(from)?;
            let date = self.zone.to_datetime(at).date();
            let Some(calendar) = self.rules.calendar.as_ref().filter(|of| of.has(date)) else {
                return at.checked_add(self.rules.delay).ok();
            };
            // The first second of the day after the last of these days.
            let mut day = date;
            for _ in 0..LEFT_OUT_MAX {
                day = day.tomorrow().ok()?;
                if !calendar.has(day) {
                    break;
                }
            }
            let begin = day.to_zoned(self.zone.clone()).ok()?.timestamp();
            from = begin.checked_sub(1.second()).ok()?.max(at);
        }
        None
    }
}

/// Returns a delay of at most `spread`, in whole seconds, which depends on a name alone.
pub fn delay_of(name: &str, spread: Duration) -> Duration {
    let hash = digest(&SHA256, name.as_bytes());
    let number =
        hash.as_ref().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    Duration::from_secs(number % (spread.as_secs() + 1))
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::*;
    use crate::proto::cron::FreeDays;

    fn plain(line: &str, zone: &str) -> Schedule {
        Schedule::new(line, TimeZone::get(zone).expect("a zone")).expect(line)
    }

    fn calendar(days: &[&str]) -> Calendar {
        let days = days.iter().map(|day| day.parse().expect(day)).collect();
        Calendar::new("free".parse().expect("legal"), days)
    }

    fn next(schedule: &Schedule, from: &str) -> String {
        let next = schedule.next_after(from.parse().expect("a time"));
        next.expect("it fires").to_string()
    }

    #[test]
    fn nothing_fires_on_the_days_of_a_calendar() {
        let free = calendar(&["SAT", "SUN", "12-25", "2026-12-28..2026-12-30"]);
        let daily = plain("0 1 * * *", "Europe/Brussels").with_calendar(free).expect("it fires");
        // Thursday the 24th, then Thursday the 31st.
        assert_eq!(next(&daily, "2026-12-23T12:00:00Z"), "2026-12-24T00:00:00Z");
        assert_eq!(next(&daily, "2026-12-24T00:00:00Z"), "2026-12-31T00:00:00Z");
        let weekly = plain("0 1 * * SAT", "UTC").with_calendar(calendar(&["SAT"]));
        let error = weekly.expect_err("it never fires");
        assert_eq!(error, "never fires: the calendar free leaves out all its days");
    }

    #[test]
    fn spread_delays_by_a_time_of_the_name_and_a_day_is_the_day_of_the_line() {
        let spread = Duration::from_mins(10);
        let delay = |name: &str| delay_of(name, spread).as_secs();
        let delays = ["a", "b", "c", "d", "backup", "report"].map(delay);
        assert_eq!(delays, ["a", "b", "c", "d", "backup", "report"].map(delay), "stable");
        assert!(delays.iter().all(|delay| *delay <= 600), "{delays:?}");
        assert!(delays.iter().any(|delay| *delay != delays[0]), "{delays:?}");
        let name: CronName = "backup".parse().expect("legal");
        let late = plain("59 23 * * *", "UTC").with_spread(&name, spread).expect("legal");
        let late = late.with_calendar(calendar(&["2026-01-02"])).expect("it fires");
        let delay = late.spread().1;
        let first = "2026-01-01T23:59:00Z".parse::<Timestamp>().expect("a time") + delay;
        assert_eq!(next(&late, "2026-01-01T00:00:00Z"), first.to_string());
        let third = "2026-01-03T23:59:00Z".parse::<Timestamp>().expect("a time") + delay;
        assert_eq!(next(&late, &first.to_string()), third.to_string());
        let plain = plain("* * * * *", "UTC");
        assert!(plain.with_spread(&name, Duration::from_hours(25)).is_err());
    }

    proptest! {
        #[test]
        fn firings_are_those_of_the_line_without_the_days_and_later_by_the_delay(
            line in proptest::sample::select(vec![
                "*/7 * * * *", "30 2 * * *", "0 1-3 * * 1-5", "0 0 1 * *", "45 23 * * *",
            ]),
            zone in proptest::sample::select(vec![
                "UTC", "Europe/Brussels", "America/Havana", "Australia/Lord_Howe",
            ]),
            start in 1_774_000_000_i64..1_800_000_000,
            weekdays in proptest::collection::vec(proptest::sample::select(vec!["MON", "WED", "SUN"]), 0..3),
            range in (0_i32..300, 0_i32..40),
            spread_s in 0_u64..7200,
        ) {
            let begin = Timestamp::from_second(start).expect("in range");
            let base = plain(line, zone);
            let first: Date = TimeZone::UTC.to_datetime(begin).date() + i64::from(range.0).days();
            let mut days: Vec<FreeDays> = weekdays.iter().map(|day| day.parse().expect("legal")).collect();
            days.push(FreeDays::Range(first, first + i64::from(range.1).days()));
            let free = Calendar::new("free".parse().expect("legal"), days);
            let name: CronName = "backup".parse().expect("legal");
            let spread = base.clone().with_spread(&name, Duration::from_secs(spread_s)).expect("legal");
            let spread = spread.with_calendar(free.clone()).expect("it fires");
            let delay = spread.spread().1;
            prop_assert!(delay.as_secs() <= spread_s);
            let number = 40;
            let of_line = std::iter::successors(base.next_after(begin), |at| base.next_after(*at));
            let expected: Vec<Timestamp> = of_line
                .take(60_000)
                .filter(|at| !free.has(base.zone.to_datetime(*at).date()))
                .map(|at| at + delay)
                .take(number)
                .collect();
            let from = begin + delay;
            let next = std::iter::successors(spread.next_after(from), |at| spread.next_after(*at));
            let found: Vec<Timestamp> = next.take(expected.len()).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
