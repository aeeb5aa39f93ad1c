//! `hero exec`: submits a job and waits for its end.

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, Args};

use super::api::{ApiMethods, RemoteEnd, gave_up};
use super::every::EveryOptions;
use super::job_options::{JobOptions, SCRIPT_HELP, of_option};
use super::progress::View;
use super::sections::{LIMITS, MANY, WHEN};
use super::signing::Signing;
use super::submit_span::SubmitSpan;
use super::window_options::WindowOptions;
use super::{Global, explain, job_notes, output};
use crate::client::{AwaitedJob, Client, ClientError};
use crate::config::{format_duration, parse_duration};
use crate::daemon::Interrupts;
use crate::error::{Error, Exit};
use crate::proto::error_kind::FailureCause;
use crate::proto::job::{Job, JobId, JobOutput};

/// The time between looks at the reason why a job waits.
const HINDRANCE_CHECK: Duration = Duration::from_millis(1500);

/// Run a script and print its output; its log goes to standard error meanwhile
#[derive(Debug, Args)]
#[command(
    override_usage = "hero exec [OPTIONS] <FILE|--eval <CODE>|--uses <NAME>> [-- <ARG>...]\n       \
                            hero exec [OPTIONS] -- <COMMAND> [<ARG>...]"
)]
#[command(mut_group("ScriptSource", |group| group.required(false)))]
#[command(mut_arg("file", |file| {
    file.index(1).required_unless_present_any(["eval", "uses", "args"])
}))]
#[command(mut_arg("args", |args| args.index(2)))]
#[command(mut_args(with_every))]
#[command(after_help = ["Examples:\n  hero exec -t osis -e '40 + 2'\n  \
                        hero exec --timeout 10s report.py\n  \
                        hero exec resize.py -- photo.jpg --width 800\n  \
                        hero exec -- du -sh /usr/share/doc\n  \
                        hero exec --param region=north --param retries:=3 report.py\n  \
                        hero exec --explain report.py\n  \
                        hero exec --uses deploy@3 --param host=web1\n  \
                        hero exec --memory 512MiB --cpu-time 30s report.py\n  \
                        hero exec --every-machine -t bash -e 'uname -r'\n  \
                        hero exec --every-machine --at-a-time 2 --stop-after 1 restart.sh\n  \
                        hero exec --secret PGPASSWORD=db_password report.py\n  \
                        echo 'print(1)' | hero exec -t python -\n  \
                        echo one two | hero exec --stdin - -t bash -e 'wc -w'\n\n", SCRIPT_HELP,
    "\n\nThe exit code of a failed job is its script's, from 1 to 63, or 128 and the\n\
                        number of the signal that ended it; else it is 1, also for a script's own 64 to 127. Hero's own\n\
                        codes: 2 wrong usage, 65 to 78 as in hero(1). Ctrl-C stops waiting, not the job."].concat())]
pub(super) struct Exec {
    #[command(flatten)]
    pub(super) options: JobOptions,
    #[command(flatten)]
    pub(super) how: ExecOptions,
}

/// The options of a job whose end is awaited.
#[derive(Debug, Args)]
pub(super) struct ExecOptions {
    #[command(flatten)]
    signing: Signing,
    /// Give up waiting after this time; the job goes on
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = WHEN)]
    wait: Option<Duration>,
    /// Print what the sandbox of the script allows on this machine, and afterwards what it refused
    #[arg(long)]
    #[arg(help_heading = LIMITS)]
    explain: bool,
    /// At a terminal, leave control characters as they are
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    every: EveryOptions,
    #[command(flatten)]
    window: WindowOptions,
    /// Write the output of each machine to a file of this folder, named after its host
    #[arg(long, value_name = "FOLDER", requires = "EveryOptions", help_heading = MANY)]
    outputs: Option<PathBuf>,
}

/// Binds the options of a window to a job for every machine.
pub(super) fn with_every(option: Arg) -> Arg {
    let is_of_window = WindowOptions::IDS.contains(&option.get_id().as_str());
    if is_of_window { option.requires("EveryOptions").help_heading(MANY) } else { option }
}

impl Exec {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let config = global.config()?;
        if let Some(word) = self.how.every.word() {
            return self.run_everywhere(word, global).await;
        }
        if let Some(remote) = global.remote()? {
            return self.run_remote(&ApiMethods::Remote(remote), global).await;
        }
        let client = self.how.signing.client(global.client()?)?;
        let mut job = self.options.resolved_job(&client, config).await?;
        let span = SubmitSpan::begin(config, job.spec.traceparent);
        job.spec.traceparent = span.place;
        let files = self.options.files(&job, config)?;
        if self.how.explain {
            explain::print_allowed(config, &job)?;
        }
        client.place(&mut job).map_err(of_option)?;
        let (spec, own) = (job.spec.clone(), job.id.clone());
        job_notes::print(&spec, config);
        let submitted = Box::pin(client.submit_awaited_or_same(job, &files)).await;
        let (awaited, is_new) = submitted.map_err(of_option)?;
        if !is_new {
            output::note(&format!("hero: {}", job_notes::known(&spec, &own, &awaited.id)));
        }
        // Beside the wait: the receiver delays nobody.
        let told = awaited.id.to_string();
        let span = tokio::spawn(async move { span.end("job", &told).await });
        let view = View::of_lines(&client, &awaited.id);
        let raw = self.how.raw;
        let view = if global.json { view } else { view.printing(raw) };
        let ended = wait(&client, &awaited, Some(view), self.how.wait, (global.json, raw)).await;
        if self.how.explain {
            // The end of the job says more than a log that cannot be read.
            let _ = explain::print_refused(&client, config, &awaited.id).await;
        }
        drop(span.await);
        // A wait that was given up says nothing of the job.
        let has_ended = ended.as_ref().err().is_none_or(|error| error.exit == Exit::JobError);
        let job = if has_ended { client.get_job(&awaited.id).await.ok() } else { None };
        if let Some(job) = job.as_ref().filter(|_| !global.json) {
            name_files(job);
        }
        if let Some(file) = job.as_ref().and_then(|job| self.options.missing_neighbour(job)) {
            let file = file.display();
            output::note(&format!(
                "hero: {file} lies beside the script, and a job has the text of its script alone: --input {file} puts it \
                 into the folder $HERO_INPUT_DIR"
            ));
        }
        ended.or_else(|error| failed(error, job.as_ref()))
    }
}

impl Exec {
    async fn run_everywhere(self, word: &str, global: &Global) -> Result<ExitCode, Error> {
        let ExecOptions { signing, wait, explain, raw, outputs, window, .. } = self.how;
        if explain || signing.is_given() {
            let message = "--explain and --sign are for one job: leave out --every-machine";
            return Err(Error::new(Exit::Usage, message));
        }
        let methods = global.methods()?;
        let how = (wait, outputs, raw);
        Box::pin(EveryOptions::run((&methods, global), &self.options, (word, window.window()), how))
            .await
    }

    /// Runs over the API of a daemon elsewhere.
    async fn run_remote(self, api: &ApiMethods, global: &Global) -> Result<ExitCode, Error> {
        if self.how.explain || self.how.signing.is_given() {
            let message = "--explain and --sign need the machine itself: leave out --api";
            return Err(Error::new(Exit::Usage, message));
        }
        api.needs_read("run a job and wait for its end", "hero submit sends it without a wait")
            .await?;
        let (id, created, job) = api.submit(&self.options, global.config()?).await?;
        if !created {
            output::note(&format!("hero: {}", job_notes::known(&job.spec, &job.id, &id)));
        }
        let id = id.as_str();
        let waited = api.await_end(id, !global.json, self.how.wait).await.map_err(|error| {
            let message = format!("{}; job {id} was accepted and goes on", error.message);
            Error::new(error.exit, message)
        });
        match waited? {
            RemoteEnd::Ended(document, job) => {
                if global.json {
                    output::json(&document)?;
                } else {
                    name_files(&job);
                }
                ended(&job, (global.json, self.how.raw))
            }
            RemoteEnd::GaveUp => Err(gave_up(id, self.how.wait)),
            RemoteEnd::Interrupted(code) => Ok(code),
        }
    }
}

/// Prints the output of a job that has ended, unless JSON is asked for, or why it failed.
pub(super) fn ended(job: &Job, (json, raw): (bool, bool)) -> Result<ExitCode, Error> {
    if let Some(error) = &job.error {
        let error = Error::new(Exit::JobError, format!("job {} failed: {error}", job.id));
        return failed(error, Some(job));
    }
    match &job.output {
        Some(result) if !json => output::result(result, raw)?,
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Names the files that the script left.
fn name_files(job: &Job) {
    let names: Vec<String> = job.output_files().iter().map(ToString::to_string).collect();
    if !names.is_empty() {
        let id = &job.id;
        output::note(&format!("hero: kept {}: hero job files {id}", names.join(", ")));
    }
}

/// Prints why a job failed, and returns the exit code for it; returns any other error.
pub(super) fn failed(mut error: Error, job: Option<&Job>) -> Result<ExitCode, Error> {
    let Some(job) = job.filter(|_| error.exit == Exit::JobError) else { return Err(error) };
    let why = job.error.as_deref().unwrap_or_default();
    if FailureCause::of(why) == FailureCause::Stopped {
        let by = job.extra.get("stopped_by").map(|by| format!(" by {by}")).unwrap_or_default();
        error.message = format!("job {} was stopped{by}", job.id);
    } else if FailureCause::of(why) == FailureCause::Timeout {
        let after = job.spec.timeout.map(|time| format!(" after {}", format_duration(time)));
        let after = after.unwrap_or_else(|| " of job.timeout".to_owned());
        error.message = format!("{}{after}: --timeout gives it longer", error.message);
    }
    if job.attempt > 1 {
        let failed = format!(" failed after {} attempts:", job.attempt);
        error.message = error.message.replacen(" failed:", &failed, 1);
    }
    output::print_error(&error);
    Ok(ExitCode::from(code_of(job)))
}

/// Returns the exit code for a failed job: the script's own, unless it means something of Hero's own.
fn code_of(job: &Job) -> u8 {
    const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;
    let own = job.exit_code.filter(|code| {
        (1..=63).contains(code) || SIGNALS.contains(&(code - i32::from(output::SIGNALLED)))
    });
    let error = job.error.as_deref().unwrap_or_default();
    let signal = error.strip_prefix("killed by signal ").and_then(|rest| rest.split(' ').next());
    let signal = signal.and_then(|number| number.parse().ok());
    let signal = signal.filter(|number| SIGNALS.contains(number));
    let code = own.or(signal.map(|number| number + i32::from(output::SIGNALLED)));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(Exit::JobError as u8)
}

/// Reports why a job does not start: after a while, and when the reason changes.
async fn report_blockers(client: &Client, id: &JobId) -> Infallible {
    let mut reported = None;
    loop {
        tokio::time::sleep(HINDRANCE_CHECK).await;
        // The wait itself reports a lost connection.
        let blocker = client.blocker(id).await.unwrap_or_default();
        let Some(blocker) = blocker.filter(|found| reported.as_ref() != Some(found)) else {
            continue;
        };
        job_notes::report_blocker(id, &blocker);
        reported = Some(blocker);
    }
}

/// Waits for the end of a job and prints it as JSON, or its output, raw or not; a view shows its log meanwhile.
pub(super) async fn wait(
    client: &Client,
    job: &AwaitedJob,
    view: Option<View>,
    patience: Option<Duration>,
    (json, raw): (bool, bool),
) -> Result<ExitCode, Error> {
    let id = &job.id;
    let ended = match awaited(client, job, view, patience).await? {
        Awaited::Ended(ended) => ended,
        Awaited::Interrupted(code) => return Ok(code),
    };
    if json && matches!(ended, Ok(_) | Err(ClientError::JobFailed { .. })) {
        output::json(&client.get_job(id).await?.to_json())?;
    } else if let Ok(result) = &ended {
        output::result(result, raw)?;
    }
    ended.map(|_| ExitCode::SUCCESS).map_err(|error| explained(id, error))
}

/// The end of a wait.
pub(super) enum Awaited {
    /// The job has ended, or nobody waits any longer.
    Ended(Result<JobOutput, ClientError>),
    /// A signal ended the wait.
    Interrupted(ExitCode),
}

/// Waits for the end of a job; a view shows its log meanwhile.
pub(super) async fn awaited(
    client: &Client,
    job: &AwaitedJob,
    mut view: Option<View>,
    patience: Option<Duration>,
) -> Result<Awaited, Error> {
    let id = &job.id;
    let mut interrupts = Interrupts::listen()?;
    let ended = tokio::select! {
        ended = end(client, job, view.as_mut(), patience) => ended,
        never = report_blockers(client, id) => match never {},
        signal = interrupts.next() => {
            drop(view);
            output::note(&format!(
                "hero: stopped waiting; job {id} goes on: hero job wait {id}, hero job stop {id}"
            ));
            return Ok(Awaited::Interrupted(ExitCode::from(output::SIGNALLED + signal)));
        }
    };
    // The bar is cleared before anything is printed.
    let (seen, printed) = view.map(View::into_seen).unwrap_or_default();
    let ended = ended.map(|output| printed.rest_of(output));
    // Who gives up early has not been told yet why the job does not start.
    if matches!(ended, Err(ClientError::GaveUp { unknown: None, .. }))
        && patience.is_some_and(|patience| patience <= HINDRANCE_CHECK)
        && let Ok(Some(blocker)) = client.blocker(id).await
    {
        job_notes::report_blocker(id, &blocker);
    }
    Ok(Awaited::Ended(ended.map_err(|error| match error {
        ClientError::JobFailed { id, error } => {
            let error = unseen(&error, &seen).to_owned();
            ClientError::JobFailed { id, error }
        }
        error => error,
    })))
}

/// Returns the part of an error that a person has not seen: the end of standard error, which follows how the
/// script ended, stands above it.
fn unseen<'e>(error: &'e str, seen: &str) -> &'e str {
    let of_process = ["exit code ", "killed by signal "];
    let seen = format!("\n{}\n", seen.trim_end());
    let Some((how, reason)) = error.split_once(": ") else { return error };
    // The reason stands before the lines that it is one of.
    let tail = reason.split_once('\n').map_or(reason, |(_, tail)| tail).trim_end();
    let is_of_process = of_process.iter().any(|begin| how.starts_with(begin));
    if is_of_process && seen.contains(&format!("\n{tail}\n")) { how } else { error }
}

/// Returns the output of the job. Reply and log are read on separate connections, so that neither
/// delays the other.
async fn end(
    client: &Client,
    job: &AwaitedJob,
    view: Option<&mut View>,
    patience: Option<Duration>,
) -> Result<JobOutput, ClientError> {
    let ended = client.await_end(job, patience);
    let Some(view) = view else { return ended.await };
    tokio::pin!(ended);
    let ended = loop {
        tokio::select! {
            biased;
            ended = &mut ended => break ended,
            // A job without a log still ends.
            more = view.show_some() => if !more { break ended.await; },
        }
    };
    if !matches!(ended, Err(ClientError::GaveUp { .. } | ClientError::Store(_))) {
        view.log.job_ended();
        while view.show_some().await {}
        if ended.is_err() {
            std::mem::take(&mut view.output).show();
        }
    }
    ended
}

/// Adds the id of the job to the error.
pub(super) fn explained(id: &JobId, error: ClientError) -> Error {
    match error {
        ClientError::JobFailed { error, .. } => {
            Error::new(Exit::JobError, format!("job {id} failed: {error}"))
        }
        ClientError::Store(_) => {
            let message = format!("waiting for job {id}: {error}; look again: hero job wait {id}");
            Error::new(error.exit(), message)
        }
        ClientError::GaveUp { .. } => {
            Error::new(error.exit(), format!("{error}: hero job wait {id}"))
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_is_that_of_the_script_unless_it_is_one_of_heros() {
        for (exit_code, error, code) in [
            (Some(3), "exit code 3", 3),
            (Some(63), "exit code 63", 63),
            (Some(64), "exit code 64", 1),
            (Some(130), "exit code 130", 130),
            (Some(255), "exit code 255", 1),
            (None, "killed by signal 9 (SIGKILL): no", 137),
            (None, "killed by signal 999", 1),
            (None, "timeout", 1),
        ] {
            let mut job = Job::new("j".parse().expect("legal"), "exit".to_owned());
            (job.exit_code, job.error) = (exit_code, Some(error.to_owned()));
            assert_eq!(code_of(&job), code, "{error}");
        }
    }

    #[test]
    fn end_of_standard_error_is_not_printed_twice() {
        let error = "exit code 1: Error: bad: x\nat line 1\nError: bad: x";
        assert_eq!(unseen(error, "begin\nat line 1\nError: bad: x\n\n"), "exit code 1");
        assert_eq!(unseen(error, "begin\nError: bad: x\n"), error);
        assert_eq!(unseen("exit code 1: bad: x", "begin\nbad: x\n"), "exit code 1");
        for other in ["timeout", "KeyError: 'a'"] {
            assert_eq!(unseen(other, other), other);
        }
    }
}
