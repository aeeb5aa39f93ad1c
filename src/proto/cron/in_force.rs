//! The periodic jobs of files that a supervisor fires, as its presence tells them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The maximum number of bytes of names and digests in a presence; with more, it has none.
const JOBS_BYTES_MAX: usize = 8000;
/// The limits of lines in each list, and of characters in a line.
const LINES_MAX: usize = 5;
const LINE_CHARS_MAX: usize = 200;

/// The periodic jobs of files that a supervisor fires.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CronInForce {
    /// The digest of each periodic job, by its name; absent if the names are too long for a presence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<BTreeMap<String, String>>,
    /// The files whose periodic jobs have changed since the supervisor read them; at most five.
    #[serde(default)]
    pub changed: Vec<String>,
    /// The mistakes that keep periodic jobs out of force; at most five.
    #[serde(default)]
    pub refused: Vec<String>,
    /// The periodic jobs that name a notification which the supervisor's configuration does not have, also jobs in
    /// Redis; at most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
    /// The notifications whose `crons` name periodic jobs that there are not, neither in files nor in Redis; at most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

impl CronInForce {
    /// Returns the part that a presence has room for.
    pub fn new(
        jobs: BTreeMap<String, String>,
        changed: Vec<String>,
        refused: Vec<String>,
        unheard: Vec<String>,
        unknown: Vec<String>,
    ) -> Self {
        let bytes: usize = jobs.iter().map(|(name, digest)| name.len() + digest.len() + 6).sum();
        let lines = |lines: Vec<String>| {
            let cut = |line: String| line.chars().take(LINE_CHARS_MAX).collect();
            lines.into_iter().take(LINES_MAX).map(cut).collect()
        };
        let jobs = (bytes <= JOBS_BYTES_MAX).then_some(jobs);
        let (changed, refused) = (lines(changed), lines(refused));
        let (unheard, unknown) = (lines(unheard), lines(unknown));
        Self { jobs, changed, refused, unheard, unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presence_has_room_for_any_periodic_jobs() {
        let jobs = |number: usize| -> BTreeMap<String, String> {
            (0..number).map(|n| (format!("job-{n}"), "0123456789abcdef".to_owned())).collect()
        };
        let (long, none) = (vec!["é".repeat(900); 9], Vec::new);
        let few = CronInForce::new(jobs(20), long, none(), none(), none());
        assert_eq!(few.jobs.as_ref().map(BTreeMap::len), Some(20));
        assert_eq!((few.changed.len(), few.changed[0].chars().count()), (5, 200));
        let lines = || vec![String::new(); 9];
        let many = CronInForce::new(jobs(1000), none(), none(), lines(), lines());
        assert_eq!((many.jobs, many.unheard.len(), many.unknown.len()), (None, 5, 5));
    }
}
