//! `hero exec`: submits a job and waits for its end.

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::job_options::{JobOptions, SCRIPT_HELP, of_option};
use super::progress::View;
use super::{Global, explain, job_notes, output};
use crate::client::{AwaitedJob, Client, ClientError};
use crate::config::parse_duration;
use crate::daemon::Interrupts;
use crate::error::{Error, Exit};
use crate::proto::job::{JobId, JobOutput};
use crate::store::Hindrance;

/// Added to a signal's number, the exit code of a program that the signal ended.
pub(super) const SIGNALLED: u8 = 128;
/// The time between looks at what a job waits for.
const HINDRANCE_CHECK: Duration = Duration::from_millis(1500);

/// Run a script and print its output; its log goes to standard error meanwhile
#[derive(Debug, Args)]
#[command(override_usage = "hero exec [OPTIONS] <FILE|--eval <CODE>> [-- <ARG>...]")]
#[command(after_help = ["Examples:\n  hero exec -t osis -e '40 + 2'\n  \
                        hero exec --timeout 10s report.py\n  \
                        hero exec resize.py -- photo.jpg --width 800\n  \
                        hero exec --param region=north --param retries:=3 report.py\n  \
                        hero exec --explain report.py\n  \
                        hero exec --memory 512MiB --network 443 fetch.py\n  \
                        hero exec --secret PGPASSWORD=db_password report.py\n  \
                        echo 'print(1)' | hero exec -t python -\n  \
                        echo one two | hero exec --stdin - -t bash -e 'wc -w'\n\n", SCRIPT_HELP,
    "\n\n\
                        Exit code 1: the job ended in error. Ctrl-C stops waiting, not the job."].concat())]
pub(super) struct Exec {
    #[command(flatten)]
    options: JobOptions,
    /// Give up waiting after this time; the job goes on
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
    /// Print what the sandbox of the script allows on this machine, and afterwards whether it refused something
    #[arg(long)]
    explain: bool,
}

impl Exec {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let config = global.config()?;
        let job = self.options.job(&config)?;
        let files = self.options.files(&job, &config)?;
        if self.explain {
            explain::print_allowed(&config, &job)?;
        }
        let client = Client::open(&config)?;
        job_notes::print(&job.spec, &config);
        let job = client.submit_awaited(job, &files).await.map_err(of_option)?;
        let view = View::of_lines(&client, &job.id);
        let ended = wait(&client, &job, Some(view), self.wait, global.json).await;
        if self.explain {
            // The end of the job says more than a log that cannot be read.
            let _ = explain::print_refused(&client, &job.id).await;
        }
        ended
    }
}

/// Reports why a job does not start: after a while, and when the reason changes.
async fn report_hindrances(client: &Client, id: &JobId) -> Infallible {
    let mut reported = None;
    loop {
        tokio::time::sleep(HINDRANCE_CHECK).await;
        // The wait itself reports a lost connection.
        let hindrance = client.hindrance(id).await.unwrap_or_default();
        let Some(hindrance) = hindrance.filter(|found| reported.as_ref() != Some(found)) else {
            continue;
        };
        report_hindrance(id, &hindrance);
        reported = Some(hindrance);
    }
}

fn report_hindrance(id: &JobId, hindrance: &Hindrance) {
    let reason = match hindrance {
        Hindrance::Limit(limit) => format!("a slot in the limit {limit}: hero queue list"),
        Hindrance::Pause(queue) => {
            format!("its queue, which is paused: hero queue resume {queue}")
        }
        Hindrance::NoActor(queue) => {
            format!("an actor: no live one claims jobs of {queue}: hero actor list")
        }
    };
    output::note(&format!("hero: job {id} waits for {reason}"));
}

/// Waits for the end of a job and prints its output; a view shows its log meanwhile.
pub(super) async fn wait(
    client: &Client,
    job: &AwaitedJob,
    view: Option<View>,
    patience: Option<Duration>,
    json: bool,
) -> Result<ExitCode, Error> {
    let id = &job.id;
    let ended = match awaited(client, job, view, patience).await? {
        Awaited::Ended(ended) => ended,
        Awaited::Interrupted(code) => return Ok(code),
    };
    if json && matches!(ended, Ok(_) | Err(ClientError::JobFailed { .. })) {
        output::json(&client.get_job(id).await?.to_json())?;
    } else if let Ok(result) = &ended {
        output::result(result)?;
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
    let mut interrupts = Interrupts::listen().map_err(|error| {
        Error::new(Exit::Unavailable, format!("cannot handle signals: {error}"))
    })?;
    let ended = tokio::select! {
        ended = end(client, job, view.as_mut(), patience) => ended,
        never = report_hindrances(client, id) => match never {},
        signal = interrupts.next() => {
            drop(view);
            output::note(&format!(
                "hero: stopped waiting; job {id} goes on: hero job wait {id}, hero job stop {id}"
            ));
            return Ok(Awaited::Interrupted(ExitCode::from(SIGNALLED + signal)));
        }
    };
    // The bar is cleared before anything is printed.
    let seen = view.map(View::into_seen).unwrap_or_default();
    // Who gives up early has not been told yet why the job does not start.
    if matches!(ended, Err(ClientError::GaveUp { .. }))
        && patience.is_some_and(|patience| patience <= HINDRANCE_CHECK)
        && let Ok(Some(hindrance)) = client.hindrance(id).await
    {
        report_hindrance(id, &hindrance);
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
    match error.split_once(": ") {
        Some((how, tail))
            if of_process.iter().any(|begin| how.starts_with(begin))
                && seen.contains(&format!("\n{}\n", tail.trim_end())) =>
        {
            how
        }
        _ => error,
    }
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

/// Parses a name of the wire protocol. An illegal one is bad data, not wrong usage.
pub(super) fn parsed<T>(text: &str) -> Result<T, Error>
where
    T: std::str::FromStr<Err = crate::proto::target::IllegalName>,
{
    text.parse().map_err(|error: T::Err| Error::new(Exit::Data, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_standard_error_is_not_printed_twice() {
        let error = "exit code 1: at line 1\nError: bad: x";
        assert_eq!(unseen(error, "begin\nat line 1\nError: bad: x\n\n"), "exit code 1");
        assert_eq!(unseen(error, "begin\nError: bad: x\n"), error);
        for other in ["timeout", "KeyError: 'a'"] {
            assert_eq!(unseen(other, other), other);
        }
    }
}
