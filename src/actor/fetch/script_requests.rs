//! The background call that does what a running script asks for.

use std::fmt;
use std::sync::Arc;

use tracing::warn;

use super::children;
use crate::actor::boot::Boot;
use crate::actor::requests::{AskedKind, AskedWork, LOST_LEASE, WorkResult};
use crate::actor::running_job::RunningJob;
use crate::proto::job::{AskedOutput, JobId, SessionAnswer};
use crate::store::{NextCall, StoreError};

/// Work on its way to Redis.
pub(super) struct RunningRequest {
    /// The attempt whose script asks for it.
    pub(super) run: Arc<RunningJob>,
    pub(super) work: AskedWork,
}

impl fmt::Debug for RunningRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunningRequest").field(&self.run.job.id).finish()
    }
}

impl RunningRequest {
    /// Does the work, and answers its script.
    ///
    /// # Errors
    /// An outage: nothing was answered.
    pub(super) async fn keep(&self, boot: &Boot) -> Result<(), StoreError> {
        let done = match &self.work.kind {
            AskedKind::Keep(state) => self.keep_state(boot, state.as_str()).await?,
            AskedKind::Submit(asked) => children::submit(asked, &self.run, boot).await?,
            AskedKind::Read(asked) => self.read_output(boot, asked).await?,
            AskedKind::Next(served) => return self.next_call(boot, served.as_ref()).await,
            AskedKind::Refuse => Ok(None),
        };
        self.run.log.requests.did(&self.work, &done);
        Ok(())
    }

    async fn read_output(
        &self,
        boot: &Boot,
        asked: &AskedOutput,
    ) -> Result<WorkResult, StoreError> {
        let (job, claimed_at) = (&self.run.job, self.run.claimed_at);
        match boot.store.jobs().asked_output(&boot.id, (job, claimed_at), asked).await {
            Ok(found) => Ok(found.into_json(asked).map(Some)),
            Err(error) if error.is_outage() => Err(error),
            Err(error) => Ok(Err(format!("the output cannot be read: {error}"))),
        }
    }

    /// Answers the call of a session that was served, and gives its script the next one.
    async fn next_call(
        &self,
        boot: &Boot,
        served: Option<&(JobId, SessionAnswer)>,
    ) -> Result<(), StoreError> {
        let (id, claimed_at) = self.run.attempt();
        let served = served.map(|(call, answer)| (call, answer));
        let found = match boot.store.sessions().next_call(&boot.id, (&id, claimed_at), served).await
        {
            Ok(NextCall::None) => Ok(None),
            Ok(NextCall::Call(Some(call))) => Ok(Some(call)),
            Ok(NextCall::Call(None)) => Err("the call cannot be read".to_owned()),
            Ok(NextCall::Lost) => Err(LOST_LEASE.to_owned()),
            Err(error) if error.is_outage() => return Err(error),
            Err(error) => Err(format!("the next call cannot be read: {error}")),
        };
        self.run.log.requests.give_call(&self.work, found);
        Ok(())
    }

    async fn keep_state(&self, boot: &Boot, state: &str) -> Result<WorkResult, StoreError> {
        let (id, claimed_at) = self.run.attempt();
        match boot.store.attempts().keep_state(&boot.id, (&id, claimed_at), state).await {
            Ok(true) => Ok(Ok(None)),
            Ok(false) => Ok(Err(LOST_LEASE.to_owned())),
            Err(error) if error.is_outage() => Err(error),
            Err(error) => {
                warn!(job_id = %id, "cannot keep the state of job {id}: {error}");
                Ok(Err(format!("the state cannot be kept: {error}")))
            }
        }
    }
}
