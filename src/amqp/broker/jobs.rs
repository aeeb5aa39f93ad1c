//! Messages as jobs: the job of a message, its submission, and the answer that its end means.

use std::collections::BTreeMap;
use std::future::Future;

use serde_json::Value;

use super::shared::Shared;
use crate::amqp::message::{AmqpMessage, MessageAnswer, MessageFailure, short_hash};
use crate::client::{AwaitedJob, ClientError};
use crate::config::{AckMode, RouteConfig};
use crate::proto::error_kind::FailureCause;
use crate::proto::job::{Job, JobFiles, JobId, JobSpec, Params};
use crate::proto::json_text::refuse_wide_integers;
use crate::proto::text::shown;
use crate::store::{Backoff, MessageEnd};

/// The submitter of these jobs.
const CALLER: &str = "amqp";
/// The exit code of a failure that may pass, `EX_TEMPFAIL` of sysexits(3).
const TEMPORARY: i32 = 75;
/// An error that begins so says that it may pass, also after the word of the engine.
const RETRY_WORD: &str = "retry: ";
const ENGINE_WORD: &str = "Runtime error: ";

/// Returns the id of the job of a message. A message that has an id always becomes the same job, but
/// another one after each failure.
pub(super) fn job_id(scope: &str, message: &AmqpMessage) -> JobId {
    let text = match &message.message_id {
        None => format!("amqp-{}", JobId::random()),
        Some(id) => {
            let attempt = message.attempt.to_string();
            let run = (message.run > 0).then(|| message.run.to_string());
            let parts = [scope, &message.queue, id, &attempt].into_iter().chain(run.as_deref());
            format!("amqp-{}", hashed(&parts.collect::<Vec<_>>()))
        }
    };
    // It is of the legal form.
    text.parse().unwrap_or_else(|_| JobId::random())
}

/// Returns the name of all attempts of a run of a message; `None` if it has no id.
pub(super) fn chain_id(scope: &str, message: &AmqpMessage) -> Option<String> {
    let id = message.message_id.as_deref()?;
    Some(hashed(&[scope, &message.queue, id, "run", &message.run.to_string()]))
}

fn hashed(parts: &[&str]) -> String {
    short_hash(&parts.join("\0"))
}

/// The answer to the job of a message: it is stored, it was there before (`None`), or it is refused.
pub(super) type HandedOver<T> = Result<Option<T>, MessageFailure>;

fn handed_over<T>(submitted: Result<T, ClientError>) -> HandedOver<T> {
    match submitted {
        Ok(job) => Ok(Some(job)),
        Err(ClientError::IdTaken(_)) => Ok(None),
        Err(error) => Err(refused(&error)),
    }
}

fn refused(error: &ClientError) -> MessageFailure {
    let code = match error {
        ClientError::BrokenQueue(_) => "broken_queue",
        _ => "invalid_job",
    };
    MessageFailure::lasting(code, error.to_string())
}

/// Returns the parameters of a published script: the data of a message.
fn parameters_of(message: &AmqpMessage) -> Result<Params, MessageFailure> {
    match &message.data {
        Value::Null => Ok(Params::new()),
        Value::Object(data) => Ok(data.clone().into_iter().collect()),
        _ => {
            let why = "the data must be an object: they are the parameters of a published script";
            Err(MessageFailure::invalid(why))
        }
    }
}

impl Shared {
    /// Returns the job of a message by a route, with its message and the way to its answer.
    ///
    /// # Errors
    /// [`MessageFailure`] that lasts: its data cannot be parameters of the published script of the route.
    pub(super) fn job_of(
        &self,
        place: usize,
        route: &RouteConfig,
        message: &AmqpMessage,
    ) -> Result<Job, MessageFailure> {
        let script = self.settings.scripts.get(place).cloned().unwrap_or_default();
        let mut spec = JobSpec::new(script.as_ref());
        spec.uses.clone_from(&route.uses);
        if route.uses.is_some() {
            spec.params = parameters_of(message)?;
        }
        spec.id = Some(job_id(&self.scope, message));
        spec.script_type.clone_from(&route.script_type);
        spec.group.clone_from(&route.group);
        spec.r#where.clone_from(&route.selector);
        spec.timeout = route.timeout.map(|timeout| timeout.0);
        // The retry lanes repeat it.
        spec.retries = Some(0);
        CALLER.clone_into(&mut spec.caller_id);
        spec.context_id.clone_from(&self.settings.amqp.context);
        spec.traceparent = message.trace();
        spec.name = shown(&format!("{} {}", message.key, message.operation)).parse().ok();
        // Where the end is awaited by a dispatcher, nobody else is to answer.
        let is_awaited = route.ack == AckMode::End;
        spec.reply = is_awaited;
        let scope = if is_awaited { String::new() } else { self.scope.clone() };
        let text = serde_json::to_string(message)
            .map_err(|error| MessageFailure::lasting("invalid_message", error.to_string()))?;
        let mut job = Job::from(spec);
        job.extra =
            BTreeMap::from([("message".to_owned(), text), ("amqp_scope".to_owned(), scope)]);
        Ok(job)
    }

    /// Stores jobs whose ends the brokers of the tag answer, in one call. `None` if this process is to end
    /// first; then nobody acknowledges their messages.
    pub(super) async fn submit_all(&self, jobs: &[Job]) -> Option<Vec<HandedOver<JobId>>> {
        let submitted = self.until_redis_answers(|| self.client.submit_all(jobs)).await?;
        Some(match submitted {
            Ok(each) => each.into_iter().map(handed_over).collect(),
            Err(error) => jobs.iter().map(|_| Err(refused(&error))).collect(),
        })
    }

    /// Stores a job whose end this process awaits, as [`Shared::submit_all`] does.
    pub(super) async fn submit_awaited(&self, job: &Job) -> Option<HandedOver<AwaitedJob>> {
        let files = JobFiles::default();
        let submit = || self.client.submit_awaited(job.clone(), &files);
        self.until_redis_answers(submit).await.map(handed_over)
    }

    /// Calls Redis again and again until it answers. `None` if this process is to end first.
    async fn until_redis_answers<T, F>(
        &self,
        call: impl Fn() -> F,
    ) -> Option<Result<T, ClientError>>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let mut backoff = Backoff::default();
        loop {
            match Box::pin(call()).await {
                Err(
                    ClientError::Store(error)
                    | ClientError::Unsure { error, .. }
                    | ClientError::Unconfirmed { error, .. },
                ) => self.redis_failed("handing messages over", &error),
                answer => {
                    self.redis_answered();
                    return Some(answer);
                }
            }
            self.pause(&mut backoff).await?;
        }
    }

    /// Waits for the end of a job, as long as Redis may be away; `None` if this process is to end first.
    pub(super) async fn end_of(&self, job: &AwaitedJob) -> Option<MessageAnswer> {
        let mut backoff = Backoff::default();
        loop {
            let waited = tokio::select! {
                waited = self.client.await_end(job, None) => waited,
                () = self.left() => return None,
            };
            let known = match waited {
                // A reply has no exit code, and an output that cannot be read is a failure of the job.
                Ok(_) | Err(ClientError::JobFailed { .. } | ClientError::Store(_)) => {
                    self.store.brokers().message_end(&job.id).await
                }
                Err(ClientError::Unconfirmed { error, .. }) => Err(error),
                Err(error) => {
                    let failure = MessageFailure::lasting("unknown_end", error.to_string());
                    return Some(Err(failure));
                }
            };
            match known {
                Ok(Some(end)) => return Some(answer_of(end)),
                // It runs again.
                Ok(None) => {}
                Err(error) => self.redis_failed("waiting for the end of a job", &error),
            }
            self.pause(&mut backoff).await?;
        }
    }

    /// Waits a little before Redis is called again; `None` if this process is to end.
    pub(super) async fn pause(&self, backoff: &mut Backoff) -> Option<()> {
        tokio::select! {
            () = tokio::time::sleep(backoff.failed()) => Some(()),
            () = self.left() => None,
        }
    }
}

/// Returns the answer that the end of a job means.
pub(super) fn answer_of(end: MessageEnd) -> MessageAnswer {
    if end.is_finished {
        // As a value it would lose the digits of a number over 64 bits.
        let is_exact = refuse_wide_integers(end.text.as_bytes()).is_ok();
        let result = is_exact.then(|| serde_json::from_str(&end.text).ok()).flatten();
        return Ok(result.unwrap_or(Value::String(end.text)));
    }
    // The exit code of a stopped job belongs to an attempt before.
    let was_stopped = FailureCause::of(&end.text).intended().is_some();
    let is_temporary = end.exit_code == Some(TEMPORARY) && !was_stopped;
    let may_pass = is_temporary || asks_for_retry(&end.text) || end.text == "timeout";
    let failure = if may_pass { MessageFailure::passing } else { MessageFailure::lasting };
    Err(failure("job_failed", end.text))
}

/// Returns true for an error whose own text begins with the word.
fn asks_for_retry(text: &str) -> bool {
    text.strip_prefix(ENGINE_WORD).unwrap_or(text).starts_with(RETRY_WORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: Option<&str>, attempt: u32) -> AmqpMessage {
        let mut message: AmqpMessage =
            serde_json::from_str(r#"{"queue":"q","key":"k","operation":"o"}"#).expect("legal");
        message.message_id = id.map(str::to_owned);
        message.attempt = attempt;
        message
    }

    #[test]
    fn a_message_with_an_id_is_always_the_same_job() {
        let id = |scope, message: &AmqpMessage| job_id(scope, message).to_string();
        let (one, retried) = (message(Some("m"), 0), message(Some("m"), 1));
        assert_eq!(id("a", &one), id("a", &one));
        assert!(id("a", &one).starts_with("amqp-") && id("a", &one).len() == 37);
        assert_ne!(id("a", &one), id("b", &one));
        assert_ne!(id("a", &one), id("a", &retried));
        let run = AmqpMessage { run: 1, ..one.clone() };
        assert_ne!(id("a", &run), id("a", &retried));
        assert_eq!(chain_id("a", &one), chain_id("a", &retried));
        assert_ne!(chain_id("a", &one), chain_id("a", &run));
        let other = AmqpMessage { queue: "r".to_owned(), ..one.clone() };
        assert_ne!(id("a", &one), id("a", &other));
        let none = message(None, 0);
        assert_ne!(id("a", &none), id("a", &none));
        assert!(id("a", &none).starts_with("amqp-"));
    }

    #[test]
    fn the_end_of_a_job_says_whether_its_failure_may_pass() {
        let end = |text: &str, exit_code| MessageEnd {
            message: String::new(),
            is_finished: false,
            text: text.to_owned(),
            exit_code,
        };
        let may_pass = |end: MessageEnd| match answer_of(end) {
            Err(failure) => failure.retryable,
            Ok(_) => panic!("it failed"),
        };
        assert!(may_pass(end("exit code 75", Some(75))));
        assert!(may_pass(end("Runtime error: retry: the printer is busy", None)));
        assert!(may_pass(end("timeout", None)));
        assert!(!may_pass(end("exit code 1", Some(1))));
        assert!(!may_pass(end("stopped_by_request", Some(75))));
        assert!(!may_pass(end("no such bill", None)));
        assert!(may_pass(end("retry: later", None)));
        assert!(!may_pass(end("cannot parse: `retry: 3`", None)));
    }

    #[test]
    fn an_output_that_is_json_is_the_result_as_json() {
        let end = |text: &str| MessageEnd {
            message: String::new(),
            is_finished: true,
            text: text.to_owned(),
            exit_code: None,
        };
        assert_eq!(answer_of(end("{\"a\":1}")), Ok(serde_json::json!({"a": 1})));
        assert_eq!(answer_of(end("done")), Ok("done".into()));
    }
}
