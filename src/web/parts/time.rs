//! Times and durations as people read them.

use std::time::Duration;

use jiff::Timestamp;
use maud::{Markup, html};

/// Returns a duration in its largest units: `3 ms`, `4.2 s`, `38 s`, `6 min 12 s`, `2 h 4 min`, `12 d`.
pub(in crate::web) fn duration(duration: Duration) -> String {
    let (secs, millis) = (duration.as_secs(), duration.as_millis());
    match secs {
        0 => format!("{millis} ms"),
        1..10 => format!("{}.{} s", secs, duration.subsec_millis() / 100),
        10..60 => format!("{secs} s"),
        60..3600 => two(secs / 60, "min", secs % 60, "s"),
        3600..86_400 => two(secs / 3600, "h", secs / 60 % 60, "min"),
        86_400..864_000 => two(secs / 86_400, "d", secs / 3600 % 24, "h"),
        _ => format!("{} d", secs / 86_400),
    }
}

fn two(large: u64, of_large: &str, small: u64, of_small: &str) -> String {
    match small {
        0 => format!("{large} {of_large}"),
        _ => format!("{large} {of_large} {small} {of_small}"),
    }
}

/// Returns the time from one to the other; zero if they are reversed, since clocks differ.
pub(in crate::web) fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// Longer ages are dates.
const RELATIVE_MAX: Duration = Duration::from_hours(24);

/// Returns an age in one unit: `14 s`, `2 min`, `3 h`; after 24 h the date.
fn age(age: Duration, at: Timestamp) -> String {
    match age.as_secs() {
        secs @ 0..60 => format!("{secs} s"),
        secs @ 60..3600 => format!("{} min", secs / 60),
        secs @ 3600..86_400 => format!("{} h", secs / 3600),
        _ => at.strftime("%Y-%m-%d %H:%M").to_string(),
    }
}

/// Returns how long ago a time was, with the time itself in its title. The script keeps it current.
pub(in crate::web) fn ago(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(rfc3339(at)) title=(rfc3339(at)) data-ago { (age(elapsed(at, now), at)) } }
}

/// Returns the same of a time that may be unknown.
pub(in crate::web) fn ago_or_dash(at: Option<Timestamp>, now: Timestamp) -> Markup {
    html! { @if let Some(at) = at { (ago(at, now)) } @else { "–" } }
}

/// Returns how long ago a time was as a part of a sentence: `2 min ago`, and after 24 h the date. The script keeps all of it
/// current.
pub(in crate::web) fn was(at: Timestamp, now: Timestamp) -> Markup {
    let ago = if elapsed(at, now) < RELATIVE_MAX { " ago" } else { "" };
    let text = age(elapsed(at, now), at) + ago;
    html! { time datetime=(rfc3339(at)) title=(rfc3339(at)) data-was { (text) } }
}

/// Returns a time that the API names, in RFC 3339.
pub(in crate::web) fn time_of(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// Returns how long ago such a time was, as a part of a sentence.
pub(in crate::web) fn was_at(text: &str, now: Timestamp) -> Markup {
    html! { @if let Some(at) = time_of(text) { (was(at, now)) } }
}

/// Returns how far a time is away, as `in 17 min`; `now` for a past time, the date after 24 h.
pub(in crate::web) fn until(at: Timestamp, now: Timestamp) -> Markup {
    let text = match elapsed(now, at) {
        Duration::ZERO => "now".to_owned(),
        left if left >= RELATIVE_MAX => age(left, at),
        left => format!("in {}", age(left, at)),
    };
    html! { time datetime=(rfc3339(at)) title=(rfc3339(at)) data-until { (text) } }
}

/// Returns the time of day in UTC. The script writes it in the zone of its reader.
pub(in crate::web) fn instant(at: Timestamp) -> Markup {
    html! {
        time datetime=(rfc3339(at)) title=(rfc3339(at)) data-clock { (at.strftime("%H:%M:%S")) }
    }
}

/// Returns a time in RFC 3339 with milliseconds.
fn rfc3339(at: Timestamp) -> String {
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_their_largest_units() {
        for (millis, shown) in [
            (3, "3 ms"),
            (4_250, "4.2 s"),
            (38_900, "38 s"),
            (372_000, "6 min 12 s"),
            (360_000, "6 min"),
            (7_440_000, "2 h 4 min"),
            (1_036_800_000, "12 d"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), shown);
        }
    }

    #[test]
    fn times_are_relative_with_the_absolute_one_in_the_title() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        let shown = ago(at(100), at(240)).into_string();
        assert!(shown.contains("title=\"1970-01-01T00:01:40.000Z\""), "{shown}");
        assert!(shown.ends_with(">2 min</time>"), "{shown}");
        assert!(ago(at(100), at(90_000)).into_string().contains(">1970-01-01 00:01<"));
        assert!(until(at(1120), at(100)).into_string().contains(">in 17 min<"));
        assert!(until(at(100), at(120)).into_string().contains(">now<"));
        assert!(until(at(90_000), at(100)).into_string().contains(">1970-01-02 01:00<"));
        assert!(was(at(100), at(240)).into_string().ends_with(" data-was>2 min ago</time>"));
        assert!(was(at(100), at(90_000)).into_string().ends_with("00:01</time>"));
    }
}
