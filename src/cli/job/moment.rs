//! A moment as people write it: a time, or a duration ago.

use jiff::Timestamp;

use crate::config::parse_duration;
use crate::error::{Error, Exit};

/// Parses a time, or a duration before now.
pub(in crate::cli) fn since(text: &str, now: Timestamp) -> Result<Timestamp, Error> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let ago = parse_duration(text).ok().and_then(|ago| now.checked_sub(ago).ok());
    ago.ok_or_else(|| {
        let message = "--since: expected a duration such as 10m, or a time in RFC 3339 such as \
                       2026-12-24T18:00:00+01:00";
        Error::new(Exit::Data, message)
    })
}
