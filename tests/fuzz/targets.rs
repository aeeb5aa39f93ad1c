//! The parsers, each as a function of bytes that panics where a property does not hold.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

use hero::config::{Config, CronRules};
use hero::proto::cron::{CrontabKind, Schedule, imported};
use hero::proto::env_file;
use hero::proto::job::{Job, JobId};
use hero::proto::message::{Control, Presence, Reply, SupervisorPresence};
use hero::proto::object::Query;
use hero::proto::queue::Queue;
use hero::proto::target::{ActorId, Group, ScriptType};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A message of an error is for people: one line, of bounded length.
fn is_message(text: &str) {
    assert!(!text.is_empty() && text.len() < 8192, "{} bytes: {text:.200}", text.len());
    assert!(!text.contains(char::is_control), "{text:?}");
}

/// A file of environment variables.
pub(super) fn env_file(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match env_file::parse(text) {
        Ok(variables) => {
            let legal = |name: &str| !name.is_empty() && !name.contains(['=', '\0', ' ', '\n']);
            assert!(variables.iter().all(|(name, value)| legal(name) && !value.contains('\0')));
        }
        Err(error) => {
            is_message(&error.to_string());
            assert!((1..=text.matches('\n').count() + 2).contains(&error.line));
        }
    }
}

/// Lines of the form NAME=VALUE are the fields.
pub(super) fn job_hash(input: &[u8]) {
    let id: JobId = "j1".parse().expect("legal");
    let fields = input.split(|byte| *byte == b'\n').map(|line| {
        let at = line.iter().position(|byte| *byte == b'=').unwrap_or(line.len());
        (&line[..at], line.get(at + 1..).unwrap_or_default())
    });
    match Job::from_hash(id.clone(), fields) {
        Ok(job) => {
            let _ = job.to_json();
            let printed = job.to_hash();
            let pairs = printed.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            let mut read = Job::from_hash(id, pairs).expect("a job reads back");
            // Its bytes need not be text, and so are not among the fields that are text.
            read.output.clone_from(&job.output);
            assert_eq!(read, job);
        }
        Err(error) => {
            is_message(&error.to_string());
            assert!(!error.field.is_empty());
        }
    }
}

/// An entry is the id of a job; the name of its queue stands in other entries.
pub(super) fn queue_entry(input: &[u8]) {
    fn reads_back<T: FromStr<Err: std::fmt::Display> + ToString>(text: &str) {
        match text.parse::<T>() {
            Ok(value) => assert_eq!(value.to_string(), text),
            Err(error) => is_message(&error.to_string()),
        }
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    reads_back::<JobId>(text);
    reads_back::<Queue>(text);
    reads_back::<ActorId>(text);
    reads_back::<ScriptType>(text);
    reads_back::<Group>(text);
    if let Err(error) = ActorId::from_unit(text) {
        is_message(&error.to_string());
    }
    if let Err(error) = Queue::all_named(text) {
        is_message(&error.to_string());
    }
}

pub(super) fn control_message(input: &[u8]) {
    match Control::parse(input) {
        Ok(message) => assert_eq!(Control::parse(message.to_json().as_bytes()), Ok(message)),
        Err(error) => is_message(&error.to_string()),
    }
    match Presence::parse(input) {
        Ok(presence) => assert_eq!(Presence::parse(presence.to_json().as_bytes()), Ok(presence)),
        Err(error) => is_message(&error.to_string()),
    }
    match SupervisorPresence::parse(input) {
        Ok(presence) => {
            assert_eq!(SupervisorPresence::parse(presence.to_json().as_bytes()), Ok(presence));
        }
        Err(error) => is_message(&error.to_string()),
    }
    if let Err(error) = Reply::parse(input) {
        is_message(&error.to_string());
    }
}

pub(super) fn configuration(input: &[u8]) {
    let read = |text: &str| Config::from_toml(Path::new("/etc/hero/hero.toml"), text);
    let Ok(text) = std::str::from_utf8(input) else { return };
    match read(text) {
        Ok(config) => {
            let printed = config.to_toml().expect("writable");
            // A password is not printed.
            if !printed.contains("***") {
                assert_eq!(read(&printed).expect("it reads back"), config);
            }
        }
        Err(error) => is_message(&error.to_string()),
    }
}

pub(super) fn crontab(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for kind in [CrontabKind::System, CrontabKind::User] {
        let mut taken = BTreeSet::new();
        let found = imported(&text, kind, &mut taken);
        assert_eq!(taken.len(), found.jobs.len(), "each has a name of its own");
        let tables: String = found.jobs.iter().map(|job| job.table("f", "UTC")).collect();
        let read = CronRules::default().problems(Path::new("f"), &tables);
        assert!(read.iter().all(|problem| problem.contains("cron.")), "{read:?}\n{tables}");
    }
}

pub(super) fn cron_line(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for zone in ["UTC", "Europe/Brussels"] {
        let zone = TimeZone::get(zone).unwrap_or(TimeZone::UTC);
        match Schedule::new(text, zone.clone()) {
            Ok(schedule) => {
                let begin = Timestamp::from_second(1_774_700_000).expect("in range");
                let next = schedule.next_after(begin);
                assert!(next.is_none_or(|next| next > begin));
                let again = Schedule::new(schedule.line(), zone).expect("it reads back");
                assert_eq!(again.next_after(begin), next);
            }
            Err(error) => is_message(&error),
        }
    }
}

pub(super) fn query(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Query::parse(text) {
        Ok(query) => {
            let body = serde_json::json!({"a": 1, "b": "x", "c": {"d": null}});
            let body = body.as_object().expect("an object");
            // The same question has the same answer.
            assert_eq!(query.means("x", body), query.means("x", body));
            assert!(query.fields().count() <= text.len());
        }
        Err(error) => {
            is_message(&error.to_string());
            assert!(error.column <= text.chars().count() + 1);
        }
    }
}
