//! `session.*`: jobs that serve the calls of one caller, one after the other, in one folder and one interpreter.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::access::hidden;
use super::job_change::JobChangeResult;
use super::job_files::{EncodedFiles, given_files};
use super::job_types::JobSettings;
use super::params::{Nothing, patience};
use super::{CallContext, Result, RpcError, Scope, code};
use crate::client::ClientError;
use crate::config::{TypeConfig, format_duration};
use crate::proto::job::{
    InvalidJob, Job, JobId, JobOutput, JobReference, JobStatus, Tags, unique_scope,
};
use crate::proto::target::ScriptType;
use crate::store::{JobSearch, JobSummary, ListQuery};

const TAG: &str = "session";
/// The times of a session that asks for none.
const TIMEOUT: Duration = Duration::from_mins(10);
const IDLE: Duration = Duration::from_mins(5);
/// The time of a call that asks for none, and of a wait for the start.
const CALL_TIMEOUT_S: f64 = 60.0;
const START_WAIT_S: f64 = 30.0;
/// The time between two looks whether a session has started.
const LOOK: Duration = Duration::from_millis(50);

methods! {
    /// Starts a session: a folder, and an interpreter whose variables stay, for calls by session.run. It ends after
    /// `timeout`, after `idle` without a call, or by session.end.
    "session.start", Scope::Submit => start;
    /// Runs a script in a session of the caller, and returns its exit code and what it wrote. A session runs one at
    /// a time; a script that goes on after its `timeout` ends the session.
    "session.run", Scope::Submit => run;
    /// Lists the sessions that have not ended.
    "session.list", Scope::Submit => list;
    /// Ends a session.
    "session.end", Scope::Submit => end;
}

/// A session to start.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartSession {
    /// Script type: one whose program is Python, bash or node.
    script_type: ScriptType,
    /// The longest time that the session lives, in seconds; 600 without it.
    timeout: Option<f64>,
    /// The time without a call after which it ends, in seconds; 300 without it.
    idle: Option<f64>,
    /// A name for people.
    name: Option<String>,
    /// The group of actors that runs it.
    group: Option<String>,
    /// The context that it belongs to.
    context_id: Option<String>,
    /// Environment variables.
    #[serde(default)]
    env_vars: BTreeMap<String, String>,
    /// Files for it, in Base64, by their names: they are in the folder `$HERO_INPUT_DIR`.
    #[serde(default)]
    inputs: EncodedFiles,
    /// The longest time to wait for its start, in seconds; 30 without it.
    wait: Option<f64>,
}

/// A session that was started.
#[derive(Serialize, JsonSchema)]
struct StartedSession {
    /// The id of the session, which is a job.
    id: String,
    /// Its state: `started`, or another if no actor has started it yet.
    status: JobStatus,
}

async fn start(context: CallContext, params: StartSession) -> Result<StartedSession> {
    let wait = patience(params.wait.or(Some(START_WAIT_S)))?;
    let (mut job, inputs) = session_job(&context, params).await?;
    let files = given_files(&context, (0, &job), inputs, None)?;
    let most = context.config.job.sessions_max;
    for place in 1..=most {
        // Each place is a unique key of the caller, which the session holds until it ends.
        job.spec.unique_key = Some(place_of(place).parse()?);
        match context.client.submit_with_files(job.clone(), &files).await {
            Ok(id) => return started(&context, id, wait).await,
            Err(ClientError::KeyHeld(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let message = format!(
        "{} has {most} sessions, as many as job.sessions_max allows: end one by session.end",
        context.caller.name
    );
    Err(RpcError::new(code::CONFLICT, message).with("most", most))
}

/// Returns the unique key of a place.
fn place_of(number: u64) -> String {
    format!("session-{number}")
}

async fn session_job(context: &CallContext, params: StartSession) -> Result<(Job, EncodedFiles)> {
    let script_type = params.script_type;
    context.uses(&script_type)?;
    let of_type = context.config.types.get(&script_type);
    let Some(driver) = of_type.and_then(TypeConfig::session_driver) else {
        let why = format!(
            "`{script_type}` has no sessions: they are for types whose program is Python, bash or node; run each \
             script by job.run"
        );
        return Err(InvalidJob::new("script_type", why).into());
    };
    if of_type.is_some_and(TypeConfig::requires_signature) {
        let why = format!(
            "`{script_type}` has no sessions: each of its jobs must be signed, and nobody signs the scripts of a session; submit \
             signed jobs"
        );
        return Err(InvalidJob::new("script_type", why).into());
    }
    let most = context.config.job.session_timeout_max;
    let timeout = time("timeout", params.timeout, TIMEOUT.min(most), most)?;
    let idle = time("idle", params.idle, IDLE.min(timeout), most)?.as_secs().max(1);
    let settings = [
        ("script", json!(driver)),
        ("script_type", json!(script_type)),
        ("args", json!([idle.to_string()])),
        ("timeout", json!(timeout.as_secs_f64())),
        ("retries", json!(0)),
        ("env_vars", json!(params.env_vars)),
        ("tags", json!([TAG])),
        ("unique_key", json!(place_of(1))),
        ("on_duplicate", json!("reject")),
    ];
    let names = [("name", params.name), ("group", params.group), ("context_id", params.context_id)];
    let names = names.into_iter().filter_map(|(name, value)| Some((name, json!(value?))));
    let mut job = JobSettings::of(settings.into_iter().chain(names)).job(context).await?;
    job.unique_scope = Some(unique_scope(&job.spec.caller_id, ""));
    job.session = idle;
    context.check_new(std::slice::from_ref(&job)).await?;
    Ok((job, params.inputs))
}

/// Returns a time that is given in seconds, of at most so much.
fn time(
    field: &'static str,
    params: Option<f64>,
    without: Duration,
    most: Duration,
) -> Result<Duration> {
    let Some(seconds) = params else { return Ok(without) };
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.filter(|time| *time <= most).ok_or_else(|| {
        let most = format_duration(most);
        let message =
            format!("`{field}` is {seconds}: it is a number of seconds above 0, up to {most}");
        RpcError::wrong(field, message)
    })
}

/// Waits until a session has started, or for the end of the patience.
async fn started(context: &CallContext, id: JobId, wait: Duration) -> Result<StartedSession> {
    let until = Instant::now() + wait;
    loop {
        let job = context.visible(&id).await?;
        if job.spec.caller_id != context.caller.name {
            return Err(hidden(&id));
        }
        let status = job.status;
        match status {
            JobStatus::Finished | JobStatus::Error => {
                let why = job.error.unwrap_or_else(|| status.to_string());
                let message = format!("session {id} has ended at its start: {why}");
                return Err(RpcError::new(code::JOB_FAILED, message).with("id", id.as_str()));
            }
            JobStatus::Started => {}
            _ if Instant::now() < until => {
                tokio::time::sleep(LOOK).await;
                continue;
            }
            _ => {}
        }
        return Ok(StartedSession { id: id.to_string(), status });
    }
}

/// A script to run in a session.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunInSession {
    /// The id of the session.
    id: JobReference,
    /// The script, up to 128 KiB.
    script: String,
    /// The time that it may take, in seconds; 60 without it.
    timeout: Option<f64>,
}

/// The answer to a script that ran in a session.
#[derive(Serialize, JsonSchema)]
struct RanInSession {
    /// The id of the session.
    id: String,
    /// The exit code: 0 if the script succeeded.
    exit_code: i32,
    /// The text that it wrote to standard output and standard error, or its Base64.
    output: String,
    /// `base64` if the output is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_encoding: Option<&'static str>,
    /// The bytes that were cut off at the start of the output, which has up to 128 KiB.
    #[serde(skip_serializing_if = "is_zero")]
    output_truncated: u64,
    /// The value that it reported by `{"output": …}`, such as `hero.output`: a text as it is, any other as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

async fn run(context: CallContext, params: RunInSession) -> Result<RanInSession> {
    let most = context.config.job.session_timeout_max;
    let timeout = Duration::from_secs_f64(CALL_TIMEOUT_S).min(most);
    let timeout = time("timeout", params.timeout, timeout, most)?;
    let id = context.job_named(&params.id).await?;
    let job = context.visible(&id).await?;
    // An operator may end it, and no more: what it keeps is its caller's.
    if job.spec.caller_id != context.caller.name {
        context.may_name(&id).await?;
        let refused = context.may_not(format!("run a script in session {id} of another caller"));
        return Err(refused.with("id", id.as_str()));
    }
    // A token that was made again under its name may have less.
    if job.session > 0 && job.bounds != context.bounds() {
        let why =
            "a token of this name with other bounds has started it; end it, and start another";
        return Err(context
            .may_not(format!("run a script in session {id}: {why}"))
            .with("id", id.as_str()));
    }
    context.has_type(&job)?;
    let client = context.client.pinned([(id.clone(), job.created_at)]);
    let answer = match client.sessions().call(&id, params.script, timeout).await {
        Ok(answer) => answer,
        Err(error) => {
            // The error tells how the job of this id has ended.
            context.same_job(&job).await?;
            return Err(error.into());
        }
    };
    let output = JobOutput::from(answer.output);
    let output_encoding = matches!(output, JobOutput::Bytes(_)).then_some("base64");
    Ok(RanInSession {
        id: id.to_string(),
        exit_code: answer.exit_code,
        output: output.into_text(),
        output_encoding,
        output_truncated: answer.truncated,
        result: answer.result,
    })
}

/// The sessions.
#[derive(Serialize, JsonSchema)]
struct SessionList {
    /// The sessions of the caller that have not ended; of an operator, all within its bounds.
    sessions: Vec<ListedSession>,
    /// True if these are all: a search ends after two seconds with what it has found.
    complete: bool,
}

/// A session in the list.
#[derive(Serialize, JsonSchema)]
struct ListedSession {
    /// Its id.
    id: String,
    /// Its state: `started`, or another if no actor has started it yet.
    status: JobStatus,
    /// Its script type.
    script_type: Option<String>,
    /// Its name.
    name: Option<String>,
    /// Its caller.
    caller_id: Option<String>,
    /// When it was started.
    started_at: Option<String>,
    /// The seconds without a call after which it ends.
    idle: Option<u64>,
    /// The calls that it has had.
    calls: u64,
}

async fn list(context: CallContext, _: Nothing) -> Result<SessionList> {
    let query = ListQuery {
        statuses: JobStatus::ALL.into_iter().filter(|status| !status.is_terminal()).collect(),
        limit: ListQuery::LIMIT_MAX,
        budget: Some(ListQuery::BUDGET),
        ..ListQuery::default()
    };
    let search = JobSearch::default();
    let sees = |job: &JobSummary| {
        let of = |name: &str| job.fields.get(name).map(String::as_str);
        let is_own = of("caller_id") == Some(context.caller.name.as_str());
        of("session").is_some()
            && Tags::of_field(of("tags").unwrap_or_default()).has(TAG)
            && (is_own || context.caller.operates() && context.caller.reads())
            && context.caller.sees(job)
    };
    let _place = context.may_search().await?;
    let found = context.client.jobs().find(&query, &search, sees).await?;
    let sessions = found.items.into_iter().map(|job| {
        let text = |name: &str| job.fields.get(name).cloned();
        let number = |name: &str| text(name).and_then(|text| text.parse().ok());
        ListedSession {
            id: job.id.to_string(),
            status: job.status,
            script_type: text("script_type"),
            name: text("name"),
            caller_id: text("caller_id"),
            started_at: text("started_at"),
            idle: number("session"),
            calls: number("session_calls").unwrap_or_default(),
        }
    });
    Ok(SessionList { sessions: sessions.collect(), complete: found.complete })
}

/// A session to end.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EndSession {
    /// The id of the session.
    id: JobReference,
}

async fn end(context: CallContext, params: EndSession) -> Result<JobChangeResult> {
    let id = context.own_job(params.id, "end").await?;
    let has_ended = context.client.sessions().end(&id).await?;
    Ok(JobChangeResult::new(&id, if has_ended { "ended" } else { "told to stop" }))
}
