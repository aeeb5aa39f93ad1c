//! `hero job show`: prints every field of one job, its prerequisites and dependents as trees, and
//! the script last.

use std::fmt::Write;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Show;
use super::list::attempt as took;
use super::open::page_of;
use crate::cli::api::{ApiMethods, job_of, read};
use crate::cli::job_notes::report_blocker;
use crate::cli::table::{TextTable, first_line};
use crate::cli::terminal_style::TerminalStyle;
use crate::cli::time::{between, brief, local_text, local_zone};
use crate::cli::{Global, output};
use crate::client::{Branch, JobTrees};
use crate::error::Error;
use crate::proto::error_kind::{FailureCause, failed_prerequisite};
use crate::proto::job::{
    AskedWait, FieldGroup, FieldUnit, JOB_FIELDS, Job, JobAttempt, JobField, JobSignature,
    JobStatus, TREES, WAITS_FOR,
};
use crate::proto::pattern::matches_name;
use crate::proto::text::{escape_lines, grouped};
use crate::proto::units::readable_size;

/// Shows a job, or only a dead letter.
pub(in crate::cli) async fn run(
    api: &ApiMethods,
    of: &Show,
    dead: bool,
    global: &Global,
) -> Result<(), Error> {
    let document = api.of_job("job.get", &of.id, json!({ "trees": true, "dead": dead })).await?;
    if global.json {
        return output::json(&document);
    }
    let attempts: Vec<JobAttempt> = part(&document, "attempts")?.unwrap_or_default();
    let trees: Option<JobTrees> = part(&document, TREES)?;
    let look = global.look();
    // Escaped text has no colours: they come last.
    let job = without_secrets(job_of(&document)?, &global.config()?.log.redact);
    let mut text = readable(&job, trees.as_ref(), &attempts, look);
    if let Some(page) = page_of(&job.id, global.config()?) {
        let _ = write!(text, "\npage:\n  {page}\n");
    }
    if of.raw {
        output::unchanged(coloured(&text, &job, look).as_bytes())?;
    } else {
        output::text(&coloured(&escape_lines(&text), &job, look))?;
    }
    if let Some(reason) = document[WAITS_FOR].as_str() {
        report_blocker(job.id.as_str(), reason);
    }
    Ok(())
}

fn part<T: DeserializeOwned>(document: &Value, name: &str) -> Result<Option<T>, Error> {
    document.get(name).map(|value| read("job.get", value)).transpose()
}

/// Returns the job as a person sees it, without the values of variables with certain names.
pub(in crate::cli) fn without_secrets(mut job: Job, patterns: &[String]) -> Job {
    for (name, value) in &mut job.spec.env_vars {
        if matches_name(patterns, name) {
            "***".clone_into(value);
        }
    }
    job
}

const IN_TREES: [&str; 5] =
    ["prerequisites", "after_any", "prerequisite_names", "dependents", "dependents_more"];

/// Returns a job as lines: its fields, its attempts, its prerequisites and dependents, and its texts.
pub(in crate::cli) fn readable(
    job: &Job,
    trees: Option<&JobTrees>,
    attempts: &[JobAttempt],
    look: TerminalStyle,
) -> String {
    let Value::Object(mut fields) = job.to_json() else { return String::new() };
    let state = with_stopper(job, &mut fields);
    fields.insert("status".to_owned(), state.into());
    fields.remove("attempts");
    if trees.is_some() {
        fields.retain(|name, _| !IN_TREES.contains(&name.as_str()));
    }
    let known = JOB_FIELDS.iter().filter(|field| field.group != FieldGroup::Texts);
    let known = known.filter_map(|field| fields.get_key_value(field.name));
    let others = fields.iter().filter(|(name, _)| JobField::of(name).is_none());
    let lines: Vec<(&String, String)> =
        known.chain(others).map(|(name, value)| (name, with_unit(name, value))).collect();
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for (name, value) in lines {
        let _ = writeln!(text, "{name:width$}  {}", indented(&value));
    }
    // The other fields tell an only attempt.
    if attempts.len() > 1 {
        let _ = write!(text, "\nattempts:\n{}", table(attempts, look));
    }
    let roots =
        trees.map(|of| [("prerequisites", &of.prerequisites), ("dependents", &of.dependents)]);
    for (title, root) in roots.into_iter().flatten().filter(|(_, root)| !root.is_leaf()) {
        let _ = writeln!(text, "\n{title}:");
        write_branches(&mut text, root, 1);
    }
    for JobField { name, .. } in JOB_FIELDS.iter().filter(|of| of.group == FieldGroup::Texts) {
        if let Some(value) = fields.get(*name) {
            let value = match *name {
                "error" => with_prerequisite(&shown(value), trees),
                _ => shown(value),
            };
            let _ = write!(text, "\n{name}:\n  {}\n", indented(&value));
        }
    }
    text
}

/// Returns an error with the name of the job that it tells of, if a tree has it.
fn with_prerequisite(error: &str, trees: Option<&JobTrees>) -> String {
    let Some(id) = failed_prerequisite(error) else { return error.to_owned() };
    let mut others = trees.iter().flat_map(|of| &of.prerequisites.branches);
    match others.find(|other| other.id == id).and_then(|other| other.name.as_deref()) {
        Some(name) => format!("{error} ({name})"),
        None => error.to_owned(),
    }
}

/// Returns the state of a job, with what its script waits for, or the person or program that stopped it, whose field
/// it takes away.
fn with_stopper(job: &Job, fields: &mut Map<String, Value>) -> String {
    let word = state(job);
    let said = match job.status {
        JobStatus::Error if word != job.status.as_str() => "stopped by",
        JobStatus::Started => "told to stop by",
        JobStatus::Scheduled => {
            let wait = job.wait.as_deref().and_then(AskedWait::of_field);
            let wait = wait.map(|wait| format!(", waits for {}", wait.words()));
            return format!("{word}{}", wait.unwrap_or_default());
        }
        _ => return word.to_owned(),
    };
    match fields.remove("stopped_by") {
        Some(by) => format!("{word}, {said} {}", shown(&by)),
        None => word.to_owned(),
    }
}

/// Returns the word for the state of a job in lists: a stopped job is cancelled.
pub(in crate::cli) fn state(job: &Job) -> &'static str {
    let error = job.error.as_deref().filter(|_| job.status == JobStatus::Error);
    let intended = error.and_then(|error| FailureCause::of(error).intended());
    intended.unwrap_or(job.status.as_str())
}

fn table(attempts: &[JobAttempt], look: TerminalStyle) -> String {
    let took = |of: &JobAttempt| {
        let ended = of.ended_at.as_ref()?.parse().ok()?;
        Some(took(between(of.started_at.parse().ok()?, ended)))
    };
    let table = TextTable::of(attempts)
        .column("STARTED", &|of| local_text(&of.started_at, &local_zone()))
        .column(">TOOK", &|of| took(of).unwrap_or_default())
        .column("ENDED", &|of| of.ended.as_str().to_owned())
        .column("?~ACTOR", &|of| of.actor.clone().unwrap_or_default())
        .column("?~HOST", &|of| of.hostname.clone().unwrap_or_default())
        .column("!ERROR", &|of| first_line(of.error.as_deref().unwrap_or_default()));
    table.indented(TerminalStyle { colour: false, ..look })
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
        let _ = writeln!(text, "{indent}… and {} more", grouped(&of.more.to_string()));
    }
}

/// Returns the text with the word of its state in colour.
fn coloured(text: &str, job: &Job, look: TerminalStyle) -> String {
    let word = state(job);
    let is_state = |line: &str| {
        let value = line.strip_prefix("status").map(str::trim_start);
        value.is_some_and(|value| value.split(',').next() == Some(word))
    };
    let Some(line) = text.lines().find(|line| is_state(line)) else { return text.to_owned() };
    let shown = line.replacen(word, &look.state(word, word), 1);
    text.replacen(line, &shown, 1)
}

/// Returns the value of a field, seconds and bytes with their unit.
pub(in crate::cli) fn with_unit(name: &str, value: &Value) -> String {
    let seconds = || value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match JobField::of(name).map_or(FieldUnit::None, |field| field.unit) {
        FieldUnit::Seconds => match seconds() {
            Some(time) if time.subsec_nanos() == 0 && time.as_secs() < 60 => {
                format!("{}s", time.as_secs())
            }
            Some(time) => brief(time),
            None => shown(value),
        },
        FieldUnit::Bytes => value.as_u64().map_or_else(|| shown(value), readable_size),
        FieldUnit::Share => match value.as_f64() {
            Some(part) => format!("{:.0} %", part * 100.0),
            None => shown(value),
        },
        FieldUnit::None if name == "signature" => {
            shown(value).parse().map_or_else(|_| shown(value), |of: JobSignature| of.told())
        }
        FieldUnit::Time => local_text(&shown(value), &local_zone()),
        FieldUnit::None => shown(value),
    }
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
    fn seconds_and_bytes_have_their_units() {
        for (name, value, shown) in [
            ("timeout", json!(30.0), "30s"),
            ("retention", json!(604_800), "7d"),
            ("cpu_time", json!(0.25), "250ms"),
            ("memory_peak", json!(10_380_902), "9.9 MiB"),
            ("memory_peak", json!(2_147_483_648_u64), "2.0 GiB"),
            ("progress", json!(0.5), "50 %"),
            ("retries", json!(3), "3"),
            ("timeout", json!("odd"), "odd"),
        ] {
            assert_eq!(with_unit(name, &value), shown, "{name}");
        }
    }

    #[test]
    fn job_that_was_stopped_is_cancelled_as_in_lists() {
        let mut job = Job::new("j1".parse().expect("legal"), "1");
        (job.status, job.error) = (JobStatus::Error, Some("stopped".to_owned()));
        let text = readable(&job, None, &[], TerminalStyle::PLAIN);
        assert!(text.contains("status    cancelled\n"), "{text}");
        job.extra.insert("stopped_by".to_owned(), "ann (uid 1000) from web-1".to_owned());
        let text = readable(&job, None, &[], TerminalStyle::PLAIN);
        let said = "status    cancelled, stopped by ann (uid 1000) from web-1\n";
        assert!(text.contains(said) && !text.contains("stopped_by"), "{text}");
        let look = TerminalStyle { columns: None, colour: true };
        assert!(coloured(&text, &job, look).contains("\u{1b}[0m, stopped by ann"), "{text}");
        (job.status, job.error) = (JobStatus::Started, None);
        let text = readable(&job, None, &[], TerminalStyle::PLAIN);
        assert!(text.contains("started, told to stop by ann"), "{text}");
    }

    #[test]
    fn variables_with_names_of_secrets_are_masked() {
        let mut job = Job::new("j1".parse().expect("legal"), "1");
        for name in ["API_TOKEN", "api_token", "NAME"] {
            job.spec.env_vars.insert(name.to_owned(), "value".to_owned());
        }
        let job = without_secrets(job, &["*_TOKEN".to_owned()]);
        let shown = readable(&job, None, &[], TerminalStyle::PLAIN);
        assert!(
            shown.contains(r#"{"API_TOKEN":"***","NAME":"value","api_token":"***"}"#),
            "{shown}"
        );
    }

    #[test]
    fn all_fields_are_shown_with_the_script_last() {
        let mut job = Job::new("j1".parse().expect("legal"), "let a = 1;\na + 1\n");
        job.output = Some("\u{1b}[2J".into());
        job.extra.insert("note".to_owned(), "kept".to_owned());
        assert_eq!(
            escape_lines(&readable(&job, None, &[], TerminalStyle::PLAIN)),
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
