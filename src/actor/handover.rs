//! Hands tasks to the threads that run them. A thread without a task sleeps at once: a channel that
//! spins first takes the processor from the loop that is about to hand it the next one.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The giving end. Dropping it lets the threads end, each after what was handed over before.
#[derive(Debug)]
pub(super) struct Giver<T> {
    shared: Arc<Shared<T>>,
    capacity: usize,
}

/// The taking end, one for each thread.
#[derive(Debug)]
pub(super) struct Taker<T> {
    shared: Arc<Shared<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    waiting: Mutex<Waiting<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Waiting<T> {
    given: VecDeque<T>,
    is_over: bool,
}

/// For `capacity` things that nobody has taken yet at the most.
pub(super) fn handover<T>(capacity: usize) -> (Giver<T>, Taker<T>) {
    let waiting = Waiting { given: VecDeque::with_capacity(capacity), is_over: false };
    let shared = Arc::new(Shared { waiting: Mutex::new(waiting), changed: Condvar::new() });
    (Giver { shared: Arc::clone(&shared), capacity }, Taker { shared })
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        // Nothing can panic while it is held.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Giver<T> {
    /// Hands `given` to whichever thread is free first; gives it back if too many wait.
    pub(super) fn give(&self, given: T) -> Result<(), T> {
        let mut waiting = self.shared.lock();
        if waiting.given.len() >= self.capacity {
            return Err(given);
        }
        waiting.given.push_back(given);
        drop(waiting);
        self.shared.changed.notify_one();
        Ok(())
    }
}

impl<T> Drop for Giver<T> {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl<T> Taker<T> {
    /// Waits for the next task; `None` once the giving end is gone and nothing is left.
    pub(super) fn take(&self) -> Option<T> {
        let mut waiting = self.shared.lock();
        loop {
            if let Some(given) = waiting.given.pop_front() {
                return Some(given);
            }
            if waiting.is_over {
                return None;
            }
            waiting = self.shared.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<T> Clone for Taker<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn everything_is_taken_once_and_in_order_and_then_the_threads_end() {
        let (giver, taker) = handover(1000);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let taker = taker.clone();
                thread::spawn(move || std::iter::from_fn(|| taker.take()).collect::<Vec<u32>>())
            })
            .collect();
        (0..1000).for_each(|number| assert_eq!(giver.give(number), Ok(())));
        drop(giver);
        let each: Vec<Vec<u32>> =
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        assert!(each.iter().all(|numbers| numbers.is_sorted()), "{each:?}");
        let mut all = each.concat();
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<u32>>());
    }

    #[test]
    fn what_finds_no_room_comes_back() {
        let (giver, taker) = handover(1);
        assert_eq!(giver.give("first"), Ok(()));
        assert_eq!(giver.give("second"), Err("second"));
        assert_eq!(taker.take(), Some("first"));
        assert_eq!(giver.give("second"), Ok(()));
    }

    #[test]
    fn what_was_given_before_the_end_is_still_taken() {
        let (giver, taker) = handover(2);
        assert_eq!(giver.give(1), Ok(()));
        drop(giver);
        assert_eq!((taker.take(), taker.take()), (Some(1), None));
    }
}
