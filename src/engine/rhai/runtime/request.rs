//! Requests of a script to Hero, each of which waits for its answer.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use super::run::{ScriptRun, Stop};
use crate::engine::{Answers, RequestKind, ScriptRequest};

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
    /// The error is the reason to stop the script.
    pub(crate) fn ask(
        &self,
        asked: Result<RequestKind, String>,
    ) -> Result<Result<Option<String>, String>, Stop> {
        let (sender, done) = sync_channel(1);
        self.log.request(ScriptRequest { asked, answers: Arc::new(OneAnswer(sender)) });
        let done = self.receive(&done)?;
        Ok(done.unwrap_or_else(|| Err("the actor has lost its jobs".to_owned())))
    }
}
