//! The pure vocabulary of the wire protocol: names, keys, the job and its states, messages.
//! No tokio, no redis, no clock.

extern crate self as proto;

#[doc(hidden)]
pub use schemars;

pub mod access;
pub mod audit;
pub mod backup;
pub mod cron;
pub mod env_file;
pub mod error_kind;
pub mod every;
pub mod graph;
pub mod graph_plan;
pub mod job;
pub mod job_filter;
pub mod job_rights;
pub mod json_text;
pub mod keys;
pub mod labels;
pub mod legacy;
pub mod line_diff;
pub mod member_names;
pub mod message;
pub mod named_script;
pub mod notification;
pub mod object;
pub mod pattern;
pub mod pauses;
pub mod queue;
pub mod report;
pub mod script_reply;
pub mod script_use;
pub mod selector;
pub mod shard;
pub mod spoken_time;
pub mod target;
pub mod text;
pub mod times;
pub mod units;
pub mod window;
pub mod word_table;
