//! `hero exec --explain`: what the sandbox of a script allows on this machine, before it runs.

use std::borrow::Borrow;
use std::path::PathBuf;

use super::input::bad;
use super::output;
use crate::client::{Client, ClientError};
use crate::config::{Config, EngineKind, TypeConfig, format_duration, format_size};
use crate::engine::process::{refusals_in, variable_names};
use crate::error::Error;
use crate::proto::job::{Job, JobId};
use crate::proto::target::ScriptType;
use crate::sandbox::Sandbox;
use crate::store::LogLine;

/// The start of the lines about refusals in the log of a job.
const REFUSAL: &str = "sandbox: ";
/// The last lines of a log among which they are.
const LOG_LINES_MAX: usize = 1000;
const STDERR: u8 = 2;

type Row = (&'static str, String);

/// Prints to standard error what a job may do, by the configuration of this machine.
pub(super) fn print_allowed(config: &Config, job: &Job) -> Result<(), Error> {
    let Some(name) = &job.spec.script_type else { return Ok(()) };
    let Some(of_type) = config.types.get(name) else { return Ok(()) };
    let mut rows = match of_type.engine {
        EngineKind::Command => of_command(name, of_type, job)?,
        EngineKind::Sal => of_sal(config, of_type),
        EngineKind::Osis | EngineKind::HeroScript => {
            let closed = "none: the language has no functions for them".to_owned();
            vec![("files, programs, network", closed), limits(of_type)]
        }
    };
    let timeout = job.spec.timeout.unwrap_or(config.job.timeout);
    rows.push(("timeout", format_duration(timeout)));
    rows.push(("environment", environment(of_type, job)));
    rows.push(("secrets", secrets(config, name)));
    output::note(&format!("hero: what type {name} allows on this machine"));
    let most = rows.iter().map(|(subject, _)| subject.len()).max().unwrap_or_default();
    for (subject, text) in rows {
        output::note(&format!("  {subject:most$}  {text}"));
    }
    Ok(())
}

fn of_command(name: &ScriptType, of_type: &TypeConfig, job: &Job) -> Result<Vec<Row>, Error> {
    let asked = job.spec.asked_bounds();
    let config = of_type.sandbox.for_job(name, &asked).map_err(bad)?;
    let mut rows = Sandbox::of_type(&config).description();
    if config.enabled {
        rows.push(("limits", config.limits_in_force()));
    }
    Ok(rows)
}

fn of_sal(config: &Config, of_type: &TypeConfig) -> Vec<Row> {
    let sal = &config.sal;
    let folders = |list: &[PathBuf]| {
        named(&list.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(), "none")
    };
    let on = |is_on: bool| if is_on { "allowed" } else { "none" }.to_owned();
    let commands = Sandbox::of_sal(sal).description();
    let commands = commands.into_iter().map(|(subject, text)| match subject {
        "sandbox" => ("sandbox of commands", text),
        other => (other, text),
    });
    let own = vec![
        ("functions read", folders(&sal.read)),
        ("functions write", folders(&sal.write)),
        ("functions start", on(sal.run)),
        ("functions connect", on(sal.network)),
    ];
    own.into_iter().chain(commands).chain([limits(of_type)]).collect()
}

fn limits(of_type: &TypeConfig) -> Row {
    let limits = &of_type.limits;
    let operations = Some(limits.operations).filter(|count| *count > 0);
    let operations = operations.map(|count| format!("operations {count}, ")).unwrap_or_default();
    let (memory, string) = (format_size(limits.memory), format_size(limits.string_size_max));
    let (depth, array, map) = (limits.depth, limits.array_len_max, limits.map_len_max);
    let text = format!(
        "{operations}memory {memory}, depth {depth}, string_size_max {string}, array_len_max {array}, \
         map_len_max {map}"
    );
    ("limits", text)
}

/// Returns what the lines of a log say that the sandbox of a process refused.
fn refused_in(config: &Config, job: &Job, lines: &[LogLine]) -> Vec<String> {
    let of_type = job.spec.script_type.as_ref().and_then(|name| {
        let of_type = config.types.get(name)?;
        (of_type.engine == EngineKind::Command).then_some((name, &of_type.sandbox))
    });
    let Some(of_type) = of_type else { return Vec::new() };
    let said: Vec<&str> =
        lines.iter().filter(|line| line.fd == STDERR).map(|line| line.line.as_str()).collect();
    refusals_in(of_type, (&job.spec.script, &job.spec.asked_bounds()), &said)
}

fn environment(of_type: &TypeConfig, job: &Job) -> String {
    let mut names = match of_type.engine {
        EngineKind::Command => variable_names(),
        EngineKind::Sal | EngineKind::Osis | EngineKind::HeroScript => Vec::new(),
    };
    let own = of_type.env.keys().chain(job.spec.env_vars.keys());
    names.extend(own.map(String::as_str));
    names.sort_unstable();
    names.dedup();
    named(&names, "none")
}

fn named<S: Borrow<str>>(names: &[S], without: &str) -> String {
    if names.is_empty() { without.to_owned() } else { names.join(", ") }
}

/// Returns the names of the secrets that jobs of a type may use, with what else they need.
fn secrets(config: &Config, name: &ScriptType) -> String {
    let rules = config.secrets.allow.iter();
    let rules = rules.filter(|(_, rule)| rule.types.is_empty() || rule.types.contains(name));
    let names: Vec<String> = rules
        .map(|(secret, rule)| {
            let groups = rule.groups.iter().map(|group| format!("group {group}"));
            let callers = rule.callers.iter().map(|caller| format!("caller {caller}"));
            let needs: Vec<String> = groups.chain(callers).collect();
            let needs = Some(needs.join(", ")).filter(|needs| !needs.is_empty());
            let needs = needs.map(|needs| format!(" ({needs})")).unwrap_or_default();
            format!("{secret}{needs}")
        })
        .collect();
    named(&names, "none: [secrets.allow] has none for it")
}

/// Prints the refusals of an ended job. The log of a failed job has them; for a job that went on they are found
/// in its standard error, by the configuration of this machine.
pub(super) async fn print_refused(
    client: &Client,
    config: &Config,
    id: &JobId,
) -> Result<(), ClientError> {
    let job = client.get_job(id).await?;
    if !job.status.is_terminal() {
        return Ok(());
    }
    let lines = client.logs().last(id, LOG_LINES_MAX).await?;
    let logged = lines.iter().filter(|line| line.line.starts_with(REFUSAL));
    let logged: Vec<&str> = logged.map(|line| line.line.as_str()).collect();
    let mut survived = refused_in(config, &job, &lines);
    survived.retain(|line| !logged.contains(&line.as_str()));
    if !survived.is_empty() {
        output::note("hero: refused, while the script went on:");
        for line in &survived {
            output::note(&format!("  {line}"));
        }
        if logged.is_empty() {
            return Ok(());
        }
    }
    output::note(&match logged.len() {
        0 => {
            "hero: no refusal is known; a refusal that the script handled itself is not in its log"
                .to_owned()
        }
        1 => "hero: 1 refusal: see the line `sandbox: …` above".to_owned(),
        count => format!("hero: {count} refusals: see the lines `sandbox: …` above"),
    });
    Ok(())
}
