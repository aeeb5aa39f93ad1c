//! The feeds in use. Each has one reader, which starts with the first follower and ends with the last.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use super::super::caller_work::{BoundedWork, CallerWork};
use super::super::rpc_error::{Result, RpcError, code};
use super::feed::SharedFeed;
use super::read;
use super::topic::FollowTopic;
use crate::client::Client;

const FOLLOWERS_MAX: usize = 10_000;
/// The maximum number of things that are followed at once: each reader of a job has a connection to Redis.
const FEEDS_MAX: usize = 500;

/// All feeds. Cheap to clone.
#[derive(Clone)]
pub(crate) struct FollowHub(Arc<HubParts>);

struct HubParts {
    client: Client,
    feeds: Mutex<HashMap<FollowTopic, OpenFeed>>,
    places: Arc<Semaphore>,
    work: Arc<CallerWork>,
}

struct OpenFeed {
    feed: Arc<SharedFeed>,
    followers: usize,
    reader: AbortHandle,
    /// A place of the caller who began it.
    _begun: OwnedSemaphorePermit,
}

/// A place among the followers of a feed.
pub(super) struct FeedSeat {
    hub: FollowHub,
    topic: FollowTopic,
    pub(super) feed: Arc<SharedFeed>,
    _places: [OwnedSemaphorePermit; 2],
}

impl Drop for FeedSeat {
    fn drop(&mut self) {
        self.hub.leave(&self.topic, &self.feed);
    }
}

impl FollowHub {
    pub(crate) fn new(client: Client, work: Arc<CallerWork>) -> Self {
        let places = Arc::new(Semaphore::new(FOLLOWERS_MAX));
        Self(Arc::new(HubParts { client, feeds: Mutex::default(), places, work }))
    }

    pub(super) fn client(&self) -> &Client {
        &self.0.client
    }

    /// Joins the followers of a thing for a caller. The first one starts its reader.
    pub(super) fn join(&self, topic: &FollowTopic, caller: &str) -> Result<FeedSeat> {
        let full = |what: &str, most: usize| {
            let message = format!("{what}: the limit of a supervisor is {most}; try again later");
            RpcError::new(code::CONFLICT, message).with("most", most).with("retryable", true)
        };
        let own = self.0.work.try_begin(caller, BoundedWork::Subscription)?;
        let place = Arc::clone(&self.0.places).try_acquire_owned();
        let place = place.map_err(|_| full("too many subscriptions are open", FOLLOWERS_MAX))?;
        let mut feeds = self.0.feeds.lock();
        let number = feeds.len();
        let feed = match feeds.entry(topic.clone()) {
            Entry::Occupied(mut open) => {
                open.get_mut().followers += 1;
                Arc::clone(&open.get().feed)
            }
            Entry::Vacant(_) if number >= FEEDS_MAX => {
                return Err(full("too many jobs are followed", FEEDS_MAX));
            }
            Entry::Vacant(vacant) => {
                let begun = self.0.work.try_begin(caller, BoundedWork::Feed)?;
                let feed: Arc<SharedFeed> = Arc::default();
                let reader = self.start(topic.clone(), Arc::clone(&feed));
                let own = Arc::clone(&feed);
                vacant.insert(OpenFeed { feed: own, followers: 1, reader, _begun: begun });
                feed
            }
        };
        Ok(FeedSeat { hub: self.clone(), topic: topic.clone(), feed, _places: [own, place] })
    }

    fn start(&self, topic: FollowTopic, feed: Arc<SharedFeed>) -> AbortHandle {
        let hub = self.clone();
        let reader = async move {
            read::read(hub.client(), &topic, &feed).await;
            // A job that runs again gets another reader.
            let mut feeds = hub.0.feeds.lock();
            if feeds.get(&topic).is_some_and(|open| Arc::ptr_eq(&open.feed, &feed)) {
                feeds.remove(&topic);
            }
        };
        tokio::spawn(reader).abort_handle()
    }

    fn leave(&self, topic: &FollowTopic, feed: &Arc<SharedFeed>) {
        let mut feeds = self.0.feeds.lock();
        let Some(open) = feeds.get_mut(topic).filter(|open| Arc::ptr_eq(&open.feed, feed)) else {
            return;
        };
        open.followers -= 1;
        if open.followers == 0 {
            open.reader.abort();
            feeds.remove(topic);
        }
    }
}
