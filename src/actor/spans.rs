//! The spans of an attempt: its wait in the queue, the attempt, and its script.

use std::time::Duration;

use super::job_log_lines::waited;
use super::running_job::{RunningJob, TracedAttempt};
use crate::engine::Failure;
use crate::proto::error_kind::FailureCause;
use crate::proto::target::ActorId;
use crate::trace::{JobSpan, SpanKind, Tracer, new_span};

impl TracedAttempt {
    /// Sends the spans of an attempt that has ended. All times follow from Redis's clock.
    pub(super) fn end(
        &self,
        tracer: &Tracer,
        run: &RunningJob,
        actor: &ActorId,
        failure: Option<&Failure>,
        took: Duration,
    ) {
        let job = &run.job;
        let Some(started) = job.started_at.filter(|_| self.own.is_sampled()) else { return };
        let whole = self.begun.elapsed().max(took);
        // The script of a job that waits has not failed.
        let failure = failure.filter(|failure| !matches!(failure, Failure::Waits { .. }));
        let error = failure.map(|failure| run.log.hide(&failure.to_string()).into_owned());
        let id = ("hero.job.id", job.id.to_string());
        let mut attributes = vec![
            id.clone(),
            ("hero.job.type", actor.script_type.to_string()),
            ("hero.queue", run.queue.to_string()),
            ("hero.actor", actor.to_string()),
            ("hero.attempt", job.attempt.to_string()),
            ("messaging.destination.name", run.queue.to_string()),
            ("messaging.message.id", job.id.to_string()),
        ];
        let cause = error.as_ref().map(|error| FailureCause::of(error).as_str().to_owned());
        let cause = cause.map(|cause| ("error.type", cause));
        attributes.extend(cause.clone());
        attributes.extend(job.spec.name.iter().map(|name| ("hero.job.name", name.to_string())));
        attributes.extend(job.graph_id.iter().map(|graph| ("hero.graph.id", graph.to_string())));
        let wait = waited(job).unwrap_or_default();
        let span = JobSpan {
            own: self.own,
            parent: self.parent.clone(),
            name: format!("attempt {}", actor.script_type),
            kind: SpanKind::Consumer,
            begin: started,
            took: whole,
            error,
            attributes,
        };
        let part = |parent, name: &str, begin, took| JobSpan {
            own: self.own.below(new_span()),
            parent,
            name: name.to_owned(),
            kind: SpanKind::Internal,
            begin,
            took,
            attributes: vec![id.clone()],
            error: None,
        };
        let script = JobSpan {
            error: span.error.clone(),
            attributes: [id.clone()].into_iter().chain(cause).collect(),
            ..part(Some(self.own.span_id()), "script", started + whole.saturating_sub(took), took)
        };
        tracer.send(part(self.parent.clone(), "wait", started - wait, wait));
        tracer.send(span);
        tracer.send(script);
    }
}
