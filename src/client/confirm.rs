//! Confirmed submissions: answered only once the jobs have arrived where `redis.ack` says.

use super::ClientError;
use crate::proto::job::{Job, JobId};
use crate::store::{Store, StoreError};

/// The step that is confirmed at a submission.
pub(super) const STORED: &str = "is stored";
/// The step that is confirmed at an end.
pub(super) const ENDED: &str = "has ended";

/// Checks that Redis can confirm these jobs, if one of them asks for it. Returns true if one does.
pub(super) async fn will_confirm(store: &Store, jobs: &[Job]) -> Result<bool, ClientError> {
    let confirms = jobs.iter().any(|job| store.confirms(job));
    if confirms {
        store.can_confirm().await?;
    }
    Ok(confirms)
}

/// Waits until the writes of these jobs are confirmed.
pub(super) async fn confirmed(
    store: &Store,
    ids: &[JobId],
    what: &'static str,
) -> Result<(), ClientError> {
    let Some(first) = ids.first() else { return Ok(()) };
    let unconfirmed = |id: &JobId, others: usize, error: StoreError| ClientError::Unconfirmed {
        id: id.clone(),
        others,
        what,
        error,
    };
    let gone = store.confirm(ids).await;
    let gone = gone.map_err(|error| unconfirmed(first, ids.len() - 1, error))?;
    let Some(lost) = gone.first() else { return Ok(()) };
    let reason =
        "it is not there any more: it was deleted, or redis has lost it in a restart or failover";
    let error = StoreError::Failed { doing: "confirming jobs", reason: reason.to_owned() };
    Err(unconfirmed(lost, gone.len() - 1, error))
}
