//! An outage of Redis, as the calls of one process meet it: since when it lasts, and when to log it.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::StoreError;

/// The shortest time between two log lines about an outage: some calls may succeed in between.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// The time between two log lines about an outage that lasts.
const LASTS_INTERVAL: Duration = Duration::from_mins(1);

/// An outage of Redis. Every call that fails or succeeds is noted here.
#[derive(Debug, Default)]
pub struct Outage(Mutex<OutageState>);

#[derive(Debug, Default)]
struct OutageState {
    /// When a call first failed, since the last answered call.
    since: Option<Instant>,
    /// When a call first failed, since the last call that showed that Redis serves.
    began: Option<Instant>,
    is_logged: bool,
    is_refused: bool,
    /// Redis has said why it does not serve in this outage.
    has_cause: bool,
    logged_at: Option<Instant>,
}

impl Outage {
    /// Notes a call that Redis did not answer or serve. Returns whether to log it: once in an outage, not soon after another.
    pub fn failed(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        state.since.get_or_insert(now);
        state.began.get_or_insert(now);
        let is_due = state.logged_at.is_none_or(|at| now.duration_since(at) >= LOG_INTERVAL);
        if state.is_logged || !is_due {
            return false;
        }
        (state.is_logged, state.logged_at) = (true, Some(now));
        true
    }

    /// The same of a call to Redis, with its error. The first cause that Redis itself names is logged at once, though the
    /// outage may have begun with a lost connection.
    pub fn failed_by(&self, now: Instant, error: &StoreError) -> bool {
        let is_refused = error.is_login_refused();
        let names_cause = is_refused || matches!(error, StoreError::NotServing { .. });
        let is_due = self.failed(now);
        let mut state = self.0.lock();
        state.is_refused |= is_refused;
        let is_first = names_cause && !std::mem::replace(&mut state.has_cause, true);
        // Redis may stop to serve many times in a row.
        if is_due || is_first && (is_refused || state.is_logged) {
            (state.is_logged, state.logged_at) = (true, Some(now));
            return true;
        }
        false
    }

    pub fn is_refused(&self) -> bool {
        self.0.lock().is_refused
    }

    /// Returns how long an outage has lasted that was logged: once a minute, to log that too.
    pub fn lasts(&self, now: Instant) -> Option<Duration> {
        let mut state = self.0.lock();
        let at = state.logged_at.filter(|_| state.is_logged)?;
        if now.duration_since(at) < LASTS_INTERVAL {
            return None;
        }
        state.logged_at = Some(now);
        state.began.map(|began| now.duration_since(began))
    }

    /// Notes a call that Redis answered, perhaps without a write, which a read-only Redis answers too.
    pub fn answered(&self) {
        self.0.lock().since = None;
    }

    /// Notes a call that shows that Redis serves. Returns how long the outage was, if it was logged.
    pub fn over(&self, now: Instant) -> Option<Duration> {
        let mut state = self.0.lock();
        (state.since, state.is_refused, state.has_cause) = (None, false, false);
        let began = state.began.take()?;
        std::mem::take(&mut state.is_logged).then(|| now.duration_since(began))
    }

    /// Returns since when no call was answered, if the last one was not.
    pub fn since(&self) -> Option<Instant> {
        self.0.lock().since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_that_redis_names_after_a_lost_connection_is_logged_once() {
        let (outage, begin) = (Outage::default(), Instant::now());
        let (address, reason) = ("a".to_owned(), "broken pipe".to_owned());
        let lost = StoreError::Unreachable { address, reason, sent: true };
        let full = StoreError::too_many_clients("a");
        let logged = [&lost, &lost, &full, &full, &lost].map(|of| outage.failed_by(begin, of));
        assert_eq!(logged, [true, false, true, false, false]);
    }

    #[test]
    fn outage_is_logged_once_and_a_following_one_not_at_once() {
        let (outage, begin) = (Outage::default(), Instant::now());
        let at = |second| begin + Duration::from_secs(second);
        assert_eq!([outage.failed(at(0)), outage.failed(at(1))], [true, false]);
        assert_eq!(outage.since(), Some(at(0)));
        assert_eq!(outage.over(at(2)), Some(Duration::from_secs(2)));
        assert_eq!((outage.over(at(2)), outage.since()), (None, None));
        // It flaps.
        assert!(!outage.failed(at(3)));
        assert_eq!(outage.over(at(4)), None, "it was not logged");
        // A lasting outage is logged late rather than never.
        assert_eq!(
            [5, 9, 10, 11].map(|second| outage.failed(at(second))),
            [false, false, true, false]
        );
        assert_eq!(outage.over(at(12)), Some(Duration::from_secs(7)));
    }

    #[test]
    fn outage_that_turns_into_a_refused_login_is_logged_at_once_and_once() {
        let (outage, begin) = (Outage::default(), Instant::now());
        let at = |second| begin + Duration::from_secs(second);
        let (address, reason) = ("here".to_owned(), "WRONGPASS invalid".to_owned());
        let refused = StoreError::NotPermitted { address: address.clone(), reason };
        let away = StoreError::Unreachable { address, reason: "gone".to_owned(), sent: false };
        assert!(outage.failed_by(at(0), &away) && !outage.is_refused());
        assert_eq!([1, 2].map(|s| outage.failed_by(at(s), &refused)), [true, false]);
        assert!(outage.is_refused() && !outage.failed_by(at(3), &away));
        assert_eq!(
            (outage.over(at(4)), outage.is_refused()),
            (Some(Duration::from_secs(4)), false)
        );
    }

    #[test]
    fn outage_that_lasts_is_reported_each_minute_and_an_answer_without_a_write_does_not_end_it() {
        let (outage, begin) = (Outage::default(), Instant::now());
        let at = |second| begin + Duration::from_secs(second);
        assert!(outage.failed(at(0)));
        outage.answered();
        assert_eq!((outage.since(), outage.failed(at(20))), (None, false), "it is the same one");
        assert_eq!([59, 60, 61].map(|s| outage.lasts(at(s)).is_some()), [false, true, false]);
        assert_eq!(outage.lasts(at(120)), Some(Duration::from_mins(2)));
        assert_eq!(outage.over(at(125)), Some(Duration::from_secs(125)));
        assert_eq!(outage.lasts(at(300)), None);
    }
}
