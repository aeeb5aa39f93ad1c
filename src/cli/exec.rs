//! `hero exec`: from the arguments to a job, and to its end.

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use super::progress::{Bar, View};
use super::script::ScriptSource;
use super::{Global, output, script_doc};
use crate::client::{Client, ClientError, JobBuilder};
use crate::config::{Config, parse_duration};
use crate::daemon::Interrupts;
use crate::error::{Error, Exit};
use crate::proto::job::{Job, JobId};
use crate::proto::target::ScriptType;

/// The exit code of a program that a signal ended: 128 and its number.
const SIGNALLED: u8 = 128;
/// How long a job may take before it is asked whether anybody could run it.
const PATIENCE_IN_SILENCE: Duration = Duration::from_secs(2);

/// Run a script and print its output; its log goes to standard error meanwhile
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hero exec -t osis -e '40 + 2'\n  \
                        hero exec --timeout 10s report.py\n  \
                        echo 'print(1)' | hero exec -t python -\n\n\
                        Exit code 1: the job ended in error. Ctrl-C stops waiting, not the job.")]
pub(super) struct Exec {
    #[command(flatten)]
    options: JobOptions,
    /// Give up waiting after this time; the job goes on
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
}

/// What a job can be told.
#[derive(Debug, Args)]
pub(super) struct JobOptions {
    #[command(flatten)]
    source: ScriptSource,
    /// The script type; without it the file's extension tells: .rhai osis, .py python,
    /// .v and .vsh v, or what the configuration says
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    script_type: Option<String>,
    /// Only for actors of this group
    #[arg(short, long)]
    group: Option<String>,
    /// Only for this instance, of the group `default` unless --group names another
    #[arg(short, long, value_name = "NUMBER")]
    instance: Option<String>,
    /// 0 urgent, 1 normal, 2 background
    #[arg(long, value_name = "0|1|2")]
    priority: Option<String>,
    /// How long one attempt may take, such as 30s
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Attempts after the first
    #[arg(long, value_name = "NUMBER")]
    retries: Option<String>,
    /// Not before this job has finished; may be repeated
    #[arg(long, value_name = "ID")]
    after: Vec<String>,
    /// Not before this job has ended, however; may be repeated
    #[arg(long, value_name = "ID")]
    after_any: Vec<String>,
    /// How long to keep the job after its end, such as 7d
    #[arg(long, value_name = "DURATION")]
    retention: Option<String>,
    /// Not before this time: RFC 3339 with Z or an offset, such as 2026-12-24T18:00:00+01:00
    #[arg(long, value_name = "TIME", conflicts_with = "delay")]
    at: Option<String>,
    /// Not before this much time has passed
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    delay: Option<Duration>,
    /// While a job with this key is on its way, no second one is made: its id is the answer
    #[arg(long, value_name = "KEY")]
    unique_key: Option<String>,
    /// What limits that look at keys count the job under
    #[arg(long, value_name = "KEY")]
    limit_key: Option<String>,
    /// An environment variable of the script; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Who submits it
    #[arg(long, value_name = "TEXT")]
    caller: Option<String>,
    /// In whose context it runs
    #[arg(long, value_name = "TEXT")]
    context: Option<String>,
    /// Not beside others of its instance, but one at a time
    #[arg(long)]
    no_concurrent: bool,
    /// First tell what is wrong with the script, and submit it only if nothing is
    #[arg(long)]
    check: bool,
    /// An id of your own instead of a random one
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

impl Exec {
    pub(super) async fn run(self, global: &Global) -> Result<ExitCode, Error> {
        let config = global.config()?;
        let job = self.options.job(&config)?;
        let client = Client::open(&config)?;
        let script_type = job.spec.script_type.clone();
        let id = client.submit(job).await?;
        let view = View { log: client.follow_job_logs(&id), lines: true, bar: Bar::new() };
        tokio::select! {
            ended = wait(&client, &id, Some(view), self.wait, global.json) => ended,
            never = tell_if_alone(&client, script_type.as_ref()) => match never {},
        }
    }
}

/// Tells a person who has waited a while that nobody is there to run the job.
async fn tell_if_alone(client: &Client, script_type: Option<&ScriptType>) -> Infallible {
    tokio::time::sleep(PATIENCE_IN_SILENCE).await;
    if let (Some(wanted), Ok(actors)) = (script_type, client.list_actors(script_type).await)
        && actors.is_empty()
    {
        output::note(&format!(
            "hero: no live actor runs scripts of type {wanted}; waiting for one: hero actor list"
        ));
    }
    std::future::pending().await
}

/// Waits for the end of a job and prints what it left; with a view, shows that meanwhile.
pub(super) async fn wait(
    client: &Client,
    id: &JobId,
    view: Option<View>,
    patience: Option<Duration>,
    json: bool,
) -> Result<ExitCode, Error> {
    let mut interrupts = Interrupts::listen()
        .map_err(|error| Error::new(Exit::Unavailable, format!("cannot take signals: {error}")))?;
    let ended = tokio::select! {
        ended = end(client, id, view, patience) => ended,
        signal = interrupts.next() => {
            output::note(&format!(
                "hero: stopped waiting; job {id} goes on: hero job wait {id}, hero job stop {id}"
            ));
            return Ok(ExitCode::from(SIGNALLED + signal));
        }
    };
    if json && matches!(ended, Ok(_) | Err(ClientError::JobFailed { .. })) {
        output::json(&client.get_job(id).await?.to_json())?;
    } else if let Ok(text) = &ended {
        output::result(text)?;
    }
    ended.map(|_| ExitCode::SUCCESS).map_err(|error| explained(id, error))
}

/// The output of the job. The reply is waited for on one connection and the log read on another,
/// so that neither is later for the other.
async fn end(
    client: &Client,
    id: &JobId,
    view: Option<View>,
    patience: Option<Duration>,
) -> Result<String, ClientError> {
    let ended = client.await_result(id, patience);
    let Some(mut view) = view else { return ended.await };
    tokio::pin!(ended);
    let ended = loop {
        tokio::select! {
            biased;
            ended = &mut ended => break ended,
            // Without a log the job still has an end.
            more = view.show_some() => if !more { break ended.await; },
        }
    };
    if !matches!(ended, Err(ClientError::GaveUp { .. } | ClientError::Store(_))) {
        view.log.job_ended();
        while view.show_some().await {}
    }
    ended
}

/// A job that was submitted is worth its id in the message.
fn explained(id: &JobId, error: ClientError) -> Error {
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

impl JobOptions {
    /// The job they make.
    pub(super) fn job(&self, config: &Config) -> Result<Job, Error> {
        let script_type = self.source.script_type(self.script_type.as_deref(), config)?;
        let script = self.source.read(config.job.script_size_max)?;
        if self.check {
            script_doc::refuse_faulty(config, &script_type, &self.source.name(), &script)?;
        }
        let mut builder = JobBuilder::new(script_type.as_str(), script);
        if let Some(delay) = self.delay {
            builder = builder.delay(delay);
        }
        let mut job = builder.build().map_err(ClientError::from)?;
        if let Some(id) = &self.id {
            job.id = parsed(id)?;
        }
        if let Some(priority) = &self.priority {
            job.spec.priority = parsed(priority)?;
        }
        if let Some(time) = &self.at {
            job.spec.run_at = Some(time_of(time)?);
        }
        job.spec.group = self.group.as_deref().map(parsed).transpose()?;
        job.spec.instance = self.instance.as_deref().map(parsed).transpose()?;
        job.spec.timeout = duration("--timeout", self.timeout.as_deref())?;
        job.spec.retention = duration("--retention", self.retention.as_deref())?;
        job.spec.retries = self.retries.as_deref().map(retries).transpose()?;
        job.spec.prerequisites =
            self.after.iter().map(|id| parsed(id)).collect::<Result<_, _>>()?;
        job.spec.after_any =
            self.after_any.iter().map(|id| parsed(id)).collect::<Result<_, _>>()?;
        job.spec.unique_key = self.unique_key.as_deref().map(parsed).transpose()?;
        job.spec.limit_key = self.limit_key.as_deref().map(parsed).transpose()?;
        job.spec.env_vars = self.env.iter().cloned().collect();
        job.spec.caller_id = self.caller.clone().unwrap_or_default();
        job.spec.context_id = self.context.clone().unwrap_or_default();
        job.spec.concurrent = !self.no_concurrent;
        Ok(job)
    }
}

/// A name as the wire has it; what is illegal is bad data, not bad usage.
pub(super) fn parsed<T>(text: &str) -> Result<T, Error>
where
    T: std::str::FromStr<Err = crate::proto::target::IllegalName>,
{
    text.parse().map_err(|error: T::Err| Error::new(Exit::Data, error.to_string()))
}

fn duration(option: &str, text: Option<&str>) -> Result<Option<Duration>, Error> {
    text.map(parse_duration)
        .transpose()
        .map_err(|error| Error::new(Exit::Data, format!("{option}: {error}")))
}

fn retries(text: &str) -> Result<u32, Error> {
    text.parse().map_err(|_| {
        Error::new(Exit::Data, "--retries: expected a whole number of 0 or more".to_owned())
    })
}

fn time_of(text: &str) -> Result<Timestamp, Error> {
    text.parse().map_err(|_| {
        let message = "--at: expected a time in RFC 3339 with Z or an offset, such as \
                       2026-12-24T18:00:00+01:00";
        Error::new(Exit::Data, message)
    })
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: JobOptions,
    }

    fn job(args: &[&str]) -> Result<Job, Error> {
        let line = Line::try_parse_from([&["submit", "-t", "osis", "-e", "1"], args].concat());
        line.expect("good usage").options.job(&Config::default())
    }

    #[test]
    fn every_option_reaches_the_job() {
        let job = job(&[
            "--id=a-1",
            "-g=io",
            "-i=3",
            "--priority=0",
            "--timeout=2m",
            "--retries=4",
            "--after=x",
            "--after=y",
            "--after-any=z",
            "--retention=7d",
            "--at=2030-01-01T00:00:00+01:00",
            "--unique-key=k",
            "--limit-key=l",
            "--env=A=b=c",
            "--caller=me",
            "--context=here",
            "--no-concurrent",
        ])
        .expect("legal");
        let fields: Vec<(&str, String)> = job.submitted_fields();
        let expected = [
            ("id", "a-1"),
            ("script", "1"),
            ("caller_id", "me"),
            ("context_id", "here"),
            ("script_type", "osis"),
            ("group", "io"),
            ("instance", "3"),
            ("priority", "0"),
            ("timeout", "120"),
            ("retries", "4"),
            ("concurrent", "false"),
            ("env_vars", r#"{"A":"b=c"}"#),
            ("prerequisites", r#"["x","y"]"#),
            ("after_any", r#"["z"]"#),
            ("run_at", "2029-12-31T23:00:00.000Z"),
            ("unique_key", "k"),
            ("limit_key", "l"),
            ("retention", "604800"),
        ];
        assert_eq!(fields, expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn what_is_illegal_is_bad_data() {
        for wrong in [
            "--id=a:b",
            "--group=a:b",
            "--instance=0",
            "--priority=3",
            "--timeout=5",
            "--timeout=soon",
            "--retries=-1",
            "--after=a b",
            "--after-any=a b",
            "--retention=7",
            "--at=tomorrow",
            "--at=2030-01-01T00:00:00",
            "--unique-key=",
            "--limit-key=",
        ] {
            assert_eq!(job(&[wrong]).expect_err(wrong).exit, Exit::Data, "{wrong}");
        }
    }

    #[test]
    fn a_script_has_exactly_one_source() {
        for args in [&["-t", "osis"][..], &["-t", "osis", "-e", "1", "file.rhai"][..]] {
            assert!(Line::try_parse_from([&["submit"], args].concat()).is_err(), "{args:?}");
        }
    }

    #[test]
    fn a_variable_needs_a_name_and_may_hold_an_equals_sign() {
        assert_eq!(variable("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert_eq!(variable("A="), Ok(("A".to_owned(), String::new())));
        assert!(variable("A").is_err() && variable("=a").is_err());
    }
}
