//! The requests of a running script that are not answered yet. Pure but for the wait at the end of a run.
//!
//! Of states that come while one is being written only the last is written, after it: the requests of those
//! between are answered with it. So a flood of them costs one write at a time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::engine::{Answers, Cancel, RequestKind, ScriptRequest, StopReason};
use crate::proto::job::KeptState;

/// The most requests of one attempt that wait for answers. A script that sends more does not read them.
const UNANSWERED_MAX: usize = 10_000;
/// The time between two looks whether the boot still owns its jobs, while a run waits for its answers.
const LEASE_CHECK: Duration = Duration::from_millis(100);

/// The requests of one attempt.
#[derive(Debug, Default)]
pub(super) struct Requests {
    open: Mutex<Open>,
    /// Notified when all are answered.
    settled: Condvar,
    /// Notified when there is something to write.
    asked: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Open {
    /// The state to be written next.
    state: Option<KeptState>,
    /// The requests that are answered after the next write: those without a reason are done by it.
    waiting: Vec<(Arc<dyn Answers>, Option<String>)>,
    /// A state is being written.
    is_writing: bool,
}

/// A state that is to be written, with the requests that are answered then.
#[derive(Debug)]
pub(super) struct StateToKeep {
    /// The state.
    pub(super) state: KeptState,
    waiting: Vec<(Arc<dyn Answers>, Option<String>)>,
}

impl Requests {
    /// Notifies `asked` when a request comes.
    pub(super) fn new(asked: Arc<Notify>) -> Self {
        Self { asked, ..Self::default() }
    }

    /// Takes a request. One that cannot be done is refused, after those before it were answered; so is a state
    /// with the value of a secret.
    pub(super) fn add(&self, request: ScriptRequest, has_secret: impl Fn(&str) -> bool) {
        let ScriptRequest { asked, answers } = request;
        let asked = match asked {
            Ok(RequestKind::State(state)) if has_secret(state.as_str()) => {
                Err("the state has the value of a secret, which is not stored".to_owned())
            }
            asked => asked,
        };
        let mut open = self.lock();
        let refused = match asked {
            Err(why) if open.is_settled() => return answers.answer(&Err(why)),
            Err(why) => Some(why),
            Ok(RequestKind::State(state)) => {
                open.state = Some(state);
                None
            }
        };
        // The state itself is kept, also if nobody reads the answers.
        if open.waiting.len() >= UNANSWERED_MAX {
            answers.close();
        } else {
            open.waiting.push((answers, refused));
        }
        if open.state.is_some() && !open.is_writing {
            self.asked.notify_one();
        }
    }

    /// Takes the state that is to be written now, if there is one. [`Requests::wrote`] must follow.
    pub(super) fn take(&self) -> Option<StateToKeep> {
        let mut open = self.lock();
        if open.is_writing {
            return None;
        }
        let state = open.state.take()?;
        open.is_writing = true;
        Some(StateToKeep { state, waiting: std::mem::take(&mut open.waiting) })
    }

    /// Answers the requests of a state that was written, or was not.
    pub(super) fn wrote(&self, kept: &StateToKeep, done: &Result<(), String>) {
        let mut open = self.lock();
        for (answers, refused) in &kept.waiting {
            match refused {
                Some(why) => answers.answer(&Err(why.clone())),
                None => answers.answer(done),
            }
        }
        open.is_writing = false;
        if open.state.is_some() {
            self.asked.notify_one();
        } else {
            // Refusals that came meanwhile.
            for (answers, refused) in std::mem::take(&mut open.waiting) {
                answers.answer(&refused.map_or_else(|| done.clone(), Err));
            }
            self.settled.notify_all();
        }
    }

    /// Waits until all requests are answered: the end of an attempt is recorded after what it asked for. Gives up
    /// once the boot has lost its jobs, and after `patience`.
    pub(super) fn settle(&self, cancel: &Cancel, patience: Duration) {
        let until = Instant::now() + patience;
        let mut open = self.lock();
        while !open.is_settled()
            && cancel.requested() != Some(StopReason::LeaseLost)
            && Instant::now() < until
        {
            let waited = self.settled.wait_timeout(open, LEASE_CHECK);
            open = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // No code panics while it holds it.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn is_settled(&self) -> bool {
        !self.is_writing && self.state.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the answers.
    #[derive(Debug, Default)]
    struct Recorded(Mutex<Vec<Result<(), String>>>);

    impl Answers for Recorded {
        fn answer(&self, done: &Result<(), String>) {
            self.0.lock().expect("not poisoned").push(done.clone());
        }

        fn close(&self) {
            self.0.lock().expect("not poisoned").push(Err("closed".to_owned()));
        }
    }

    fn ask(requests: &Requests, answers: &Arc<Recorded>, json: Result<&str, &str>) {
        let asked =
            json.map_err(str::to_owned).and_then(KeptState::of_json).map(RequestKind::State);
        let answers = Arc::clone(answers) as Arc<dyn Answers>;
        requests.add(ScriptRequest { asked, answers }, |state| state.contains("hunter2"));
    }

    fn taken(answers: &Recorded) -> Vec<Result<(), String>> {
        std::mem::take(&mut *answers.0.lock().expect("not poisoned"))
    }

    #[test]
    fn last_of_the_states_that_come_during_a_write_is_written_after_it() {
        let (requests, answers) = (Requests::default(), Arc::new(Recorded::default()));
        ask(&requests, &answers, Ok("1"));
        let first = requests.take().expect("a state");
        ask(&requests, &answers, Ok("2"));
        ask(&requests, &answers, Ok("3"));
        assert!(requests.take().is_none(), "one write at a time");
        assert_eq!((first.state.as_str(), taken(&answers)), ("1", vec![]));
        requests.wrote(&first, &Ok(()));
        assert_eq!(taken(&answers), [Ok(())]);
        let last = requests.take().expect("a state");
        assert_eq!(last.state.as_str(), "3");
        requests.wrote(&last, &Err("lost".to_owned()));
        assert_eq!(taken(&answers), [Err("lost".to_owned()), Err("lost".to_owned())]);
    }

    #[test]
    fn refusals_stand_at_their_place_among_the_answers() {
        let (requests, answers) = (Requests::default(), Arc::new(Recorded::default()));
        let no = || Err("no".to_owned());
        ask(&requests, &answers, Err("no"));
        assert_eq!(taken(&answers), [no()]);
        ask(&requests, &answers, Ok("1"));
        ask(&requests, &answers, Err("no"));
        let first = requests.take().expect("a state");
        ask(&requests, &answers, Err("no"));
        assert_eq!(taken(&answers), []);
        requests.wrote(&first, &Ok(()));
        assert_eq!(taken(&answers), [Ok(()), no(), no()]);
    }

    #[test]
    fn state_with_a_secret_is_refused_and_the_one_before_it_is_kept() {
        let (requests, answers) = (Requests::default(), Arc::new(Recorded::default()));
        ask(&requests, &answers, Ok("1"));
        ask(&requests, &answers, Ok("\"hunter2\""));
        let kept = requests.take().expect("a state");
        assert_eq!(kept.state.as_str(), "1");
        requests.wrote(&kept, &Ok(()));
        let why = "the state has the value of a secret, which is not stored".to_owned();
        assert_eq!(taken(&answers), [Ok(()), Err(why)]);
    }

    #[test]
    fn flood_that_is_not_read_closes_the_answers() {
        let (requests, answers) = (Requests::default(), Arc::new(Recorded::default()));
        for _ in 0..=UNANSWERED_MAX {
            ask(&requests, &answers, Ok("1"));
        }
        assert_eq!(taken(&answers), [Err("closed".to_owned())]);
    }

    #[test]
    fn end_of_a_run_waits_for_its_answers_unless_the_lease_is_lost() {
        let (requests, answers) = (Requests::default(), Arc::new(Recorded::default()));
        let cancel = Cancel::new();
        requests.settle(&cancel, Duration::from_mins(10));
        ask(&requests, &answers, Ok("1"));
        std::thread::scope(|scope| {
            scope.spawn(|| requests.settle(&cancel, Duration::from_mins(10)));
            let kept = requests.take().expect("a state");
            requests.wrote(&kept, &Ok(()));
        });
        ask(&requests, &answers, Ok("2"));
        cancel.request(StopReason::LeaseLost);
        requests.settle(&cancel, Duration::from_mins(10));
    }
}
