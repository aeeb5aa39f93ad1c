//! Waiting: one connection blocks on the control lists always, and on the work lists of actors
//! whose queues were found empty.

use std::time::{Duration, Instant};

use super::Fetch;
use super::errand::{self, Errand};
use super::slots::Slots;
use crate::failpoint;
use crate::store::{Blocking, StoreError, Woken};

/// How long one wait for work lasts: the loop turns at least this often.
const WAIT: Duration = Duration::from_secs(2);
/// While claims follow each other, control lists are looked at this often.
const CONTROL_LATENCY: Duration = Duration::from_millis(20);
impl Fetch {
    /// Waits for control messages always, and for work where no claim is due.
    pub(super) fn begin_waiting(&mut self, now: Instant) {
        let wanted: Vec<String> = self
            .slots
            .iter()
            .filter(|slots| slots.wants_wait())
            .flat_map(|slots| slots.awaited().cloned())
            .collect();
        if self.waiting.is_some() {
            // A wait that does not look at all it should is woken, and begun anew; so is one that
            // could still take work while the process shuts down.
            let lacks = wanted.iter().any(|list| !self.waiting_for.contains(list));
            if !self.waking && (lacks || self.waiting_for_work && self.drain.has_begun()) {
                self.waking = true;
                self.errands.push_front(Errand::Wake(self.waker.clone()));
            }
            return;
        }
        let claims_follow = self.claiming.is_some() || self.slots.iter().any(Slots::wants_claim);
        if claims_follow && now.duration_since(self.waited_at) < CONTROL_LATENCY
            || self.errands.len() >= errand::ERRANDS_MAX
        {
            return;
        }
        let Some(mut blocking) = self.blocking.take() else {
            return;
        };
        let mut lists: Vec<String> = self.slots.iter().map(|slots| slots.control.clone()).collect();
        lists.extend(wanted.iter().cloned());
        lists.dedup();
        self.waiting_for.clone_from(&lists);
        self.waking = false;
        self.waiting_for_work = !wanted.is_empty();
        self.waiting = Some(Box::pin(async move {
            let woken = blocking.pop(&lists, WAIT).await;
            (blocking, woken)
        }));
    }

    pub(super) fn on_woken(
        &mut self,
        blocking: Blocking,
        woken: Result<Option<Woken>, StoreError>,
    ) {
        self.blocking = Some(blocking);
        self.waiting_for_work = false;
        self.waited_at = Instant::now();
        match woken {
            Ok(None) => {
                self.redis_answered();
                // A claim tells whether a paused queue goes on, should nobody have said so.
                for slots in self.slots.iter_mut().filter(|slots| slots.paused_number() > 0) {
                    slots.look_again();
                }
            }
            Ok(Some(woken)) => {
                self.redis_answered();
                self.on_entry(woken);
            }
            Err(error) => {
                // A claim tells which of the lists cannot be read.
                for slots in &mut self.slots {
                    slots.hungry = slots.free() > 0;
                }
                self.redis_failed("waiting for work", &error);
            }
        }
    }

    /// A pop is a wake-up, not ownership: the claim follows at once.
    fn on_entry(&mut self, woken: Woken) {
        if let Some(actor) = self.slots.iter().position(|slots| slots.control == woken.list) {
            self.on_message(actor, &woken.entry);
            return;
        }
        let taker =
            self.slots.iter().position(|slots| slots.wants_wait() && slots.reads(&woken.list));
        match taker {
            Some(actor) => {
                failpoint::reached(failpoint::AFTER_POP);
                self.slots[actor].hungry = true;
                self.popped.push((actor, woken));
            }
            None => self.errands.push_back(Errand::PutBack(woken)),
        }
    }
}
