//! The throttle of logins: each failed one of a client waits longer than the one before.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The failed logins before a client must wait.
const FREE: u32 = 3;
/// The first wait; it doubles each time.
const WAIT: Duration = Duration::from_millis(100);
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// Failed logins are forgotten after this time.
const MEMORY: Duration = Duration::from_mins(10);
/// The clients that are remembered.
const CLIENTS_MAX: usize = 4096;

/// The clients whose logins failed lately.
#[derive(Default)]
pub(super) struct LoginThrottle(Mutex<HashMap<String, (u32, Instant)>>);

impl LoginThrottle {
    /// Counts a failed login, and waits.
    pub(super) async fn failed(&self, peer: &str) {
        let wait = self.wait_after_failure(peer, Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    fn wait_after_failure(&self, peer: &str, now: Instant) -> Duration {
        let mut clients = self.0.lock();
        clients.retain(|_, (_, last)| now.duration_since(*last) < MEMORY);
        if clients.len() >= CLIENTS_MAX && !clients.contains_key(peer) {
            // A client with many addresses: those that it does not use now are forgotten first.
            let oldest = clients.iter().min_by_key(|(_, (_, last))| *last);
            if let Some(oldest) = oldest.map(|(peer, _)| peer.clone()) {
                clients.remove(&oldest);
            }
        }
        let (failures, last) = clients.entry(peer.to_owned()).or_insert((0, now));
        (*failures, *last) = (failures.saturating_add(1), now);
        match failures.checked_sub(FREE + 1) {
            None => Duration::ZERO,
            Some(doubled) => WAIT.saturating_mul(1 << doubled.min(10)).min(WAIT_MAX),
        }
    }

    /// Forgets the failed logins of a client.
    pub(super) fn succeeded(&self, peer: &str) {
        let mut clients = self.0.lock();
        if !clients.is_empty() {
            clients.remove(peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_login_of_a_client_waits_longer() {
        let (guesses, now) = (LoginThrottle::default(), Instant::now());
        let wait = |peer: &str| guesses.wait_after_failure(peer, now).as_millis();
        let waits: Vec<u128> = (0..10).map(|_| wait("a")).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 400, 800, 1600, 3000, 3000]);
        assert_eq!(wait("b"), 0);
        guesses.succeeded("a");
        assert_eq!(guesses.wait_after_failure("a", now), Duration::ZERO);
    }

    #[test]
    fn clients_are_forgotten_and_bounded() {
        let (guesses, now) = (LoginThrottle::default(), Instant::now());
        for number in 0..CLIENTS_MAX + 10 {
            guesses.wait_after_failure(&number.to_string(), now);
        }
        assert_eq!(guesses.0.lock().len(), CLIENTS_MAX);
        guesses.wait_after_failure("late", now + MEMORY);
        assert_eq!(guesses.0.lock().len(), 1);
    }
}
