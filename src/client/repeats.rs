//! A submission that is repeated with the id and the content of the one before, as after a lost answer: its job is the one
//! that is there.

use super::new_batch::await_ends;
use super::{AwaitedJob, Client, ClientError};
use crate::proto::job::{INPUT_FILES, Job, JobFiles, JobId};

/// Returns true if a job is the one that another submission of the same id made.
pub fn is_repeated(known: &Job, given: Job) -> bool {
    let mut spec = given.spec;
    let of_content = spec.key_of_content();
    spec.unique_key = of_content.or(spec.unique_key.take());
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

impl Client {
    /// Submits a job as [`Client::submit_with_files`] does, or returns the job of its id if that has the same content, and
    /// whether it is new. Files are not compared.
    ///
    /// # Errors
    /// As [`Client::submit_with_files`].
    pub async fn submit_or_same(
        &self,
        job: Job,
        files: &JobFiles,
    ) -> Result<(JobId, bool), ClientError> {
        let given = job.clone();
        let stored = self.submit_with_files(job, files).await;
        self.or_same(given, files, stored, |id| id).await
    }

    /// The same for a job whose end the caller waits for.
    ///
    /// # Errors
    /// As [`Client::submit_awaited`].
    pub async fn submit_awaited_or_same(
        &self,
        job: Job,
        files: &JobFiles,
    ) -> Result<(AwaitedJob, bool), ClientError> {
        let given = job.clone();
        let stored = self.submit_awaited(job, files).await;
        self.or_same(given, files, stored, |awaited| &awaited.id).await
    }

    /// Returns the job that has the id if it was submitted before with this content. A job with files is never the same.
    pub async fn same_job(&self, id: &JobId, given: &Job) -> Option<Job> {
        if given.extra.contains_key(INPUT_FILES) {
            return None;
        }
        self.get_job(id).await.ok().filter(|known| is_repeated(known, given.clone()))
    }

    /// Returns the jobs that have the ids if all were submitted before, as they are.
    pub async fn same_jobs(&self, given: &[Job]) -> Option<Vec<Job>> {
        let (mut known, mut given) = (Vec::with_capacity(given.len()), given.to_vec());
        await_ends(&mut given);
        for job in &given {
            known.push(self.same_job(&job.id, job).await?);
        }
        Some(known)
    }

    /// Returns what was stored, or the job of the same id and content, and whether it is new.
    async fn or_same<T: From<JobId>>(
        &self,
        given: Job,
        files: &JobFiles,
        stored: Result<T, ClientError>,
        id_of: impl Fn(&T) -> &JobId,
    ) -> Result<(T, bool), ClientError> {
        match stored {
            Ok(stored) => {
                let is_new = *id_of(&stored) == given.id;
                Ok((stored, is_new))
            }
            Err(ClientError::IdTaken(id)) if files.is_empty() => {
                let is_same = self.same_job(&id, &given).await.is_some();
                if is_same { Ok((id.into(), false)) } else { Err(ClientError::IdTaken(id)) }
            }
            Err(error) => Err(error),
        }
    }
}
