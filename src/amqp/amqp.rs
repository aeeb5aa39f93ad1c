//! Brokers: they take messages from RabbitMQ, by the topology of one topic exchange, and give each to
//! a built-in or to a job.

extern crate self as amqp;
use hero_client as client;
use hero_config as config;
use hero_error as error;
use hero_http as http;
use hero_proto as proto;
use hero_store as store;
use hero_trace as trace;

pub mod broker;
pub mod builtin;
pub mod compare;
pub mod link;
pub mod logs;
pub mod message;
pub mod pattern;
pub mod relational;
pub mod route;
pub mod topology;
