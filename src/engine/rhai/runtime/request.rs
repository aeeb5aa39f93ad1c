//! Requests of a script to Hero, each of which waits for its answer.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use super::run::{ScriptRun, Stop};
use crate::engine::{Answers, RequestKind, ScriptRequest};

/// The time between two checks for a stop while a script waits.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Takes the one answer of a request.
#[derive(Debug)]
struct OneAnswer(SyncSender<Result<Option<String>, String>>);

impl Answers for OneAnswer {
    fn answer(&self, done: &Result<(), String>) {
        // A script that has been stopped waits no more.
        let _ = self.0.try_send(done.clone().map(|()| None));
    }

    fn answer_with(&self, result: &str) {
        let _ = self.0.try_send(Ok(Some(result.to_owned())));
    }

    fn close(&self) {}
}

impl ScriptRun<'_> {
    /// Asks Hero for something, and waits until it is done or refused. Returns its result as JSON, if it has one.
    ///
    /// # Errors
    /// The reason to stop the script.
    pub(crate) fn ask(
        &self,
        asked: Result<RequestKind, String>,
    ) -> Result<Result<Option<String>, String>, Stop> {
        let (sender, done) = sync_channel(1);
        self.log.request(ScriptRequest { asked, answers: Arc::new(OneAnswer(sender)) });
        loop {
            match done.recv_timeout(STOP_CHECK_INTERVAL) {
                Ok(done) => return Ok(done),
                Err(RecvTimeoutError::Disconnected) => {
                    return Ok(Err("the actor has lost its jobs".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(stop) = self.check_now() {
                        return Err(stop);
                    }
                }
            }
        }
    }
}
