//! The meaning of a job's error: its kind, and if the job was stopped.

use std::sync::OnceLock;

use regex::Regex;

use super::job::{JobEnd, JobId};
use crate::proto::word_table::words;

const CHARS_MAX: usize = 200;
/// Patterns of parts that differ, and the text that replaces each, in the order of replacement.
const VARYING: [(&str, &str); 4] = [
    // A list in quotes has quotes in it, as the command of a CalledProcessError of Python.
    (r#"\B'\[.*?\]'|"[^"]*"|`[^`]*`|\B'[^']*'"#, "“…”"),
    (
        r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b(0x)?[0-9a-f]{12,}\b",
        "ID",
    ),
    (r"(^|[\s=(:,])(~|\.{1,2})?/[^\s:,;)]+", "${1}PATH"),
    (r"[0-9]+([.:][0-9]+)*", "N"),
];

const STOP_ERRORS: [&str; 2] = ["stopped", "stopped_by_request"];
/// Begins the error of a job whose graph or batch was stopped after failures, in small letters.
const STOPPED_AFTER: &str = "stopped after ";
/// The words of that error.
const STOPPED_AFTER_WORDS: [&str; 7] =
    ["stopped", "after", "failure", "failures", "of", "graph", "batch"];
/// Begins the error of a job that another one replaced; the id of that follows.
const REPLACED: &str = "replaced by job ";
/// The error of a job that another one replaced which its readers may not see.
const REPLACED_BY_HIDDEN: &str = "replaced by another job";
/// Begins the error of a job whose prerequisite failed; the id of that follows.
const PREREQUISITE: &str = "prerequisite failed: ";

words! {
    /// The reason why a job ended in `error`, in one word.
    FailureCause,
    "cause of a failure",
    "stopped, replaced, timeout, expired, prerequisite, crashed, invalid, signature_expired, unsigned or script";
    Stopped = "stopped",
    /// A later job with its unique key replaced it.
    Replaced = "replaced",
    /// An attempt took too long.
    Timeout = "timeout",
    /// It was not started within the time that it had for that.
    Expired = "expired",
    Prerequisite = "prerequisite",
    /// Actors died running it.
    Crashed = "crashed",
    /// Its hash could not be read, or broke a bound.
    Invalid = "invalid",
    /// Its signature ran out before it started.
    SignatureExpired = "signature_expired",
    /// It has no signature that its actor accepts: none, one by an unknown key, or one of something else.
    Unsigned = "unsigned",
    Script = "script",
}

impl FailureCause {
    pub fn of(error: &str) -> Self {
        let begins = |text: &str| error.starts_with(text);
        match error {
            _ if STOP_ERRORS.contains(&error) || is_stopped_after(error) => Self::Stopped,
            "timeout" => Self::Timeout,
            REPLACED_BY_HIDDEN => Self::Replaced,
            _ if error.strip_prefix(REPLACED).is_some_and(|id| id.parse::<JobId>().is_ok()) => {
                Self::Replaced
            }
            _ if begins("expired: ") => Self::Expired,
            _ if begins(PREREQUISITE) => Self::Prerequisite,
            _ if begins("crashed: ") => Self::Crashed,
            _ if begins("invalid job: signature ran out: ") => Self::SignatureExpired,
            _ if begins("invalid job: signature ") => Self::Unsigned,
            _ if begins("invalid job: ") => Self::Invalid,
            _ => Self::Script,
        }
    }

    pub fn end(self) -> JobEnd {
        match self {
            Self::Stopped => JobEnd::Cancelled,
            Self::Replaced => JobEnd::Replaced,
            Self::Expired => JobEnd::Expired,
            _ => JobEnd::Failed,
        }
    }

    /// Returns the state of a job that ended as a person or its submitter wanted; `None` if it failed.
    pub fn intended(self) -> Option<&'static str> {
        match self {
            Self::Stopped => Some("cancelled"),
            Self::Replaced => Some("replaced"),
            _ => None,
        }
    }
}

impl JobEnd {
    /// Returns true if a job with this end may have an error that contains a text in small letters: the errors of jobs
    /// that were stopped or replaced are known.
    pub fn may_have_error(self, text: &str) -> bool {
        let is_of_id = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_in_replaced = |(at, _): (usize, char)| {
            let (begin, id) = text.split_at(at);
            REPLACED.ends_with(begin) && id.chars().all(is_of_id)
        };
        match self {
            Self::Cancelled => {
                let mut words = text.split(' ');
                STOP_ERRORS.iter().any(|error| error.contains(text))
                    || text.chars().all(is_of_id)
                    || words.any(|word| STOPPED_AFTER_WORDS.contains(&word))
            }
            Self::Replaced => {
                [REPLACED, REPLACED_BY_HIDDEN].iter().any(|error| error.contains(text))
                    || text.char_indices().any(is_in_replaced)
            }
            _ => true,
        }
    }

    pub fn may_be_of_kind(self, wanted: &ErrorKindFilter) -> bool {
        let begin = wanted.given.strip_suffix('…').unwrap_or(&wanted.given);
        match self {
            Self::Cancelled => {
                STOP_ERRORS.iter().any(|error| wanted.matches(error))
                    || begin.starts_with(STOPPED_AFTER)
                    || STOPPED_AFTER.starts_with(begin)
            }
            Self::Replaced => {
                begin.starts_with(REPLACED)
                    || [REPLACED, REPLACED_BY_HIDDEN].iter().any(|error| error.starts_with(begin))
            }
            _ => true,
        }
    }
}

fn is_stopped_after(error: &str) -> bool {
    let parts = error.strip_prefix(STOPPED_AFTER).map(|rest| rest.split(' ').collect::<Vec<_>>());
    matches!(parts.as_deref(), Some([number, "failure" | "failures", "of", "graph" | "batch", id])
        if number.parse::<u64>().is_ok() && id.parse::<JobId>().is_ok())
}

/// Returns the job whose failure an error reports, if it is the error of a job that waited for another.
pub fn failed_prerequisite(error: &str) -> Option<JobId> {
    error.strip_prefix(PREREQUISITE)?.parse().ok()
}

/// The beginnings of errors whose number says how a process ended.
const ENDS: [&str; 2] = ["exit code ", "killed by signal "];

/// Returns the kind of an error: its first line, with numbers, ids, paths and quoted texts replaced; the number
/// of an exit code or a signal stays.
pub fn error_kind(error: &str) -> String {
    static PATTERNS: OnceLock<Vec<(Regex, &str)>> = OnceLock::new();
    let patterns = PATTERNS.get_or_init(|| {
        let compiled = VARYING.iter().map(|(text, with)| Some((Regex::new(text).ok()?, *with)));
        compiled.flatten().collect()
    });
    let line = error.trim_start().lines().next().unwrap_or_default().trim_end();
    let line: String = line.chars().take(CHARS_MAX).collect();
    let (end, rest) = line.split_at(end_bytes(&line));
    let mut kind = rest.to_owned();
    for (pattern, with) in patterns {
        kind = pattern.replace_all(&kind, *with).into_owned();
    }
    format!("{end}{kind}")
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorKindFilter {
    given: String,
    /// The kind of an error with this text.
    kind: String,
}

impl ErrorKindFilter {
    /// Reads a kind as lists print it, or an error of the kind. A text that ends with `…`, as a kind is cut in a table, stands
    /// for all kinds that begin with it.
    pub fn new(text: &str) -> Self {
        Self { given: text.to_owned(), kind: error_kind(text) }
    }

    pub fn matches(&self, error: &str) -> bool {
        let kind = error_kind(error);
        let begins = |begin: &str| !begin.is_empty() && kind.starts_with(begin);
        kind == self.given || kind == self.kind || self.given.strip_suffix('…').is_some_and(begins)
    }
}

/// Returns the bytes of `exit code 3` at the beginning of an error.
fn end_bytes(line: &str) -> usize {
    let of = |begin: &&str| {
        let rest = line.strip_prefix(*begin)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        Some(begin.len() + digits)
    };
    ENDS.iter().find_map(of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_the_prerequisite_that_failed() {
        let named = failed_prerequisite("prerequisite failed: job-1");
        assert_eq!(named.map(|id| id.to_string()).as_deref(), Some("job-1"));
        for other in ["prerequisite failed: ", "prerequisite failed: <b>", "exit code 1", ""] {
            assert_eq!(failed_prerequisite(other), None, "{other}");
        }
    }

    #[test]
    fn error_reports_its_cause() {
        for (error, word) in [
            ("stopped_by_request", "stopped"),
            ("stopped after 1 failure of graph nightly", "stopped"),
            ("stopped after 12 failures of batch 7f9c-2", "stopped"),
            ("stopped after 12 failures of batch 7f9c-2: no", "script"),
            ("replaced by job a-1", "replaced"),
            ("replaced by another job", "replaced"),
            ("replaced by job a of the list", "script"),
            ("timeout", "timeout"),
            ("expired: it did not start within 2h", "expired"),
            ("prerequisite failed: a", "prerequisite"),
            ("crashed: 3 actors died running it", "crashed"),
            ("invalid job: script is missing", "invalid"),
            (
                "invalid job: signature ran out: the key ops has signed until 2026-12-24T18:00:00Z; …",
                "signature_expired",
            ),
            (
                "invalid job: signature is missing; jobs of bash must be signed by ops: …",
                "unsigned",
            ),
            ("invalid job: signature is by the key dev; jobs of bash …", "unsigned"),
            ("timeout of the database", "script"),
        ] {
            assert_eq!(word.parse(), Ok(FailureCause::of(error)), "{error}");
        }
        assert!("luck".parse::<FailureCause>().is_err());
    }

    #[test]
    fn errors_that_differ_in_numbers_ids_paths_and_quoted_texts_are_of_one_kind() {
        for (error, kind) in [
            ("timeout", "timeout"),
            ("exit code 3\ntrace", "exit code 3"),
            ("exit code 12: disk 4 full", "exit code 12: disk N full"),
            ("killed by signal 9 (SIGKILL): 1", "killed by signal 9 (SIGKILL): N"),
            ("no such file: /var/x/a.txt: 2", "no such file: PATH: N"),
            ("cannot open 'a b' for \"c\"", "cannot open “…” for “…”"),
            (
                "CalledProcessError: Command '['bash', '-c', 'exit 3']' returned non-zero exit status 3.",
                "CalledProcessError: Command “…” returned non-zero exit status N.",
            ),
            ("job 7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7 failed", "job ID failed"),
            ("connect 10.0.0.7:6379 refused after 1.5 s", "connect N refused after N s"),
            ("can't read, won't try", "can't read, won't try"),
            ("crashed: 3 actors died running it", "crashed: N actors died running it"),
        ] {
            assert_eq!(error_kind(error), kind, "{error}");
        }
        assert_eq!(VARYING.iter().filter(|(text, _)| Regex::new(text).is_err()).count(), 0);
    }

    #[test]
    fn kind_is_named_as_it_is_printed_or_by_an_error_of_it() {
        let error = "connect 10.0.0.7:6379 refused after 1.5 s";
        for named in
            [error, "connect N refused after N s", "connect 1 refused after 2 s", "connect N re…"]
        {
            assert!(ErrorKindFilter::new(named).matches(error), "{named}");
        }
        for other in ["", "…", "connect N", "exit code 3", "onnect N…"] {
            assert!(!ErrorKindFilter::new(other).matches(error), "{other}");
        }
        assert!(!ErrorKindFilter::new("exit code 3").matches("exit code 4"));
        let quoted = "'a' ".repeat(60);
        assert!(
            ErrorKindFilter::new(&error_kind(&quoted)).matches(&quoted),
            "a kind may be longer"
        );
    }
}
