//! A request of a script to Hero while it runs, and the way of its answer.

use std::sync::Arc;

use crate::proto::job::{AskedCall, AskedOutput, Checkpoint, NewChildren};

#[derive(Debug)]
pub struct ScriptRequest {
    /// The request, or the reason why nobody can do it.
    pub asked: Result<RequestKind, String>,
    pub answers: Arc<dyn Answers>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Keep a state for the next attempt of the job.
    State(Checkpoint),
    Submit(NewChildren),
    Inputs(AskedOutput),
    Next(AskedCall),
}

/// Takes the answers to the requests of one script, in the order of the requests. It never blocks.
pub trait Answers: Send + Sync + std::fmt::Debug {
    /// Takes one answer: the request was done, or was refused for a reason.
    fn answer(&self, done: &Result<(), String>);

    /// Takes the answer to a request that was done and has a result, as JSON in one line.
    fn answer_with(&self, result: &str);

    fn close(&self);
}
