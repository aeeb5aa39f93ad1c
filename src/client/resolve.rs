//! The published scripts of jobs that are about to be submitted.

use std::collections::BTreeMap;

use super::graph::Graph;
use super::new_batch::NewBatch;
use super::{Client, ClientError, Result};
use crate::proto::job::Job;

/// Returns the name of the job at a place, for its refusal.
pub(super) type NameOf<'a> = dyn Fn(usize) -> String + Sync + 'a;

impl Client {
    /// Gives a job that names a published script its text and settings, and checks its parameters. Submitting it does
    /// this as well.
    ///
    /// # Errors
    /// [`ClientError::Invalid`] if the script does not exist, or the job does not fit it; [`ClientError::Store`].
    pub async fn resolve_script(&self, job: &mut Job) -> Result<()> {
        if job.spec.uses.is_none() && job.spec.script_digest.is_none() {
            return Ok(());
        }
        // Few jobs name a script: the futures of callers stay small.
        Ok(Box::pin(self.store.resolve_script(&mut job.spec)).await??)
    }

    /// Gives jobs their published scripts, each script read once. The error has the place of its job; the jobs before
    /// it have theirs.
    pub(super) async fn resolve_all(
        &self,
        jobs: impl Iterator<Item = &mut Job>,
    ) -> Result<(), (usize, ClientError)> {
        let resolved = Box::pin(self.store.resolve_scripts(jobs.map(|job| &mut job.spec))).await;
        resolved.map_err(|error| (0, error.into()))?.map_err(|(place, error)| (place, error.into()))
    }

    /// Returns each job with its published script, or why it cannot be submitted.
    pub(super) async fn each_checked(&self, jobs: &[Job]) -> Result<Vec<Result<Job>>> {
        let (mut jobs, mut refused, mut from) = (jobs.to_vec(), BTreeMap::new(), 0);
        while let Err((place, error)) = self.resolve_all(jobs[from..].iter_mut()).await {
            if matches!(error, ClientError::Store(_)) {
                return Err(error);
            }
            refused.insert(from + place, error);
            from += place + 1;
        }
        let each = jobs.into_iter().enumerate().map(|(place, job)| match refused.remove(&place) {
            Some(error) => Err(error),
            None => self.check(&job).map(|()| job).map_err(ClientError::from),
        });
        Ok(each.collect())
    }

    /// Gives the jobs and callbacks of a graph their published scripts. Submitting it does this as well.
    ///
    /// # Errors
    /// [`ClientError::Refused`] names the job; [`ClientError::Store`].
    pub async fn resolve_graph(&self, graph: &mut Graph) -> Result<()> {
        let names: Vec<String> =
            graph.jobs_and_callbacks().map(|(name, _)| name.to_owned()).collect();
        let is_plain = |job: &Job| job.spec.uses.is_none() && job.spec.script_digest.is_none();
        if graph.jobs_and_callbacks().all(|(_, job)| is_plain(job)) {
            return Ok(());
        }
        self.resolve_all(graph.all_jobs_mut()).await.map_err(|(place, error)| {
            unless_lost(place, names.get(place).cloned().unwrap_or_default(), error)
        })
    }

    /// Gives the jobs of an atomic batch their published scripts.
    pub(super) async fn resolved_members(&self, jobs: &[Job]) -> Result<Vec<Job>> {
        let mut resolved = jobs.to_vec();
        self.resolve_all(resolved.iter_mut()).await.map_err(|(place, error)| {
            let name = jobs.get(place).map(|job| job.id.to_string()).unwrap_or_default();
            unless_lost(place, name, error)
        })?;
        Ok(resolved)
    }

    /// Gives the callbacks of a batch that has so many jobs their published scripts.
    pub(super) async fn resolve_callbacks(&self, place: usize, batch: &mut NewBatch) -> Result<()> {
        let names: Vec<&str> = batch.callbacks.keys().map(|of| of.as_str()).collect();
        let resolved = self.resolve_all(batch.callbacks.values_mut()).await;
        resolved.map_err(|(at, error)| {
            let name = names.get(at).copied().unwrap_or_default().to_owned();
            unless_lost(place, name, error)
        })
    }
}

/// Names the job that is refused, unless Redis could not be asked.
fn unless_lost(place: usize, name: String, error: ClientError) -> ClientError {
    match error {
        ClientError::Store(_) => error,
        error => refused(place, name, error),
    }
}

/// Names the job that is refused.
pub(super) fn refused(place: usize, name: String, error: ClientError) -> ClientError {
    ClientError::Refused { place, name, error: Box::new(error) }
}
