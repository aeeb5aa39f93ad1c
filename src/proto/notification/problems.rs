//! Decides which problems of queues and periodic jobs are reported: each once while it lasts, and once when it is over.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{NotifyEvent, NotifyKind};
use crate::proto::units::brief;

/// The changes that one step makes; the next step makes further ones.
const PER_STEP: usize = 200;
/// The time after which a problem is forgotten whose periodic job is not known any more, in ms.
const FORGOTTEN_MS: u64 = 30 * 24 * 3_600_000;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProblemMark {
    /// The time at which it was first seen, in ms since 1970.
    pub since_ms: u64,
    pub told: bool,
    #[serde(rename = "type")]
    pub script_type: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<String>,
}

/// The decisions of one step.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ProblemSteps {
    /// The marks to write, by kind and subject; without a mark it is removed.
    pub marks: BTreeMap<String, Option<ProblemMark>>,
    pub events: Vec<NotifyEvent>,
}

impl ProblemSteps {
    /// Compares the problems of a snapshot with the marks of those that were there before. A problem that has lasted
    /// is reported: a restart of an actor is none. `is_known` says whether the snapshot shows a periodic job at all.
    pub fn of(
        now_ms: u64,
        lasting: Duration,
        before: &BTreeMap<String, ProblemMark>,
        problems: &BTreeMap<String, NotifyEvent>,
        is_known: impl Fn(&str) -> bool,
    ) -> Self {
        let mut steps = Self::default();
        for (key, event) in problems {
            // A mark of the future is of before Redis's clock was set back.
            let counts = |mark: &&ProblemMark| mark.told || mark.since_ms <= now_ms;
            let Some(mark) = before.get(key).filter(counts) else {
                steps.marks.insert(key.clone(), Some(begun(now_ms, event)));
                continue;
            };
            if !mark.told && age(now_ms, mark) >= lasting {
                steps.marks.insert(key.clone(), Some(ProblemMark { told: true, ..mark.clone() }));
                steps.events.push(event.clone());
            }
            if steps.marks.len() >= PER_STEP {
                return steps;
            }
        }
        for (key, mark) in before.iter().filter(|(key, _)| !problems.contains_key(*key)) {
            let over = over(key, mark, age(now_ms, mark));
            let is_unknown =
                over.as_ref().is_some_and(|event| !event.cron.is_empty() && !is_known(&event.cron));
            if is_unknown && now_ms.saturating_sub(mark.since_ms) < FORGOTTEN_MS {
                continue;
            }
            steps.marks.insert(key.clone(), None);
            steps.events.extend(over.filter(|_| mark.told && !is_unknown));
            if steps.marks.len() >= PER_STEP {
                return steps;
            }
        }
        steps
    }

    pub fn key(event: &NotifyEvent) -> String {
        let kind = event.kind.map_or("", NotifyKind::as_str);
        let subject = if event.queue.is_empty() { &event.cron } else { &event.queue };
        format!("{kind} {subject}")
    }
}

fn age(now_ms: u64, mark: &ProblemMark) -> Duration {
    Duration::from_millis(now_ms.saturating_sub(mark.since_ms))
}

fn begun(now_ms: u64, event: &NotifyEvent) -> ProblemMark {
    ProblemMark {
        since_ms: now_ms,
        told: false,
        script_type: event.script_type.clone(),
        group: event.group.clone(),
        notify: event.names.clone(),
    }
}

/// Returns the event that reports the end of a problem; `None` if the key is none of ours.
fn over(key: &str, mark: &ProblemMark, lasted: Duration) -> Option<NotifyEvent> {
    let (word, subject) = key.split_once(' ')?;
    let kind = word.parse().ok().filter(|kind: &NotifyKind| kind.is_problem())?;
    let (queue, cron) = match kind {
        NotifyKind::CronLate => (String::new(), subject.to_owned()),
        _ => (subject.to_owned(), String::new()),
    };
    Some(NotifyEvent {
        kind: Some(NotifyKind::Recovered),
        ended: Some(kind),
        queue,
        cron,
        script_type: mark.script_type.clone(),
        group: mark.group.clone(),
        names: mark.notify.clone(),
        error: format!("{word} is over after {}", brief(lasted)),
        ..NotifyEvent::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTING: Duration = Duration::from_secs(10);

    fn problem(kind: NotifyKind, queue: &str, cron: &str) -> (String, NotifyEvent) {
        let event = NotifyEvent {
            kind: Some(kind),
            queue: queue.to_owned(),
            cron: cron.to_owned(),
            script_type: "osis".to_owned(),
            ..NotifyEvent::default()
        };
        (ProblemSteps::key(&event), event)
    }

    /// Makes a step, and applies it to the marks. Returns what is reported.
    fn step(
        now_ms: u64,
        marks: &mut BTreeMap<String, ProblemMark>,
        problems: &[(String, NotifyEvent)],
        known: bool,
    ) -> Vec<String> {
        let problems = problems.iter().cloned().collect();
        let steps = ProblemSteps::of(now_ms, LASTING, marks, &problems, |_| known);
        for (key, mark) in steps.marks {
            match mark {
                Some(mark) => drop(marks.insert(key, mark)),
                None => drop(marks.remove(&key)),
            }
        }
        let told = |event: &NotifyEvent| {
            format!("{} {}", event.kind.map_or("", NotifyKind::as_str), event.job())
        };
        steps.events.iter().map(told).collect()
    }

    #[test]
    fn problem_that_lasts_is_reported_once_and_its_end_once() {
        let mut marks = BTreeMap::new();
        let problems = [problem(NotifyKind::NoActor, "type:osis", "")];
        assert!(step(1000, &mut marks, &problems, true).is_empty(), "it may be a restart");
        assert!(step(10_999, &mut marks, &problems, true).is_empty());
        assert_eq!(step(11_000, &mut marks, &problems, true), ["no_actor queue type:osis"]);
        assert!(step(99_000, &mut marks, &problems, true).is_empty());
        assert_eq!(step(99_001, &mut marks, &[], true), ["recovered queue type:osis"]);
        assert!(step(99_002, &mut marks, &[], true).is_empty() && marks.is_empty());
    }

    #[test]
    fn problem_of_the_future_begins_anew() {
        let mut marks = BTreeMap::new();
        let problems = [problem(NotifyKind::NoActor, "type:osis", "")];
        assert!(step(3_600_000, &mut marks, &problems, true).is_empty());
        assert!(step(1000, &mut marks, &problems, true).is_empty());
        assert_eq!(step(11_000, &mut marks, &problems, true), ["no_actor queue type:osis"]);
    }

    #[test]
    fn problem_that_ends_soon_is_not_reported_and_neither_is_its_end() {
        let mut marks = BTreeMap::new();
        let problems = [problem(NotifyKind::Held, "type:osis", "")];
        assert!(step(1000, &mut marks, &problems, true).is_empty());
        assert!(step(2000, &mut marks, &[], true).is_empty() && marks.is_empty());
    }

    #[test]
    fn periodic_job_that_is_not_seen_has_not_recovered() {
        let mut marks = BTreeMap::new();
        let problems = [problem(NotifyKind::CronLate, "", "backup")];
        step(0, &mut marks, &problems, true);
        assert_eq!(step(10_000, &mut marks, &problems, true), ["cron_late periodic job backup"]);
        assert!(step(20_000, &mut marks, &[], false).is_empty() && marks.len() == 1);
        assert!(step(30_000, &mut marks, &problems, true).is_empty(), "it was told");
        assert_eq!(step(40_000, &mut marks, &[], true), ["recovered periodic job backup"]);
        step(0, &mut marks, &problems, true);
        step(10_000, &mut marks, &problems, true);
        assert!(step(FORGOTTEN_MS, &mut marks, &[], false).is_empty() && marks.is_empty());
    }

    #[test]
    fn many_problems_are_reported_over_several_steps() {
        let mut marks = BTreeMap::new();
        let problem = |number| problem(NotifyKind::NoActor, &format!("type:t{number}"), "");
        let problems: Vec<_> = (0..PER_STEP + 50).map(problem).collect();
        let mut told = Vec::new();
        for now in [0, 1, 20_000, 20_001, 20_002] {
            let steps = step(now, &mut marks, &problems, true);
            assert!(steps.len() <= PER_STEP);
            told.extend(steps);
        }
        told.sort();
        told.dedup();
        assert_eq!((told.len(), marks.len()), (PER_STEP + 50, PER_STEP + 50));
    }
}
