//! Hero from the outside: against a real Redis, and through the real program.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says where"
)]

mod amqp;
mod chaos;
mod clients;
mod documents;
pub(crate) mod e2e;
mod escape;
mod foreign;
mod fuzz;
mod hostile;
mod model;
mod notify;
mod osis;
mod reliability;
mod rpc;
mod store;
mod support;
mod web;
