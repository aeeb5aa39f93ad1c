//! Signs jobs right before they are submitted, once nothing of them changes any more.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{Client, ClientError};
use crate::proto::job::{InvalidJob, Job, SigningKey};

/// Signs the jobs of a client.
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

    /// Signs jobs, if this client does that.
    pub(super) fn sign(&self, jobs: &mut [Job]) -> Result<(), ClientError> {
        let Some(signer) = &self.signer else { return Ok(()) };
        let not_after = Timestamp::now()
            .checked_add(signer.lifetime)
            .map_err(|_| InvalidJob::new("signature", "holds for too long"))?;
        for job in jobs.iter_mut().filter(|job| job.spec.signature.is_none()) {
            job.spec.signature = Some(signer.key.sign(job, not_after, &job.file_digests)?);
        }
        Ok(())
    }
}
