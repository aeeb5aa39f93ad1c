//! The model test: random sequences of operations on jobs, on a real Redis, compared step by step
//! with a pure model of the protocol. `search` goes through all states of a smaller model.
//!
//! A failure prints its seed and its last steps; `SEED=… STEPS=…` replays it, and
//! `SEED=random SEQUENCES=…` runs other sequences.

#![expect(clippy::print_stderr, reason = "a sequence that fails must name its seed")]

mod compare;
mod kin;
mod reference;
mod search;
mod steps;
mod waits;

use std::collections::VecDeque;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use hero::proto::job::JobStatus;

use steps::Walk;

use crate::support::{number, seeds};

/// Steps that a failure shows.
const SHOWN: usize = 12;

#[test]
fn random_operations_agree_with_the_model() {
    let steps = number("STEPS").unwrap_or(400);
    for seed in seeds(number("SEQUENCES").unwrap_or(6)) {
        walk(seed, steps);
    }
}

/// One sequence.
fn walk(seed: u64, steps: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut trace = VecDeque::with_capacity(SHOWN);
    let mut done = 0;
    let walked = catch_unwind(AssertUnwindSafe(|| {
        runtime.expect("a runtime").block_on(async {
            let mut walk = Walk::new(seed);
            while done < steps {
                step(&mut walk, &mut trace).await;
                done += 1;
                if seed.is_multiple_of(2) && (done % 20 == 0 || done == steps) {
                    compare::events_agree(&walk.world, &walk.model);
                }
            }
        });
    }));
    if let Err(panic) = walked {
        let mut story = String::new();
        for said in &trace {
            let _ = writeln!(story, "  {said}");
        }
        eprintln!(
            "step {done} breaks the model; the steps before it, the last perhaps among them:\n\
             {story}replay with SEED={seed} STEPS={}",
            done + 1
        );
        resume_unwind(panic);
    }
}

async fn step(walk: &mut Walk, trace: &mut VecDeque<String>) {
    let before = compare::states(&walk.model);
    let said = walk.step().await;
    if trace.len() == SHOWN {
        trace.pop_front();
    }
    trace.push_back(said);
    for (id, now) in compare::states(&walk.model) {
        let then = before.get(&id).copied().unwrap_or(JobStatus::Created);
        assert!(then == now || then.may_become(now), "{id} went from {then} to {now}");
    }
    compare::check(&walk.world, &walk.model);
}
