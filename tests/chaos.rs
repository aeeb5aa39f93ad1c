//! Chaos: the real program on a real Redis, killed, paused and cut off at any moment, and the
//! proof that every job runs and ends once all the same.

mod audit;
mod cluster;
mod failpoints;
mod faults;
mod fence;
mod flood;
mod kin;
mod observer;
mod shards;
mod storm;
mod units;
mod work;

/// The seconds after which a storm abates, unless `LONGEST` sets them.
const LONGEST_S: u64 = 25;
