//! The requests of a running script that are not answered yet. Pure but for the wait at the end of a run.
//!
//! The work that a script asks for is done in order, one after the other. Of states that come in a row while something is
//! being done only the last is written: the requests of those between are answered with it. So a flood of them costs one write at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::engine::{Answers, Cancel, RequestKind, ScriptRequest, StopReason};
use crate::proto::job::{
    AskedCall, AskedOutput, Checkpoint, JobId, NewChildren, SessionAnswer, SessionCall,
    end_for_script,
};

/// Why nothing is done for an attempt that has lost its lease.
pub(super) const LOST_LEASE: &str = "the job runs elsewhere: this attempt has lost its lease";
/// The most requests of one attempt that wait for answers. A script that sends more does not read them.
const UNANSWERED_MAX: usize = 10_000;
/// The time between two looks whether the boot still owns its jobs, while a run waits for its answers.
const LEASE_CHECK: Duration = Duration::from_millis(100);

/// The most requests for children, and for outputs, of one attempt that wait to be done. They are bounded in bytes by this.
const HEAVY_MAX: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Requests {
    open: Mutex<Open>,
    /// Notified when all are answered.
    settled: Condvar,
    /// Notified when there is something to do.
    asked: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Open {
    /// The work that comes next, in order.
    pending: VecDeque<AskedWork>,
    /// The requests in `pending`.
    waiting: usize,
    /// The children without a name so far.
    unnamed: u64,
    is_working: bool,
    calls: Calls,
}

/// The calls of an attempt that serves some, one after the other.
#[derive(Debug, Default)]
struct Calls {
    /// The call that the script serves.
    served: Option<JobId>,
    /// The request for the next call is to be done, or is being done.
    is_asked: bool,
    /// The request waits for a call.
    parked: Option<Arc<dyn Answers>>,
    /// A call has come since the last request was taken.
    has_come: bool,
    /// No further call comes, for this reason.
    end: Option<String>,
}

/// The children of one request, with the number of earlier ones of the attempt that have no name.
#[derive(Debug)]
pub(super) struct AskedChildren {
    pub(super) new: NewChildren,
    pub(super) unnamed_before: u64,
}

/// The one thing that Redis is asked for.
#[derive(Debug)]
pub(super) enum AskedKind {
    Keep(Checkpoint),
    Submit(AskedChildren),
    Read(AskedOutput),
    /// Answer this call, and give the next one.
    Next(Option<(JobId, SessionAnswer)>),
    /// Nothing: the requests are refused.
    Refuse,
}

/// Work to be done, with the requests that are answered then: those without a reason are done by it.
#[derive(Debug)]
pub(super) struct AskedWork {
    pub(super) kind: AskedKind,
    waiting: Vec<(Arc<dyn Answers>, Option<String>)>,
}

/// The result of work as JSON, if it has one, or the reason why it was not done.
pub(super) type WorkResult = Result<Option<String>, String>;

impl AskedWork {
    fn new(kind: AskedKind) -> Self {
        Self { kind, waiting: Vec::new() }
    }

    fn answer(&self, done: &WorkResult) {
        for (answers, refused) in &self.waiting {
            match (refused, done) {
                (Some(why), _) | (None, Err(why)) => answers.answer(&Err(why.clone())),
                (None, Ok(None)) => answers.answer(&Ok(())),
                (None, Ok(Some(result))) => answers.answer_with(result),
            }
        }
    }
}

impl Requests {
    /// Notifies `asked` when a request comes.
    pub(super) fn new(asked: Arc<Notify>) -> Self {
        Self { asked, ..Self::default() }
    }

    /// Takes a request. One that cannot be done is refused, after those before it were answered; so is a state
    /// or a job with the value of a secret, which `hide` replaces.
    pub(super) fn add(&self, request: ScriptRequest, hide: impl Fn(&str) -> String) {
        let ScriptRequest { asked, answers } = request;
        let asked = asked.and_then(|asked| match secret_in(&asked, |text| hide(text) != text) {
            Some(why) => Err(why.to_owned()),
            None => Ok(asked),
        });
        let mut open = self.open.lock();
        let refused = match asked {
            Err(why) if open.is_settled() => return answers.answer(&Err(why)),
            Err(why) => {
                open.make_place();
                Some(why)
            }
            Ok(RequestKind::State(state)) => {
                match open.pending.back_mut() {
                    Some(AskedWork { kind: AskedKind::Keep(last), .. }) => *last = state,
                    _ => open.pending.push_back(AskedWork::new(AskedKind::Keep(state))),
                }
                None
            }
            Ok(RequestKind::Submit(new)) => open.submit(new),
            Ok(RequestKind::Inputs(asked)) => open.ask(AskedKind::Read(asked)),
            Ok(RequestKind::Next(AskedCall { answer })) => {
                open.ask_for_call(answer.map(|answer| answer.with_texts(&hide)))
            }
        };
        // The work itself is done, also if nobody reads the answers.
        if open.waiting >= UNANSWERED_MAX {
            answers.close();
        } else if let Some(last) = open.pending.back_mut() {
            last.waiting.push((answers, refused));
            open.waiting += 1;
        }
        if !open.is_working {
            self.asked.notify_one();
        }
    }

    /// Takes the work that is to be done now, if there is some. [`Requests::did`] must follow.
    pub(super) fn take(&self) -> Option<AskedWork> {
        let mut open = self.open.lock();
        if open.is_working {
            return None;
        }
        let work = open.pending.pop_front()?;
        open.waiting -= work.waiting.len();
        open.is_working = true;
        if matches!(work.kind, AskedKind::Next(_)) {
            open.calls.has_come = false;
        }
        Some(work)
    }

    /// Answers the requests of work that was done, or was not.
    pub(super) fn did(&self, work: &AskedWork, done: &WorkResult) {
        self.end_work(self.open.lock(), work, Some(done));
    }

    /// Takes the next call of a session, and gives it to the script; without one its request waits for a call.
    pub(super) fn give_call(&self, work: &AskedWork, found: Result<Option<SessionCall>, String>) {
        let mut open = self.open.lock();
        let done = match (found, open.calls.end.as_deref()) {
            (Err(why), _) => Err(why),
            (Ok(Some(call)), _) => {
                open.calls.served = Some(call.id.clone());
                Ok(Some(call.for_script()))
            }
            (Ok(None), Some(why)) => Ok(Some(end_for_script(why))),
            (Ok(None), None) => {
                open.park(work);
                return self.end_work(open, work, None);
            }
        };
        open.calls.is_asked = false;
        self.end_work(open, work, Some(&done));
    }

    pub(super) fn call_came(&self) {
        let mut open = self.open.lock();
        let Some(answers) = open.calls.parked.take() else {
            open.calls.has_come = true;
            return;
        };
        let waiting = vec![(answers, None)];
        open.pending.push_back(AskedWork { kind: AskedKind::Next(None), waiting });
        open.waiting += 1;
        if !open.is_working {
            self.asked.notify_one();
        }
    }

    /// Ends the session after the call that it serves.
    pub(super) fn end_calls(&self, why: &str) {
        let mut open = self.open.lock();
        open.calls.end = Some(why.to_owned());
        if let Some(answers) = open.calls.parked.take() {
            open.calls.is_asked = false;
            answers.answer_with(&end_for_script(why));
        }
    }

    fn end_work(
        &self,
        mut open: MutexGuard<'_, Open>,
        work: &AskedWork,
        done: Option<&WorkResult>,
    ) {
        if let Some(done) = done {
            work.answer(done);
        }
        // Refusals that came meanwhile.
        while let Some(AskedWork { kind: AskedKind::Refuse, .. }) = open.pending.front() {
            if let Some(refused) = open.pending.pop_front() {
                open.waiting -= refused.waiting.len();
                refused.answer(&Ok(None));
            }
        }
        open.is_working = false;
        if open.is_settled() {
            self.settled.notify_all();
        } else {
            self.asked.notify_one();
        }
    }

    /// Waits until all requests are answered: the end of an attempt is recorded after what it asked for. Gives up
    /// once the boot has lost its jobs, and after `patience`.
    pub(super) fn settle(&self, cancel: &Cancel, patience: Duration) {
        let until = Instant::now() + patience;
        let mut open = self.open.lock();
        while !open.is_settled()
            && cancel.requested() != Some(StopReason::LeaseLost)
            && Instant::now() < until
        {
            self.settled.wait_for(&mut open, LEASE_CHECK);
        }
    }
}

impl Open {
    fn is_settled(&self) -> bool {
        !self.is_working && self.pending.is_empty()
    }

    /// Lets the request for a call wait until one comes, or be done again if one has come.
    fn park(&mut self, work: &AskedWork) {
        let Some((answers, _)) = work.waiting.first() else { return };
        if self.calls.has_come {
            let waiting = vec![(Arc::clone(answers), None)];
            self.pending.push_front(AskedWork { kind: AskedKind::Next(None), waiting });
            self.waiting += 1;
        } else {
            self.calls.parked = Some(Arc::clone(answers));
        }
    }

    /// Adds a request for the next call of a session. Returns why it is refused.
    fn ask_for_call(&mut self, answer: Option<SessionAnswer>) -> Option<String> {
        let is_unanswered = self.calls.served.is_some() && answer.is_none();
        let why = match (self.calls.is_asked, is_unanswered) {
            (true, _) => "a request for the next call waits already",
            (_, true) => "the call before was not answered: say its `exit`",
            (false, false) => {
                self.calls.is_asked = true;
                let served = self.calls.served.take().zip(answer);
                self.pending.push_back(AskedWork::new(AskedKind::Next(served)));
                return None;
            }
        };
        self.make_place();
        Some(why.to_owned())
    }

    /// Makes a place for a refusal behind the work before it.
    fn make_place(&mut self) {
        if self.pending.is_empty() {
            self.pending.push_back(AskedWork::new(AskedKind::Refuse));
        }
    }

    fn submit(&mut self, new: NewChildren) -> Option<String> {
        let unnamed_before = self.unnamed;
        let unnamed = new.jobs.iter().filter(|job| job.spec.name.is_none()).count() as u64;
        let refused = self.ask(AskedKind::Submit(AskedChildren { new, unnamed_before }));
        if refused.is_none() {
            self.unnamed += unnamed;
        }
        refused
    }

    /// Adds work that has many bytes. Returns why it is refused.
    fn ask(&mut self, kind: AskedKind) -> Option<String> {
        let is_heavy =
            |work: &&AskedWork| matches!(work.kind, AskedKind::Submit(_) | AskedKind::Read(_));
        if self.pending.iter().filter(is_heavy).count() >= HEAVY_MAX {
            self.make_place();
            return Some(format!(
                "more than {HEAVY_MAX} requests wait to be done: read their answers first"
            ));
        }
        self.pending.push_back(AskedWork::new(kind));
        None
    }
}

/// Returns the reason why a request is refused if it has the value of a secret.
fn secret_in(asked: &RequestKind, has_secret: impl Fn(&str) -> bool) -> Option<&'static str> {
    match asked {
        RequestKind::State(state) => has_secret(state.as_str())
            .then_some("the state has the value of a secret, which is not stored"),
        // The name of a job is not stored, and the values are hidden in the answer of a call.
        RequestKind::Inputs(_) | RequestKind::Next(_) => None,
        RequestKind::Submit(new) => {
            let mut fields = new.jobs.iter().flat_map(|job| job.submitted_fields());
            fields
                .any(|(_, text)| has_secret(&text))
                .then_some("the job has the value of a secret, which is not stored")
        }
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
            self.0.lock().push(done.clone());
        }

        fn answer_with(&self, result: &str) {
            self.0.lock().push(Err(format!("result {result}")));
        }

        fn close(&self) {
            self.0.lock().push(Err("closed".to_owned()));
        }
    }

    fn ask(requests: &Requests, answers: &Arc<Recorded>, json: Result<&str, &str>) {
        let asked =
            json.map_err(str::to_owned).and_then(Checkpoint::of_json).map(RequestKind::State);
        let answers = Arc::clone(answers) as Arc<dyn Answers>;
        requests.add(ScriptRequest { asked, answers }, |state| state.replace("hunter2", "***"));
    }

    fn state_of(work: &AskedWork) -> &str {
        match &work.kind {
            AskedKind::Keep(state) => state.as_str(),
            other => panic!("{other:?}"),
        }
    }

    fn submit(requests: &Requests, answers: &Arc<Recorded>) {
        let new = NewChildren::of_json(r#"{"type": "bash", "script": "hunter"}"#).expect("a job");
        let answers = Arc::clone(answers) as Arc<dyn Answers>;
        let asked = Ok(RequestKind::Submit(new));
        requests.add(ScriptRequest { asked, answers }, |text| text.replace("hunter2", "***"));
    }

    #[test]
    fn states_and_submissions_are_done_and_answered_in_their_order() {
        let (requests, answers) = (Requests::default(), Arc::new(Recorded::default()));
        ask(&requests, &answers, Ok("1"));
        submit(&requests, &answers);
        ask(&requests, &answers, Err("no"));
        ask(&requests, &answers, Ok("2"));
        let first = requests.take().expect("a state");
        assert_eq!(state_of(&first), "1");
        requests.did(&first, &Ok(None));
        let second = requests.take().expect("jobs");
        assert!(matches!(second.kind, AskedKind::Submit(_)));
        requests.did(&second, &Ok(Some("7".to_owned())));
        let third = requests.take().expect("a state");
        assert_eq!(state_of(&third), "2");
        requests.did(&third, &Ok(None));
        let said = |text: &str| Err(text.to_owned());
        assert_eq!(taken(&answers), [Ok(()), said("result 7"), said("no"), Ok(())]);
        requests.settle(&Cancel::new(), Duration::from_mins(10));
    }

    #[test]
    fn submissions_that_are_sent_without_reading_answers_are_bounded() {
        let (requests, answers) = (Requests::default(), Arc::new(Recorded::default()));
        for _ in 0..HEAVY_MAX + 5 {
            submit(&requests, &answers);
        }
        let mut done = 0;
        while let Some(work) = requests.take() {
            requests.did(&work, &Ok(Some("1".to_owned())));
            done += 1;
        }
        assert_eq!(done, HEAVY_MAX);
        let said = taken(&answers);
        let refused =
            said.iter().filter(|one| matches!(one, Err(why) if why.starts_with("more than")));
        assert_eq!((said.len(), refused.count()), (HEAVY_MAX + 5, 5));
    }

    fn taken(answers: &Recorded) -> Vec<Result<(), String>> {
        std::mem::take(&mut *answers.0.lock())
    }

    #[test]
    fn last_of_the_states_that_come_during_a_write_is_written_after_it() {
        let (requests, answers) = (Requests::default(), Arc::new(Recorded::default()));
        ask(&requests, &answers, Ok("1"));
        let first = requests.take().expect("a state");
        ask(&requests, &answers, Ok("2"));
        ask(&requests, &answers, Ok("3"));
        assert!(requests.take().is_none(), "one write at a time");
        assert_eq!((state_of(&first), taken(&answers)), ("1", vec![]));
        requests.did(&first, &Ok(None));
        assert_eq!(taken(&answers), [Ok(())]);
        let last = requests.take().expect("a state");
        assert_eq!(state_of(&last), "3");
        requests.did(&last, &Err("lost".to_owned()));
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
        requests.did(&first, &Ok(None));
        assert_eq!(taken(&answers), [Ok(()), no(), no()]);
    }

    #[test]
    fn state_with_a_secret_is_refused_and_the_one_before_it_is_kept() {
        let (requests, answers) = (Requests::default(), Arc::new(Recorded::default()));
        ask(&requests, &answers, Ok("1"));
        ask(&requests, &answers, Ok("\"hunter2\""));
        let kept = requests.take().expect("a state");
        assert_eq!(state_of(&kept), "1");
        requests.did(&kept, &Ok(None));
        let why = "the state has the value of a secret, which is not stored".to_owned();
        assert_eq!(taken(&answers), [Ok(()), Err(why)]);
    }

    fn ask_for_call(requests: &Requests, answers: &Arc<Recorded>, said: &str) {
        let asked = AskedCall::of_json(said, None).map(RequestKind::Next);
        let answers = Arc::clone(answers) as Arc<dyn Answers>;
        requests.add(ScriptRequest { asked, answers }, |text| text.replace("hunter2", "***"));
    }

    fn call() -> SessionCall {
        SessionCall::of_script("1".to_owned(), Duration::from_secs(7)).expect("legal")
    }

    #[test]
    fn request_for_a_call_waits_until_one_comes_and_its_answer_goes_to_that_call() {
        let (requests, answers) = (Requests::default(), Arc::new(Recorded::default()));
        let said = r#"result {"script":"MQ==","timeout":7}"#;
        let next = || requests.take().expect("work");
        ask_for_call(&requests, &answers, "null");
        requests.give_call(&next(), Ok(None));
        // Nothing is asked of Redis meanwhile, and the end of a run does not wait for it.
        assert!(requests.take().is_none() && taken(&answers).is_empty());
        requests.settle(&Cancel::new(), Duration::from_mins(10));
        requests.call_came();
        let one = call();
        requests.give_call(&next(), Ok(Some(one.clone())));
        assert_eq!(taken(&answers), [Err(said.to_owned())]);
        ask_for_call(&requests, &answers, r#"{"exit": 0, "output": "aHVudGVyMg=="}"#);
        let work = next();
        let AskedKind::Next(Some((id, answer))) = &work.kind else { panic!("{work:?}") };
        assert_eq!((id, answer.output.as_slice()), (&one.id, &b"***"[..]));
        // A call that comes while Redis is asked is asked for again.
        requests.call_came();
        requests.give_call(&work, Ok(None));
        let again = next();
        assert!(matches!(again.kind, AskedKind::Next(None)));
        requests.give_call(&again, Ok(Some(call())));
        assert_eq!(taken(&answers), [Err(said.to_owned())]);
    }

    #[test]
    fn requests_for_calls_that_lie_are_refused_and_the_end_of_calls_is_reported() {
        let (requests, answers) = (Requests::default(), Arc::new(Recorded::default()));
        let said = |text: &str| Err(text.to_owned());
        ask_for_call(&requests, &answers, "null");
        let first = requests.take().expect("work");
        requests.give_call(&first, Ok(None));
        ask_for_call(&requests, &answers, r#"{"exit": 0}"#);
        let refused = requests.take().expect("a refusal");
        requests.did(&refused, &Ok(None));
        assert_eq!(taken(&answers), [said("a request for the next call waits already")]);
        requests.call_came();
        let work = requests.take().expect("work");
        requests.give_call(&work, Ok(Some(call())));
        assert_eq!(taken(&answers).len(), 1);
        ask_for_call(&requests, &answers, "null");
        let refused = requests.take().expect("a refusal");
        requests.did(&refused, &Ok(None));
        assert_eq!(taken(&answers), [said("the call before was not answered: say its `exit`")]);
        requests.end_calls("it is late");
        ask_for_call(&requests, &answers, r#"{"exit": 0}"#);
        let last = requests.take().expect("work");
        requests.give_call(&last, Ok(None));
        assert_eq!(taken(&answers), [said(r#"result {"end":"it is late"}"#)]);
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
            requests.did(&kept, &Ok(None));
        });
        ask(&requests, &answers, Ok("2"));
        cancel.request(StopReason::LeaseLost);
        requests.settle(&cancel, Duration::from_mins(10));
    }
}
