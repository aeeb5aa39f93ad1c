//! Hero from the outside: against a real Redis, and through the real program.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says where"
)]

mod chaos;
mod e2e;
mod foreign;
mod lifecycle_model;
mod osis;
mod reliability_actor;
mod reliability_bounds;
mod reliability_dead;
mod reliability_fencing;
mod reliability_redis;
mod reliability_sentinel;
mod store;
mod support;
mod tidy;
