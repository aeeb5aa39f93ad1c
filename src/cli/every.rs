//! `--every-machine` and `--every-actor`: a batch with a copy of a job for each of them, and what they answered.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use nix::unistd::{AccessFlags, access};
use serde_json::{Value, json};

use super::api::{ApiMethods, job_of, settings};
use super::fleet_table::FleetTable;
use super::graph_wait::GraphWait;
use super::help::MANY;
use super::job_options::JobOptions;
use super::table::first_line;
use super::time::age_of_text;
use super::window_options::WindowOptions;
use super::{Global, output};
use crate::config::Config;
use crate::error::{Error, Exit, reason};
use crate::proto::every::Every;
use crate::proto::job::{Job, JobOutput, JobStatus};
use crate::proto::text::{counted, escape_lines};
use crate::proto::window::GraphWindow;
use crate::rpc::results::{FleetMemberDocument, SubmittedBatch};
use crate::view::{EqualAnswers, FleetAnswer, answered_error};

/// The names of machines with an equal answer that one line shows.
const NAMES_MAX: usize = 8;

/// The options of a job for every machine.
#[derive(Debug, Args)]
pub(super) struct EveryOptions {
    /// Run it once on every machine that has an actor of its type that matches --where, as a batch; of absent machines
    /// only with --expires, until they return
    #[arg(long, help_heading = MANY)]
    every_machine: bool,
    /// Run it once by every such actor
    #[arg(long, conflicts_with = "every_machine", help_heading = MANY)]
    every_actor: bool,
}

struct MemberAnswer {
    of: FleetMemberDocument,
    /// Its job; none if it is absent, or if the job was deleted.
    job: Option<Job>,
    /// The end of what it has printed, if it failed: a job that fails has no output.
    printed: Vec<u8>,
}

impl EveryOptions {
    /// Returns the word of the API; `None` without one of them.
    pub(super) fn word(&self) -> Option<&'static str> {
        let chosen = [(Every::Machine, self.every_machine), (Every::Actor, self.every_actor)];
        chosen.into_iter().find(|(_, is_given)| *is_given).map(|(every, _)| every.as_str())
    }

    /// Returns the parameters of a batch with a copy of the job of the options for every machine or actor.
    pub(super) fn params(
        options: &JobOptions,
        (word, window): (&str, GraphWindow),
        config: &Config,
    ) -> Result<Value, Error> {
        let job = options.job(config)?;
        let files = options.files(None, &job, config)?;
        if !files.inputs.is_empty() || files.stdin.is_some() {
            let message =
                "files go to one job, not to every machine: leave out --input and --stdin";
            return Err(Error::new(Exit::Usage, message));
        }
        let mut params = json!({ "every": word, "jobs": [settings(&job)], "name": job.spec.name });
        WindowOptions::add_to(&mut params, window);
        Ok(params)
    }

    /// Submits such a batch, and names those that are absent.
    pub(super) async fn submit(
        methods: &ApiMethods,
        params: Value,
    ) -> Result<(Value, SubmittedBatch), Error> {
        let (document, batch): (_, SubmittedBatch) = methods.typed("batch.submit", params).await?;
        note_absent(&batch.every);
        let drains = batch.every.iter().filter(|of| of.drains && of.id.is_some()).map(title);
        let drains: Vec<String> = drains.collect();
        if !drains.is_empty() {
            let names = listed(&drains, ", ");
            output::note(&format!(
                "hero: drained, so its job waits: {names}: hero machine resume HOST"
            ));
        }
        Ok((document, batch))
    }

    /// Submits the job, waits for all copies, and prints what they answered: equal answers once.
    pub(super) async fn run(
        (methods, global): (&ApiMethods, &Global),
        options: &JobOptions,
        every: (&str, GraphWindow),
        how: (Option<Duration>, Option<PathBuf>, bool),
    ) -> Result<ExitCode, Error> {
        let ((word, _), (wait, folder, raw)) = (every, how);
        let params = Self::params(options, every, global.config()?)?;
        // Before anything runs, which cannot be repeated for its output.
        folder.as_deref().map_or(Ok(()), make_writable)?;
        let doing = "run a job on every machine and wait for its end";
        methods.needs_read(doing, "hero submit sends it without a wait").await?;
        let (_, batch) = Self::submit(methods, params).await?;
        output::notes(batch.refused.iter().map(|of| &of.error));
        let mut interrupted = None;
        if let Some(id) = &batch.id {
            let names = batch.every.iter().filter_map(|of| Some((of.id.clone()?, title(of))));
            let column = if word == Every::Actor.as_str() { "~ACTOR" } else { "~MACHINE" };
            let table = FleetTable::of(names.collect(), column, global);
            let end = GraphWait { id: id.clone(), wait };
            interrupted = match end.awaited(methods, table).await {
                Ok(waited) => waited.err(),
                // What has come is printed, as after Ctrl-C.
                Err(error) if error.exit == Exit::GaveUp => {
                    output::print_error(&error);
                    Some(error.exit.into())
                }
                Err(error) => return Err(error),
            };
        }
        let mut answers = Vec::new();
        for of in batch.every {
            let mut answer = MemberAnswer { of, job: None, printed: Vec::new() };
            if let Some(id) = &answer.of.id {
                let document = methods.call("job.get", json!({ "id": id })).await;
                answer.job = document.ok().map(|document| job_of(&document)).transpose()?;
                if answer.job.as_ref().is_some_and(|job| job.status == JobStatus::Error) {
                    answer.printed = last_lines(methods, id).await;
                }
            }
            answers.push(answer);
        }
        if let Some(folder) = &folder {
            write_outputs(folder, &answers)?;
        }
        if global.json {
            answers.iter().try_for_each(|of| output::json(&of.document()))?;
        } else {
            print(&answers, raw)?;
        }
        let has_failed = |of: &MemberAnswer| of.of.id.is_some() && of.error().is_some();
        let mut jobs = answers.iter().filter_map(|of| of.job.as_ref());
        let has_bad_end = jobs.any(|job| job.status.is_terminal() && job.error.is_some());
        if let Some(id) = batch.id.filter(|_| has_bad_end) {
            global.hint(&format!("run it again where it has not finished: hero graph retry {id}"));
        }
        if let Some(code) = interrupted {
            return Ok(code);
        }
        Ok(if !batch.refused.is_empty() || answers.iter().any(has_failed) {
            Exit::JobError.into()
        } else if answers.iter().any(|of| of.of.id.is_none()) {
            Exit::GaveUp.into()
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// Names the machines or actors that get no job.
fn note_absent(all: &[FleetMemberDocument]) {
    let now = Timestamp::now();
    let absent: Vec<String> = all
        .iter()
        .filter(|of| of.id.is_none())
        .map(|of| format!("{}, seen {} ago", title(of), age_of_text(&of.seen_at, now)))
        .collect();
    if !absent.is_empty() {
        let (is, names) = (counted(absent.len() as u64, "is", "are"), listed(&absent, "; "));
        output::note(&format!(
            "hero: {is} absent and got no job: {names}; with --expires 2d the jobs wait for their return"
        ));
    }
}

fn title(of: &FleetMemberDocument) -> String {
    match &of.actor {
        Some(actor) => format!("{actor} on {}", of.host),
        None => of.host.clone(),
    }
}

fn listed(names: &[impl AsRef<str>], separator: &str) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES_MAX).map(AsRef::as_ref).collect();
    let more = names.len().saturating_sub(NAMES_MAX);
    let and = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{and}", shown.join(separator))
}

impl MemberAnswer {
    fn error(&self) -> Option<String> {
        match &self.job {
            Some(job) => answered_error(job.status, job.error.as_deref()),
            None if self.of.id.is_some() => Some("its job was deleted".to_owned()),
            None => Some("absent".to_owned()),
        }
    }

    fn output(&self) -> &[u8] {
        let output = self.job.as_ref().and_then(|job| job.output.as_ref());
        output.map_or(&self.printed, JobOutput::as_bytes)
    }

    fn document(&self) -> Value {
        let FleetMemberDocument { machine, host, actor, id, .. } = &self.of;
        let (job, output) = (self.job.as_ref(), JobOutput::from(self.output().to_vec()).to_json());
        let mut document = json!({
            "machine": machine, "host": host, "actor": actor, "id": id,
            "status": job.map_or("absent", |job| job.status.as_str()),
            "exit_code": job.and_then(|job| job.exit_code),
            "output": output["output"],
            "error": self.error(),
        });
        if let Some(encoding) = output.get("output_encoding") {
            document["output_encoding"] = encoding.clone();
        }
        document
    }
}

/// Returns the last lines that a job has printed. Without an answer there are none: its error is known.
async fn last_lines(methods: &ApiMethods, id: &str) -> Vec<u8> {
    const LINES: usize = 5;
    let params = json!({ "id": id, "last": true });
    let log = methods.call("job.log", params).await.unwrap_or_default();
    let printed = log["lines"].as_array().into_iter().flatten().filter(|line| line["fd"] == 1);
    let mut lines: Vec<&str> =
        printed.rev().take(LINES).filter_map(|line| line["line"].as_str()).collect();
    lines.reverse();
    lines.iter().flat_map(|line| [*line, "\n"]).collect::<String>().into_bytes()
}

/// Prints the outputs, the most common first, each below the machines that have it; then the errors, with the end of what
/// was printed and the jobs.
fn print(answers: &[MemberAnswer], raw: bool) -> Result<(), Error> {
    let with_job = answers.iter().filter_map(|of| {
        let (name, error, output) = (title(&of.of), of.error(), of.output());
        Some(FleetAnswer { name, id: of.of.id.as_deref()?, error, output })
    });
    for group in EqualAnswers::of(with_job) {
        let (number, names) = (group.names.len(), listed(&group.names, ", "));
        let number = if number > 1 { format!(" ({number})") } else { String::new() };
        let why = group.error.as_ref().map(|error| {
            let word = if group.has_failed() { " failed" } else { "" };
            let jobs = if group.ids.len() > 1 { "jobs" } else { "job" };
            format!("{word}: {} ({jobs} {})", first_line(error), listed(&group.ids, ", "))
        });
        let head = format!("== {names}{number}{}", why.unwrap_or_default());
        output::line(&escape_lines(&head))?;
        output::of_job(group.output, raw)?;
        if group.output.last().is_some_and(|last| *last != b'\n') {
            output::line("")?;
        }
    }
    Ok(())
}

fn unwritten(path: &Path, error: &io::Error) -> Error {
    let message = format!("cannot write the output to {}: {}", path.display(), reason(error));
    Error::new(Exit::Output, message)
}

/// Makes the folder of the outputs, and refuses one that takes no files.
fn make_writable(folder: &Path) -> Result<(), Error> {
    let made = fs::create_dir_all(folder);
    let made = made.and_then(|()| Ok(access(folder, AccessFlags::W_OK | AccessFlags::X_OK)?));
    made.map_err(|error| unwritten(folder, &error))
}

/// Writes the output of each that answered to a file of a folder.
fn write_outputs(folder: &Path, answers: &[MemberAnswer]) -> Result<(), Error> {
    let mut written = BTreeSet::new();
    for of in answers.iter().filter(|of| of.job.is_some()) {
        let FleetMemberDocument { machine, host, actor, .. } = &of.of;
        let is_shared =
            answers.iter().any(|other| other.of.host == *host && other.of.machine != *machine);
        let parts = [Some(host), Some(machine).filter(|_| is_shared), actor.as_ref()];
        let name = parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join("-");
        // Two hosts may have one name as a file.
        let mut file = file_name(&name);
        if !written.insert(file.clone()) {
            file = format!("{file}-{}", written.len());
        }
        let path = folder.join(&file);
        fs::write(&path, of.output()).map_err(|error| unwritten(&path, &error))?;
    }
    Ok(())
}

/// Returns a legal name of a file: what comes from a machine leads nowhere else.
fn file_name(name: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(legal).collect();
    if name.starts_with('.') { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_machine_leads_out_of_no_folder() {
        for (name, file) in [("web1", "web1"), ("../x", "_.._x"), (".", "_."), ("a/b c", "a_b_c")] {
            assert_eq!(file_name(name), file);
        }
    }
}
