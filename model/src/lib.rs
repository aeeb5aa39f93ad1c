//! A model of the protocol by which jobs are claimed, run, ended and recovered. A search goes through all
//! states that any order of its steps can reach, within bounds on the number of faults.
//!
//! Each step stands for one Lua script, or for what a process or a program does by itself: [`STEPS`].

mod canonical;
mod rules;
mod scripts;
mod state;
mod steps;
mod windows;

use std::collections::BTreeMap;
use std::time::Duration;

use stateright::{Checker, HasDiscoveries, Model, Property};

pub use scripts::{Part, Protocol, Window};
pub use state::{Bounds, State};
pub use steps::{STEPS, StandsFor, Step};

/// A search.
#[derive(Debug, Clone)]
pub struct Search {
    /// The jobs, and the part of the protocol that is left out.
    pub protocol: Protocol,
    /// The faults.
    pub bounds: Bounds,
}

/// The result of a search.
#[derive(Debug)]
pub struct Found {
    /// The number of different states.
    pub states: usize,
    /// The most steps to a state.
    pub depth: usize,
    /// The names of the rules that do not hold, each with steps that break it.
    pub broken: BTreeMap<&'static str, String>,
    /// The names of what was never seen, although it must be possible.
    pub never: Vec<&'static str>,
}

impl Model for Search {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self.bounds, self.protocol.selective)]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        self.protocol.steps(state, steps);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        self.protocol.take_step(&mut next, step);
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let rules = rules::RULES.iter().map(|(name, rule)| Property::always(name, *rule));
        let sights = rules::SIGHTS.iter().map(|(name, sight)| Property::sometimes(name, *sight));
        rules.chain(sights).collect()
    }
}

impl Search {
    /// Goes through all states, with the shortest ways first. It ends at the first rule that is broken,
    /// or after a time, if one is given: then the rest was not searched.
    pub fn run(self, threads: usize, most: Option<Duration>) -> Found {
        let mut checker = self.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
        if let Some(most) = most {
            checker = checker.timeout(most);
        }
        let checker = checker.spawn_bfs().join();
        let discoveries = checker.discoveries();
        let broken = rules::RULES.iter().filter_map(|(name, _)| {
            let path = discoveries.get(name)?.clone();
            let steps: Vec<String> =
                path.into_actions().iter().map(|step| format!("{step:?}")).collect();
            Some((*name, steps.join(", ")))
        });
        let never = rules::SIGHTS.iter().map(|(name, _)| *name);
        Found {
            states: checker.unique_state_count(),
            depth: checker.max_depth(),
            broken: broken.collect(),
            never: never.filter(|name| !discoveries.contains_key(name)).collect(),
        }
    }
}
