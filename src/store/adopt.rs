//! Adoption: entries that programs pushed into lists with plain commands become jobs like any other.

use std::time::Duration;

use tracing::{debug, info};

use super::attempts::{kept, millis};
use super::text::{BytePair, lossy_pairs};
use super::{LegacyStore, Result};
use crate::config::JobConfig;
use crate::proto::job::Retention;
use crate::proto::target::ActorId;

/// The entries of a list that one step looks at.
const WINDOW: usize = 300;
/// The queues, and the actors, whose lists one look covers.
const PER_LOOK: usize = 200;
/// The pause before another look at a list where an old worker may be about to start a job, or a program
/// to push a copy of one: a little longer than `adopt.lua` waits for that.
pub const START_PATIENCE: Duration = Duration::from_millis(60);

#[derive(Debug, Clone, Copy)]
pub struct AdoptionRules {
    /// The retention of jobs that end because they can never start.
    pub retention: Retention,
    /// An ended job runs again when a program pushes its id.
    pub requeue_by_push: bool,
    /// A push within this time of an end is the repetition of one whose answer was lost.
    pub requeue_after: Duration,
}

impl From<&JobConfig> for AdoptionRules {
    fn from(job: &JobConfig) -> Self {
        Self {
            retention: job.kept(),
            requeue_by_push: job.requeue_by_push,
            requeue_after: job.requeue_after,
        }
    }
}

/// The step that follows an adoption.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AfterAdoption {
    #[default]
    Nothing,
    /// There is more to adopt in the list.
    More,
    /// An old worker may be about to start a job of the list: another step after a moment.
    Later,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Entries that are jobs now.
    pub jobs: u64,
    /// Entries that left the list.
    pub removed: u64,
    pub next: AfterAdoption,
    /// Some of the entries that are no jobs, each with the reason.
    pub skipped: Vec<(String, String)>,
    /// Jobs that had ended and run again.
    pub again: Vec<String>,
}

impl LegacyStore<'_> {
    /// Adopts entries of a list: a work list, or one of older programs. One step, which is logged.
    pub async fn adopt(self, list: &str, rules: AdoptionRules) -> Result<Adopted> {
        let mut script = self.store.scripts.adopt.prepare_invoke();
        script.key(list).arg(WINDOW).arg(kept(rules.retention));
        script.arg(u8::from(rules.requeue_by_push)).arg(millis(rules.requeue_after));
        let (jobs, removed, next, skipped, again): (u64, u64, u8, Vec<BytePair>, Vec<String>) =
            self.store.invoke("adopting jobs that programs pushed", &script).await?;
        let next = match next {
            0 => AfterAdoption::Nothing,
            1 => AfterAdoption::More,
            _ => AfterAdoption::Later,
        };
        let adopted = Adopted { jobs, removed, next, skipped: lossy_pairs(skipped), again };
        for id in &adopted.again {
            info!(job_id = %id, key = %list, "job {id} had ended and runs again: a program has pushed its id");
        }
        if adopted.jobs > 0 {
            debug!(key = %list, jobs = adopted.jobs, "adopted jobs that programs pushed");
        }
        self.store.skips.note(adopted.removed, &adopted.skipped);
        Ok(adopted)
    }

    /// Returns lists with entries to adopt: of known queues, of live actors and of older programs.
    pub async fn unadopted(self) -> Result<Vec<String>> {
        self.store
            .run_script(
                "looking for jobs that programs pushed",
                &self.store.scripts.unadopted,
                PER_LOOK,
            )
            .await
    }

    /// Notes which of these actors belong to foreign programs. Returns how many do.
    pub async fn note_actors(self, actors: &[ActorId]) -> Result<u64> {
        let names: Vec<String> = actors.iter().map(ToString::to_string).collect();
        let doing = "noting actors of foreign programs";
        self.store.run_script(doing, &self.store.scripts.note_actors, names).await
    }
}
