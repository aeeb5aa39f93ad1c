//! The promises of docs/reliability.md: ownership, recovery, dead letters, bounds, a Redis that
//! fails over.

mod actor;
mod bounds;
mod dead;
mod fencing;
mod redis;
mod sentinel;
mod wrong_types;
