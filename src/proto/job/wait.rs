//! A wait that ends an attempt: for an event, for the ends of other jobs or of its children, or for a time. Pure.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::JobId;
use crate::proto::json_text::compact;
use crate::proto::target::is_word;
use crate::proto::units::parse_duration;

/// The most bytes of what an event brings, as JSON without space between its parts.
pub const EVENT_BYTES_MAX: usize = 64 * 1024;
const JOBS_MAX: usize = 100;
/// The most entries of the list of those who may tell.
const WHO_MAX: usize = 32;
/// The longest name of an event, of a caller or of a group, in bytes.
const NAME_BYTES_MAX: usize = 64;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AskedWait {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The names of those who may tell the event; empty for everybody who may change the job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub who: Vec<String>,
    /// The jobs whose ends end it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobId>,
    /// The ends of all jobs that the script has submitted end it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub children: bool,
    /// The time after which it ends anyway; `None` for the longest.
    #[serde(rename = "for", deserialize_with = "length", skip_serializing)]
    pub length: Option<Duration>,
}

/// Reads a number of seconds, or a text such as `3d`.
fn length<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    use serde::de::Error;
    match Value::deserialize(from)? {
        Value::Null => Ok(None),
        Value::String(text) => {
            parse_duration(&text).map(Some).map_err(|why| Error::custom(format!("`for`: {why}")))
        }
        Value::Number(seconds) => {
            let seconds =
                seconds.as_f64().and_then(|number| Duration::try_from_secs_f64(number).ok());
            seconds.map(Some).ok_or_else(|| Error::custom("`for` is no number of seconds"))
        }
        _ => Err(Error::custom("`for` is neither a number of seconds nor a text such as \"3d\"")),
    }
}

impl AskedWait {
    /// Takes a wait as JSON.
    pub fn of_json(json: &str) -> Result<Self, String> {
        let wait: Self = serde_json::from_str(json).map_err(|error| format!("wait: {error}"))?;
        if let Some(event) = &wait.event {
            check_event(event)?;
        }
        let kinds = [wait.event.is_some(), !wait.jobs.is_empty(), wait.children];
        match kinds.iter().filter(|is_given| **is_given).count() {
            0 if wait.length.is_none() => {
                return Err("wait: give `event`, `jobs`, `children` or `for`".to_owned());
            }
            0 | 1 => {}
            _ => return Err("wait: give one of `event`, `jobs` and `children`".to_owned()),
        }
        if wait.jobs.len() > JOBS_MAX {
            return Err(format!(
                "wait: {} jobs are too many, the limit is {JOBS_MAX}",
                wait.jobs.len()
            ));
        }
        if wait.event.is_none() && !wait.who.is_empty() {
            return Err("wait: `who` is of an event alone".to_owned());
        }
        let is_name = |name: &String| {
            let bare = name.strip_prefix('@').unwrap_or(name);
            (1..=NAME_BYTES_MAX).contains(&bare.len()) && !name.chars().any(char::is_control)
        };
        if wait.who.len() > WHO_MAX || !wait.who.iter().all(is_name) {
            return Err(format!(
                "wait: `who` has up to {WHO_MAX} names of callers or @groups, of 1 to {NAME_BYTES_MAX} bytes"
            ));
        }
        Ok(wait)
    }

    /// Reads the field `wait`; `None` if another program wrote something else there.
    pub fn of_field(text: &str) -> Option<Self> {
        let wait: Self = serde_json::from_str(text).ok()?;
        wait.event.as_deref().is_none_or(|event| check_event(event).is_ok()).then_some(wait)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn words(&self) -> String {
        match (&self.event, self.jobs.len()) {
            (Some(event), _) => format!("the event {event}"),
            (None, 0) if self.children => "the ends of its children".to_owned(),
            (None, 0) => "a time".to_owned(),
            (None, 1) => format!("the end of job {}", self.jobs[0]),
            (None, many) => format!("the ends of {many} jobs"),
        }
    }
}

pub fn check_event(name: &str) -> Result<(), String> {
    if is_word(name.as_bytes(), NAME_BYTES_MAX, b"_.-") {
        return Ok(());
    }
    Err(format!(
        "the name of an event has 1 to {NAME_BYTES_MAX} characters of A-Z, a-z, 0-9, `_`, `.` and `-`"
    ))
}

/// Takes what an event brings: a value of JSON of bounded size, in one line.
pub fn event_data(json: &str) -> Result<String, String> {
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(json);
    let json =
        is_json.and_then(|_| compact(json)).map_err(|error| format!("is not JSON: {error}"))?;
    if json.len() > EVENT_BYTES_MAX {
        return Err(format!("has more than {EVENT_BYTES_MAX} bytes of JSON"));
    }
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_is_for_an_event_for_jobs_or_for_a_time() {
        let of = |json: &str| AskedWait::of_json(json);
        let event =
            of(r#"{"event": "approved", "for": "3d", "who": ["ann", "@ops"]}"#).expect("legal");
        assert_eq!(event.length, Some(Duration::from_hours(72)));
        assert_eq!(event.to_json(), r#"{"event":"approved","who":["ann","@ops"]}"#);
        assert_eq!(event.words(), "the event approved");
        assert_eq!(of(r#"{"for": 1.5}"#).expect("legal").length, Some(Duration::from_millis(1500)));
        assert_eq!(of(r#"{"jobs": ["a", "b"]}"#).expect("legal").words(), "the ends of 2 jobs");
        let children = of(r#"{"children": true}"#).expect("legal");
        assert_eq!(children.words(), "the ends of its children");
        assert_eq!(children.to_json(), r#"{"children":true}"#);
        let time = of(r#"{"for": "1h"}"#).expect("legal").to_json();
        assert_eq!(AskedWait::of_field(&time).expect("read").words(), "a time");
        for foreign in ["", "7", "[", r#"{"event": "a b"}"#] {
            assert_eq!(AskedWait::of_field(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn hostile_waits_are_refused() {
        let many = |count: usize| format!(r#"{{"jobs": [{}]}}"#, vec!["\"a\""; count].join(","));
        assert!(AskedWait::of_json(&many(JOBS_MAX)).is_ok());
        let long = format!(r#"{{"event": "{}"}}"#, "x".repeat(NAME_BYTES_MAX + 1));
        for json in [
            "{}",
            "null",
            "[]",
            "7",
            r#"{"event": ""}"#,
            r#"{"event": "a\nb"}"#,
            r#"{"event": "a\u001b[2J"}"#,
            r#"{"event": "é"}"#,
            r#"{"event": "a", "jobs": ["b"]}"#,
            r#"{"children": true, "jobs": ["b"]}"#,
            r#"{"children": false}"#,
            r#"{"children": 1}"#,
            r#"{"event": "a", "for": -1}"#,
            r#"{"event": "a", "for": 1e300}"#,
            r#"{"event": "a", "for": "soon"}"#,
            r#"{"event": "a", "for": []}"#,
            r#"{"event": "a", "who": [""]}"#,
            r#"{"event": "a", "who": ["@"]}"#,
            r#"{"event": "a", "who": ["a\u0000"]}"#,
            r#"{"for": "1s", "who": ["ann"]}"#,
            r#"{"event": "a", "secret": 1}"#,
            r#"{"jobs": ["../a b"]}"#,
            &many(JOBS_MAX + 1),
            &long,
        ] {
            assert!(AskedWait::of_json(json).is_err(), "{json}");
        }
    }

    #[test]
    fn data_of_an_event_is_json_in_one_line_up_to_its_bound() {
        assert_eq!(event_data("{ \"a\" : 1 }"), Ok("{\"a\":1}".to_owned()));
        for wrong in ["{", "", "1,\"who\":\"ann\"", "1}{", "{\"a\":1}}", "ann"] {
            assert!(event_data(wrong).is_err(), "{wrong}");
        }
        let of_length = |length: usize| event_data(&format!("\"{}\"", "x".repeat(length - 2)));
        assert!(of_length(EVENT_BYTES_MAX).is_ok());
        assert!(of_length(EVENT_BYTES_MAX + 1).is_err());
    }
}
