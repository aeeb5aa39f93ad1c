//! A call to Redis that may be under way.

use std::future::Future;
use std::pin::Pin;

/// At most one call under way.
pub(super) struct Pending<T>(Option<Pin<Box<dyn Future<Output = T>>>>);

impl<T> Pending<T> {
    /// Starts a call. The one before must have ended.
    pub(super) fn start(&mut self, call: impl Future<Output = T> + 'static) {
        self.0 = Some(Box::pin(call));
    }

    pub(super) fn is_active(&self) -> bool {
        self.0.is_some()
    }

    /// Waits for the end of the call; for ever if none is under way. May be cancelled.
    pub(super) async fn next(&mut self) -> T {
        match &mut self.0 {
            Some(call) => {
                let value = call.await;
                self.0 = None;
                value
            }
            None => std::future::pending().await,
        }
    }
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self(None)
    }
}
