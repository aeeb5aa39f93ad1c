//! The store against a real Redis, operation by operation. After each of them the world is
//! checked: every job stands in exactly the index of its state.

mod ack;
mod asked_outputs;
mod atomic_batch;
mod attempts;
mod backup;
mod children;
mod claim;
mod claim_ahead;
mod control;
mod cron;
mod edit;
mod finish;
mod graphs;
mod kept_state;
mod large_outputs;
mod later_owners;
mod limits;
mod limits_walk;
mod listing;
mod look;
mod lua;
mod moves;
mod notify;
mod one_system;
mod outage;
mod pause;
mod prerequisites;
mod presence;
mod purge;
mod recovery;
mod samples;
mod schedule;
mod statistics;
mod submit;
mod waits;
