//! Hero, a job daemon for scripts. Data flows through the modules from left to right:
//!
//! ```text
//! error → proto → config → store, sandbox, artifacts → engine → client → view → metrics → http → trace → actor, supervisor, amqp → rpc → web → daemon → cli
//! ```
//!
//! ARCHITECTURE.md describes each module and the way of a job through them.

pub mod actor;
pub use hero_amqp as amqp;
pub use hero_artifacts as artifacts;
pub mod cli;
pub use hero_client as client;
pub use hero_config as config;
pub mod daemon;
pub use hero_engine as engine;
pub use hero_error as error;
pub mod failpoint;
pub use hero_http as http;
pub mod metrics;
pub use hero_proto as proto;
pub mod rpc;
pub use hero_sandbox as sandbox;
pub use hero_store as store;
pub mod supervisor;
pub use hero_trace as trace;
pub mod view;
pub mod web;
