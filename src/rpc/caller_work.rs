//! Work of the API that takes memory, processes or places of all callers for long: of each kind so much at a time for each caller.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::rpc_error::{Result, RpcError, code};

/// The longest wait of work for other work of its caller to end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BoundedWork {
    /// A file or an output that is being sent.
    File,
    /// A request with a large body that is being read.
    Body,
    /// A script that is being checked, by a process of its own.
    Check,
    /// A search for jobs.
    Search,
    /// A subscription.
    Subscription,
    /// A reader of what is followed, which the first of its followers has begun.
    Feed,
    /// A live page that is rendered for all who have it open, which the first of them has begun.
    Page,
}

impl BoundedWork {
    /// Returns how much one caller may have at a time; of what is bounded for all callers, a half.
    const fn most(self) -> usize {
        match self {
            Self::File | Self::Body | Self::Check | Self::Search => 4,
            Self::Subscription => 5000,
            Self::Feed | Self::Page => 250,
        }
    }

    /// Returns what cannot be done, what the caller does with others meanwhile, and what to do about it.
    const fn words(self) -> [&'static str; 3] {
        match self {
            Self::File => {
                ["send the file", "is reading", "read them to their end or close their connections"]
            }
            Self::Body => ["read the body of the request", "is sending", "send fewer at a time"],
            Self::Check => ["check the script", "is checking", "check fewer at a time"],
            Self::Search => ["search for jobs", "does", "search less at a time"],
            Self::Subscription => ["subscribe", "has", "unsubscribe from some"],
            Self::Feed => ["follow the job", "follows", "unsubscribe from some"],
            Self::Page => ["show changes of the page", "has opened", "close some"],
        }
    }
}

#[derive(Default)]
pub(crate) struct CallerWork(parking_lot::Mutex<HashMap<(BoundedWork, String), Arc<Semaphore>>>);

impl CallerWork {
    /// Waits until a caller may begin work of a kind, at most so long. It ends with the permit.
    pub(crate) async fn begin(
        &self,
        caller: &str,
        work: BoundedWork,
        patience: Duration,
    ) -> Result<OwnedSemaphorePermit> {
        let own = self.of_caller(caller, work);
        let begun = tokio::time::timeout(patience, own.acquire_owned()).await;
        begun.ok().and_then(Result::ok).ok_or_else(|| too_much(caller, work))
    }

    /// Begins work of a caller that does not wait.
    pub(crate) fn try_begin(
        &self,
        caller: &str,
        work: BoundedWork,
    ) -> Result<OwnedSemaphorePermit> {
        self.of_caller(caller, work).try_acquire_owned().map_err(|_| too_much(caller, work))
    }

    fn of_caller(&self, caller: &str, work: BoundedWork) -> Arc<Semaphore> {
        let mut all = self.0.lock();
        all.retain(|_, one| Arc::strong_count(one) > 1);
        let new = || Arc::new(Semaphore::new(work.most()));
        Arc::clone(all.entry((work, caller.to_owned())).or_insert_with(new))
    }
}

fn too_much(caller: &str, work: BoundedWork) -> RpcError {
    let ([what, does, todo], most) = (work.words(), work.most());
    let message = format!("cannot {what}: {caller} {does} {most} others; {todo}");
    RpcError::new(code::INTERNAL, message).with("retryable", true)
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn further_work_of_a_caller_waits_and_that_of_others_or_of_another_kind_does_not() {
        let work = CallerWork::default();
        let begin = |caller, kind| work.begin(caller, kind, Duration::ZERO);
        let mut places = Vec::new();
        for _ in 0..BoundedWork::File.most() {
            places.push(begin("ann", BoundedWork::File).await.expect("a place"));
        }
        let refused = begin("ann", BoundedWork::File).await.expect_err("too many");
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "{refused}");
        drop(begin("bob", BoundedWork::File).await.expect("his own place"));
        assert!(work.try_begin("ann", BoundedWork::File).is_err());
        drop(begin("ann", BoundedWork::Check).await.expect("a place of another kind"));
        places.pop();
        places.push(begin("ann", BoundedWork::File).await.expect("a place again"));
        drop(places);
        drop(begin("bob", BoundedWork::File).await);
        assert_eq!(work.0.lock().len(), 1, "callers who do nothing are forgotten");
    }
}
