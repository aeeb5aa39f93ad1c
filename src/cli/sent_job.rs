//! A job that a command submits, by the method of the API; and the span of a submission, if the configuration has a
//! receiver.

use super::api::ApiMethods;
use super::job_options::JobOptions;
use super::key::Signing;
use super::{explain, job_notes, output};
use crate::client::AwaitedJob;
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::proto::job::{JobId, JobSpec, TraceParent};
use crate::trace::{OpenSpan, Sending, SpanKind, Tracer};

pub(super) struct SentJob {
    /// The job, or the one that holds its unique key.
    pub(super) job: AwaitedJob,
    /// False if no job was stored.
    pub(super) is_new: bool,
    pub(super) spec: JobSpec,
    /// The id that was asked for.
    own: JobId,
    is_local: bool,
    pub(super) span: SubmitSpan,
}

#[derive(Clone, Copy)]
pub(super) struct JobSending<'a> {
    pub(super) signing: &'a Signing,
    /// True if the command waits for its end.
    pub(super) is_awaited: bool,
    /// True if the command prints what the sandbox of the script allows.
    pub(super) explains: bool,
}

impl SentJob {
    pub(super) async fn send(
        api: &mut ApiMethods,
        options: &JobOptions,
        how: JobSending<'_>,
        config: &Config,
    ) -> Result<Self, Error> {
        api.sign(how.signing)?;
        let is_local = matches!(api, ApiMethods::Local { .. });
        if how.is_awaited && !is_local {
            let doing = "run a job and wait for its end";
            api.needs_read(doing, "hero submit sends it without a wait").await?;
        }
        let mut job = options.job(config)?;
        if let Some(used) = &job.spec.uses {
            let words = options.further.given.words();
            api.read_words(used, &mut job.spec.params, &words).await;
        }
        let span = SubmitSpan::begin(config, job.spec.traceparent);
        job.spec.traceparent = span.place;
        let files = options.files(None, &job, config)?;
        if how.explains {
            let ApiMethods::Local { context, .. } = &*api else {
                let message = "--explain needs the machine itself: leave out --api";
                return Err(Error::new(Exit::Usage, message));
            };
            let mut resolved = job.clone();
            context.client.scripts().resolve(&mut resolved).await?;
            explain::print_allowed(config, &resolved)?;
        }
        let (spec, own) = (job.spec.clone(), job.id.clone());
        let (job, is_new) = api.submit(&job, files, how.is_awaited).await?;
        Ok(Self { job, is_new, spec, own, is_local, span })
    }

    /// Prints what a person should know of it: that no job was stored, and settings that this configuration does not
    /// know.
    pub(super) fn note(&self, config: &Config) {
        if !self.is_new {
            output::notes([job_notes::known(&self.spec, &self.own, &self.job.id)]);
        }
        // Elsewhere another configuration holds.
        if self.is_local {
            job_notes::print(&self.spec, config);
        }
    }
}

/// A submission that goes on. Without a receiver it only hands the place in the trace on.
pub(super) struct SubmitSpan {
    /// The place of the jobs in a trace.
    pub(super) place: Option<TraceParent>,
    open: Option<(OpenSpan, Tracer, Sending)>,
}

impl SubmitSpan {
    /// Begins below a place in a trace, or in a new one.
    pub(super) fn begin(config: &Config, above: Option<TraceParent>) -> Self {
        let sending = Tracer::start(&config.trace, "hero-submit");
        let open = sending.and_then(|(tracer, sending)| {
            Some((OpenSpan::begin(&tracer, above)?, tracer, sending))
        });
        let place = open.as_ref().map(|(open, ..)| open.own).or(above);
        Self { place, open }
    }

    /// Ends it, and sends it; that takes a short time at most. `what` is the id of the job, graph or batch.
    pub(super) async fn end(self, kind: &str, what: &str) {
        let Some((open, tracer, sending)) = self.open else { return };
        let names = ["hero.submitted.id", "messaging.message.id"];
        let attributes = names.map(|name| (name, what.to_owned())).to_vec();
        open.end(&tracer, (SpanKind::Producer, format!("submit {kind}")), None, attributes);
        sending.end().await;
    }
}
