//! An example of the parameters of each method, for the document of all methods.

use serde_json::{Map, Value, json};

const JOB: &str = "6a9d2c1e-0f53-4b7c-9a1e-0d6f3b1c2a44";

/// Returns the parameters of an example, by their names; those that have a default may be left out.
pub(super) fn params(method: &str) -> Map<String, Value> {
    let example = match method.split_once('.') {
        Some(("actor", "list")) => json!({ "script_type": "python" }),
        Some(("machine", "list")) => json!({ "where": "release >= 12" }),
        Some(("machine", _)) => json!({ "machine": "web1" }),
        Some(("actor", _)) => json!({ "actor": "python-default-1" }),
        Some(("cron", name)) => cron(name),
        Some(("graph", name)) => graph(name),
        Some(("job", name)) => job(name),
        Some(("object", name)) => object(name),
        Some(("queue", name)) if name != "list" => json!({ "queue": "type:python:group:io" }),
        Some(("batch", _)) => {
            json!({ "jobs": [settings("40 + 2"), settings("6 * 7")], "name": "sums" })
        }
        Some(("dead", "list")) => json!({ "script_type": "python", "limit": 20 }),
        Some(("dead", _)) => json!({ "ids": [JOB] }),
        Some(("notify", "test")) => json!({ "name": "ops" }),
        Some(("session", "start")) => json!({ "script_type": "python", "idle": 120 }),
        Some(("session", "run")) => json!({ "id": JOB, "script": "rows = 7; rows * 6" }),
        Some(("session", "end")) => json!({ "id": JOB }),
        Some(("script", "check")) => json!({ "script": "let a = ;", "script_type": "osis" }),
        Some(("script", "publish")) => json!({
            "name": "greet", "script": "\"hello, \" + params.name", "settings": { "script_type": "osis" },
        }),
        Some(("script", "rollback")) => json!({ "name": "greet", "version": 1 }),
        Some(("script", "get" | "history" | "delete")) => json!({ "name": "greet" }),
        Some(("script", _)) => json!({ "name": "osis_" }),
        Some(_) => json!({}),
        None => older(method),
    };
    example.as_object().cloned().unwrap_or_default()
}

fn settings(script: &str) -> Value {
    json!({ "script": script, "script_type": "osis" })
}

fn cron(name: &str) -> Value {
    match name {
        "list" => json!({}),
        "add" => {
            json!({ "name": "report", "schedule": "30 3 * * *", "time_zone": "Europe/Brussels", "job": settings("40 + 2") })
        }
        "edit" => json!({ "name": "report", "overlap": "replace" }),
        "history" => json!({ "name": "report", "limit": 20 }),
        "backfill" => json!({ "name": "report", "since": "7d", "only_missing": true }),
        _ => json!({ "name": "report" }),
    }
}

fn graph(name: &str) -> Value {
    let jobs = json!([
        { "name": "one", "job": settings("41") },
        { "name": "sum", "job": settings("parse_int(INPUTS.one) + 1"), "after": ["one"] },
    ]);
    match name {
        "submit" => json!({ "jobs": jobs, "name": "sums" }),
        "list" => json!({ "limit": 20 }),
        "get" => json!({ "id": JOB, "outcome": "failed" }),
        "edit" => json!({ "id": JOB, "at_a_time": 8, "stop_after": "5%" }),
        "tell" => json!({ "id": JOB, "order": "go" }),
        "wait" => json!({ "id": JOB, "wait": 10 }),
        _ => json!({ "id": JOB }),
    }
}

fn job(name: &str) -> Value {
    match name {
        "submit" | "create" => json!({ "job": settings("40 + 2") }),
        "run" => json!({ "job": settings("40 + 2"), "wait": 10 }),
        "wait" => json!({ "id": JOB, "wait": 10 }),
        "list" => json!({ "status": "error", "script_type": "python", "limit": 20 }),
        "errors" => json!({ "script_type": "python", "ended_since": "24h" }),
        "log" => json!({ "id": JOB, "limit": 100 }),
        "file" => json!({ "id": JOB, "name": "report.txt" }),
        "clone" => json!({ "id": JOB, "changes": { "timeout": 60 } }),
        "edit" => json!({ "id": JOB, "priority": 0 }),
        "change_many" => {
            json!({ "change": "retry", "filter": { "error": "timeout" }, "dry_run": true })
        }
        "clear" => json!({ "yes": true }),
        "tell" => json!({ "id": JOB, "event": "approved", "data": { "by": "18:00" } }),
        _ => json!({ "id": JOB }),
    }
}

fn object(name: &str) -> Value {
    match name {
        "types" => json!({ "context": "work" }),
        "list" => json!({ "type": "person", "context": "work", "limit": 20 }),
        "find" => json!({ "type": "person", "query": "age > 30 order by name", "context": "work" }),
        "get" => json!({ "type": "person", "id": "ann", "context": "work" }),
        _ => json!({ "type": "person", "ids": ["ann"], "context": "work" }),
    }
}

fn older(method: &str) -> Value {
    match method {
        "create_job" | "run_job" | "run_job_and_await_result" => {
            json!({ "job": settings("40 + 2") })
        }
        "play" => json!({ "script": "40 + 2", "script_type": "osis", "wait": 10 }),
        "list_jobs" => json!({ "status": "started" }),
        "clear_all_jobs" => json!({ "yes": true }),
        "unsubscribe" => json!({ "subscription": "1" }),
        "whoami" => json!({}),
        _ => json!({ "id": JOB }),
    }
}
