//! Calls of sessions: each waits for its answer, for the end of the session, or for the end of its own time.

use std::time::{Duration, Instant};

use super::{ClientError, Result, SessionClient};
use crate::proto::job::{InvalidJob, JobId, JobStatus, SessionAnswer, SessionCall};
use crate::proto::text::text_of;
use crate::store::CallDelivery;

const CALLS_MAX: u64 = 1000;
/// The time after its own that a call has to answer that it took too long. Then its session is stopped.
const GRACE: Duration = Duration::from_secs(3);
/// The time between two looks whether a session has ended.
const LOOK: Duration = Duration::from_millis(50);
/// The longest time without an answer of Redis during a call.
const OUTAGE_MAX: Duration = Duration::from_secs(30);
/// The longest reason for the end of a session in an error.
const REASON_CHARS_MAX: usize = 300;

impl SessionClient<'_> {
    /// Runs a script in a session, and returns its answer. A call that has none after `timeout` and a moment stops its
    /// session.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::Invalid`] for a script that is too large;
    /// [`ClientError::WrongState`] if the job is no session, does not run, serves another call, had all its calls, or
    /// ended before it answered; [`ClientError::Store`].
    pub async fn call(
        self,
        id: &JobId,
        script: String,
        timeout: Duration,
    ) -> Result<SessionAnswer> {
        let call = SessionCall::of_script(script, timeout);
        let call = call.map_err(|why| InvalidJob::new("script", why))?;
        self.give_call(id, &call).await?;
        self.await_answer(id, &call.id, timeout).await
    }

    /// Ends a session: at once if it serves no call, else by stopping it. Returns whether it has ended already.
    ///
    /// # Errors
    /// [`ClientError::NoSuchJob`]; [`ClientError::WrongState`] if the job is no session or has ended;
    /// [`ClientError::Store`].
    pub async fn end(self, id: &JobId) -> Result<bool> {
        let call = SessionCall::of_end(&format!("ended by {}", self.client.author.who));
        match self.client.of(id)?.sessions().give_call(id, &call, CALLS_MAX).await? {
            CallDelivery::NoSession => return Err(not_called(id, CallDelivery::NoSession)),
            CallDelivery::Delivered => {
                let until = Instant::now() + GRACE;
                while Instant::now() < until {
                    if self.reason_of_end(id).await?.is_some() {
                        self.client.audit().note("session.end", id).await;
                        return Ok(true);
                    }
                    tokio::time::sleep(LOOK).await;
                }
            }
            _ => {}
        }
        let has_ended = self.client.jobs().stop_one(id).await?;
        self.client.audit().note("session.end", id).await;
        Ok(has_ended)
    }

    async fn give_call(self, id: &JobId, call: &SessionCall) -> Result<()> {
        match self.client.of(id)?.sessions().give_call(id, call, CALLS_MAX).await? {
            CallDelivery::Delivered => Ok(()),
            CallDelivery::NotRunning(state) if state == "finished" || state == "error" => {
                let why = self.reason_of_end(id).await?;
                Err(wrong(id, format!("over: {}", why.unwrap_or(state))))
            }
            other => Err(not_called(id, other)),
        }
    }

    async fn await_answer(
        self,
        id: &JobId,
        call: &JobId,
        timeout: Duration,
    ) -> Result<SessionAnswer> {
        let until = Instant::now() + timeout + GRACE;
        let (mut answered, mut ended) = (Instant::now(), None);
        loop {
            match self.look_for_answer(id, call).await {
                Ok((Some(answer), _)) => return Ok(answer),
                // The answer comes before the end.
                Ok((None, why)) if why.is_some() && ended.is_some() => {
                    let why = why.unwrap_or_default();
                    return Err(wrong(id, format!("over, before it answered the call: {why}")));
                }
                Ok((None, why)) => (answered, ended) = (Instant::now(), why),
                Err(ClientError::Store(error))
                    if error.is_transient() && answered.elapsed() < OUTAGE_MAX =>
                {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                Err(error) => return Err(error),
            }
            if Instant::now() >= until && ended.is_none() {
                // It may end by itself at this moment.
                drop(self.client.jobs().stop_one(id).await);
                let why = format!("stopped: the call had no answer within {timeout:?}");
                return Err(wrong(id, why));
            }
        }
    }

    /// Waits for the answer for about a second, and then looks whether the session has ended, and why.
    async fn look_for_answer(
        self,
        id: &JobId,
        call: &JobId,
    ) -> Result<(Option<SessionAnswer>, Option<String>)> {
        let reply = self.client.waiters(id)?.pop_reply(call).await?;
        if let Some(answer) = reply.and_then(|reply| SessionAnswer::of_reply(&reply)) {
            return Ok((Some(answer), None));
        }
        Ok((None, self.reason_of_end(id).await?))
    }

    /// Returns why a session has ended; `None` if it has not.
    async fn reason_of_end(self, id: &JobId) -> Result<Option<String>> {
        let (status, text) = match self.client.of(id)?.jobs().outcome(id).await? {
            Some((status, bytes)) => (status, text_of(&bytes.unwrap_or_default())),
            None => return Ok(Some("it was deleted".to_owned())),
        };
        let first: String = text.trim().lines().next().unwrap_or_default().to_owned();
        let why = if first.is_empty() { status.to_string() } else { first };
        let is_over = matches!(status, JobStatus::Finished | JobStatus::Error);
        Ok(is_over.then(|| why.chars().take(REASON_CHARS_MAX).collect()))
    }
}

fn not_called(id: &JobId, why: CallDelivery) -> ClientError {
    match why {
        CallDelivery::Delivered => wrong(id, ""),
        CallDelivery::Missing => ClientError::NoSuchJob(id.clone()),
        CallDelivery::NoSession => wrong(id, "no session: session.start starts one"),
        CallDelivery::NotRunning(state) => wrong(id, state),
        CallDelivery::Busy => wrong(id, "serving another call, and serves one at a time"),
        CallDelivery::Many => wrong(id, format!("at its end: a session serves {CALLS_MAX} calls")),
        CallDelivery::Unowned => wrong(id, "started by an actor that its hash does not name"),
    }
}

fn wrong(id: &JobId, status: impl Into<String>) -> ClientError {
    ClientError::wrong_state("call", id, status)
}
