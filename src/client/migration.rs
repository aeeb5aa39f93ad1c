//! How far the move from older programs has come.

use std::sync::Arc;
use std::time::Duration;

use super::wait::Waiters;
use super::{Client, ClientError};
use crate::config::JobConfig;
use crate::proto::legacy::{LegacyQueue, RhailibCircle};
use crate::store::{CircleState, LegacyState, Store};

impl Client {
    /// A client of a store that knows whether there are queues with older names.
    pub(super) fn on(store: Store, job: JobConfig) -> Self {
        Self { waiters: Arc::new(Waiters::new(store.clone())), store, job }
    }

    /// What is to be seen of legacy queues, whether they are served or not.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn legacy_queues(
        &self,
        queues: &[LegacyQueue],
    ) -> Result<Vec<LegacyState>, ClientError> {
        Ok(self.store.legacy_states(queues).await?)
    }

    /// What is to be seen of circles of rhailib.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn rhailib_circles(
        &self,
        circles: &[RhailibCircle],
    ) -> Result<Vec<CircleState>, ClientError> {
        Ok(self.store.circle_states(circles).await?)
    }
}

/// How long ago a supervisor in `dual` may have looked at a queue for what it saw to count.
const FRESH: Duration = Duration::from_mins(1);

/// Why the phase after this one is not safe yet, as sentences for a person; none if it is: a
/// legacy queue can be given up once it is empty, nobody runs a job taken from it, and older
/// programs have been silent for `quiet`. In `dual` that silence is watched; in canonical mode
/// only what lies in the queue is known.
pub fn blockers(state: &LegacyState, is_dual: bool, quiet: Duration) -> Vec<String> {
    let name = &state.queue.legacy;
    let mut reasons = Vec::new();
    let mut say = |text: String| reasons.push(format!("{name}: {text}"));
    if state.depth > 0 {
        say(format!("{} ids are in it", state.depth));
    }
    if state.stops > 0 {
        say(format!("{} requests wait in its stop queue", state.stops));
    }
    if !is_dual {
        return reasons;
    }
    if state.foreign_running > 0 {
        let (number, kind) = (state.foreign_running, &state.queue.script_type);
        say(format!("{number} jobs of type {kind} run on actors that are not Hero's"));
    }
    for (time, what) in [
        (state.pushed_at_ms, "an older client has pushed to it"),
        (state.popped_at_ms, "an old worker has taken a job from it"),
    ] {
        if let Some(ago) = state.ago(time).filter(|ago| *ago < quiet) {
            say(format!("{what} {} s ago", ago.as_secs()));
        }
    }
    match (state.ago(state.sampled_at_ms), state.ago(state.since_ms)) {
        (Some(sampled), Some(since)) if sampled <= FRESH => {
            if since < quiet {
                say(format!("it has been watched for {} s only", since.as_secs()));
            }
        }
        _ => say("no supervisor in \"dual\" is watching it".to_owned()),
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    fn silent() -> LegacyState {
        LegacyState {
            queue: LegacyQueue {
                legacy: "hero:work_queue:w1".to_owned(),
                script_type: "osis".parse().expect("legal"),
                group: crate::proto::target::Group::default(),
                instance: None,
            },
            depth: 0,
            stops: 0,
            foreign_running: 0,
            pushed_at_ms: Some(HOUR_MS),
            popped_at_ms: None,
            since_ms: Some(0),
            sampled_at_ms: Some(3 * HOUR_MS),
            now_ms: 3 * HOUR_MS,
        }
    }

    #[test]
    fn an_empty_queue_that_was_silent_for_long_enough_can_be_given_up() {
        let quiet = Duration::from_hours(1);
        assert_eq!(blockers(&silent(), true, quiet), [] as [String; 0]);
        assert_eq!(blockers(&silent(), true, Duration::from_hours(4)).len(), 2);
    }

    #[test]
    fn each_sign_of_life_is_a_reason_of_its_own() {
        let state = LegacyState {
            depth: 2,
            stops: 1,
            foreign_running: 3,
            pushed_at_ms: Some(3 * HOUR_MS - 5000),
            popped_at_ms: Some(3 * HOUR_MS - 1000),
            sampled_at_ms: None,
            ..silent()
        };
        let reasons = blockers(&state, true, Duration::from_hours(1));
        assert_eq!(
            reasons,
            [
                "hero:work_queue:w1: 2 ids are in it",
                "hero:work_queue:w1: 1 requests wait in its stop queue",
                "hero:work_queue:w1: 3 jobs of type osis run on actors that are not Hero's",
                "hero:work_queue:w1: an older client has pushed to it 5 s ago",
                "hero:work_queue:w1: an old worker has taken a job from it 1 s ago",
                "hero:work_queue:w1: no supervisor in \"dual\" is watching it",
            ]
        );
        assert_eq!(blockers(&state, false, Duration::ZERO).len(), 2);
    }
}
