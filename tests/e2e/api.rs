//! The API over HTTP, by a client that shares no code with the program.

mod agents;
mod files;
mod health;
mod listener;
mod load;
mod outage;
pub(crate) mod prometheus;
mod rest;
mod subscriptions;
mod types;

use crate::support::http::Answer;

/// The code of the error of a response.
#[track_caller]
fn error(answer: &Answer) -> i64 {
    let answer = answer.json();
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}
