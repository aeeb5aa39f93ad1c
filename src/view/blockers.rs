//! The reason why a job does not start, in words.

use super::start_of;
use crate::proto::job::JobId;
use crate::proto::pauses::PauseRule;
use crate::proto::text::counted;
use crate::store::Blocker;

/// Returns the name of a limit as people read it: a graph or batch has a window and a pause.
pub fn limit_title(name: &str) -> String {
    match name.split_once('=') {
        Some(("@graph", graph)) => format!("window of {graph}"),
        Some(("@paused", graph)) => format!("pause of {graph}"),
        _ => name.to_owned(),
    }
}

/// Returns what a job waits for, and what to do about it.
pub fn blocker_words(id: &JobId, blocker: &Blocker) -> String {
    match blocker {
        Blocker::Limit(limit) => match limit.split_once('=') {
            Some(("@graph", graph)) => {
                format!("a slot in the {}: hero graph show {graph}", limit_title(limit))
            }
            Some(("@paused", graph)) => {
                format!("the end of the {}: hero graph show {graph}", limit_title(limit))
            }
            _ => format!("a slot in the limit {limit}: hero limit list"),
        },
        Blocker::Pause(queue, rule) => {
            let resume = rule.as_ref().map(PauseRule::resume);
            let resume = resume.unwrap_or_else(|| format!("hero queue resume {queue}"));
            format!("its queue, which is paused: {resume}")
        }
        Blocker::Drained(actor) => {
            format!(
                "an actor that is ready: {actor}, which claims its jobs, drains: hero actor resume {}",
                actor.unit()
            )
        }
        Blocker::NoActor(queue) => {
            format!("an actor: no live one claims jobs of {queue}: hero actor list")
        }
        Blocker::NoMatch { selector, mismatch } => {
            format!("an actor that matches {selector}: {mismatch}: hero actor list --json")
        }
        Blocker::Busy { queue, tasks } => {
            let tasks = counted(*tasks as u64, "task", "tasks");
            format!("a free task: the actors of {queue} have {tasks}, and all are busy")
        }
        Blocker::NoSupervisor => {
            format!("a live supervisor, since it is due: {}", start_of("supervisor"))
        }
        Blocker::Wait(wait) => match &wait.event {
            Some(event) => format!("{}: hero job tell {id} {event}", wait.words()),
            None => wait.words(),
        },
    }
}
