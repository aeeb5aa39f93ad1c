//! Decides which message tells an event, and when it is due: the first at once, then at most one in a while.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{NotifyEvent, NotifyKind, NotifyMessage, NotifyName};

/// The wait between messages of a notification while many messages are undelivered, in ms.
const CROWDED_EVERY_MS: u64 = 300_000;
/// The number of undelivered messages from which on further events are gathered.
const CROWDED: usize = 500;
/// The messages of one notification that one step makes; further events join the last.
const PER_STEP: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NotifyState {
    /// The time up to which no other message may be sent, in ms since 1970.
    pub quiet_until_ms: u64,
    /// The message that gathers events.
    pub gathers: String,
    /// The time at which it is due.
    pub gathers_until_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedMessage {
    pub message: NotifyMessage,
    /// When it is due, in ms since 1970.
    pub due_ms: u64,
    /// False if it exists, and gathers further events.
    pub is_new: bool,
}

/// The decisions of one step.
#[derive(Debug, Default)]
pub struct MessagePlan {
    pub now_ms: u64,
    pub states: BTreeMap<NotifyName, NotifyState>,
    /// The messages that gather events, and those that this step writes, by id.
    pub messages: BTreeMap<String, PlannedMessage>,
    pub undelivered: usize,
    made: BTreeMap<NotifyName, (usize, String)>,
}

impl MessagePlan {
    /// Begins a step with what is kept.
    pub fn new(now_ms: u64, states: BTreeMap<NotifyName, NotifyState>, undelivered: usize) -> Self {
        Self { now_ms, states, undelivered, ..Self::default() }
    }

    /// Returns the ids of the messages that still gather events.
    pub fn gathering(&self) -> Vec<String> {
        let states = self.states.values().filter(|state| self.now_ms < state.gathers_until_ms);
        states.map(|state| state.gathers.clone()).collect()
    }

    /// Adds a message that gathers events, as it is kept. One that is due at another time than it was written for has
    /// been taken for its delivery: it gathers no more.
    pub fn keeps(&mut self, message: NotifyMessage, due_ms: u64) {
        let until = self.states.get(&message.to).filter(|state| state.gathers == message.id);
        if until.is_none_or(|state| state.gathers_until_ms != due_ms) {
            return;
        }
        let planned = PlannedMessage { message, due_ms, is_new: false };
        self.messages.insert(planned.message.id.clone(), planned);
    }

    /// Adds an event to a notification. `place` is unique to the event: the id of a message that it begins is made
    /// of it, so that each reader of the stream makes the same.
    pub fn tell(
        &mut self,
        to: &NotifyName,
        kind: NotifyKind,
        event: &NotifyEvent,
        place: &str,
        every_ms: u64,
    ) {
        if kind == NotifyKind::Test {
            // A person waits for its result: it joins no other message, and makes none wait.
            self.begin(to, kind, event, format!("{to}-{place}"), self.now_ms);
            return;
        }
        let crowded = self.undelivered >= CROWDED;
        let every_ms = if crowded { every_ms.max(CROWDED_EVERY_MS) } else { every_ms };
        let now_ms = self.now_ms;
        let (made, last) = self.made.entry(to.clone()).or_default();
        let state = self.states.entry(to.clone()).or_default();
        let joins = if now_ms < state.gathers_until_ms {
            Some(state.gathers.clone())
        } else {
            (*made >= PER_STEP).then(|| last.clone())
        };
        if let Some(id) = joins
            && let Some(planned) = self.messages.get_mut(&id)
        {
            planned.message.add(kind, event);
            return;
        }
        let id = format!("{to}-{place}");
        let due_ms = now_ms.max(state.quiet_until_ms.min(now_ms + every_ms));
        if due_ms > now_ms {
            state.gathers.clone_from(&id);
            state.gathers_until_ms = due_ms;
        }
        state.quiet_until_ms = due_ms + every_ms;
        *made += 1;
        last.clone_from(&id);
        self.begin(to, kind, event, id, due_ms);
    }

    fn begin(
        &mut self,
        to: &NotifyName,
        kind: NotifyKind,
        event: &NotifyEvent,
        id: String,
        due_ms: u64,
    ) {
        let mut message = NotifyMessage::new(id.clone(), to.clone(), event.at.clone());
        message.add(kind, event);
        self.messages.insert(id, PlannedMessage { message, due_ms, is_new: true });
        self.undelivered += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ops() -> NotifyName {
        "ops".parse().expect("legal")
    }

    fn tell(plan: &mut MessagePlan, numbers: std::ops::Range<usize>, every_ms: u64) {
        for number in numbers {
            let event = NotifyEvent { kind: Some(NotifyKind::Failed), ..NotifyEvent::default() };
            plan.tell(&ops(), NotifyKind::Failed, &event, &format!("{number}-0"), every_ms);
        }
    }

    /// Returns id, time and number of events of each message.
    fn all(plan: &MessagePlan) -> Vec<(&str, u64, u64)> {
        let messages = plan.messages.iter();
        messages.map(|(id, of)| (id.as_str(), of.due_ms, of.message.counts["failed"])).collect()
    }

    #[test]
    fn the_first_is_sent_at_once_and_a_storm_once_in_every_time() {
        let mut plan = MessagePlan::new(1000, BTreeMap::new(), 0);
        tell(&mut plan, 0..1000, 500);
        assert_eq!(all(&plan), [("ops-0-0", 1000, 1), ("ops-1-0", 1500, 999)]);

        // The next step finds the second one, which gathers still.
        let mut later = MessagePlan::new(1499, plan.states.clone(), 1);
        assert_eq!(later.gathering(), ["ops-1-0"]);
        later.keeps(plan.messages["ops-1-0"].message.clone(), 1500);
        tell(&mut later, 2000..2001, 500);
        assert_eq!(all(&later), [("ops-1-0", 1500, 1000)]);

        // It has been sent: another one waits until the time is over.
        let mut later = MessagePlan::new(1600, plan.states.clone(), 0);
        assert!(later.gathering().is_empty());
        tell(&mut later, 3000..3002, 500);
        assert_eq!(all(&later), [("ops-3000-0", 2000, 2)]);

        // After a quiet time the next one is sent at once.
        let mut later = MessagePlan::new(9000, plan.states.clone(), 0);
        tell(&mut later, 4000..4001, 500);
        assert_eq!(all(&later), [("ops-4000-0", 9000, 1)]);
    }

    #[test]
    fn without_a_time_each_event_has_its_message_until_there_are_too_many() {
        let mut plan = MessagePlan::new(1000, BTreeMap::new(), 0);
        tell(&mut plan, 0..3, 0);
        assert_eq!(all(&plan).len(), 3);
        tell(&mut plan, 3..100, 0);
        assert_eq!(plan.messages.len(), PER_STEP);
        let told: u64 = all(&plan).iter().map(|(.., number)| number).sum();
        assert_eq!(told, 100, "none is left out");
        let mut crowded = MessagePlan::new(1000, BTreeMap::new(), CROWDED);
        tell(&mut crowded, 0..50, 0);
        assert_eq!(crowded.messages.len(), 2);
    }

    #[test]
    fn a_test_is_sent_at_once_while_events_are_gathered_and_makes_none_wait() {
        let test = |plan: &mut MessagePlan| {
            let event = NotifyEvent { kind: Some(NotifyKind::Test), ..NotifyEvent::default() };
            plan.tell(&ops(), NotifyKind::Test, &event, "9-0", 500);
        };
        let mut plan = MessagePlan::new(1000, BTreeMap::new(), 0);
        tell(&mut plan, 0..3, 500);
        test(&mut plan);
        let due: Vec<u64> = plan.messages.values().map(|of| of.due_ms).collect();
        assert_eq!(due, [1000, 1500, 1000]);
        let mut plan = MessagePlan::new(1000, BTreeMap::new(), 0);
        test(&mut plan);
        tell(&mut plan, 0..1, 500);
        assert!(plan.messages.values().all(|of| of.due_ms == 1000));
    }

    #[test]
    fn a_shorter_time_of_a_changed_configuration_holds_at_once() {
        let mut plan = MessagePlan::new(1000, BTreeMap::new(), 0);
        tell(&mut plan, 0..1, 1_000_000);
        let mut later = MessagePlan::new(2000, plan.states, 0);
        tell(&mut later, 1..2, 100);
        assert_eq!(all(&later), [("ops-1-0", 2100, 1)]);
    }
}
