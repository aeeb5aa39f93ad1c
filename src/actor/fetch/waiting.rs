//! The wait: one connection blocks on the control lists always, and on the wake lists of actors whose queues
//! were empty. No job is popped: a token only says that there may be one.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tokio::time::timeout_at;
use tracing::error;

use super::action::Action;
use super::background_calls::BackgroundCall;
use super::pending::Pending;
use super::slots::Slots;
use crate::failpoint;
use crate::store::{Blocking, Store, StoreError, Waker, Woken};

/// The length of one wait: the loop turns at least this often. A job whose token was lost waits no longer.
pub(super) const WAIT: Duration = Duration::from_secs(2);
/// The time between two reads of the control lists while claims follow each other.
const CONTROL_LATENCY: Duration = Duration::from_millis(20);

/// The connection, the result of a wait on it, and the lists whose keys have the wrong type. `Ok(None)` is a turn
/// that ended while all work lists were empty.
pub(super) type WaitEnd = (Blocking, Result<Option<WaitFound>, StoreError>, Vec<String>);

/// The reason to do something after a wait.
pub(super) enum WaitFound {
    /// A control message, or a token.
    Entry(Woken),
    /// A work list is there though no token came.
    Work,
}

pub(super) struct QueueWait {
    store: Store,
    pub(super) wait: Pending<WaitEnd>,
    /// The connection, while it does not wait.
    connection: Option<Blocking>,
    waker: Waker,
    /// When the wait under way was last asked to end.
    woken_at: Option<Instant>,
    lists: HashSet<String>,
    /// A token may still come.
    pub(super) is_for_work: bool,
    ended_at: Instant,
}

impl QueueWait {
    pub(super) fn new(store: &Store) -> Self {
        let connection = store.blocking();
        Self {
            store: store.clone(),
            wait: Pending::default(),
            waker: connection.waker(),
            connection: Some(connection),
            woken_at: None,
            lists: HashSet::new(),
            is_for_work: false,
            ended_at: Instant::now(),
        }
    }

    /// Starts to wait, for control messages and where no claim is due for work. Wakes a wait that
    /// lacks a list, or that could still get a token where no job may be claimed. While the loop is
    /// flooded with background calls, control messages stay in their lists.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        slots: &[Slots],
        is_claiming: bool,
        is_shutting_down: bool,
        is_flooded: bool,
    ) -> Option<Action> {
        let work: Vec<&String> =
            slots.iter().filter(|slots| slots.wants_wait()).flat_map(Slots::awaited).collect();
        if self.wait.is_active() {
            let lacks = work.iter().any(|list| !self.lists.contains(*list));
            let may_not_claim = is_shutting_down || slots.iter().any(Slots::is_overloaded);
            if !(lacks || self.is_for_work && may_not_claim) {
                self.woken_at = None;
                return None;
            }
            // Redis may have got the order to end before the wait, on another connection.
            if self.woken_at.is_some_and(|at| now.duration_since(at) < CONTROL_LATENCY) {
                return None;
            }
            self.woken_at = Some(now);
            return Some(Action::Do(BackgroundCall::Wake(self.waker.clone())));
        }
        let claims_follow = is_claiming || slots.iter().any(Slots::wants_claim);
        if is_flooded || claims_follow && now.duration_since(self.ended_at) < CONTROL_LATENCY {
            return None;
        }
        let mut connection = self.connection.take()?;
        self.is_for_work = !work.is_empty();
        self.woken_at = None;
        let mut lists: Vec<String> =
            slots.iter().filter_map(Slots::control).chain(work).cloned().collect();
        lists.dedup();
        self.lists = lists.iter().cloned().collect();
        let store = self.store.clone();
        let waiting = slots.iter().filter(|slots| slots.wants_wait());
        let work: Vec<String> = waiting.flat_map(Slots::work).cloned().collect();
        self.wait.start(async move {
            if lists.is_empty() {
                tokio::time::sleep(WAIT).await;
                return (connection, Ok(None), Vec::new());
            }
            let woken = connection.pop(&lists, WAIT).await;
            let broken = match &woken {
                Err(StoreError::Failed { .. }) => {
                    store.jobs().not_lists(&lists).await.unwrap_or_default()
                }
                _ => Vec::new(),
            };
            let found = match woken {
                Ok(Some(woken)) => Ok(Some(WaitFound::Entry(woken))),
                // Its token may have been lost.
                Ok(None) if !work.is_empty() => {
                    store.jobs().some_exist(&work).await.map(|is| is.then_some(WaitFound::Work))
                }
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            };
            (connection, found, broken)
        });
        None
    }

    /// Returns when a wait that was asked to end, and has not, is to be asked again.
    pub(super) fn wakes_again_at(&self) -> Option<Instant> {
        self.woken_at.filter(|_| self.wait.is_active()).map(|at| at + CONTROL_LATENCY)
    }

    pub(super) fn done(
        &mut self,
        (connection, woken, broken): WaitEnd,
        slots: &mut [Slots],
    ) -> Vec<Action> {
        self.connection = Some(connection);
        self.is_for_work = false;
        self.ended_at = Instant::now();
        match woken {
            Ok(None) => vec![Action::RedisAnswered],
            Ok(Some(WaitFound::Work)) => {
                slots.iter_mut().for_each(Slots::check_again);
                vec![Action::RedisAnswered]
            }
            Ok(Some(WaitFound::Entry(woken))) => {
                let mut actions = vec![Action::RedisAnswered];
                actions.extend(route(woken, slots));
                actions
            }
            Err(_) if !broken.is_empty() => {
                let now = Instant::now();
                for list in &broken {
                    let mut is_new = false;
                    for slots in slots.iter_mut().filter(|slots| slots.reads(list)) {
                        is_new |= slots.set_broken(list, now);
                    }
                    if is_new {
                        error!(key = %list, "cannot read a list: its key has the wrong type; trying again in 30 s");
                    }
                }
                vec![Action::RedisAnswered]
            }
            Err(error) => {
                // A claim reports which of the lists cannot be read.
                slots.iter_mut().for_each(Slots::check_again);
                vec![Action::RedisFailed("waiting for work", error)]
            }
        }
    }

    /// Ends the wait under way. Returns its result.
    pub(super) async fn stop(
        &mut self,
        store: &Store,
        until: tokio::time::Instant,
    ) -> Option<Woken> {
        if !self.wait.is_active() {
            return None;
        }
        timeout_at(until, store.jobs().wake(&self.waker)).await.ok()?.ok()?;
        match timeout_at(until, self.wait.next()).await.ok()?.1.ok()? {
            Some(WaitFound::Entry(woken)) => Some(woken),
            Some(WaitFound::Work) | None => None,
        }
    }
}

/// Decides about a control message or a token.
fn route(woken: Woken, slots: &mut [Slots]) -> Option<Action> {
    if let Some(actor) = slots.iter().position(|slots| slots.control == woken.list) {
        return Some(Action::Control(actor, woken.entry));
    }
    let looks = |slots: &&mut Slots| slots.wants_wait() && slots.reads(&woken.list);
    match slots.iter_mut().find(looks) {
        Some(slots) => {
            failpoint::reached(failpoint::AFTER_WAKE);
            slots.check_again();
            None
        }
        None => Some(Action::Do(BackgroundCall::PassOn(woken))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RedisConfig;
    use crate::proto::keys::Keys;
    use crate::proto::target::ActorId;

    fn slots(unit: &str) -> Slots {
        let id = ActorId::from_unit(unit).expect("legal");
        let mut slots = Slots::new(id, 1, &Keys::default(), Vec::new());
        slots.may_have_work = false;
        slots
    }

    #[tokio::test]
    async fn wait_that_lacks_a_list_is_asked_to_end_until_it_has() {
        let store = Store::open(&RedisConfig::default()).expect("legal settings");
        let mut waiting = QueueWait::new(&store);
        let mut slots = [slots("osis-default-1")];
        let now = Instant::now();
        let wakes = |waiting: &mut QueueWait, slots: &[Slots], later| {
            let action = waiting.begin(now + later, slots, false, false, false);
            matches!(action, Some(Action::Do(BackgroundCall::Wake(_))))
        };
        slots[0].check_again();
        assert!(!wakes(&mut waiting, &slots, CONTROL_LATENCY), "it waits for control messages");
        slots[0].claimed(false);
        assert!(wakes(&mut waiting, &slots, CONTROL_LATENCY));
        // Redis may have got that before the wait.
        assert!(!wakes(&mut waiting, &slots, CONTROL_LATENCY), "not at once");
        assert_eq!(waiting.wakes_again_at(), Some(now + 2 * CONTROL_LATENCY));
        assert!(wakes(&mut waiting, &slots, 2 * CONTROL_LATENCY));
        slots[0].drain(true);
        assert!(!wakes(&mut waiting, &slots, 3 * CONTROL_LATENCY));
        assert_eq!(waiting.wakes_again_at(), None);
    }

    fn token(slots: &Slots) -> Woken {
        let list = slots.awaited().last().expect("it has lists").clone();
        Woken { list, entry: b"1".to_vec() }
    }

    #[test]
    fn token_lets_the_actor_claim_that_waits_for_its_list() {
        let mut slots = [slots("osis-default-1"), slots("sal-default-1")];
        let token = token(&slots[1]);
        assert!(route(token, &mut slots).is_none());
        assert!(slots[1].wants_claim() && !slots[0].wants_claim());
    }

    #[test]
    fn token_is_passed_on_if_its_actor_drains() {
        let mut slots = [slots("osis-default-1")];
        let token = token(&slots[0]);
        slots[0].drain(true);
        let action = route(token, &mut slots);
        assert!(matches!(action, Some(Action::Do(BackgroundCall::PassOn(_)))), "{action:?}");
    }

    #[test]
    fn control_message_reaches_its_actor_though_it_drains() {
        let mut slots = [slots("osis-default-1"), slots("sal-default-1")];
        slots[1].drain(true);
        let control = Woken { list: slots[1].control.clone(), entry: b"j1".to_vec() };
        assert!(matches!(route(control, &mut slots), Some(Action::Control(1, _))));
    }
}
