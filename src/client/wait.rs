//! Waits for the end of a job: for its reply, and for its hash where no actor replies; with a patience that lasts through outages of
//! Redis. And confirmed submissions: answered only once
//! the jobs have arrived where `redis.ack` says.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use super::{ClientError, Result};
use crate::proto::job::{Job, JobId, JobOutput, JobStatus};
use crate::proto::message::{Reply, ReplyOutcome};
use crate::proto::text::text_of;
use crate::proto::units::brief;
use crate::store::{Backoff, Blocking, Outcome, Store, StoreError};

/// The maximum number of connections that wait at a time; further waits look at the hash until one is free.
const CONNECTIONS_MAX: usize = 64;
const IDLE_MAX: usize = 8;
/// The wait of one pop, before the hash is checked: the end of a job whose actor only
/// writes the hash is noticed within this time.
pub(super) const POP: Duration = Duration::from_secs(1);
/// The step that is confirmed at a submission.
pub(super) const STORED: &str = "is stored";
/// The step that is confirmed at an end.
const ENDED: &str = "has ended";
/// The longest outage during a wait without a bound.
pub(super) const OUTAGE_MAX: Duration = Duration::from_secs(30);
/// A waiter has an answer of Redis about once a second. After this time without one, nobody knows whether the job goes on.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// The shortest time that a wait has for the first answer.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(1);

/// The connections where a client waits for replies.
pub(super) struct Waiters {
    store: Store,
    idle: Mutex<Vec<Blocking>>,
    places: Semaphore,
}

impl Waiters {
    pub(super) fn new(store: Store) -> Self {
        Self { store, idle: Mutex::default(), places: Semaphore::new(CONNECTIONS_MAX) }
    }

    /// Waits for the end of a job, at most for `bound`. `replies` if the job is known to push a reply.
    pub(super) async fn wait(
        &self,
        id: &JobId,
        bound: Option<Duration>,
        replies: bool,
    ) -> Result<JobOutput> {
        let patience = WaitBound::new("job", id, bound);
        if replies {
            // It was submitted just now.
            patience.answered();
        }
        let wait = || self.wait_on_a_connection(id, replies, &patience);
        match patience.endure(wait).await? {
            ReplyOutcome::Finished(output) => Ok(output),
            ReplyOutcome::Error(error) => Err(ClientError::JobFailed { id: id.clone(), error }),
        }
    }

    /// A connection becomes idle again only after an answer: if it were cancelled during a pop, it
    /// would lose the reply.
    async fn wait_on_a_connection(
        &self,
        id: &JobId,
        replies: bool,
        patience: &WaitBound<'_>,
    ) -> Result<ReplyOutcome> {
        if !replies {
            let found = self.store.jobs().outcome_or_reply(id).await?;
            if let Some(ended) = self.confirmed_end(id, found).await? {
                return Ok(ended);
            }
            patience.answered();
            // Best effort: the wait looks at the hash anyway.
            drop(self.store.recovery().note_awaited(id).await);
        }
        let mut place = std::pin::pin!(self.places.acquire());
        let _place = loop {
            tokio::select! {
                place = &mut place => break place.map_err(|_| closed())?,
                () = tokio::time::sleep(POP) => {}
            }
            let found = self.store.jobs().outcome(id).await?;
            if let Some(ended) = self.confirmed_end(id, found).await? {
                return Ok(ended);
            }
            patience.answered();
        };
        let mut connection = self.connection();
        let ended = loop {
            if let Some(ended) = self.look_for_end(&mut connection, id).await? {
                break ended;
            }
            patience.answered();
        };
        self.keep(connection);
        Ok(ended)
    }

    /// Takes the reply with an id; waits for it for about a second.
    pub(super) async fn pop_reply(&self, id: &JobId) -> Result<Option<Vec<u8>>> {
        let _place = self.places.acquire().await.map_err(|_| closed())?;
        let mut connection = self.connection();
        let reply = connection.pop(&[self.store.keys().reply(id)], POP).await?;
        self.keep(connection);
        Ok(reply.map(|woken| woken.entry))
    }

    /// Waits for the reply for about a second, and then looks at the hash.
    async fn look_for_end(
        &self,
        connection: &mut Blocking,
        id: &JobId,
    ) -> Result<Option<ReplyOutcome>> {
        let popped = connection.pop(&[self.store.keys().reply(id)], POP).await?;
        if let Some(reply) = popped.and_then(|woken| Reply::parse(&woken.entry).ok())
            && reply.job_id == *id
        {
            return Ok(Some(reply.ending));
        }
        self.confirmed_end(id, self.store.jobs().outcome(id).await?).await
    }

    /// Returns how a job ended, as its hash tells it, whose reply may wait for a confirmation, once the end is confirmed; `None`
    /// if it has not ended.
    async fn confirmed_end(
        &self,
        id: &JobId,
        found: Option<Outcome>,
    ) -> Result<Option<ReplyOutcome>> {
        let (status, bytes) = found.ok_or_else(|| ClientError::NoSuchJob(id.clone()))?;
        let bytes = bytes.unwrap_or_default();
        let ended = match status {
            JobStatus::Finished => ReplyOutcome::Finished(bytes.into()),
            JobStatus::Error => ReplyOutcome::Error(text_of(&bytes)),
            _ => return Ok(None),
        };
        if self.store.acks().confirms_end(id).await? {
            confirmed(&self.store, std::slice::from_ref(id), ENDED).await?;
        }
        Ok(Some(ended))
    }

    fn connection(&self) -> Blocking {
        self.idle.lock().pop().unwrap_or_else(|| self.store.blocking())
    }

    fn keep(&self, connection: Blocking) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }
}

fn closed() -> ClientError {
    ClientError::Store(StoreError::Settings("the client is closed".to_owned()))
}

/// Checks that Redis can confirm these jobs, if one of them asks for it. Returns true if one does.
pub(super) async fn will_confirm(store: &Store, jobs: &[Job]) -> Result<bool> {
    let confirms = jobs.iter().any(|job| store.acks().confirms(job));
    if confirms {
        store.acks().can_confirm().await?;
    }
    Ok(confirms)
}

/// Waits until the writes of these jobs are confirmed.
pub(super) async fn confirmed(store: &Store, ids: &[JobId], what: &'static str) -> Result<()> {
    let Some(first) = ids.first() else { return Ok(()) };
    let unconfirmed = |id: &JobId, others: usize, error: StoreError| ClientError::Unconfirmed {
        id: id.clone(),
        others,
        what,
        error,
    };
    let gone = store.acks().confirm(ids).await;
    let gone = gone.map_err(|error| unconfirmed(first, ids.len() - 1, error))?;
    let Some(lost) = gone.first() else { return Ok(()) };
    let reason =
        "it is not there any more: it was deleted, or redis has lost it in a restart or failover";
    Err(unconfirmed(lost, gone.len() - 1, StoreError::failed("confirming jobs", reason)))
}

/// A wait for the end of a job or graph, with its bound.
pub(super) struct WaitBound<'p> {
    /// `job`, `graph` or `task`.
    of: &'static str,
    id: &'p JobId,
    began: Instant,
    bound: Option<Duration>,
    answers: Mutex<RedisAnswers>,
    first_answer: Notify,
}

#[derive(Default)]
struct RedisAnswers {
    at: Option<Instant>,
    /// The error since then.
    error: Option<StoreError>,
}

impl<'p> WaitBound<'p> {
    /// Begins a wait. `bound` is its longest time.
    pub(super) fn new(of: &'static str, id: &'p JobId, bound: Option<Duration>) -> Self {
        let (answers, first_answer) = (Mutex::default(), Notify::new());
        Self { of, id, began: Instant::now(), bound, answers, first_answer }
    }

    /// Notes an answer of Redis: the job or graph is known, and goes on.
    pub(super) fn answered(&self) {
        *self.answers.lock() = RedisAnswers { at: Some(Instant::now()), error: None };
        self.first_answer.notify_one();
    }

    /// Repeats a wait that an outage of Redis ends, up to the bound.
    ///
    /// # Errors
    /// [`ClientError::GaveUp`] at the bound; the error of the wait; without a bound the error of an outage that lasts.
    pub(super) async fn endure<T, W>(&self, wait: impl Fn() -> W) -> Result<T>
    where
        W: Future<Output = Result<T>>,
    {
        let ended = self.repeat(wait);
        let Some(bound) = self.bound else { return ended.await };
        // A wait of no time has the first answer too.
        let over = async {
            tokio::time::sleep(bound).await;
            let first = self.first_answer.notified();
            let _ = tokio::time::timeout(FIRST_ANSWER_MAX.saturating_sub(bound), first).await;
        };
        tokio::select! {
            biased;
            ended = ended => ended,
            () = over => Err(self.gave_up()),
        }
    }

    async fn repeat<T, W>(&self, wait: impl Fn() -> W) -> Result<T>
    where
        W: Future<Output = Result<T>>,
    {
        let mut backoff = Backoff::default();
        loop {
            match wait().await {
                // The job goes on, and its end will be known.
                Err(ClientError::Store(error)) if error.is_transient() && self.has_patience() => {
                    self.answers.lock().error = Some(error);
                    tokio::time::sleep(backoff.failed()).await;
                }
                ended => return ended,
            }
        }
    }

    /// Returns whether the wait lasts through an outage of Redis.
    fn has_patience(&self) -> bool {
        self.bound.is_some() || self.answers.lock().at.unwrap_or(self.began).elapsed() < OUTAGE_MAX
    }

    fn gave_up(&self) -> ClientError {
        let answers = self.answers.lock();
        let silence = answers.at.unwrap_or(self.began).elapsed();
        let unknown = match &answers.error {
            Some(error) => Some(error.to_string()),
            None if silence >= SILENCE_MAX => {
                Some(format!("redis has not answered for {}", brief(silence)))
            }
            None if answers.at.is_none() => Some("redis has not answered yet".to_owned()),
            None => None,
        };
        let (of, id, waited) = (self.of, self.id.clone(), self.began.elapsed());
        ClientError::GaveUp { of, id, waited, unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given_up(patience: &WaitBound<'_>) -> String {
        patience.gave_up().to_string()
    }

    #[test]
    fn job_is_said_to_go_on_only_if_redis_has_said_so() {
        let id: JobId = "j".parse().expect("legal");
        let patience = WaitBound::new("job", &id, Some(Duration::from_secs(9)));
        assert!(given_up(&patience).ends_with("is not known: redis has not answered yet"));
        patience.answered();
        assert!(given_up(&patience).ends_with("; it goes on"));
        patience.answers.lock().error = Some(StoreError::Settings("redis at x".to_owned()));
        let said = given_up(&patience);
        assert!(said.contains("whether it goes on is not known: redis settings"), "{said}");
        patience.answered();
        assert!(given_up(&patience).ends_with("; it goes on"));
    }
}
