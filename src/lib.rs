//! Hero, a job daemon for scripts. Data flows through the modules from left to right:
//!
//! ```text
//! error → proto → config → store, sandbox, artifacts → engine → client → view → metrics → actor, supervisor, amqp → rpc → web → daemon → cli
//! ```
//!
//! ARCHITECTURE.md describes each module and the way of a job through them.

pub mod actor;
pub mod amqp;
pub mod artifacts;
pub mod cli;
pub mod client;
pub mod config;
pub mod daemon;
pub mod engine;
pub mod error;
pub mod failpoint;
pub mod metrics;
pub mod proto;
pub mod rpc;
pub mod sandbox;
pub mod store;
pub mod supervisor;
pub mod view;
pub mod web;

#[cfg(test)]
pub(crate) mod test_support;
