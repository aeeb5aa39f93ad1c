//! Brokers: they take messages from RabbitMQ, by the topology of one topic exchange, and give each to
//! a built-in or to a job.

pub mod builtin;
pub mod message;
pub mod pattern;
pub mod route;
pub mod topology;
