//! The time of day, in UTC.

use ::rhai::INT;
use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;

use super::context::{CallResult, operation};
use crate::engine::rhai::functions::Functions;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.group("time", "The time of day, in UTC.");
    functions.add(
        "time_now",
        [],
        "Returns the time in whole seconds since 1970.",
        r"
let day = time_now() / 86400;
day > 20000
// → true",
        || Timestamp::now().as_second(),
    );
    functions.add(
        "time_now_ms",
        [],
        "Returns the time in milliseconds since 1970.",
        r"
let before = time_now_ms();
time_now_ms() - before < 60000
// → true",
        || Timestamp::now().as_millisecond(),
    );
    functions.add(
        "time_format",
        ["seconds", "format"],
        "Formats a time with the directives of strftime, such as %Y %m %d %H %M %S.",
        r#"
time_format(0, "%Y-%m-%d %H:%M:%S")
// → 1970-01-01 00:00:00"#,
        |seconds: INT, format: &str| {
            operation("time_format", format, |_| {
                let time = timestamp(seconds)?.to_zoned(TimeZone::UTC);
                Ok(strtime::format(format, &time).map_err(|error| error.to_string())?)
            })
        },
    );
    functions.add(
        "time_iso",
        ["seconds"],
        "Formats a time as RFC 3339.",
        r"
time_iso(86400)
// → 1970-01-02T00:00:00Z",
        |seconds: INT| {
            operation("time_iso", &seconds.to_string(), |_| Ok(timestamp(seconds)?.to_string()))
        },
    );
    functions.act_on(
        "time_parse",
        "text",
        "Parses a time in RFC 3339, and returns its seconds since 1970.",
        r#"
time_parse("1970-01-02T01:00:00+01:00")
// → 86400"#,
        |_, text| {
            let time: Timestamp = text.parse().map_err(|error: jiff::Error| error.to_string())?;
            Ok(time.as_second())
        },
    );
}

fn timestamp(seconds: INT) -> CallResult<Timestamp> {
    Timestamp::from_second(seconds).map_err(|_| "the time is out of range".into())
}
