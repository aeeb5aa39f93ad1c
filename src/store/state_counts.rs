//! Counts the jobs of each state.

use super::{Store, StoreError};
use crate::proto::job::JobStatus;

/// Indexes that one round trip counts.
const INDEXES_PER_PAGE: usize = 1000;

impl Store {
    /// Counts the jobs of each state, the held ones among the dispatched. It costs the indexes and not the jobs.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn count_jobs(&self) -> Result<Vec<(JobStatus, u64)>, StoreError> {
        let mut indexes = Vec::new();
        for status in JobStatus::ALL {
            let of_status = self.indexes(status, None).await?.into_iter();
            indexes.extend(of_status.map(|index| (status, index)));
        }
        let mut counts = JobStatus::ALL.map(|status| (status, 0_u64));
        for page in indexes.chunks(INDEXES_PER_PAGE) {
            let size = |(_, index): &'_ (JobStatus, String)| ("ZCARD", index.clone());
            let numbers: Vec<Option<u64>> = self.link.each("counting jobs", page, size).await?;
            for ((status, _), number) in page.iter().zip(numbers) {
                // A key of a wrong type counts nothing.
                let number = number.unwrap_or_default();
                if let Some(count) = counts.iter_mut().find(|(of, _)| of == status) {
                    count.1 += number;
                }
            }
        }
        Ok(counts.into())
    }
}
