//! The files that callers of the API are reading: a few at a time for each.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::rpc_error::{Result, RpcError, code};

/// The files that one caller may read at a time; further ones wait.
const FILES_MAX: usize = 4;
/// The longest wait for one of them to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct FileReads(parking_lot::Mutex<HashMap<String, Arc<Semaphore>>>);

impl FileReads {
    /// Waits until a caller may read one more file, at most so long.
    pub(super) async fn begin(
        &self,
        caller: &str,
        patience: Duration,
    ) -> Result<OwnedSemaphorePermit> {
        let own = {
            let mut all = self.0.lock();
            all.retain(|_, one| Arc::strong_count(one) > 1);
            let new = || Arc::new(Semaphore::new(FILES_MAX));
            Arc::clone(all.entry(caller.to_owned()).or_insert_with(new))
        };
        if let Ok(Ok(place)) = tokio::time::timeout(patience, own.acquire_owned()).await {
            return Ok(place);
        }
        let message = format!(
            "cannot send the file: {caller} is reading {FILES_MAX} others; read them to their end or close their \
             connections"
        );
        Err(RpcError::new(code::INTERNAL, message).with("retryable", true))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn further_files_of_a_caller_wait_and_those_of_others_do_not() {
        let reads = FileReads::default();
        let mut places = Vec::new();
        for _ in 0..FILES_MAX {
            places.push(reads.begin("ann", Duration::ZERO).await.expect("a place"));
        }
        let refused = reads.begin("ann", Duration::ZERO).await.expect_err("too many");
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "{refused}");
        drop(reads.begin("bob", Duration::ZERO).await.expect("his own place"));
        places.pop();
        places.push(reads.begin("ann", Duration::ZERO).await.expect("a place again"));
        drop(places);
        drop(reads.begin("bob", Duration::ZERO).await);
        assert_eq!(reads.0.lock().len(), 1, "callers who read nothing are forgotten");
    }
}
