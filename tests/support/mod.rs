//! What the tests share: a Redis of their own, waits for conditions, and a world to act in.

mod hero;
mod redis;
mod wait;
mod world;

pub(crate) use hero::{Hero, Process};
pub(crate) use redis::Redis;
pub(crate) use wait::wait_until;
pub(crate) use world::{Life, RETENTION, World, ids, job, line, queue, script_type};
