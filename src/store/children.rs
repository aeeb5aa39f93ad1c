//! The jobs that the script of a running job submits.

use super::submission::{Submitted, refused, submission, unawaited};
use super::{JobSummary, NewGraph, Result, Store, StoreError};
use crate::proto::job::{BootId, GENERATIONS_MAX, Job, JobId, Retention};

/// The answer to the submission of children; unless they are accepted, nothing was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildSubmitted {
    Accepted,
    /// The job has submitted them before.
    Known,
    /// The boot does not own the job any more, or has claimed it again.
    Lost,
    /// The stop of the job was asked for.
    Stopped,
    /// The job has as many children as it may, or would have more.
    TooMany,
    /// They would be of a generation below the last one.
    TooDeep,
    /// One waits for this job, which is no child of the same job.
    Stranger(String),
    /// The reason why the job was refused: anything but [`Submitted::Accepted`].
    Refused(Submitted),
}

impl Store {
    /// Returns the jobs that the script of a job has submitted and that are still there; none if it is gone. A job that its
    /// hash names, and that names another parent or none, is none of them: a program wrote it there.
    pub async fn children(&self, id: &JobId) -> Result<Vec<JobId>> {
        let Some(Ok(job)) = self.job(id).await? else { return Ok(Vec::new()) };
        let named = self.summaries_with(job.children, &["parent"]).await?.into_iter().flatten();
        let is_own =
            |child: &JobSummary| child.fields.get("parent").is_some_and(|of| of == id.as_str());
        Ok(named.filter(is_own).map(|child| child.id).collect())
    }

    /// Submits children of a running job, all or none, once however often it is called: their ids must follow from their
    /// parent, and each stands behind its prerequisites among them. Returns the number of the refused child too, 0 if
    /// it is none of them alone.
    ///
    /// # Errors
    /// [`StoreError`]. After a lost connection they may have been submitted: again says [`ChildSubmitted::Known`].
    pub async fn submit_children(
        &self,
        boot: &BootId,
        (parent, claimed_at): (&JobId, u64),
        (children, graph): (&[Job], Option<&NewGraph>),
        children_max: u64,
        retention: impl Into<Retention>,
    ) -> Result<(ChildSubmitted, usize)> {
        const DOING: &str = "submitting children of a job";
        let mut script = self.scripts.submit_children.prepare_invoke();
        script.arg(boot.as_str()).arg(parent.as_str()).arg(claimed_at);
        script.arg(children_max).arg(GENERATIONS_MAX);
        let jobs: Vec<_> = children.iter().map(unawaited).collect();
        submission(&mut script, &jobs, true, retention);
        match graph {
            Some(graph) => graph.write(&mut script, 0),
            None => drop(script.arg("")),
        }
        let (code, detail, number): (String, String, String) = self.invoke(DOING, &script).await?;
        let done = match code.as_str() {
            "submitted" => ChildSubmitted::Accepted,
            "known" => ChildSubmitted::Known,
            "lost" => ChildSubmitted::Lost,
            "stopped" => ChildSubmitted::Stopped,
            "many" => ChildSubmitted::TooMany,
            "deep" => ChildSubmitted::TooDeep,
            "stranger" => ChildSubmitted::Stranger(detail),
            code => {
                let why = refused(code, detail).ok_or_else(|| StoreError::unexpected(DOING))?;
                ChildSubmitted::Refused(why)
            }
        };
        Ok((done, number.parse().unwrap_or_default()))
    }
}
