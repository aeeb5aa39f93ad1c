//! Histograms of times, as counters of a script type: how long attempts waited, and how long they ran.

use crate::proto::word_table::words;
use std::time::Duration;

words! {
    TimeHistogram;
    /// From the dispatch of an attempt to its start.
    Wait = "wait",
    /// From the start of an attempt to its end.
    Run = "run",
}

/// The upper bounds of the buckets, as text in seconds and in microseconds. A longer time is in the
/// bucket `inf`.
const BUCKETS: [(&str, u64); 12] = [
    ("0.001", 1_000),
    ("0.005", 5_000),
    ("0.025", 25_000),
    ("0.1", 100_000),
    ("0.5", 500_000),
    ("1", 1_000_000),
    ("5", 5_000_000),
    ("30", 30_000_000),
    ("60", 60_000_000),
    ("300", 300_000_000),
    ("1800", 1_800_000_000),
    ("7200", 7_200_000_000),
];

impl TimeHistogram {
    /// Returns the counters that a time adds to, and by how much: its bucket, and the sum in
    /// microseconds.
    pub fn counts(self, time: Duration) -> [(String, u64); 2] {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX >> 12);
        let bucket = BUCKETS.iter().find(|(_, most)| us <= *most).map_or("inf", |(name, _)| name);
        let word = self.as_str();
        [(format!("{word}_le_{bucket}"), 1), (format!("{word}_us"), us)]
    }

    pub fn counters(self) -> impl Iterator<Item = String> {
        let word = self.as_str();
        let buckets = BUCKETS.map(|(name, _)| name).into_iter().chain(["inf"]);
        buckets.map(move |name| format!("{word}_le_{name}")).chain([format!("{word}_us")])
    }

    pub fn read(self, counter: impl Fn(&str) -> u64) -> Times {
        let word = self.as_str();
        let mut number = 0;
        let mut up_to = |bucket: &str| {
            number += counter(&format!("{word}_le_{bucket}"));
            number
        };
        let buckets = BUCKETS.map(|(name, most)| (name, Duration::from_micros(most), up_to(name)));
        Times {
            buckets,
            number: up_to("inf"),
            sum: Duration::from_micros(counter(&format!("{word}_us"))),
        }
    }
}

/// The times of all attempts of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// The upper bound of each bucket, as text in seconds and as a duration, with the number of times
    /// up to it.
    pub buckets: [(&'static str, Duration, u64); BUCKETS.len()],
    pub number: u64,
    pub sum: Duration,
}

impl Times {
    /// Their mean; `None` if there are none.
    pub fn mean(&self) -> Option<Duration> {
        (self.number > 0).then(|| self.sum.div_f64(count(self.number)))
    }

    /// Returns a time that at least this share of them are not above: the least that the buckets and the sum allow to
    /// say, rounded up. The times themselves are not known, so it may be above the longest of them. `None` if there
    /// are none, or if it is above the last bucket.
    pub fn at_most(&self, share: f64) -> Option<Duration> {
        let rank = (share * count(self.number)).ceil().max(1.0);
        let (mut from, mut before) = (Duration::ZERO, 0);
        for (_, most, number) in self.buckets {
            if number > 0 && count(number) >= rank {
                let by_sum = self.most_at(rank, (from, before), number);
                return Some(rounded_up(most.min(by_sum).max(from)));
            }
            (from, before) = (most, number);
        }
        None
    }

    /// Returns the longest time that the one of this rank can have, as all that are not below it share
    /// the sum with the others. Its bucket begins at `from`, with `before` times before it and `number` up
    /// to its end.
    fn most_at(&self, rank: f64, (from, before): (Duration, u64), number: u64) -> Duration {
        let (mut others, mut lower, mut read) = (Duration::ZERO, Duration::ZERO, 0);
        let last = std::iter::once((Duration::ZERO, self.number));
        for (most, up_to) in self.buckets.iter().map(|of| (of.1, of.2)).chain(last) {
            if lower != from {
                others += lower.mul_f64(count(up_to.saturating_sub(read)));
            }
            (lower, read) = (most, up_to);
        }
        let not_below = (count(number) - rank + 1.0).max(1.0);
        let below = (count(number.saturating_sub(before)) - not_below).max(0.0);
        others += from.mul_f64(below);
        self.sum.saturating_sub(others).div_f64(not_below)
    }

    /// Returns the times that have come since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut times = self.clone();
        for (bucket, before) in times.buckets.iter_mut().zip(earlier.buckets) {
            bucket.2 = bucket.2.saturating_sub(before.2);
        }
        times.number = self.number.saturating_sub(earlier.number);
        times.sum = self.sum.saturating_sub(earlier.sum);
        times
    }
}

/// Rounds up to two digits, and to whole minutes from an hour on.
fn rounded_up(time: Duration) -> Duration {
    const HOUR_US: u64 = 3_600_000_000;
    // The parts of a microsecond come from divisions of a sum of whole ones.
    let us = u64::try_from((time.as_nanos() + 500) / 1000).unwrap_or(u64::MAX >> 12);
    let mut step = 1;
    while us / step > 99 {
        step *= 10;
    }
    if us >= HOUR_US {
        step = HOUR_US / 60;
    }
    Duration::from_micros(us.div_ceil(step) * step)
}

#[expect(clippy::cast_precision_loss, reason = "no counter comes near 2^53")]
fn count(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn times(all: &[u64]) -> Times {
        let mut counters = BTreeMap::new();
        for ms in all {
            for (name, by) in TimeHistogram::Run.counts(Duration::from_millis(*ms)) {
                *counters.entry(name).or_default() += by;
            }
        }
        TimeHistogram::Run.read(|name| counters.get(name).copied().unwrap_or_default())
    }

    #[test]
    fn what_is_counted_is_read() {
        let times = times(&[1, 2, 400, 10_000_000]);
        assert_eq!((times.number, times.sum), (4, Duration::from_millis(10_000_403)));
        let up_to = |name| times.buckets.iter().find(|(of, ..)| *of == name).map(|(.., n)| *n);
        assert_eq!(
            [up_to("0.001"), up_to("0.005"), up_to("0.5"), up_to("7200")]
                .map(Option::unwrap_or_default),
            [1, 2, 3, 3]
        );
    }

    #[test]
    fn bound_lies_in_the_bucket_of_its_time() {
        let times = times(&[2, 3, 4, 4, 200]);
        let ms = |share| times.at_most(share).map(|time| time.as_millis());
        assert!((1..=5).contains(&ms(0.5).expect("a time")), "{:?}", ms(0.5));
        assert!((100..=500).contains(&ms(0.95).expect("a time")), "{:?}", ms(0.95));
        assert_eq!(times.mean(), Some(Duration::from_micros(42_600)));
    }

    #[test]
    fn bound_is_near_the_longest_time_where_the_sum_says_so() {
        // The bucket of a minute that was exceeded ends at five minutes.
        let times = times(&[100, 100, 100, 60_500]);
        assert_eq!(times.at_most(0.95), Some(Duration::from_secs(61)));
    }

    #[test]
    fn bound_has_two_digits_and_whole_minutes_from_an_hour_on() {
        let shown = |us| rounded_up(Duration::from_micros(us)).as_micros();
        let cases = [(0, 0), (99, 99), (340, 340), (341, 350), (975_001, 980_000)];
        assert_eq!(cases.map(|(us, _)| shown(us)), cases.map(|(_, rounded)| rounded));
        assert_eq!([shown(3_541_000_000), shown(3_601_000_000)], [3_600_000_000, 3_660_000_000]);
        assert_eq!(rounded_up(Duration::from_nanos(1_000_000_001)), Duration::from_secs(1));
    }

    proptest! {
        #[test]
        fn share_of_the_times_is_not_above_the_bound(
            all in proptest::collection::vec(0_u64..7_000_000, 1..30), share in 0.01_f64..1.0,
        ) {
            let shown = times(&all).at_most(share).expect("a time");
            let not_above = all.iter().filter(|ms| Duration::from_millis(**ms) <= shown).count();
            prop_assert!(count(not_above as u64) >= share * count(all.len() as u64), "{shown:?}");
        }
    }

    #[test]
    fn nothing_has_no_mean_and_what_is_above_the_last_bucket_no_bound() {
        let none = times(&[]);
        assert_eq!((none.mean(), none.at_most(0.95)), (None, None));
        assert_eq!(times(&[10_000_000]).at_most(0.5), None);
    }

    #[test]
    fn later_reading_less_an_earlier_one_is_what_came_between() {
        assert_eq!(times(&[1, 2, 400]).since(&times(&[2])), times(&[1, 400]));
    }
}
