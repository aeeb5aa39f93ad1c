//! The places of connections: one number for those whose caller is known, a part of it beside them for those whose caller is not, and
//! one for the local socket. Without room, a connection without a known caller takes the place of the oldest one of the peer that
//! has most of these: strangers push out each other, and nobody else.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{AcquireError, Notify, OnceCell, OwnedSemaphorePermit, Semaphore, mpsc};

/// The part of the places of known callers that the others have besides.
const UNKNOWN_PART: usize = 4;
/// The part of the places of known callers that one of them may have.
const CALLER_PART: usize = 2;

pub(super) struct Places {
    known: Arc<Semaphore>,
    /// A half of them for each caller, by its name.
    of_callers: Mutex<HashMap<String, Arc<Semaphore>>>,
    most_of_caller: usize,
    local: Arc<Semaphore>,
    unknown_max: usize,
    unknown: Mutex<Unknown>,
    /// Every connection holds a copy until its end.
    alive: mpsc::Sender<()>,
}

/// The connections without a known caller, the oldest first.
#[derive(Default)]
struct Unknown {
    next: u64,
    open: Vec<(u64, Arc<str>, Arc<Notify>)>,
}

/// The place of one connection, and of a WebSocket over it.
pub struct ConnectionPlace {
    places: Arc<Places>,
    /// Its number among those without a known caller.
    number: u64,
    evicted: Arc<Notify>,
    permit: OnceCell<Vec<OwnedSemaphorePermit>>,
    _alive: mpsc::Sender<()>,
}

impl Places {
    /// Creates it for so many connections. The second is closed when the last connection has ended.
    pub(super) fn new(most: usize) -> (Arc<Self>, mpsc::Receiver<()>) {
        let (alive, ended) = mpsc::channel(1);
        let places = Self {
            known: Arc::new(Semaphore::new(most)),
            of_callers: Mutex::default(),
            most_of_caller: most.div_ceil(CALLER_PART),
            local: Arc::new(Semaphore::new(most)),
            unknown_max: most.div_ceil(UNKNOWN_PART),
            unknown: Mutex::default(),
            alive,
        };
        (Arc::new(places), ended)
    }

    /// Waits for a place of the local socket.
    pub(super) async fn local(self: &Arc<Self>) -> Option<Arc<ConnectionPlace>> {
        let permit = Arc::clone(&self.local).acquire_owned().await.ok()?;
        let mut place = self.place(0, Arc::default());
        place.permit = OnceCell::new_with(Some(vec![permit]));
        Some(Arc::new(place))
    }

    /// Gives a place to a connection whose caller is not known yet.
    pub(super) fn unknown(self: &Arc<Self>, peer: &Arc<str>) -> Arc<ConnectionPlace> {
        let evicted: Arc<Notify> = Arc::default();
        let mut unknown = self.unknown.lock();
        if unknown.open.len() >= self.unknown_max {
            unknown.evict();
        }
        unknown.next += 1;
        let number = unknown.next;
        unknown.open.push((number, Arc::clone(peer), Arc::clone(&evicted)));
        drop(unknown);
        Arc::new(self.place(number, evicted))
    }

    /// Returns the places of one caller. Callers without a connection are forgotten.
    fn of_caller(&self, caller: &str) -> Arc<Semaphore> {
        let mut of_callers = self.of_callers.lock();
        of_callers.retain(|_, places| Arc::strong_count(places) > 1);
        let own = of_callers.entry(caller.to_owned());
        Arc::clone(own.or_insert_with(|| Arc::new(Semaphore::new(self.most_of_caller))))
    }

    fn place(self: &Arc<Self>, number: u64, evicted: Arc<Notify>) -> ConnectionPlace {
        ConnectionPlace {
            places: Arc::clone(self),
            number,
            evicted,
            permit: OnceCell::new(),
            _alive: self.alive.clone(),
        }
    }
}

impl Unknown {
    /// Signals the oldest connection of the peer that has most of them to end.
    fn evict(&mut self) {
        let mut of_peer: HashMap<&str, usize> = HashMap::new();
        for (_, peer, _) in &self.open {
            *of_peer.entry(peer).or_default() += 1;
        }
        let most = of_peer.values().copied().max().unwrap_or_default();
        let place = self.open.iter().position(|(_, peer, _)| of_peer[&**peer] == most);
        if let Some(place) = place {
            self.open.remove(place).2.notify_one();
        }
    }

    fn remove(&mut self, number: u64) {
        self.open.retain(|(of, ..)| *of != number);
    }
}

impl ConnectionPlace {
    /// Waits until the connection has a place of those with a known caller. It then keeps it to its end.
    pub async fn of_known_caller(&self, caller: &str) {
        let places = &self.places;
        let permits = self.permit.get_or_try_init(|| async {
            let own = places.of_caller(caller).acquire_owned().await?;
            let any = Arc::clone(&places.known).acquire_owned().await?;
            Ok::<_, AcquireError>(vec![own, any])
        });
        if permits.await.is_ok() {
            places.unknown.lock().remove(self.number);
        }
    }

    /// Waits until another connection needs the place.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.places.unknown.lock().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn is_evicted(place: &ConnectionPlace) -> bool {
        place.evicted().now_or_never().is_some()
    }

    #[tokio::test]
    async fn connection_of_a_stranger_takes_the_place_of_the_oldest_one_of_the_peer_with_most() {
        let (places, _ended) = Places::new(16);
        let [eve, ann]: [Arc<str>; 2] = ["eve".into(), "ann".into()];
        let first = places.unknown(&ann);
        let of_eve: Vec<_> = (0..10).map(|_| places.unknown(&eve)).collect();
        assert!(!is_evicted(&first));
        let evicted: Vec<bool> = of_eve.iter().map(|place| is_evicted(place)).collect();
        assert_eq!(evicted, [true, true, true, true, true, true, true, false, false, false]);
        // A known caller has a place that no stranger takes.
        of_eve[9].of_known_caller("eve").await;
        for _ in 0..10 {
            drop(places.unknown(&eve));
        }
        assert!(!is_evicted(&of_eve[9]));
    }

    #[tokio::test]
    async fn local_socket_and_known_callers_have_places_of_their_own() {
        let (places, mut ended) = Places::new(2);
        let peer: Arc<str> = "eve".into();
        let known = places.unknown(&peer);
        known.of_known_caller("eve").await;
        let local = places.local().await.expect("a place");
        let next = places.unknown(&peer);
        assert!(next.of_known_caller("eve").now_or_never().is_none(), "a half is for others");
        places.unknown(&peer).of_known_caller("ann").await;
        drop(known);
        next.of_known_caller("eve").await;
        drop((local, next, places));
        assert!(ended.recv().await.is_none());
    }
}
