//! `hero job show`: every field of one job, the script last.

use std::fmt::Write;
use std::process::ExitCode;

use serde_json::Value;

use crate::cli::output;
use crate::cli::table::escape_lines;
use crate::client::Client;
use crate::error::Error;
use crate::proto::job::{Job, JobId};

pub(in crate::cli) async fn run(
    client: &Client,
    id: &JobId,
    json: bool,
) -> Result<ExitCode, Error> {
    let job = client.get_job(id).await?;
    output::print(json, || job.to_json(), || readable(&job))?;
    Ok(ExitCode::SUCCESS)
}

/// The fields in the order of a job's life, those of one line aligned, the long ones below.
const ORDER: [&str; 32] = [
    "id",
    "status",
    "script_type",
    "group",
    "instance",
    "priority",
    "attempt",
    "retries",
    "crashes",
    "actor",
    "boot_id",
    "created_at",
    "run_at",
    "started_at",
    "finished_at",
    "updated_at",
    "timeout",
    "retention",
    "concurrent",
    "unique_key",
    "caller_id",
    "context_id",
    "prerequisites",
    "after_any",
    "prerequisite_names",
    "dependents",
    "dependents_more",
    "env_vars",
    "log_path",
    "progress",
    "progress_text",
    "exit_code",
];
/// Texts of any length, shown last.
const TEXTS: [&str; 3] = ["output", "error", "script"];

fn readable(job: &Job) -> String {
    let Value::Object(fields) = job.to_json() else { return String::new() };
    let known = ORDER.iter().filter_map(|name| fields.get_key_value(*name));
    let others = fields
        .iter()
        .filter(|(name, _)| !ORDER.contains(&name.as_str()) && !TEXTS.contains(&name.as_str()));
    let lines: Vec<(&String, String)> =
        known.chain(others).map(|(name, value)| (name, shown(value))).collect();
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for (name, value) in lines {
        let _ = writeln!(text, "{:width$}  {}", escape_lines(name), indented(&value));
    }
    for name in TEXTS {
        if let Some(value) = fields.get(name) {
            let _ = write!(text, "\n{name}:\n  {}\n", indented(&shown(value)));
        }
    }
    text
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn indented(text: &str) -> String {
    escape_lines(text.trim_end_matches('\n')).replace('\n', "\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_comes_last_and_nothing_is_left_out() {
        let mut job = Job::new("j1".parse().expect("legal"), "let a = 1;\na + 1\n");
        job.output = Some("\u{1b}[2J".to_owned());
        job.extra.insert("note".to_owned(), "kept".to_owned());
        assert_eq!(
            readable(&job),
            "id        j1\n\
             status    created\n\
             priority  1\n\
             note      kept\n\
             \n\
             output:\n  \\u{1b}[2J\n\
             \n\
             script:\n  let a = 1;\n  a + 1\n"
        );
    }
}
