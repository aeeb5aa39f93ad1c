//! Calls of sessions: given to a job that runs, and answered by it.

use super::{Result, SessionStore, StoreError};
use crate::proto::job::{BootId, CallKind, JobId, SessionAnswer, SessionCall};
use crate::proto::message::Control;

/// The answer to a call that is given to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallDelivery {
    /// Its actor has been told.
    Delivered,
    Missing,
    NoSession,
    /// The session does not run: it is in this state, or stopping.
    NotRunning(String),
    Busy,
    /// It has had as many calls as a session may have.
    Many,
    /// Its hash names no actor that could be told.
    Unowned,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextCall {
    /// The boot does not own the job any more.
    Lost,
    None,
    /// This call; `None` if another program wrote something else there.
    Call(Option<SessionCall>),
}

impl SessionStore<'_> {
    /// Gives a call to a session. `calls_max` bounds the scripts that it runs in all.
    ///
    /// # Errors
    /// [`StoreError`]. After a lost connection the call may have been given.
    pub async fn give_call(
        self,
        id: &JobId,
        call: &SessionCall,
        calls_max: u64,
    ) -> Result<CallDelivery> {
        const DOING: &str = "calling a session";
        let most = match call.kind {
            CallKind::Run { .. } => calls_max.to_string(),
            CallKind::End { .. } => String::new(),
        };
        let arguments =
            (id.as_str(), call.to_json(), Control::Call { job_id: id.clone() }.to_json(), most);
        let (code, detail): (String, String) =
            self.store.run_for_caller(DOING, Some(id), &self.store.scripts.call, arguments).await?;
        Ok(match code.as_str() {
            "given" => CallDelivery::Delivered,
            "missing" => CallDelivery::Missing,
            "none" => CallDelivery::NoSession,
            "state" => CallDelivery::NotRunning(detail),
            "busy" => CallDelivery::Busy,
            "many" => CallDelivery::Many,
            "unowned" => CallDelivery::Unowned,
            _ => return Err(StoreError::unexpected(DOING)),
        })
    }

    /// Answers the call that a session has served, and returns the call that it serves next.
    ///
    /// # Errors
    /// [`StoreError`]; it may be called again.
    pub async fn next_call(
        self,
        boot: &BootId,
        (id, claimed_at): (&JobId, u64),
        served: Option<(&JobId, &SessionAnswer)>,
    ) -> Result<NextCall> {
        const DOING: &str = "answering a call of a session";
        let served = served.map(|(call, answer)| (call.as_str(), answer.to_json()));
        let arguments = (boot.as_str(), id.as_str(), claimed_at, served.unwrap_or_default());
        let (code, call): (String, String) =
            self.store.run_script(DOING, &self.store.scripts.next_call, arguments).await?;
        Ok(match code.as_str() {
            "lost" => NextCall::Lost,
            "none" => NextCall::None,
            "call" => NextCall::Call(SessionCall::of_field(&call)),
            _ => return Err(StoreError::unexpected(DOING)),
        })
    }
}
