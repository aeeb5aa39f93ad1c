//! The state of the migration from older programs.

use std::time::Duration;

use super::audit::of_process;
use super::wait::Waiters;
use super::{Client, MigrationClient, Result};
use crate::config::{JobConfig, format_duration};
use crate::proto::keys::Keys;
use crate::proto::legacy::{LegacyQueue, RhailibCircle};
use crate::proto::text::counted;
use crate::store::{CircleState, LegacyState, Shards, Store};

impl Client {
    /// Creates a client of stores, which know their legacy queues.
    pub fn on(shards: &Shards, job: JobConfig) -> Self {
        let waiters: Vec<Waiters> = shards.all().iter().cloned().map(Waiters::new).collect();
        let shards = shards.map(Store::unawaited);
        let store = shards.home().clone();
        Self {
            waiters: waiters.into(),
            store,
            shards,
            job,
            broker_scope: None,
            author: of_process().into(),
            signer: None,
        }
    }
}

impl MigrationClient<'_> {
    /// Reads the state of legacy queues, served or not; a pattern stands for those that were found.
    pub async fn legacy_queues(self, queues: &[LegacyQueue]) -> Result<Vec<LegacyState>> {
        let queues = self.client.store.legacy().found_queues(queues).await?;
        Ok(self.client.store.legacy().states(&queues).await?)
    }

    pub async fn rhailib_circles(self, circles: &[RhailibCircle]) -> Result<Vec<CircleState>> {
        let circles = self.client.store.legacy().found_circles(circles).await?;
        Ok(self.client.store.legacy().circle_states(&circles).await?)
    }

    /// Lists the lists of the home shard that programs pushed to, that hold entries and that no queue and no legacy queue
    /// of the configuration is: their names are illegal, or of a worker that is not configured. Each with its length, if
    /// the user of Redis may read it.
    pub async fn unserved_lists(self) -> Result<Vec<(String, Option<u64>)>> {
        let queues =
            self.client.store.legacy().found_queues(self.client.store.legacy().queues()).await?;
        let mut lists = self.client.store.legacy().other_older_lists(&queues, &[]).await?;
        // A bridge may serve a circle.
        lists.retain(|(list, _)| Keys::circle_of(list).is_none());
        Ok(lists)
    }

    /// Lists the ids that programs pushed within the last minute and whose hashes are not there, each after its list.
    pub async fn ids_without_hash(self) -> Result<Vec<(String, String)>> {
        let of_shards =
            self.client.shards.each(|store| store.recovery().ids_without_hash()).await?;
        Ok(of_shards.into_iter().flatten().collect())
    }

    /// Reads which lists of older programs have entries and are none of these, each with its length if
    /// the user of Redis may read it.
    pub async fn other_older_lists(
        self,
        queues: &[LegacyState],
        circles: &[CircleState],
    ) -> Result<Vec<(String, Option<u64>)>> {
        let queues: Vec<LegacyQueue> = queues.iter().map(|state| state.queue.clone()).collect();
        let circles: Vec<RhailibCircle> =
            circles.iter().map(|state| state.circle.clone()).collect();
        Ok(self.client.store.legacy().other_older_lists(&queues, &circles).await?)
    }
}

/// The maximum age of a supervisor's observation of a queue.
const FRESH: Duration = Duration::from_mins(1);

/// Returns the reasons why the next phase is not safe yet, as sentences. A legacy queue can
/// be given up once it is empty, no job taken from it runs, and older programs have not used it
/// for `quiet`. That use is observed in `dual`; in canonical mode only the queue's content is
/// known.
pub fn blockers(state: &LegacyState, is_dual: bool, quiet: Duration) -> Vec<String> {
    let name = &state.queue.legacy;
    let mut reasons = Vec::new();
    let mut say = |text: String| reasons.push(format!("{name}: {text}"));
    if state.depth > 0 {
        say(counted(state.depth, "id is in it", "ids are in it"));
    }
    if state.stops > 0 {
        let (one, more) = ("request waits in its stop queue", "requests wait in its stop queue");
        say(counted(state.stops, one, more));
    }
    if !is_dual {
        return reasons;
    }
    if state.foreign_running > 0 {
        let kind = &state.queue.script_type;
        let jobs = counted(state.foreign_running, "job", "jobs");
        say(format!("{jobs} of type {kind} on actors that are not Hero's"));
    }
    for (ago, what) in [
        (state.pushed_ago, "an older client pushed to it"),
        (state.popped_ago, "an old worker took a job from it"),
    ] {
        if let Some(ago) = ago.filter(|ago| *ago < quiet) {
            say(format!("{what} {} ago, less than {}", brief(ago), brief(quiet)));
        }
    }
    match (state.sampled_ago, state.watched) {
        (Some(sampled), Some(since)) if sampled <= FRESH => {
            if since < quiet {
                let (since, quiet) = (brief(since), brief(quiet));
                say(format!("it has been observed for {since} only, not for {quiet}"));
            }
        }
        _ => say("no supervisor in \"dual\" observes it".to_owned()),
    }
    reasons
}

/// Returns the duration as text, in whole seconds from one second on.
fn brief(duration: Duration) -> String {
    let is_long = duration >= Duration::from_secs(1);
    format_duration(if is_long { Duration::from_secs(duration.as_secs()) } else { duration })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            pushed_ago: Some(Duration::from_hours(2)),
            popped_ago: None,
            watched: Some(Duration::from_hours(3)),
            sampled_ago: Some(Duration::ZERO),
        }
    }

    #[test]
    fn an_empty_queue_that_was_unused_for_long_enough_can_be_given_up() {
        let quiet = Duration::from_hours(1);
        assert_eq!(blockers(&silent(), true, quiet), [] as [String; 0]);
        assert_eq!(blockers(&silent(), true, Duration::from_hours(4)).len(), 2);
    }

    #[test]
    fn each_use_of_a_queue_is_its_own_reason() {
        let state = LegacyState {
            depth: 2,
            stops: 1,
            foreign_running: 1,
            pushed_ago: Some(Duration::from_secs(5)),
            popped_ago: Some(Duration::from_secs(1)),
            sampled_ago: None,
            ..silent()
        };
        let reasons = blockers(&state, true, Duration::from_hours(1));
        assert_eq!(
            reasons,
            [
                "hero:work_queue:w1: 2 ids are in it",
                "hero:work_queue:w1: 1 request waits in its stop queue",
                "hero:work_queue:w1: 1 job of type osis on actors that are not Hero's",
                "hero:work_queue:w1: an older client pushed to it 5s ago, less than 1h",
                "hero:work_queue:w1: an old worker took a job from it 1s ago, less than 1h",
                "hero:work_queue:w1: no supervisor in \"dual\" observes it",
            ]
        );
        assert_eq!(blockers(&state, false, Duration::ZERO).len(), 2);
    }
}
