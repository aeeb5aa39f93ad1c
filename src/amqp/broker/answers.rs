//! Answers the messages of ended jobs, whichever process has taken them: publishes the reply, or the
//! message to a retry lane or to the dead letters.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tracing::{debug, warn};

use super::jobs::answer_of;
use super::shared::Shared;
use crate::amqp::message::AmqpMessage;
use crate::proto::job::JobId;
use crate::store::{Backoff, StoreError, TakenEnds};

/// The ends that are taken at once.
const PORTION: usize = 64;
/// Another process may answer after this time: longer than a confirmation may take.
const LEASE: Duration = Duration::from_secs(15);
/// The wait before ends that could not be answered are tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// The longest wait for a push notification: then those that a dead process has left are read.
const WAIT: Duration = Duration::from_secs(1);

/// Answers until the process is to end.
pub(super) async fn run(shared: Arc<Shared>) {
    let bell = [shared.store.brokers().bell(&shared.scope)];
    let mut waiting = shared.store.blocking();
    let mut backoff = Backoff::default();
    loop {
        let answered = answer_all(&shared).await;
        let rung = async {
            match answered {
                Ok(()) => waiting.pop(&bell, WAIT).await.map(drop),
                Err(error) => Err(error),
            }
        };
        tokio::select! {
            () = shared.left() => return,
            waited = rung => match waited {
                Ok(()) => _ = backoff.succeeded(),
                Err(error) => {
                    debug!("answering messages: {error}; trying again");
                    tokio::time::sleep(backoff.failed()).await;
                }
            },
        }
    }
}

async fn answer_all(shared: &Arc<Shared>) -> Result<(), StoreError> {
    loop {
        let taken = shared.store.brokers().take_ends(&shared.scope, PORTION, LEASE).await?;
        if taken.ids.is_empty() {
            return Ok(());
        }
        answer(shared, &taken).await?;
        if taken.ids.len() < PORTION {
            return Ok(());
        }
    }
}

async fn answer(shared: &Arc<Shared>, taken: &TakenEnds) -> Result<(), StoreError> {
    let mut tasks = JoinSet::new();
    for id in taken.ids.iter().cloned() {
        let shared = Arc::clone(shared);
        tasks.spawn(async move {
            let is_done = answer_one(&shared, &id).await;
            (id, is_done)
        });
    }
    let (mut done, mut again): (Vec<JobId>, Vec<JobId>) = Default::default();
    while let Some(joined) = tasks.join_next().await {
        let Ok((id, is_done)) = joined else { continue };
        if is_done { done.push(id) } else { again.push(id) }
    }
    shared.store.brokers().answered(&shared.scope, taken, &done, None).await?;
    shared.store.brokers().answered(&shared.scope, taken, &again, Some(AGAIN)).await
}

/// Answers one message. Returns false if it is to be tried again.
async fn answer_one(shared: &Arc<Shared>, id: &JobId) -> bool {
    let end = match shared.store.brokers().message_end(id).await {
        Ok(Some(end)) => end,
        // The job was deleted, or runs again: its next end comes by itself.
        Ok(None) => return true,
        Err(error) => {
            debug!("answering the message of job {id}: {error}");
            return false;
        }
    };
    let message: AmqpMessage = match serde_json::from_str(&end.message) {
        Ok(message) => message,
        Err(error) => {
            warn!(job_id = %id, "the message of a job cannot be read, nobody is answered: {error}");
            return true;
        }
    };
    match shared.settle_job(&message, answer_of(end)).await {
        Ok(answer) => {
            shared.rabbit_answered();
            match answer {
                Some(answer) => shared.answer_repeats(&message, &answer).await,
                None => true,
            }
        }
        Err(error) => {
            shared.rabbit_failed("answering a message", &error);
            false
        }
    }
}
