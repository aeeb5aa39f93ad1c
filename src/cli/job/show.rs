//! `hero job show`: prints every field of one job, its prerequisites and dependents as trees, and
//! the script last.

use std::fmt::Write;
use std::process::ExitCode;

use serde_json::Value;

use super::list::attempt as took;
use crate::cli::output;
use crate::cli::table::{TextTable, first_line};
use crate::cli::time::between;
use crate::client::{Branch, Client, TreeDirection};
use crate::error::Error;
use crate::proto::job::{Job, JobAttempt, JobId};
use crate::proto::text::escape_lines;

pub(in crate::cli) async fn run(
    client: &Client,
    id: &JobId,
    json: bool,
    raw: bool,
) -> Result<ExitCode, Error> {
    if json {
        output::json(&client.job_document(id).await?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let job = client.get_job(id).await?;
    let attempts = client.attempts(&job).await?;
    let mut trees = Vec::new();
    for (title, way) in WAYS {
        trees.push((title, client.tree(&job, way).await?));
    }
    let text = readable(&job, &trees, &attempts);
    output::text(&if raw { text } else { escape_lines(&text) })?;
    Ok(ExitCode::SUCCESS)
}

/// The trees, under the names of the fields that they replace.
const WAYS: [(&str, TreeDirection); 2] =
    [("prerequisites", TreeDirection::Prerequisites), ("dependents", TreeDirection::Dependents)];
/// Fields that the trees replace.
const IN_TREES: [&str; 5] =
    ["prerequisites", "after_any", "prerequisite_names", "dependents", "dependents_more"];

/// The one-line fields, in the order of a job's life.
const ORDER: [&str; 41] = [
    "id",
    "name",
    "status",
    "script_type",
    "group",
    "instance",
    "priority",
    "attempt",
    "retries",
    "backoff",
    "retry_if",
    "postponed",
    "crashes",
    "actor",
    "boot_id",
    "hostname",
    "created_at",
    "run_at",
    "started_at",
    "finished_at",
    "updated_at",
    "timeout",
    "retention",
    "output_overflow",
    "concurrent",
    "unique_key",
    "caller_id",
    "context_id",
    "args",
    "params",
    "env_vars",
    "log_path",
    "progress",
    "progress_text",
    "exit_code",
    "signal",
    "limit",
    "cpu_time",
    "memory_peak",
    "log_missing",
    "output_truncated",
];
/// Texts of any length, shown last.
const TEXTS: [&str; 3] = ["output", "error", "script"];

/// Returns a job as lines: its fields, its attempts, its prerequisites and dependents, and its texts.
pub(in crate::cli) fn readable(
    job: &Job,
    trees: &[(&str, Branch)],
    attempts: &[JobAttempt],
) -> String {
    let Value::Object(mut fields) = job.to_json() else { return String::new() };
    fields.remove("attempts");
    if !trees.is_empty() {
        fields.retain(|name, _| !IN_TREES.contains(&name.as_str()));
    }
    let known = ORDER.iter().filter_map(|name| fields.get_key_value(*name));
    let others = fields
        .iter()
        .filter(|(name, _)| !ORDER.contains(&name.as_str()) && !TEXTS.contains(&name.as_str()));
    let lines: Vec<(&String, String)> =
        known.chain(others).map(|(name, value)| (name, shown(value))).collect();
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for (name, value) in lines {
        let _ = writeln!(text, "{name:width$}  {}", indented(&value));
    }
    // The other fields tell an only attempt.
    if attempts.len() > 1 {
        let _ = write!(text, "\nattempts:\n{}", table(attempts));
    }
    for (title, root) in trees {
        if root.more > 0 || !root.branches.is_empty() {
            let _ = writeln!(text, "\n{title}:");
            write_branches(&mut text, root, 1);
        }
    }
    for name in TEXTS {
        if let Some(value) = fields.get(name) {
            let _ = write!(text, "\n{name}:\n  {}\n", indented(&shown(value)));
        }
    }
    text
}

fn table(attempts: &[JobAttempt]) -> String {
    let mut table = TextTable::new(&["STARTED", ">TOOK", "ENDED", "ACTOR", "HOST", "ERROR"]);
    for of in attempts {
        let times =
            of.started_at.parse().ok().zip(of.ended_at.as_ref().and_then(|at| at.parse().ok()));
        let error = of.error.as_deref().unwrap_or_default();
        table.row([
            of.started_at.clone(),
            times.map(|(began, ended)| took(between(began, ended))).unwrap_or_default(),
            of.ended.as_str().to_owned(),
            of.actor.clone().unwrap_or_default(),
            of.hostname.clone().unwrap_or_default(),
            first_line(error),
        ]);
    }
    table.render().lines().fold(String::new(), |text, line| text + "  " + line + "\n")
}

/// Writes one line per job, with its own branches indented below.
fn write_branches(text: &mut String, of: &Branch, level: usize) {
    let indent = "  ".repeat(level);
    for branch in &of.branches {
        let status = branch.status.map_or("gone".to_owned(), |status| status.to_string());
        let name = branch.name.as_deref().map(|name| format!("  {name}"));
        let _ = writeln!(text, "{indent}{}  {status}{}", branch.id, name.unwrap_or_default());
        write_branches(text, branch, level + 1);
    }
    if of.more > 0 {
        let _ = writeln!(text, "{indent}… and {} more", grouped(of.more));
    }
}

/// Formats a number with a space between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(' ');
        }
        shown.push(digit);
    }
    shown
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn indented(text: &str) -> String {
    text.trim_end_matches('\n').replace('\n', "\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fields_are_shown_with_the_script_last() {
        let mut job = Job::new("j1".parse().expect("legal"), "let a = 1;\na + 1\n");
        job.output = Some("\u{1b}[2J".into());
        job.extra.insert("note".to_owned(), "kept".to_owned());
        assert_eq!(
            escape_lines(&readable(&job, &[], &[])),
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
