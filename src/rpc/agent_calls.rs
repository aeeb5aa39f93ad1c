//! The calls of agents over HTTP that run now, so that a later request can cancel one.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

/// A call: its caller, the session, and the id of the request in that session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AgentCall {
    pub(super) caller: String,
    pub(super) session: String,
    pub(super) request: String,
}

impl AgentCall {
    /// Returns the call of a request; `None` without a session, in which its id would be ambiguous.
    pub(super) fn of(caller: &str, session: Option<&str>, request: &Value) -> Option<Self> {
        let request = request.to_string();
        Some(Self { caller: caller.to_owned(), session: session?.to_owned(), request })
    }
}

/// The running calls. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct AgentCalls(Arc<Mutex<HashMap<AgentCall, watch::Sender<bool>>>>);

/// A call that runs, until it is dropped.
pub(super) struct RunningCall {
    calls: AgentCalls,
    call: Option<AgentCall>,
    cancel: watch::Sender<bool>,
}

impl AgentCalls {
    /// Notes a call that begins. Returns it, and what becomes true when it is cancelled.
    pub(super) fn begin(&self, call: Option<AgentCall>) -> (RunningCall, watch::Receiver<bool>) {
        let (cancel, cancelled) = watch::channel(false);
        if let Some(call) = &call {
            self.0.lock().insert(call.clone(), cancel.clone());
        }
        (RunningCall { calls: self.clone(), call, cancel }, cancelled)
    }

    /// Cancels a call. One that is unknown or has ended is no error.
    pub(super) fn cancel(&self, call: &AgentCall) {
        if let Some(cancel) = self.0.lock().get(call) {
            cancel.send_replace(true);
        }
    }
}

impl RunningCall {
    /// Returns what cancels the call when it is dropped.
    pub(super) fn cancelled_by_drop(&self) -> CancelByDrop {
        CancelByDrop(self.cancel.clone())
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let Some(call) = &self.call else { return };
        let mut running = self.calls.0.lock();
        // A client that uses an id twice has replaced it.
        if running.get(call).is_some_and(|cancel| cancel.same_channel(&self.cancel)) {
            running.remove(call);
        }
    }
}

/// Cancels a call when it is dropped. A call that has ended does not notice.
pub(super) struct CancelByDrop(watch::Sender<bool>);

impl Drop for CancelByDrop {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn call_is_cancelled_only_in_its_session_and_by_its_caller() {
        let calls = AgentCalls::default();
        let call =
            |caller, session, id: Value| AgentCall::of(caller, Some(session), &id).expect("one");
        let (running, cancelled) = calls.begin(Some(call("ann", "s", json!(1))));
        for other in
            [call("ann", "s", json!("1")), call("ann", "t", json!(1)), call("bob", "s", json!(1))]
        {
            calls.cancel(&other);
            assert!(!*cancelled.borrow(), "{other:?}");
        }
        calls.cancel(&call("ann", "s", json!(1)));
        assert!(*cancelled.borrow());
        drop(running);
        assert!(calls.0.lock().is_empty());
        assert_eq!(AgentCall::of("ann", None, &json!(1)), None);
    }

    #[test]
    fn second_call_of_an_id_outlives_the_first() {
        let calls = AgentCalls::default();
        let call = AgentCall::of("ann", Some("s"), &json!(1));
        let (first, _) = calls.begin(call.clone());
        let (second, cancelled) = calls.begin(call.clone());
        drop(first);
        calls.cancel(&call.expect("one"));
        assert!(*cancelled.borrow());
        drop(second);
        assert!(calls.0.lock().is_empty());
    }
}
