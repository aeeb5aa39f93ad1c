//! Durations and sizes as people spell them: a whole number and its unit.

use std::time::Duration;

/// A number with a unit that cannot be parsed. The message has the expected form and never the
/// value, which may be a misplaced secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    #[error("expected {} with its unit, such as \"{}\"", .0.what, .0.example)]
    Form(&'static AmountKind),
    #[error("expected {} in {}, such as \"{}\"", .0.what, .0.names, .0.example)]
    Unit(&'static AmountKind),
    /// The unit is unknown, and people write it for this one.
    #[error("expected {} in {}, such as \"{}\"; did you mean {}?", .0.what, .0.names, .0.example, .1)]
    Meant(&'static AmountKind, &'static str),
    #[error("expected {}, but the number is too large", .0.what)]
    TooLarge(&'static AmountKind),
}

#[derive(Debug, PartialEq, Eq)]
pub struct AmountKind {
    /// The kind of amount, in words.
    pub what: &'static str,
    pub example: &'static str,
    names: &'static str,
    /// Each unit with its size in the smallest, largest first.
    units: &'static [(&'static str, u64)],
    /// Words that people write for a unit, in small letters, each with that unit.
    meant: &'static [(&'static str, &'static str)],
    /// Several units may follow each other, each smaller than the one before.
    is_compound: bool,
}

pub static DURATION: AmountKind = AmountKind {
    what: "a duration",
    example: "15s",
    names: "ms, s, m, h or d",
    units: &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)],
    meant: &[
        ("sec", "s"),
        ("second", "s"),
        ("min", "m"),
        ("minute", "m"),
        ("hour", "h"),
        ("hr", "h"),
        ("day", "d"),
        ("msec", "ms"),
    ],
    is_compound: true,
};

pub static SIZE: AmountKind = AmountKind {
    what: "a size",
    example: "1MiB",
    names: "B, KB, MB, GB, KiB, MiB or GiB",
    units: &[
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("KB", 1000),
        ("B", 1),
    ],
    meant: &[
        ("k", "KiB"),
        ("m", "MiB"),
        ("g", "GiB"),
        ("kb", "KB"),
        ("mb", "MB"),
        ("gb", "GB"),
        ("kib", "KiB"),
        ("mib", "MiB"),
        ("gib", "GiB"),
        ("b", "B"),
        ("byte", "B"),
    ],
    is_compound: false,
};

/// Parses a duration: `500ms`, `15s`, `15m`, `2h`, `1d`, `1h30m`, `2d4h`.
pub fn parse_duration(text: &str) -> Result<Duration, AmountError> {
    parse(text, &DURATION).map(Duration::from_millis)
}

/// Returns the whole milliseconds of a duration.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Writes a duration in the largest exact unit, without fractions of a millisecond.
pub fn format_duration(duration: Duration) -> String {
    let millis = millis(duration);
    if millis == 0 { "0s".to_owned() } else { format(millis, &DURATION) }
}

/// Parses a size in bytes: `512B`, `64KiB`, `1MiB`, `10MB`.
pub fn parse_size(text: &str) -> Result<u64, AmountError> {
    parse(text, &SIZE)
}

/// Writes a size in the largest exact unit.
pub fn format_size(bytes: u64) -> String {
    format(bytes, &SIZE)
}

/// Writes a size for people, with one digit after the point: `9.9 MiB`.
pub fn readable_size(bytes: u64) -> String {
    let units = [("GiB", 30_u32), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| bytes >> shift > 0) {
        Some((unit, shift)) => {
            let tenths = (u128::from(bytes) * 10 + (1 << (shift - 1))) >> shift;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

pub fn parse(text: &str, kind: &'static AmountKind) -> Result<u64, AmountError> {
    let (mut rest, mut amount, mut units) = (text, 0_u64, kind.units);
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let next = after.find(|c: char| kind.is_compound && c.is_ascii_digit());
        let unit;
        (unit, rest) = after.split_at(next.unwrap_or(after.len()));
        if number.is_empty() || unit.is_empty() {
            return Err(AmountError::Form(kind));
        }
        let at = units.iter().position(|(name, _)| *name == unit);
        let at = at.ok_or_else(|| unknown_unit(unit, kind))?;
        let number: u64 = number.parse().map_err(|_| AmountError::TooLarge(kind))?;
        amount = number
            .checked_mul(units[at].1)
            .and_then(|part| amount.checked_add(part))
            .ok_or(AmountError::TooLarge(kind))?;
        if rest.is_empty() {
            return Ok(amount);
        }
        units = &units[at + 1..];
    }
}

/// Returns the error of a unit that is none; one of several is written with an s.
fn unknown_unit(unit: &str, kind: &'static AmountKind) -> AmountError {
    let unit = unit.trim().to_ascii_lowercase();
    let one = unit.strip_suffix('s').unwrap_or(&unit);
    let meant = kind.meant.iter().find(|(written, _)| *written == unit || *written == one);
    meant.map_or(AmountError::Unit(kind), |(_, meant)| AmountError::Meant(kind, meant))
}

fn format(amount: u64, kind: &AmountKind) -> String {
    kind.units
        .iter()
        .find(|(_, worth)| amount != 0 && amount.is_multiple_of(*worth))
        .or(kind.units.last())
        .map_or_else(String::new, |(name, worth)| format!("{}{name}", amount / worth))
}

/// Formats a duration in its one or two largest units: `340us`, `12ms`, `1.25s`, `3m20s`, `5h02m`, `4d3h`.
pub fn brief(duration: Duration) -> String {
    let secs = duration.as_secs();
    match secs {
        0 if duration.as_millis() == 0 => format!("{}us", duration.as_micros()),
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{:.2}s", duration.as_secs_f64()),
        60..3600 => format!("{}m{:02}s", secs / 60, secs % 60),
        3600..86_400 => format!("{}h{:02}m", secs / 3600, secs / 60 % 60),
        _ if secs % 86_400 < 3600 => format!("{}d", secs / 86_400),
        _ => format!("{}d{}h", secs / 86_400, secs / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_unit_is_read() {
        for (text, millis) in
            [("500ms", 500), ("15s", 15_000), ("15m", 900_000), ("2h", 7_200_000), ("0s", 0)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse_duration("1d"), Ok(Duration::from_hours(24)));
        for (text, seconds) in
            [("1h30m", 5400), ("2d4h", 187_200), ("1m0s", 60), ("1d2h3m4s", 93_784)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse_duration("1s500ms"), Ok(Duration::from_millis(1500)));
        for (text, bytes) in [
            ("512B", 512),
            ("1KB", 1000),
            ("64KiB", 65_536),
            ("10MB", 10_000_000),
            ("1MiB", 1_048_576),
            ("2GB", 2_000_000_000),
            ("1GiB", 1_073_741_824),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn an_illegal_amount_is_rejected_with_the_expected_form() {
        let error = |text| parse_duration(text).expect_err(text).to_string();
        for text in ["", "15", "s", "-15s", "+1s", " 15s", "1h30"] {
            assert_eq!(error(text), "expected a duration with its unit, such as \"15s\"", "{text}");
        }
        for text in ["15 s", "15x", "1.5h", "15S", "30m1h", "1h1h", "1h 30m"] {
            assert_eq!(
                error(text),
                "expected a duration in ms, s, m, h or d, such as \"15s\"",
                "{text}"
            );
        }
        assert_eq!(
            error("99999999999999999999d"),
            "expected a duration, but the number is too large"
        );
        assert_eq!(error("18446744073709551615s"), error("99999999999999999999d"));
        assert_eq!(error("1s18446744073709551615ms"), error("99999999999999999999d"));
        assert!(parse_size("1MiB512KiB").is_err());
        assert_eq!(
            parse_size("1X").expect_err("no such unit").to_string(),
            "expected a size in B, KB, MB, GB, KiB, MiB or GiB, such as \"1MiB\""
        );
    }

    #[test]
    fn the_unit_that_was_meant_is_named() {
        let size = |text: &str| parse_size(text).expect_err(text).to_string();
        let duration = |text: &str| parse_duration(text).expect_err(text).to_string();
        assert!(size("512M").ends_with("; did you mean MiB?"), "{}", size("512M"));
        assert!(size("512mb").ends_with("; did you mean MB?"), "{}", size("512mb"));
        assert!(size("3 gib").ends_with("; did you mean GiB?"), "{}", size("3 gib"));
        assert!(duration("5min").ends_with("; did you mean m?"), "{}", duration("5min"));
        assert!(duration("2hours").ends_with("; did you mean h?"), "{}", duration("2hours"));
        assert!(duration("10 days").ends_with("; did you mean d?"), "{}", duration("10 days"));
        assert!(!duration("5secrets").contains("mean"), "{}", duration("5secrets"));
    }

    #[test]
    fn the_largest_exact_unit_is_written() {
        assert_eq!(format_duration(Duration::from_mins(1)), "1m");
        assert_eq!(format_duration(Duration::from_secs(90)), "90s");
        assert_eq!(format_duration(Duration::from_millis(1500)), "1500ms");
        assert_eq!(format_duration(Duration::ZERO), "0s");
        assert_eq!(format_size(1 << 20), "1MiB");
        assert_eq!(format_size(10_000_000), "10MB");
        assert_eq!(format_size(0), "0B");
        assert_eq!(readable_size(1023), "1023 B");
        assert_eq!(readable_size(1536), "1.5 KiB");
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,40}", number in any::<u128>(), unit in "[a-zA-Z]{0,3}") {
            let _ = (parse_duration(&text), parse_size(&text));
            let text = format!("{number}{unit}");
            let _ = (parse_duration(&text), parse_size(&text));
        }

        #[test]
        fn a_written_amount_reads_back(amount in any::<u64>()) {
            prop_assert_eq!(parse_size(&format_size(amount)), Ok(amount));
            let duration = Duration::from_millis(amount);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
    }
}
