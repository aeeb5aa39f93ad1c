//! When lines of cron fire on the nights when the clock changes, compared with another implementation: a loop over
//! minutes in Python, with the zones of its standard library.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use hero::proto::cron::Schedule;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/cron_times.py");

/// Zones that change by an hour or half of one, at 2, at 3, at midnight and at a quarter to 3.
const ZONES: [&str; 8] = [
    "Europe/Brussels",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "America/Santiago",
    "Asia/Beirut",
    "Atlantic/Azores",
    "Africa/Casablanca",
];

const LINES: [&str; 40] = [
    "30 2 * * *",
    "0 2 * * *",
    "0 3 * * *",
    "59 1 * * *",
    "30 1 * * *",
    "0 0 * * *",
    "30 0 * * *",
    "15 3 * * *",
    "45 2 * * *",
    "30 2,14 * * *",
    "0,30 2 * * *",
    "0,30 2,3 * * *",
    "0-59 2 * * *",
    "0-59/20 1-3 * * *",
    "30 1-3 * * *",
    "30 0-23 * * *",
    "0 0-23/2 * * *",
    "10,20,30 0,1,2,3 * * *",
    "0 0,12 * * *",
    "5 0-4/2 * * *",
    "0 2 * * 0",
    "30 2 29 * *",
    "30 2 25 10 *",
    "0 2 1-7 * 0",
    "30 23 * * *",
    "* * * * *",
    "*/30 * * * *",
    "*/20 * * * *",
    "0 * * * *",
    "30 * * * *",
    "15,45 * * * *",
    "0-30 * * * *",
    "*/30 2 * * *",
    "* 2 * * *",
    "*/7 1-3 * * *",
    "0 */2 * * *",
    "30 */3 * * *",
    "20 */4 * * *",
    "*/15 2 * * 0",
    "45 * 1-31/2 * *",
];

/// Asks the other implementation.
#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
fn computed(year: i16) -> Vec<(String, String, i64, i64, Vec<i64>)> {
    let mut python = Command::new("python3");
    let mut python = python
        .arg(PROGRAM)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let asked = json!({ "zones": ZONES, "lines": LINES.as_slice(), "year": year }).to_string();
    python.stdin.take().expect("piped").write_all(asked.as_bytes()).expect("written");
    let ran = python.wait_with_output().expect("it runs");
    assert!(ran.status.success());
    serde_json::from_slice(&ran.stdout).expect("its answers")
}

#[test]
fn lines_fire_as_another_implementation_computes_when_the_clock_changes() {
    let answers = computed(2026);
    let zones: BTreeSet<&str> = answers.iter().map(|answer| answer.0.as_str()).collect();
    assert_eq!(zones.len(), ZONES.len(), "each zone has a change");
    assert!(answers.len() >= 2 * ZONES.len() * LINES.len(), "{}", answers.len());
    for (zone, line, begin, end, times) in &answers {
        let of_zone = TimeZone::get(zone).expect("a zone");
        let schedule = Schedule::new(line, of_zone).expect(line);
        let at = |second: i64| Timestamp::from_second(second).expect("in range");
        let fired = std::iter::successors(Some(at(*begin)), |last| schedule.next_after(*last));
        let fired: Vec<i64> =
            fired.skip(1).map(Timestamp::as_second).take_while(|second| second <= end).collect();
        let differs = fired.iter().zip(times).find(|(a, b)| a != b).map(|(a, b)| (at(*a), at(*b)));
        assert_eq!(fired.len(), times.len(), "{line} in {zone} from {}: {differs:?}", at(*begin));
        assert_eq!(differs, None, "{line} in {zone}");
    }
}
