//! The subscriptions of one WebSocket.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::caller::Caller;
use super::follow::{Follower, NextNotice};
use super::method::{OpenSubscription, read};
use super::methods::{EndSubscription, UNSUBSCRIBE};
use super::rpc_error::{Result, RpcError, code};
use super::service::ApiService;

const SUBSCRIPTIONS_MAX: usize = 100;

/// The open subscriptions, by their ids. Each has a task, which waits while the client does not read.
pub(super) struct SocketSubscriptions {
    open: Mutex<HashMap<String, Option<AbortHandle>>>,
    last: AtomicU64,
    notices: mpsc::Sender<SocketNotice>,
}

pub(super) struct SocketNotice {
    pub(super) method: &'static str,
    pub(super) params: Value,
}

/// One message of a client: the subscriptions that it opens begin once it is answered.
pub(super) struct SocketCall {
    subscriptions: Arc<SocketSubscriptions>,
    opened: Mutex<Vec<OpenedFollower>>,
}

struct OpenedFollower {
    subscription: String,
    method: &'static str,
    follower: Follower,
}

impl SocketSubscriptions {
    pub(super) fn new(notices: mpsc::Sender<SocketNotice>) -> Arc<Self> {
        Arc::new(Self { open: Mutex::default(), last: AtomicU64::new(0), notices })
    }

    /// Returns the place of a new message.
    pub(super) fn call(self: &Arc<Self>) -> Arc<SocketCall> {
        Arc::new(SocketCall { subscriptions: Arc::clone(self), opened: Mutex::default() })
    }

    /// Returns an id, which counts as open from now on.
    fn reserve(&self) -> Result<String> {
        let mut open = self.open.lock();
        if open.len() >= SUBSCRIPTIONS_MAX {
            let message = format!(
                "this connection has {} subscriptions, the limit: unsubscribe from some, or open another \
                 connection",
                open.len()
            );
            return Err(RpcError::new(code::CONFLICT, message).with("most", SUBSCRIPTIONS_MAX));
        }
        let id = (self.last.fetch_add(1, Ordering::Relaxed) + 1).to_string();
        open.insert(id.clone(), None);
        Ok(id)
    }

    fn end(&self, id: &str) -> bool {
        let ended = self.open.lock().remove(id);
        if let Some(Some(task)) = &ended {
            task.abort();
        }
        ended.is_some()
    }

    fn start(self: &Arc<Self>, opened: OpenedFollower) {
        let OpenedFollower { subscription, method, mut follower } = opened;
        let mut open = self.open.lock();
        // It may have been ended before it began.
        let Some(place) = open.get_mut(&subscription) else { return };
        let own = Arc::clone(self);
        let task = tokio::spawn(async move {
            loop {
                follower.changed().await;
                // Nothing is taken before the connection has room for it.
                let Ok(room) = own.notices.reserve().await else { return };
                match follower.next().await {
                    NextNotice::None => {}
                    NextNotice::Some(params) => room.send(SocketNotice { method, params }),
                    NextNotice::Last(params) => {
                        room.send(SocketNotice { method, params });
                        own.open.lock().remove(&subscription);
                        return;
                    }
                }
            }
        });
        *place = Some(task.abort_handle());
    }

    pub(super) fn end_all(&self) {
        for (_, task) in self.open.lock().drain() {
            task.iter().for_each(AbortHandle::abort);
        }
    }
}

impl SocketCall {
    /// Calls a method that only a WebSocket has; `None` for any other.
    pub(super) async fn call(
        &self,
        service: &ApiService,
        caller: &Arc<Caller>,
        name: &str,
        params: &Value,
    ) -> Option<Result<Value>> {
        let method = service.table.method(name)?;
        if name == UNSUBSCRIBE {
            let given = method.named(params.clone()).and_then(|params| read(name, params));
            let ended = |EndSubscription { subscription }| self.subscriptions.end(&subscription);
            return Some(given.map(|given| Value::Bool(ended(given))));
        }
        method.subscription.as_ref()?;
        Some(self.subscribe(service, caller, method.name, params.clone()).await)
    }

    async fn subscribe(
        &self,
        service: &ApiService,
        caller: &Arc<Caller>,
        method: &'static str,
        params: Value,
    ) -> Result<Value> {
        let following = service.open(Arc::clone(caller), method, params).await?;
        let subscription = self.subscriptions.reserve()?;
        let follower = Follower::new(&service.follows, subscription.clone(), following).await;
        let follower = follower.inspect_err(|_| {
            self.subscriptions.end(&subscription);
        })?;
        let opened = OpenedFollower { subscription: subscription.clone(), method, follower };
        self.opened.lock().push(opened);
        Ok(json!(OpenSubscription { subscription }))
    }

    /// Starts the subscriptions that the message opened, after it is answered.
    pub(super) fn answered(&self) {
        for opened in self.opened.lock().drain(..) {
            self.subscriptions.start(opened);
        }
    }
}
