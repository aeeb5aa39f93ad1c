//! The model test: random sequences of operations on jobs, on a real Redis, compared step by step
//! with a pure model of the protocol. `search` goes through all states of a smaller model.
//!
//! A failure prints its seed and its last steps; `SEED=… STEPS=…` replays it, and
//! `SEED=random SEQUENCES=…` runs other sequences.

#![expect(clippy::print_stderr, reason = "a sequence that fails must name its seed")]

mod compare;
mod expressions;
mod fleet;
mod kin;
mod reference;
mod search;
mod steps;
mod waits;

use std::collections::VecDeque;

use hero::proto::job::{JobId, JobStatus};

use steps::Walk;

use crate::support::{number, seeds};

/// The steps of a sequence. A failure prints the last ones.
struct Trace {
    seed: u64,
    done: u64,
    last: VecDeque<String>,
}

impl Trace {
    const SHOWN: usize = 12;

    fn new(seed: u64) -> Self {
        Self { seed, done: 0, last: VecDeque::with_capacity(Self::SHOWN) }
    }

    fn say(&mut self, step: String) {
        if self.last.len() == Self::SHOWN {
            self.last.pop_front();
        }
        self.last.push_back(step);
        self.done += 1;
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for step in &self.last {
                eprintln!("  {step}");
            }
            let Self { seed, done, .. } = self;
            eprintln!("broken after {done} steps; replay with SEED={seed} STEPS={}", *done + 1);
        }
    }
}

#[tokio::test]
async fn random_operations_agree_with_the_model() {
    let steps = number("STEPS").unwrap_or(400);
    for seed in seeds(number("SEQUENCES").unwrap_or(6)) {
        let (mut walk, mut trace) = (Walk::new(seed), Trace::new(seed));
        while trace.done < steps {
            step(&mut walk, &mut trace).await;
            if seed.is_multiple_of(2) && (trace.done.is_multiple_of(20) || trace.done == steps) {
                compare::events_agree(&walk.world, &walk.model);
            }
        }
    }
}

async fn step(walk: &mut Walk, trace: &mut Trace) {
    let before = compare::states(&walk.model);
    let said = walk.step().await;
    trace.say(said);
    for (id, now) in compare::states(&walk.model) {
        let then = before.get(&id).copied().unwrap_or(JobStatus::Created);
        assert!(then == now || then.may_become(now), "{id} went from {then} to {now}");
    }
    compare::check(&walk.world, &walk.model);
}

fn legal(id: &str) -> JobId {
    id.parse().expect("a legal id")
}
