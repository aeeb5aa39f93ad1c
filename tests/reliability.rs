//! The promises of docs/reliability.md: ownership, recovery, dead letters, bounds, a Redis that
//! fails over or does not serve.

mod actor;
mod answer_sizes;
mod bounds;
mod clock_steps;
mod cluster;
mod dead;
mod fencing;
mod not_serving;
mod redis;
mod refused_login;
mod sentinel;
mod wrong_types;
