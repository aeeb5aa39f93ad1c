//! The time line of attempts: one axis from the creation to now. Attempts are blocks, waits are thin lines.

use std::time::Duration;

use jiff::Timestamp;
use maud::{Markup, html};

use super::super::parts::{duration, elapsed};
use super::attempts::ShownAttempt;

const WIDTH: f64 = 700.0;
/// The least width of a block and of a wait.
const LEAST: f64 = 2.0;
/// The maximum number of marks on the axis.
const MARKS_MAX: u64 = 5;
/// The distances of marks, in seconds.
const STEPS: [u64; 20] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400,
    172_800, 604_800,
];

#[derive(Debug, Clone, PartialEq)]
struct Span {
    /// The class of a state.
    class: &'static str,
    /// The place in the list of attempts; `None` for a wait.
    attempt: Option<usize>,
    left: f64,
    width: f64,
}

struct Axis {
    start: Timestamp,
    length: f64,
}

impl Axis {
    fn of(start: Timestamp, end: Timestamp) -> Self {
        Self { start, length: elapsed(start, end).as_secs_f64().max(0.001) }
    }

    /// Returns the place of a moment, within the axis.
    fn place(&self, at: Timestamp) -> f64 {
        (elapsed(self.start, at).as_secs_f64() / self.length).clamp(0.0, 1.0) * WIDTH
    }
}

/// Returns the first and the last moment of a time line.
fn ends(
    created: Option<Timestamp>,
    attempts: &[ShownAttempt],
    now: Timestamp,
) -> Option<(Timestamp, Timestamp)> {
    let first = attempts.iter().map(|attempt| attempt.started).min()?;
    let start = created.map_or(first, |created| created.min(first));
    let is_running = attempts.iter().any(|attempt| attempt.class == "running");
    let last = attempts.iter().map(|attempt| attempt.ended.unwrap_or(attempt.started)).max()?;
    Some((start, if is_running { last.max(now) } else { last }))
}

fn spans(attempts: &[ShownAttempt], axis: &Axis, now: Timestamp) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut free = axis.start;
    for (place, attempt) in attempts.iter().enumerate() {
        let (from, to) = (axis.place(free), axis.place(attempt.started));
        if to - from > LEAST {
            let class = if place == 0 { "queued" } else { "scheduled" };
            spans.push(Span { class, attempt: None, left: from, width: to - from - 1.0 });
        }
        let end = attempt.ended.unwrap_or(now).max(attempt.started);
        let left = to.min(WIDTH - LEAST);
        let width = (axis.place(end) - left).max(LEAST);
        spans.push(Span { class: attempt.class, attempt: Some(place), left, width });
        free = free.max(end);
    }
    spans
}

/// Returns the moments of the marks, as seconds after the start.
fn marks(length: f64) -> Vec<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
    let whole = length as u64;
    let step = STEPS.into_iter().find(|step| whole / step <= MARKS_MAX);
    let step = step.unwrap_or((whole / MARKS_MAX).max(1));
    (1..=whole / step).map(|number| number * step).collect()
}

pub(super) fn drawn(
    created: Option<Timestamp>,
    attempts: &[ShownAttempt],
    now: Timestamp,
) -> Markup {
    let Some((start, end)) = ends(created, attempts, now) else { return html! {} };
    let axis = Axis::of(start, end);
    html! {
        svg.tl.wide viewBox="0 0 700 46" role="img" aria-label=(label(attempts, now)) {
            @for span in spans(attempts, &axis, now) {
                g class=(span.class) {
                    @match span.attempt.and_then(|place| attempts.get(place)) {
                        None => { rect.soft x=(x(span.left)) y="12" width=(x(span.width)) height="2" {} }
                        Some(attempt) => { (block(&span, attempt)) }
                    }
                }
            }
            line x1="0" x2="700" y1="26" y2="26" {}
            text x="0" y="42" { (start.strftime("%H:%M:%S")) " UTC" }
            @for mark in marks(axis.length) {
                @let place = mark_place(mark, axis.length);
                line x1=(x(place)) x2=(x(place)) y1="26" y2="30" {}
                @if place > 90.0 {
                    text x=(x(place)) y="42" text-anchor=(if place > 660.0 { "end" } else { "middle" }) {
                        (duration_of(mark))
                    }
                }
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a place on a screen")]
fn mark_place(mark: u64, length: f64) -> f64 {
    mark as f64 / length * WIDTH
}

fn x(place: f64) -> String {
    format!("{place:.1}")
}

fn duration_of(seconds: u64) -> String {
    // Whole seconds, without the tenths of a short duration.
    if seconds < 10 { format!("{seconds} s") } else { duration(Duration::from_secs(seconds)) }
}

fn block(span: &Span, attempt: &ShownAttempt) -> Markup {
    let (left, width) = (span.left, span.width);
    html! {
        rect.soft x=(x(left)) y="4" width=(x(width)) height="18" rx="2" {}
        rect x=(x(left)) y="4" width=(x(width.min(3.0))) height="18" {}
        @if let (Some(number), true) = (attempt.number, width > 20.0) {
            text.cap x=(x(left + 9.0)) y="17" { (number) }
        }
        @if span.class == "running" {
            rect.pulse x=(x(left + width - 3.0)) y="4" width="3" height="18" {}
        } @else if width > 44.0 {
            use.error-g[span.class == "error"] href={ "#s-" (span.class) } x=(x(left + width - 15.0)) y="7"
                width="12" height="12" {}
        }
    }
}

fn label(attempts: &[ShownAttempt], now: Timestamp) -> String {
    let each: Vec<String> = attempts
        .iter()
        .map(|attempt| {
            let name = attempt.number.map_or("an attempt".to_owned(), |n| format!("attempt {n}"));
            let took = duration(elapsed(attempt.started, attempt.ended.unwrap_or(now)));
            match attempt.class {
                "running" => format!("{name} has run for {took}"),
                _ => format!("{name} ran {took}: {}", attempt.word.to_lowercase()),
            }
        })
        .collect();
    format!("Time line: {}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).expect("in range")
    }

    fn attempt(number: u64, from: i64, to: Option<i64>) -> ShownAttempt {
        ShownAttempt {
            number: Some(number),
            started: at(from),
            ended: to.map(at),
            actor: String::new(),
            machine: String::new(),
            class: if to.is_some() { "error" } else { "running" },
            word: if to.is_some() { "Error" } else { "Running" },
            error: String::new(),
        }
    }

    #[test]
    fn attempts_and_waits_lie_on_one_axis_without_overlap() {
        let attempts = [attempt(1, 10, Some(20)), attempt(2, 50, None)];
        let (start, end) = ends(Some(at(0)), &attempts, at(100)).expect("attempts");
        let spans = spans(&attempts, &Axis::of(start, end), at(100));
        let kinds: Vec<(&str, Option<usize>)> =
            spans.iter().map(|span| (span.class, span.attempt)).collect();
        assert_eq!(
            kinds,
            [("queued", None), ("error", Some(0)), ("scheduled", None), ("running", Some(1))]
        );
        for pair in spans.windows(2) {
            assert!(pair[0].left + pair[0].width <= pair[1].left + 0.1, "{pair:?}");
        }
        let last = &spans[3];
        assert!((last.left + last.width - WIDTH).abs() < 0.1, "{last:?}");
    }

    #[test]
    fn clocks_that_differ_leave_the_axis_whole() {
        let attempts = [attempt(1, 5, Some(2)), attempt(2, 2, Some(2)), attempt(3, 900, None)];
        let (start, end) = ends(Some(at(50)), &attempts, at(0)).expect("attempts");
        for span in spans(&attempts, &Axis::of(start, end), at(0)) {
            assert!(span.left >= 0.0 && span.width > 0.0, "{span:?}");
            assert!(span.left + span.width <= WIDTH + 0.1, "{span:?}");
        }
    }

    #[test]
    fn axis_has_a_few_marks_for_any_length() {
        for length in [0.001, 0.9, 4.2, 128.0, 3_600.0, 90_000.0, 40_000_000.0] {
            assert!(marks(length).len() as u64 <= MARKS_MAX + 1, "{length}");
        }
        assert_eq!(marks(122.0), [30, 60, 90, 120]);
    }

    #[test]
    fn label_says_the_same_in_words() {
        let text = label(&[attempt(1, 0, Some(10)), attempt(2, 20, None)], at(58));
        assert_eq!(text, "Time line: attempt 1 ran 10 s: error, attempt 2 has run for 38 s");
    }
}
