//! Messages as jobs: the job of a message, its submission, and the answer that its end means.

use std::collections::BTreeMap;

use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::shared::Shared;
use crate::amqp::message::{AmqpMessage, MessageAnswer, MessageFailure};
use crate::config::RouteConfig;
use crate::proto::error_kind::STOP_ERRORS;
use crate::proto::job::{InvalidJob, Job, JobId, JobSpec};
use crate::proto::text::shown;
use crate::store::{Backoff, MessageEnd, Submitted};

/// The submitter of these jobs.
const CALLER: &str = "amqp";
/// The exit code of a failure that may pass, `EX_TEMPFAIL` of sysexits(3).
const TEMPORARY: i32 = 75;
/// An error with this text says that it may pass.
const RETRY_WORD: &str = "retry: ";

/// Returns the id of the job of a message. A message that has an id always becomes the same job, but
/// another one after each failure.
fn job_id(scope: &str, message: &AmqpMessage) -> JobId {
    let text = match &message.message_id {
        None => format!("amqp-{}", JobId::random()),
        Some(id) => {
            let parts = [scope, &message.queue, id, &message.attempt.to_string()].join("\0");
            let hash = digest(&SHA256, parts.as_bytes());
            let hex = hash.as_ref()[..16].iter().map(|byte| format!("{byte:02x}"));
            format!("amqp-{}", hex.collect::<String>())
        }
    };
    // It is of the legal form.
    text.parse().unwrap_or_else(|_| JobId::random())
}

impl Shared {
    /// Returns the job of a message by a route.
    ///
    /// # Errors
    /// [`MessageFailure`] that lasts: the job breaks a bound of the configuration.
    pub(super) fn job_of(
        &self,
        place: usize,
        route: &RouteConfig,
        message: &AmqpMessage,
    ) -> Result<Job, MessageFailure> {
        let invalid = |error: InvalidJob| MessageFailure::lasting("invalid_job", error.to_string());
        let script = self.settings.scripts.get(place).cloned().unwrap_or_default();
        let mut spec = JobSpec::new(script.as_ref());
        spec.id = Some(job_id(&self.scope, message));
        spec.script_type.clone_from(&route.script_type);
        spec.group.clone_from(&route.group);
        spec.timeout = route.timeout.map(|timeout| timeout.0);
        // The retry lanes repeat it.
        spec.retries = Some(0);
        spec.reply = false;
        CALLER.clone_into(&mut spec.caller_id);
        spec.context_id.clone_from(&self.settings.amqp.context);
        spec.name = shown(&format!("{} {}", message.key, message.operation)).parse().ok();
        spec.check(&self.settings.job.bounds()).map_err(invalid)?;
        let mut job = Job::from(spec);
        let text = serde_json::to_string(message)
            .map_err(|error| MessageFailure::lasting("invalid_message", error.to_string()))?;
        job.extra = BTreeMap::from([
            ("message".to_owned(), text),
            ("amqp_scope".to_owned(), self.scope.clone()),
        ]);
        Ok(job)
    }

    /// Stores jobs, again and again until Redis has them. `None` if this process is to end first; then
    /// nobody acknowledges their messages.
    pub(super) async fn submit(&self, jobs: &[Job]) -> Option<Vec<Submitted>> {
        let mut backoff = Backoff::default();
        let kept = self.settings.job.kept();
        loop {
            match self.store.submit(jobs, true, kept).await {
                Ok(submitted) => return Some(submitted),
                Err(error) => tracing::warn!("handing {} messages over: {error}", jobs.len()),
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.failed()) => {}
                () = self.left() => return None,
            }
        }
    }
}

/// Returns the answer that the end of a job means.
pub(super) fn answer_of(end: MessageEnd) -> MessageAnswer {
    if end.is_finished {
        let result = serde_json::from_str(&end.text);
        return MessageAnswer::Done(result.unwrap_or(Value::String(end.text)));
    }
    // The exit code of a job that was stopped is that of an attempt before.
    let was_stopped = STOP_ERRORS.contains(&end.text.as_str());
    let is_temporary = end.exit_code == Some(TEMPORARY) && !was_stopped;
    let may_pass = is_temporary || end.text.contains(RETRY_WORD) || end.text == "timeout";
    let failure = if may_pass { MessageFailure::passing } else { MessageFailure::lasting };
    MessageAnswer::Failed(failure("job_failed", end.text))
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
            MessageAnswer::Failed(failure) => failure.retryable,
            MessageAnswer::Done(_) => panic!("it failed"),
        };
        assert!(may_pass(end("exit code 75", Some(75))));
        assert!(may_pass(end("Runtime error: retry: the printer is busy", None)));
        assert!(may_pass(end("timeout", None)));
        assert!(!may_pass(end("exit code 1", Some(1))));
        assert!(!may_pass(end("stopped_by_request", Some(75))));
        assert!(!may_pass(end("no such bill", None)));
    }

    #[test]
    fn an_output_that_is_json_is_the_result_as_json() {
        let end = |text: &str| MessageEnd {
            message: String::new(),
            is_finished: true,
            text: text.to_owned(),
            exit_code: None,
        };
        assert_eq!(answer_of(end("{\"a\":1}")), MessageAnswer::Done(serde_json::json!({"a": 1})));
        assert_eq!(answer_of(end("done")), MessageAnswer::Done("done".into()));
    }
}
