//! Hero, a job daemon for scripts.

pub mod actor;
pub mod cli;
pub mod client;
pub mod config;
pub mod daemon;
pub mod engine;
pub mod error;
pub mod failpoint;
pub mod proto;
pub mod store;
pub mod supervisor;

#[cfg(test)]
pub(crate) mod test_support;
