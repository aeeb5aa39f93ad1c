//! The search through all states of the protocol's model, and what it finds if a part is left out.
//!
//! `FAULTS=kills,stops,losses,pauses,pops,bells` searches with so many of each; it takes as long as it takes.

use std::collections::BTreeSet;

use hero::proto::keys::Keys;
use hero::store::lua_sources;
use hero_model::{Bounds, Found, Part, Protocol, STEPS, Search, StandsFor, Window};

const THREADS: usize = 2;
/// The sights of searches of graphs alone.
const OF_GRAPHS: [&str; 3] =
    ["a job ends with its graph", "a job with an expression runs", "a window holds a job"];

/// Jobs of which some come by plain commands, without a window.
fn pushed(raw: [bool; 3]) -> Protocol {
    Protocol { raw, ordered: true, selective: false, window: None, without: None }
}

/// Jobs of one graph. The last has `where`.
fn windowed(at_a_time: Option<usize>, stop_after: Option<usize>) -> Protocol {
    let window = Some(Window { at_a_time, stop_after });
    Protocol { raw: [false; 3], ordered: false, selective: true, window, without: None }
}

fn search(protocol: &Protocol, faults: [u8; 6]) -> Found {
    let [kills, stops, losses, pauses, pops, bells] = faults;
    // One job of a graph fails, if that stops the graph.
    let failures = u8::from(protocol.window.is_some_and(|window| window.stop_after.is_some()));
    let bounds = Bounds { kills, stops, losses, pauses, pops, bells, failures };
    let found = Search { protocol: protocol.clone(), bounds }.run(THREADS, None);
    eprintln!("{protocol:?} {faults:?}: {} states, {} deep", found.states, found.depth);
    found
}

/// Asserts that no search breaks a rule. Returns what none of them has seen.
fn search_all(searches: &[(Protocol, [u8; 6])]) -> BTreeSet<&'static str> {
    let never = searches.iter().map(|(protocol, faults)| {
        let found = search(protocol, *faults);
        assert!(found.broken.is_empty(), "{protocol:?} {faults:?}: {:#?}", found.broken);
        found.never.into_iter().collect::<BTreeSet<_>>()
    });
    never.reduce(|before, here| &before & &here).expect("a search")
}

fn faults_of(text: &str) -> [u8; 6] {
    let numbers: Vec<u8> =
        text.split(',').map(|number| number.parse().expect("a number")).collect();
    numbers.try_into().expect("FAULTS is six numbers: kills,stops,losses,pauses,pops,bells")
}

#[test]
fn the_protocol_keeps_its_rules_in_every_state_that_few_faults_can_reach() {
    let (two_raw, one_raw) = (pushed([false, true, true]), pushed([false, true, false]));
    let searches = match std::env::var("FAULTS") {
        Ok(text) => vec![(two_raw, faults_of(&text)), (pushed([true; 3]), faults_of(&text))],
        Err(_) => vec![
            (two_raw.clone(), [1, 0, 0, 0, 0, 0]),
            (two_raw.clone(), [0, 1, 0, 0, 0, 0]),
            (two_raw.clone(), [0, 0, 1, 0, 0, 0]),
            (two_raw.clone(), [0, 0, 0, 0, 1, 0]),
            (two_raw, [0, 0, 0, 0, 0, 1]),
            (one_raw.clone(), [2, 0, 0, 0, 0, 0]),
            (one_raw.clone(), [1, 0, 1, 0, 0, 0]),
            (one_raw.clone(), [0, 1, 1, 0, 0, 0]),
            (one_raw.clone(), [0, 0, 1, 1, 0, 0]),
            (one_raw, [1, 0, 0, 0, 1, 0]),
        ],
    };
    assert_eq!(search_all(&searches), BTreeSet::from(OF_GRAPHS), "a search that shows nothing");
}

#[test]
fn the_window_of_a_graph_and_labels_hold_in_every_state_that_few_faults_can_reach() {
    let one_at_a_time = windowed(Some(1), Some(1));
    let searches = match std::env::var("FAULTS") {
        Ok(text) => vec![(one_at_a_time, faults_of(&text))],
        Err(_) => vec![
            (one_at_a_time.clone(), [1, 0, 0, 0, 0, 0]),
            (one_at_a_time.clone(), [0, 1, 0, 0, 0, 0]),
            (one_at_a_time.clone(), [0, 0, 1, 0, 0, 0]),
            (Protocol { selective: false, ..one_at_a_time.clone() }, [0, 0, 0, 0, 1, 0]),
            (Protocol { ordered: true, ..one_at_a_time }, [1, 0, 0, 0, 0, 0]),
            (windowed(Some(2), None), [1, 0, 0, 0, 0, 0]),
            (Protocol { selective: false, ..windowed(None, Some(1)) }, [2, 0, 0, 0, 0, 0]),
        ],
    };
    assert_eq!(search_all(&searches), BTreeSet::new(), "a search that shows nothing");
}

/// Each search ends at the first rule that is broken.
#[test]
fn without_any_part_of_the_protocol_a_rule_is_broken() {
    let one_end = "a job ends once";
    let all_end = "every job ends once faults stop";
    let raw = pushed([false, true, true]);
    let (one_at_a_time, stops) = (windowed(Some(1), None), windowed(None, Some(1)));
    let expected = [
        (&raw, Part::FenceOfClaims, [0, 1, 0, 0, 0, 0], "a boot without a lease claims nothing"),
        (&raw, Part::FenceOfEnds, [0, 1, 0, 0, 0, 0], "only the owner of a job records its end"),
        (&raw, Part::FenceOfStates, [0, 1, 0, 0, 0, 0], "only the owner of a job keeps its state"),
        (&raw, Part::ReadyEntry, [0; 6], "a job starts after its prerequisite has finished"),
        (&raw, Part::PassOn, [0; 6], "a ready job beside an idle actor has a token"),
        (
            &raw,
            Part::LookAtStart,
            [0, 0, 0, 0, 0, 1],
            "who hears of pushes knows of each pushed id",
        ),
        (&raw, Part::Adoption, [0; 6], all_end),
        (&raw, Part::Leftover, [0, 0, 0, 0, 1, 0], one_end),
        (&raw, Part::PopRepair, [0, 0, 0, 0, 1, 0], all_end),
        (&raw, Part::BootRepair, [1, 0, 0, 0, 0, 0], all_end),
        (&one_at_a_time, Part::Slots, [0; 6], "no more jobs of a graph run than its window lets"),
        (&one_at_a_time, Part::Release, [0; 6], all_end),
        (
            &stops,
            Part::StopOfClaims,
            [0; 6],
            "no job starts after the failures that stop its graph",
        ),
        (&stops, Part::StopAgain, [1, 0, 0, 0, 0, 0], all_end),
        (&stops, Part::Labels, [0; 6], "an actor claims no job that its labels do not match"),
    ];
    for (protocol, part, faults, rule) in expected {
        let found = search(&Protocol { without: Some(part), ..protocol.clone() }, faults);
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
