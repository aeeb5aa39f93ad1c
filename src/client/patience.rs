//! The patience of a wait, which lasts through outages of Redis.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::{ClientError, Result};
use crate::proto::job::JobId;
use crate::proto::units::brief;
use crate::store::{Backoff, StoreError};

/// The longest outage during a wait without a bound.
const OUTAGE_MAX: Duration = Duration::from_secs(30);
/// A waiter has an answer of Redis about once a second. After this time without one, nobody knows whether the job goes on.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// The shortest time that a wait has for the first answer.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(1);

/// A wait for the end of a job or graph, with its bound.
pub(super) struct WaitBound<'p> {
    /// `job` or `graph`.
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
        *self.answers() = RedisAnswers { at: Some(Instant::now()), error: None };
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
                    self.answers().error = Some(error);
                    tokio::time::sleep(backoff.failed()).await;
                }
                ended => return ended,
            }
        }
    }

    /// Returns whether the wait lasts through an outage of Redis.
    fn has_patience(&self) -> bool {
        self.bound.is_some() || self.answers().at.unwrap_or(self.began).elapsed() < OUTAGE_MAX
    }

    fn gave_up(&self) -> ClientError {
        let answers = self.answers();
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

    fn answers(&self) -> std::sync::MutexGuard<'_, RedisAnswers> {
        // No code panics while it holds it.
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
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
        patience.answers().error = Some(StoreError::Settings("redis at x".to_owned()));
        let said = given_up(&patience);
        assert!(said.contains("whether it goes on is not known: redis settings"), "{said}");
        patience.answered();
        assert!(given_up(&patience).ends_with("; it goes on"));
    }
}
