//! The rule that a script of Redis that changes jobs asks for the rights of its caller, unless it is a duty of the daemon: what is
//! checked is then the job that is changed.

use regex::Regex;

const FOLDER: &str = "src/store/scripts/";
/// The scripts that nobody calls for a caller: the daemon's duties, what an attempt does to its own job (it holds the
/// fence), backups, and the purge of a queue, which needs the rights to all of its jobs.
const DUTIES: [&str; 28] = [
    "adopt",
    "backfill",
    "claim",
    "commit",
    "confirm",
    "cron_ran",
    "dispatch_due",
    "expire_jobs",
    "fall_back",
    "fan_out",
    "find_late",
    "finish",
    "fire",
    "keep_state",
    "next_call",
    "progress",
    "purge",
    "recover_boots",
    "recover_foreign",
    "recover_legacy",
    "recover_pops",
    "requeue",
    "restore_job",
    "restore_place",
    "settle",
    "shorten_waits",
    "submit_children",
    "take_tasks",
];
/// A change of the hash of a job, or a call of the shared files that makes one.
const CHANGE: &str =
    r"'(HSET|HDEL|DEL|UNLINK|HINCRBY)', JOB|\b(end_job|stop_job|correct|submit_jobs)\(";
/// The functions that compare the rights of the caller with the job that is found.
const ASKS: &str = r"\bcaller_may(_see|_change_graph)?\b|\bRIGHTS\b";

/// Returns one fault for each script that breaks the rule.
pub(super) fn faults(files: &[(String, String)]) -> Vec<String> {
    let [change, asks] = [CHANGE, ASKS].map(|text| Regex::new(text).expect("a valid expression"));
    let mut faults = Vec::new();
    for (path, text) in files {
        let Some(name) = path.strip_prefix(FOLDER).and_then(|rest| rest.strip_suffix(".lua"))
        else {
            continue;
        };
        let code: Vec<&str> =
            text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
        let code = code.join("\n");
        let is_duty = DUTIES.contains(&name);
        if !name.contains('/') && change.is_match(&code) && !is_duty && !asks.is_match(&code) {
            faults.push(format!(
                "{path}: changes jobs and does not ask what its caller may: need `caller` and ask `caller_may`, or \
                 name it among the duties in tests/tidy/rights.rs"
            ));
        }
        if is_duty && (!change.is_match(&code) || asks.is_match(&code)) {
            faults
                .push(super::unneeded(path, "a script that changes jobs asks what its caller may"));
        }
    }
    faults
}

#[test]
fn script_that_changes_jobs_of_callers_and_asks_no_rights_is_a_fault() {
    for (name, text, is_fault) in [
        ("drop", "redis.call('DEL', JOB .. ARGV[1])", true),
        ("drop", "if caller_may('change', id) then redis.call('DEL', JOB .. id) end", false),
        ("drop", "-- caller_may\nend_job(id)", true),
        ("look", "return redis.call('HGET', JOB .. ARGV[1], 'status')", false),
        ("claim", "redis.call('HSET', JOB .. id, 'status', 'started')", false),
        ("claim", "return 1", true),
    ] {
        let said = faults(&[(format!("{FOLDER}{name}.lua"), text.to_owned())]);
        assert_eq!(said.len(), usize::from(is_fault), "{name}: {text}: {said:?}");
    }
}
