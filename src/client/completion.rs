//! Additions of the submission to jobs: unique keys of their content, their delays, and at last their signatures. A job is due by
//! Redis's clock, so a delay is counted on it too: the clock of a submitter's machine may be wrong.
//!
//! A submission that is repeated with the id and the content of the one before, as after a lost answer: its job is the one that is
//! there.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{Client, Result};
use crate::proto::job::{InvalidJob, Job, JobSpec, SigningKey};
use crate::store::Store;

pub struct Signer {
    key: SigningKey,
    lifetime: Duration,
}

impl Signer {
    /// Creates one whose signatures hold for a time, by this machine's clock.
    pub fn new(key: SigningKey, lifetime: Duration) -> Self {
        Self { key, lifetime }
    }
}

impl Client {
    /// Signs every job that it submits from now on, unless the job has a signature.
    #[must_use]
    pub fn signing(mut self, signer: Signer) -> Self {
        self.signer = Some(Arc::new(signer));
        self
    }

    /// Rejects a callback if this client signs jobs.
    pub(super) fn check_unsigned(&self) -> Result<(), InvalidJob> {
        let why = "cannot sign a callback, whose id is not known before the end of the jobs";
        self.signer.as_ref().map_or(Ok(()), |_| Err(InvalidJob::new("signature", why)))
    }

    pub(super) fn sign(&self, jobs: &mut [Job]) -> Result<()> {
        let Some(signer) = &self.signer else { return Ok(()) };
        let not_after = Timestamp::now()
            .checked_add(signer.lifetime)
            .map_err(|_| InvalidJob::new("signature", "holds for too long"))?;
        for job in jobs.iter_mut().filter(|job| job.spec.signature.is_none()) {
            job.spec.signature = Some(signer.key.sign(job, not_after, &job.file_digests)?);
        }
        Ok(())
    }

    /// Sets what only the submission tells: the unique keys of jobs that are unique by their content,
    /// the times of delays, by the clock of the Redis that gets them, and signatures. Asks Redis only if a job has a delay.
    pub(super) async fn completed<'a>(
        &self,
        on: &Store,
        jobs: &'a [Job],
    ) -> Result<Cow<'a, [Job]>> {
        let (has_delay, has_content) =
            (|job: &Job| job.delay.is_some(), |job: &Job| job.spec.unique_by.is_some());
        let is_signing = self.signer.is_some();
        if !is_signing && !jobs.iter().any(|job| has_delay(job) || has_content(job)) {
            return Ok(Cow::Borrowed(jobs));
        }
        let mut jobs = jobs.to_vec();
        for job in &mut jobs {
            set_key_of_content(&mut job.spec);
        }
        if jobs.iter().any(has_delay) {
            let now = on.now().await?;
            for job in &mut jobs {
                if let Some(delay) = job.delay {
                    job.set_delay(delay, now)?;
                }
            }
        }
        self.sign(&mut jobs)?;
        Ok(Cow::Owned(jobs))
    }
}

pub(super) fn set_key_of_content(spec: &mut JobSpec) {
    spec.unique_key = spec.key_of_content().or(spec.unique_key.take());
}

/// Returns true if a job is the one that another submission of the same id made.
pub fn is_repeated(known: &Job, given: Job) -> bool {
    let mut spec = given.spec;
    set_key_of_content(&mut spec);
    spec.id.clone_from(&known.spec.id);
    // A repeated request is in another span.
    spec.traceparent = known.spec.traceparent;
    // It tells only whether a program waits for the end.
    spec.reply = known.spec.reply;
    // It is of the same content, until another time.
    if spec.signature.is_none() {
        spec.signature.clone_from(&known.spec.signature);
    }
    spec == known.spec
}
