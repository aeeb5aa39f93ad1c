//! The model test: random sequences of everything that can happen to a job, against a real Redis,
//! compared step by step with a pure model of the protocol.
//!
//! A failure prints its seed and its last steps; `HERO_SEED=… HERO_STEPS=…` replays it.
//! `HERO_SEEDS=…` runs more sequences.

#![expect(clippy::print_stderr, reason = "a sequence that fails must name its seed")]

mod compare;
mod model;
mod steps;

use std::collections::VecDeque;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use hero::proto::job::JobStatus;

use steps::Walk;

/// Steps that a failure shows.
const SHOWN: usize = 12;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn random_sequences_of_operations_keep_to_the_model() {
    let steps = number("HERO_STEPS").unwrap_or(400);
    match number("HERO_SEED") {
        Some(seed) => walk(seed, steps),
        None => (0..number("HERO_SEEDS").unwrap_or(6)).for_each(|_| walk(fastrand::u64(..), steps)),
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
             {story}replay with HERO_SEED={seed} HERO_STEPS={}",
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
