//! States of jobs by the words of people or of the hash.

use super::{JobEnd, JobStatus};
use crate::proto::text::shown;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateFilter {
    pub stored: Vec<JobStatus>,
    /// Of the jobs in error, only those with one of these ends. Empty for all.
    pub ends: Vec<JobEnd>,
    /// Of the jobs in a queue, only those that a limit holds, or only others.
    pub held: Option<bool>,
}

/// Words that do not name one state of the hash.
const WAITING: [JobStatus; 4] = [
    JobStatus::Created,
    JobStatus::WaitingForPrerequisites,
    JobStatus::Scheduled,
    JobStatus::Dispatched,
];

impl StateFilter {
    /// Reads words; none means any state.
    pub fn of_words<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let (mut all, mut any_error, mut queued) = (Self::default(), false, Vec::new());
        for word in words {
            let lower = word.trim().to_ascii_lowercase();
            let ends = ends_of(&lower);
            let held = ["queued", "held"].iter().position(|of| *of == lower);
            let stored = match lower.as_str() {
                _ if !ends.is_empty() => vec![JobStatus::Error],
                _ if held.is_some() => vec![JobStatus::Dispatched],
                "waiting" => WAITING.to_vec(),
                "running" => vec![JobStatus::Started],
                other => vec![other.parse().map_err(|_| unknown_state(word))?],
            };
            any_error |= ends.is_empty() && stored.contains(&JobStatus::Error);
            if stored.contains(&JobStatus::Dispatched) {
                queued.push(held.map(|place| place == 1));
            }
            all.ends.extend(ends);
            for state in stored {
                if !all.stored.contains(&state) {
                    all.stored.push(state);
                }
            }
        }
        if any_error {
            all.ends.clear();
        }
        let first = queued.first().copied().flatten();
        all.held = first.filter(|first| queued.iter().all(|of| *of == Some(*first)));
        Ok(all)
    }
}

/// Returns the ends in error that a word means: a job that expired has failed too.
fn ends_of(word: &str) -> Vec<JobEnd> {
    match word {
        "failed" => JobEnd::FAILURES.to_vec(),
        _ => JobEnd::IN_ERROR.into_iter().filter(|end| end.as_str() == word).collect(),
    }
}

fn unknown_state(word: &str) -> String {
    format!(
        "unknown state `{}`: expected waiting, queued, held, running, finished, failed, cancelled, replaced or expired, \
         or a state as JSON has it: created, waiting_for_prerequisites, scheduled, dispatched, started, error",
        shown(word)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_words_of_people_and_those_of_the_hash() {
        use JobStatus::{Dispatched, Error, Finished, Scheduled, Started};
        let of = |words: &[&str]| StateFilter::of_words(words.iter().copied());
        for (words, stored) in [
            (&["waiting"][..], WAITING.to_vec()),
            (&["running", "Started"][..], vec![Started]),
            (&["scheduled", "dispatched"][..], vec![Scheduled, Dispatched]),
            (&["queued", "held"][..], vec![Dispatched]),
            (&["failed", "finished"][..], vec![Error, Finished]),
            (&["Cancelled", "finished"][..], vec![Error, Finished]),
            (&[][..], vec![]),
        ] {
            assert_eq!(of(words).expect("legal").stored, stored, "{words:?}");
        }
        let ends = |words: &[&str]| of(words).expect("legal").ends;
        assert_eq!(ends(&["failed"]), JobEnd::FAILURES);
        assert_eq!(ends(&["replaced", "cancelled"]), [JobEnd::Replaced, JobEnd::Cancelled]);
        assert_eq!(ends(&["expired", "finished"]), [JobEnd::Expired]);
        assert!(ends(&["error", "failed"]).is_empty() && ends(&[]).is_empty());
        let held = |words: &[&str]| of(words).expect("legal").held;
        assert_eq!((held(&["held"]), held(&["queued", "error"])), (Some(true), Some(false)));
        assert_eq!((held(&["held", "queued"]), held(&["held", "waiting"])), (None, None));
        let wrong = of(&["done"]).expect_err("no state");
        assert!(
            wrong.contains("running, finished, failed, cancelled, replaced or expired"),
            "{wrong}"
        );
    }
}
