//! The search through all states of the protocol's model, and what it finds if a part is left out.
//!
//! `FAULTS=kills,stops,losses,pauses,pops,bells` searches with so many of each; it takes as long as it takes.

use std::collections::BTreeSet;

use hero::proto::keys::Keys;
use hero::store::lua_sources;
use hero_model::{Bounds, Found, Part, Protocol, STEPS, Search, StandsFor};

const THREADS: usize = 2;
/// Two of three jobs come by plain commands; then only the one with a prerequisite does.
const TWO_RAW: [bool; 3] = [false, true, true];
const ONE_RAW: [bool; 3] = [false, true, false];

fn search(raw: [bool; 3], faults: [u8; 6], without: Option<Part>) -> Found {
    let [kills, stops, losses, pauses, pops, bells] = faults;
    let bounds = Bounds { kills, stops, losses, pauses, pops, bells };
    let found = Search { protocol: Protocol { raw, without }, bounds }.run(THREADS, None);
    eprintln!("{raw:?} {faults:?} {without:?}: {} states, {} deep", found.states, found.depth);
    found
}

fn faults_of(text: &str) -> [u8; 6] {
    let numbers: Vec<u8> =
        text.split(',').map(|number| number.parse().expect("a number")).collect();
    numbers.try_into().expect("FAULTS is six numbers: kills,stops,losses,pauses,pops,bells")
}

#[test]
fn the_protocol_keeps_its_rules_in_every_state_that_few_faults_can_reach() {
    let searches = match std::env::var("FAULTS") {
        Ok(text) => vec![(TWO_RAW, faults_of(&text)), ([true; 3], faults_of(&text))],
        Err(_) => vec![
            (TWO_RAW, [1, 0, 0, 0, 0, 0]),
            (TWO_RAW, [0, 1, 0, 0, 0, 0]),
            (TWO_RAW, [0, 0, 1, 0, 0, 0]),
            (TWO_RAW, [0, 0, 0, 0, 1, 0]),
            (TWO_RAW, [0, 0, 0, 0, 0, 1]),
            (ONE_RAW, [2, 0, 0, 0, 0, 0]),
            (ONE_RAW, [1, 0, 1, 0, 0, 0]),
            (ONE_RAW, [0, 1, 1, 0, 0, 0]),
            (ONE_RAW, [0, 0, 1, 1, 0, 0]),
            (ONE_RAW, [1, 0, 0, 0, 1, 0]),
        ],
    };
    let mut never: Option<BTreeSet<&str>> = None;
    for (raw, faults) in searches {
        let found = search(raw, faults, None);
        assert!(found.broken.is_empty(), "with faults {faults:?}: {:#?}", found.broken);
        let here: BTreeSet<&str> = found.never.into_iter().collect();
        never = Some(never.map_or(here.clone(), |before| &before & &here));
    }
    assert!(never.is_some_and(|never| never.is_empty()), "a search that shows nothing");
}

/// Each search ends at the first rule that is broken.
#[test]
fn without_any_part_of_the_protocol_a_rule_is_broken() {
    let one_end = "a job ends once";
    let all_end = "every job ends once faults stop";
    let expected = [
        (Part::FenceOfClaims, [0, 1, 0, 0, 0, 0], "a boot without a lease claims nothing"),
        (Part::FenceOfEnds, [0, 1, 0, 0, 0, 0], "only the owner of a job records its end"),
        (Part::FenceOfStates, [0, 1, 0, 0, 0, 0], "only the owner of a job keeps its state"),
        (Part::ReadyEntry, [0; 6], "a job starts after its prerequisite has finished"),
        (Part::PassOn, [0; 6], "a ready job beside an idle actor has a token"),
        (Part::LookAtStart, [0, 0, 0, 0, 0, 1], "who hears of pushes knows of each pushed id"),
        (Part::Adoption, [0; 6], all_end),
        (Part::Leftover, [0, 0, 0, 0, 1, 0], one_end),
        (Part::PopRepair, [0, 0, 0, 0, 1, 0], all_end),
        (Part::BootRepair, [1, 0, 0, 0, 0, 0], all_end),
    ];
    for (part, faults, rule) in expected {
        let found = search(TWO_RAW, faults, Some(part));
        assert!(
            found.broken.contains_key(rule),
            "without {part:?}, `{rule}` should be broken: {:#?}",
            found.broken
        );
    }
}

#[test]
fn every_step_of_the_model_names_a_script_that_exists() {
    let sources = lua_sources(&Keys::default());
    for (step, stands_for) in STEPS {
        if let StandsFor::Script(name) = stands_for {
            assert!(sources.iter().any(|source| source.name == name), "{step}: no {name}.lua");
        }
    }
}
