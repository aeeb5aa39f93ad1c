//! A job that a command submits: over Redis, or over the API of a daemon elsewhere.

use super::api::ApiMethods;
use super::job_options::{JobOptions, of_option};
use super::signing::Signing;
use super::submit_span::SubmitSpan;
use super::{explain, job_notes, output};
use crate::client::AwaitedJob;
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::proto::job::{JobId, JobSpec};

/// A job that was submitted.
pub(super) struct SentJob {
    /// The job, or the one that holds its unique key.
    pub(super) job: AwaitedJob,
    /// False if no job was stored.
    pub(super) is_new: bool,
    pub(super) spec: JobSpec,
    /// Its id if it was stored.
    own: JobId,
    /// The span of the submission, if this program made it.
    pub(super) span: Option<SubmitSpan>,
}

/// The submission of a job by a command.
#[derive(Clone, Copy)]
pub(super) struct JobSending<'a> {
    pub(super) signing: &'a Signing,
    /// True if the command waits for its end.
    pub(super) is_awaited: bool,
    /// True if the command prints what the sandbox of the script allows.
    pub(super) explains: bool,
}

impl SentJob {
    /// Submits the job of the options with its files.
    pub(super) async fn send(
        api: &ApiMethods,
        options: &JobOptions,
        how: JobSending<'_>,
        config: &Config,
    ) -> Result<Self, Error> {
        let ApiMethods::Local { context, .. } = api else {
            return Self::send_elsewhere(api, options, how, config).await;
        };
        let client = how.signing.client(context.client.clone())?;
        let mut job = options.resolved_job((api, &client), config).await?;
        let span = SubmitSpan::begin(config, job.spec.traceparent);
        job.spec.traceparent = span.place;
        let files = options.files(&job, config)?;
        if how.explains {
            explain::print_allowed(config, &job)?;
        }
        client.place(&mut job).map_err(of_option)?;
        let (spec, own) = (job.spec.clone(), job.id.clone());
        let submitted = if how.is_awaited {
            Box::pin(client.submit_awaited_or_same(job, &files)).await
        } else {
            let submitted = Box::pin(client.submit_or_same(job, &files)).await;
            submitted.map(|(id, is_new)| (id.into(), is_new))
        };
        let (job, is_new) = submitted.map_err(of_option)?;
        Ok(Self { job, is_new, spec, own, span: Some(span) })
    }

    async fn send_elsewhere(
        api: &ApiMethods,
        options: &JobOptions,
        how: JobSending<'_>,
        config: &Config,
    ) -> Result<Self, Error> {
        if how.explains || how.signing.is_given() {
            let message = "--explain and --sign need the machine itself: leave out --api";
            return Err(Error::new(Exit::Usage, message));
        }
        if how.is_awaited {
            let doing = "run a job and wait for its end";
            api.needs_read(doing, "hero submit sends it without a wait").await?;
        }
        let (id, is_new, job) = api.submit(options, config).await?;
        Ok(Self { job: id.into(), is_new, spec: job.spec, own: job.id, span: None })
    }

    /// Prints what a person should know of it: that no job was stored, and settings that this configuration does not
    /// know.
    pub(super) fn note(&self, config: &Config) {
        if !self.is_new {
            let known = job_notes::known(&self.spec, &self.own, &self.job.id);
            output::note(&format!("hero: {known}"));
        }
        // Elsewhere another configuration holds.
        if self.span.is_some() {
            job_notes::print(&self.spec, config);
        }
    }
}
