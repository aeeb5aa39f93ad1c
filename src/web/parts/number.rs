//! Numbers as people read them.

use maud::{Markup, html};

/// Returns a number with a narrow space between thousands.
pub(in crate::web) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + 6);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Returns a number with its noun: `1 job`, `3 jobs`.
pub(in crate::web) fn things(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Returns a rate with one decimal below 100: `38.2`, `0.4`, `1 240`.
pub(in crate::web) fn rate(per_second: f64) -> String {
    if per_second >= 99.95 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        return count(per_second.round() as u64);
    }
    format!("{per_second:.1}")
}

/// Returns a share as `1.1 %`, with no decimal from 10 % on and for 0.
pub(in crate::web) fn percent(part: f64, whole: f64) -> String {
    let percent = if whole > 0.0 { part / whole * 100.0 } else { 0.0 };
    if percent == 0.0 || percent >= 9.95 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// Returns the share of a number in another.
#[expect(clippy::cast_precision_loss, reason = "no counter comes near 2^53")]
pub(in crate::web) fn percent_of(part: u64, whole: u64) -> String {
    percent(part as f64, whole as f64)
}

/// Returns a bar with its numbers as text, `6 of 8`.
pub(in crate::web) fn meter(part: usize, whole: usize, width: usize) -> Markup {
    let filled = part.min(whole) * width * 10 / whole.max(1);
    html! {
        span.meter {
            svg.running width=(width) height="6" aria-hidden="true" {
                rect.m-t width=(width) height="6" rx="2" {}
                rect.m-v width={ (filled / 10) "." (filled % 10) } height="6" rx="2" {}
            }
            span { (part) " of " (whole) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_rounded_for_people() {
        assert_eq!(count(51_932), "51\u{202f}932");
        assert_eq!((count(0), count(999)), ("0".to_owned(), "999".to_owned()));
        assert_eq!((things(1, "job"), things(0, "job")), ("1 job".to_owned(), "0 jobs".to_owned()));
        assert_eq!((rate(38.24), rate(0.0)), ("38.2".to_owned(), "0.0".to_owned()));
        assert_eq!(rate(1240.4), "1\u{202f}240");
        let shares = [percent(0.0, 0.0), percent(1.0, 90.0), percent(1.0, 4.0)];
        assert_eq!(shares, ["0 %", "1.1 %", "25 %"]);
    }
}
