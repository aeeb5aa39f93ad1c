//! The task slots of one actor, and what its state asks for: a claim, a wait, or nothing. Pure.

use std::time::{Duration, Instant};

use crate::proto::keys::Keys;
use crate::proto::target::{ActorId, Queue};

/// How long a list that could not be read is left alone.
const BROKEN_FOR: Duration = Duration::from_secs(30);

/// One actor of this process.
#[derive(Debug)]
pub(super) struct Slots {
    /// Who it is.
    pub(super) id: ActorId,
    /// Its control list.
    pub(super) control: String,
    /// Its work lists, first come first.
    lists: Vec<String>,
    /// The same from the background end.
    from_background: Vec<String>,
    /// Claims so far.
    claims: u32,
    /// Queues with older names, read after its own. They are never popped from outside a claim:
    /// what others have pushed there would be lost with whoever popped it.
    pub(super) legacy: Vec<String>,
    /// Lists that could not be read, and until when they are left alone.
    broken: Vec<(String, Instant)>,
    /// Lists of queues that were paused when it last claimed: a pop from one would only go back.
    paused: Vec<String>,
    /// How many jobs it runs at once.
    pub(super) tasks: usize,
    /// How many it runs now.
    pub(super) running: usize,
    /// Whether it takes no more jobs for now.
    pub(super) draining: bool,
    /// Whether its machine is past what it may be used for.
    held: bool,
    /// Whether its queues may hold something: true until a claim has found them empty.
    pub(super) hungry: bool,
}

impl Slots {
    pub(super) fn new(id: ActorId, tasks: usize, keys: &Keys, legacy: Vec<String>) -> Self {
        let read = |queues: &[Queue]| {
            queues.iter().flat_map(|queue| keys.work_as_read(queue)).collect::<Vec<String>>()
        };
        Self {
            legacy,
            control: keys.control(&id),
            lists: read(&id.queues()),
            from_background: read(&id.queues_from_background()),
            claims: 0,
            broken: Vec::new(),
            paused: Vec::new(),
            id,
            tasks,
            running: 0,
            draining: false,
            held: false,
            hungry: true,
        }
    }

    /// How many more jobs it may take.
    pub(super) fn free(&self) -> usize {
        if self.draining || self.held { 0 } else { self.tasks.saturating_sub(self.running) }
    }

    /// Whether a claim is due.
    pub(super) fn wants_claim(&self) -> bool {
        self.hungry && self.free() > 0
    }

    /// Whether it should wait for its lists: they are empty, as far as it knows.
    pub(super) fn wants_wait(&self) -> bool {
        !self.hungry && self.free() > 0
    }

    /// The lists to wait for.
    pub(super) fn awaited(&self) -> impl Iterator<Item = &String> {
        self.lists().filter(|list| !self.paused.contains(list))
    }

    /// A claim has said which of its lists are paused. Returns whether that is news.
    pub(super) fn pause(&mut self, paused: Vec<String>) -> bool {
        let news = self.paused != paused;
        self.paused = paused;
        news
    }

    /// Looks at its queues again, should one of them go on.
    pub(super) fn look_again(&mut self) {
        self.hungry = self.free() > 0;
    }

    /// How many of its lists are paused, as far as it knows.
    pub(super) fn paused_number(&self) -> usize {
        self.paused.len()
    }

    /// The lists for the next claim: every so many claims from the background end, unless 0.
    pub(super) fn lists_to_claim(&mut self, fair_every: u32) -> Vec<String> {
        self.claims = self.claims.wrapping_add(1);
        let is_fair = fair_every > 0 && self.claims.is_multiple_of(fair_every);
        let order = if is_fair { &self.from_background } else { &self.lists };
        // Those with older names come last.
        let all = order.iter().chain(&self.legacy);
        all.filter(|list| !self.is_left_alone(list)).cloned().collect()
    }

    fn is_left_alone(&self, list: &str) -> bool {
        self.broken.iter().any(|(broken, _)| broken == list)
    }

    /// The lists to read now.
    pub(super) fn lists(&self) -> impl Iterator<Item = &String> {
        self.lists.iter().filter(|list| !self.is_left_alone(list))
    }

    /// Whether it reads this list at all.
    pub(super) fn reads(&self, list: &str) -> bool {
        self.lists.iter().any(|own| own == list)
    }

    /// Leaves a list alone for a while. Returns whether that is news.
    pub(super) fn break_off(&mut self, list: &str, now: Instant) -> bool {
        let news = !self.broken.iter().any(|(broken, _)| broken == list);
        if news {
            self.broken.push((list.to_owned(), now + BROKEN_FOR));
        }
        news
    }

    /// Takes up lists again that have been left alone for long enough.
    pub(super) fn mend(&mut self, now: Instant) {
        if self.broken.iter().any(|(_, until)| *until <= now) {
            self.broken.retain(|(_, until)| *until > now);
            self.hungry = true;
        }
    }

    /// Changes how many jobs run at once. More than that may still run for a while.
    pub(super) fn resize(&mut self, tasks: usize) {
        if tasks > self.tasks {
            self.hungry = true;
        }
        self.tasks = tasks;
    }

    /// Counts a job in.
    pub(super) fn began(&mut self) {
        self.running += 1;
    }

    /// Counts a job out. A slot that becomes free while others already wait needs no claim: the
    /// lists are being waited for.
    pub(super) fn ended(&mut self) {
        if self.free() == 0 {
            self.hungry = true;
        }
        self.running = self.running.saturating_sub(1);
    }

    /// Takes nothing while its machine is past what it may be used for.
    pub(super) fn hold(&mut self, held: bool) {
        if self.held && !held {
            self.hungry = true;
        }
        self.held = held;
    }

    /// Whether it takes nothing for that reason.
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// Starts or ends draining.
    pub(super) fn drain(&mut self, draining: bool) {
        self.draining = draining;
        self.hungry = !draining;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(tasks: usize) -> Slots {
        let id = ActorId::from_unit("osis-default-1").expect("legal");
        Slots::new(id, tasks, &Keys::default(), vec![older()])
    }

    /// A list with an older name.
    fn older() -> String {
        Keys::default().legacy_queue("w1")
    }

    /// A list that it reads.
    fn one_of(slots: &Slots) -> String {
        slots.lists().last().expect("it reads some").clone()
    }

    #[test]
    fn an_actor_claims_first_and_waits_only_when_its_queues_are_empty() {
        let mut slots = slots(2);
        assert!(slots.wants_claim() && !slots.wants_wait());
        slots.hungry = false;
        assert!(!slots.wants_claim() && slots.wants_wait());
    }

    #[test]
    fn a_full_actor_neither_claims_nor_waits_until_a_slot_is_free() {
        let mut slots = slots(1);
        slots.began();
        assert!(!slots.wants_claim() && !slots.wants_wait());
        slots.hungry = false;
        slots.ended();
        assert!(slots.wants_claim());
    }

    #[test]
    fn a_slot_that_frees_up_beside_waiting_ones_needs_no_claim() {
        let mut slots = slots(2);
        slots.began();
        slots.hungry = false;
        slots.ended();
        assert!(!slots.wants_claim() && slots.wants_wait());
    }

    #[test]
    fn a_draining_actor_takes_nothing_until_it_resumes() {
        let mut slots = slots(2);
        slots.drain(true);
        assert_eq!((slots.free(), slots.wants_claim(), slots.wants_wait()), (0, false, false));
        slots.drain(false);
        assert!(slots.wants_claim());
    }

    #[test]
    fn every_so_many_claims_begin_at_the_background_end() {
        let mut slots = slots(1);
        let background = |list: &String| list.ends_with(":prio:2");
        let fair = |slots: &mut Slots, every| background(&slots.lists_to_claim(every)[0]);
        let seen: Vec<bool> = (0..6).map(|_| fair(&mut slots, 3)).collect();
        assert_eq!(seen, [false, false, true, false, false, true]);
        assert!((0..20).all(|_| !fair(&mut slots, 0)), "0 is never");
        assert!(fair(&mut slots, 1));
    }

    #[test]
    fn an_actor_whose_machine_is_past_its_bounds_takes_nothing_until_it_is_not() {
        let mut slots = slots(2);
        slots.hungry = false;
        slots.hold(true);
        assert_eq!((slots.free(), slots.wants_claim(), slots.wants_wait()), (0, false, false));
        slots.hold(true);
        slots.hold(false);
        assert!(slots.wants_claim(), "what came meanwhile was not waited for");
    }

    #[test]
    fn a_paused_list_is_claimed_from_but_not_waited_for() {
        let mut slots = slots(1);
        let (all, list) = (slots.lists().count(), one_of(&slots));
        assert!(slots.pause(vec![list.clone()]));
        assert!(!slots.pause(vec![list]));
        // The claim learns when it goes on.
        assert_eq!((slots.lists().count(), slots.awaited().count()), (all, all - 1));
        assert!(slots.pause(Vec::new()));
        assert_eq!(slots.awaited().count(), all);
    }

    #[test]
    fn queues_with_older_names_are_claimed_from_last_and_never_waited_for() {
        let mut slots = slots(1);
        let claimed = slots.lists_to_claim(0);
        assert_eq!(claimed.last(), Some(&older()));
        assert_eq!(claimed.len(), slots.lists().count() + 1);
        assert!(!slots.reads(&older()));
    }

    #[test]
    fn a_broken_list_is_left_alone_for_a_while_and_the_others_go_on() {
        let (mut slots, now) = (slots(1), Instant::now());
        let (all, list) = (slots.lists().count(), one_of(&slots));
        assert!(slots.break_off(&list, now));
        assert!(!slots.break_off(&list, now));
        assert_eq!(slots.lists().count(), all - 1);
        slots.hungry = false;
        slots.mend(now + BROKEN_FOR);
        assert_eq!(slots.lists().count(), all);
        assert!(slots.hungry, "the mended list may hold something");
    }
}
