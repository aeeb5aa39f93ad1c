//! Shared by the tests: a private Redis and its keys, waits for conditions, seeds, and a world of
//! jobs.

mod access_lists;
mod authority;
pub(crate) mod cluster;
mod disk;
mod files;
mod frozen;
mod hero;
pub(crate) mod http;
mod json_schema;
pub(crate) mod keys;
mod mariadb;
mod monitor;
#[path = "../src/test_support.rs"]
mod needs;
mod npm;
pub(crate) mod owners;
pub(crate) mod proxy;
mod pypi;
pub(crate) mod rabbitmq;
mod redis;
mod seed;
mod served;
mod set_clock;
mod wait;
pub(crate) mod websocket;
mod world;

pub(crate) use authority::Authority;
pub(crate) use cluster::Cluster;
pub(crate) use disk::{Disk, is_empty};
pub(crate) use files::{files_below, replace_file, until_exists};
pub(crate) use frozen::Frozen;
pub(crate) use hero::{Done, Hero, Process};
pub(crate) use json_schema::{fault_by_schema, needs_json_schema};
pub(crate) use keys::keys;
pub(crate) use mariadb::{MariaDb, needs_mariadb};
pub(crate) use monitor::Monitor;
pub(crate) use needs::needs;
pub(crate) use npm::{npm, reaches_registry};
pub(crate) use pypi::pypi;
pub(crate) use redis::{Redis, server};
pub(crate) use seed::{number, seed, seeds, size};
pub(crate) use served::{Served, agent, request};
pub(crate) use set_clock::can_set_clock;
pub(crate) use wait::{until, wait_until};
pub(crate) use world::{Life, RETENTION, World, ids, job, line, queue, script_type};
