//! `hero exec`: submits a job and waits for its end.

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::api::{ApiMethods, Unended};
use super::every::EveryOptions;
use super::help::{LIMITS, MANY, WHEN};
use super::job_options::{JobOptions, SCRIPT_HELP};
use super::key::Signing;
use super::progress::View;
use super::sent_job::{JobSending, SentJob};
use super::window_options::WindowOptions;
use super::{Global, explain, job_notes, output, running_settings};
use crate::client::AwaitedJob;
use crate::config::{format_duration, parse_duration};
use crate::daemon::Interrupts;
use crate::error::{Error, Exit};
use crate::proto::error_kind::FailureCause;
use crate::proto::job::{Job, JobId, JobOutput, JobSpec};

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
#[command(mut_args(|option| WindowOptions::bound_to("EveryOptions", option)))]
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
                        codes: 2 wrong usage, 65 to 78 as in hero(1). Ctrl-C stops waiting, not the job.\n\
                        At a terminal, --every-machine and --every-actor show a table of them while they wait."].concat())]
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

impl Exec {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let config = global.config()?;
        if let Some(word) = self.how.every.word() {
            return self.run_everywhere(word, global).await;
        }
        let mut api = global.methods()?;
        let (signing, explains) = (&self.how.signing, self.how.explain);
        let how = JobSending { signing, is_awaited: true, explains };
        let sent = Box::pin(SentJob::send(&mut api, &self.options, how, config)).await?;
        sent.note(config);
        let SentJob { job: awaited, span, spec: JobSpec { script_type, .. }, .. } = sent;
        // Beside the wait: the receiver delays nobody.
        let id = awaited.id.to_string();
        let span = tokio::spawn(async move { span.end("job", &id).await });
        let view = View::of_lines(&api, &awaited.id);
        let (json, raw) = (global.json, self.how.raw);
        let view = if json { view } else { view.printing(raw) };
        let waited = wait(&api, &awaited, Some(view), self.how.wait).await;
        if let Ok(Waited::Ended(ended)) = &waited {
            ended.print(json, raw)?;
        }
        if let ApiMethods::Local { context, .. } = &api {
            if explains {
                // The end of the job says more than a log that cannot be read.
                let _ = explain::print_refused(&context.client, config, &awaited.id).await;
            }
            if explains || matches!(&waited, Ok(Waited::Ended(ended)) if ended.error.is_some()) {
                let of = script_type.as_ref();
                output::notes(running_settings::read(&context.client, global, of).await?);
            }
        }
        drop(span.await);
        let ended = match waited? {
            Waited::Ended(ended) => ended,
            Waited::Interrupted(code) => return Ok(code),
        };
        if !json {
            name_files(&ended.job);
        }
        if let Some(file) = self.options.missing_neighbour(&ended.job) {
            let file = file.display();
            output::note(&format!(
                "hero: {file} lies beside the script, and a job has the text of its script alone: --input {file} puts it \
                 into the folder $HERO_INPUT_DIR"
            ));
        }
        Ok(ended.code())
    }

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
}

pub(super) enum Waited {
    Ended(EndedJob),
    Interrupted(ExitCode),
}

pub(super) struct EndedJob {
    pub(super) document: Value,
    pub(super) job: Box<Job>,
    /// The part of its output that was not printed yet.
    output: Option<JobOutput>,
    /// The part of its error that a person has not seen.
    error: Option<String>,
}

impl EndedJob {
    /// Prints its output, raw or not, or its document.
    pub(super) fn print(&self, json: bool, raw: bool) -> Result<(), Error> {
        match &self.output {
            _ if json => output::json(&self.document),
            Some(result) if self.error.is_none() => output::result(result, raw),
            _ => Ok(()),
        }
    }

    /// Prints why it failed, if it did. Returns the exit code.
    pub(super) fn code(&self) -> ExitCode {
        let job = &self.job;
        let Some(error) = &self.error else { return ExitCode::SUCCESS };
        let error = Error::new(Exit::JobError, format!("job {} failed: {error}", job.id));
        output::print_error(&explained(error, job));
        ExitCode::from(code_of(job))
    }
}

fn name_files(job: &Job) {
    let names: Vec<String> = job.output_files().iter().map(ToString::to_string).collect();
    if !names.is_empty() {
        let id = &job.id;
        output::note(&format!("hero: kept {}: hero job files {id}", names.join(", ")));
    }
}

/// Returns the error of a job that failed, with what else explains it.
fn explained(mut error: Error, job: &Job) -> Error {
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
    error
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
async fn report_blockers(api: &ApiMethods, id: &JobId) -> Infallible {
    let mut reported = None;
    loop {
        tokio::time::sleep(HINDRANCE_CHECK).await;
        // The wait itself reports a lost connection.
        let found = job_notes::blocker(api, id.as_str()).await;
        if let Some(reason) = found.filter(|found| reported.as_ref() != Some(found)) {
            job_notes::report_blocker(id.as_str(), &reason);
            reported = Some(reason);
        }
    }
}

/// Waits for the end of a job; a view shows its log meanwhile.
pub(super) async fn wait(
    api: &ApiMethods,
    job: &AwaitedJob,
    mut view: Option<View<'_>>,
    patience: Option<Duration>,
) -> Result<Waited, Error> {
    let id = &job.id;
    let mut interrupts = Interrupts::listen()?;
    let ended = tokio::select! {
        ended = Box::pin(end(api, job, view.as_mut(), patience)) => ended,
        never = Box::pin(report_blockers(api, id)) => match never {},
        signal = interrupts.next() => {
            drop(view);
            output::note(&format!(
                "hero: stopped waiting; job {id} goes on: hero job wait {id}, hero job stop {id}"
            ));
            return Ok(Waited::Interrupted(ExitCode::from(output::SIGNALLED + signal)));
        }
    };
    // The bar is cleared before anything is printed.
    let (seen, printed) = view.map(View::into_seen).unwrap_or_default();
    // Who gives up early does not know yet why the job does not start.
    if ended.as_ref().is_err_and(|unended| unended.goes_on)
        && patience.is_some_and(|patience| patience <= HINDRANCE_CHECK)
        && let Some(reason) = job_notes::blocker(api, id.as_str()).await
    {
        job_notes::report_blocker(id.as_str(), &reason);
    }
    let (document, job) = ended.map_err(|unended| unended.error)?;
    let output = job.output.clone().map(|output| printed.rest_of(output));
    let error = job.error.as_deref().map(|error| unseen(error, &seen).to_owned());
    Ok(Waited::Ended(EndedJob { document, job, output, error }))
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

/// Waits for the end of the job. Reply and log are read on separate connections, so that neither delays the other.
async fn end(
    api: &ApiMethods,
    job: &AwaitedJob,
    view: Option<&mut View<'_>>,
    patience: Option<Duration>,
) -> Result<(Value, Box<Job>), Unended> {
    let ended = api.end(job, patience);
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
    if let Ok((_, job)) = &ended {
        view.log.job_ended();
        while view.show_some().await {}
        if job.error.is_some() {
            std::mem::take(&mut view.output).show();
        }
    }
    ended
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
