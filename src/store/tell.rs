//! Events that jobs wait for.

use super::{Result, Store, StoreError};
use crate::proto::job::{JobId, JobStatus};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TellOutcome {
    /// The job waited for it, and goes to its queue.
    Told,
    /// The job keeps it for its next wait.
    Kept,
    /// The job has had it, or keeps it already.
    Twice,
    /// The wait of the job for it has ended by its time, and it does not wait for it again.
    Missed,
    /// The job waits for it from others.
    Forbidden,
    /// The job keeps too many events.
    Full,
    Refused(JobStatus),
    /// Its fields name no queue.
    Illegal,
    Missing,
}

impl Store {
    /// Tells a job an event: a JSON object without its time. `names` are of the person or program that tells it.
    pub async fn tell(
        &self,
        id: &JobId,
        (name, event): (&str, &str),
        names: &[String],
    ) -> Result<TellOutcome> {
        const DOING: &str = "telling a job an event";
        let arguments = (id.as_str(), name, event, names);
        let (code, detail): (String, String) =
            self.run_for_caller(DOING, Some(id), &self.scripts.tell, arguments).await?;
        Ok(match code.as_str() {
            "told" => TellOutcome::Told,
            "kept" => TellOutcome::Kept,
            "twice" => TellOutcome::Twice,
            "missed" => TellOutcome::Missed,
            "forbidden" => TellOutcome::Forbidden,
            "full" => TellOutcome::Full,
            "refused" => TellOutcome::Refused(StoreError::or_parsed(DOING, &detail)?),
            "illegal" => TellOutcome::Illegal,
            "missing" => TellOutcome::Missing,
            _ => return Err(StoreError::unexpected(DOING)),
        })
    }
}
