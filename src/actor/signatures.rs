//! Checks the signatures of jobs right before they run, on the thread that runs them: Redis is not asked again
//! between the check and the run.

use jiff::Timestamp;

use super::running_job::RunningJob;
use super::settings::ActorSettings;
use crate::proto::job::{InvalidJob, RequiredKeys, file_digests};
use crate::proto::labels::Labels;
use crate::proto::target::ActorId;

#[derive(Clone)]
pub(super) struct SignatureCheck {
    keys: RequiredKeys,
    actor: ActorId,
    labels: Labels,
}

impl SignatureCheck {
    pub(super) fn new(settings: &ActorSettings, place: usize, actor: &ActorId) -> Self {
        let keys = settings.required_keys.get(&actor.script_type).cloned().unwrap_or_default();
        Self { keys, actor: actor.clone(), labels: settings.labels(place).clone() }
    }

    /// Checks a job with the files that it is about to get, by this machine's clock.
    pub(super) fn check(&self, run: &RunningJob) -> Result<(), InvalidJob> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let files = file_digests(&run.files.own, run.files.stdin.as_ref());
        self.keys.check(&run.job, &self.actor, &files, Timestamp::now())?;
        match &run.job.spec.r#where {
            Some(selector) if !selector.matches(&self.labels) => {
                let why =
                    format!("is for actors with {selector}, not for the actor {}", self.actor);
                Err(InvalidJob::new("signature", why))
            }
            _ => Ok(()),
        }
    }

    #[cfg(test)]
    pub(super) fn none(actor: ActorId) -> Self {
        Self { keys: RequiredKeys::default(), actor, labels: Labels::new() }
    }
}
