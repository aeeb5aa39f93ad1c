//! The jobs that the script of a running job submits.

use super::submission::{Submitted, refused, submission, unawaited};
use super::{JobSummary, Store, StoreError};
use crate::proto::job::{BootId, GENERATIONS_MAX, Job, JobId, Retention};

/// The answer to the submission of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildSubmitted {
    Accepted,
    /// The job has submitted it before; nothing was written.
    Known,
    /// The boot does not own the job any more, or has claimed it again; nothing was written.
    Lost,
    /// The stop of the job was asked for; nothing was written.
    Stopped,
    /// The job has as many children as it may; nothing was written.
    TooMany,
    /// It would be of a generation below the last one; nothing was written.
    TooDeep,
    /// It waits for this job, which is no child of the same job; nothing was written.
    Stranger(String),
    /// The reason why the job was refused: anything but [`Submitted::Accepted`].
    Refused(Submitted),
}

impl Store {
    /// Returns the jobs that the script of a job has submitted and that are still there; none if it is gone. A job that its
    /// hash names, and that names another parent or none, is none of them: a program wrote it there.
    pub async fn children(&self, id: &JobId) -> Result<Vec<JobId>, StoreError> {
        let Some(Ok(job)) = self.job(id).await? else { return Ok(Vec::new()) };
        let named = self.summaries_with(job.children, &["parent"]).await?.into_iter().flatten();
        let is_own =
            |child: &JobSummary| child.fields.get("parent").is_some_and(|of| of == id.as_str());
        Ok(named.filter(is_own).map(|child| child.id).collect())
    }

    /// Submits a child of a running job, once however often it is called: its id must follow from its parent.
    ///
    /// # Errors
    /// [`StoreError`]. After a lost connection it may have been submitted: again says [`ChildSubmitted::Known`].
    pub async fn submit_child(
        &self,
        boot: &BootId,
        (parent, claimed_at): (&JobId, u64),
        child: &Job,
        children_max: u64,
        retention: impl Into<Retention>,
    ) -> Result<ChildSubmitted, StoreError> {
        const DOING: &str = "submitting a child of a job";
        let mut script = self.scripts.submit_child.prepare_invoke();
        script.arg(boot.as_str()).arg(parent.as_str()).arg(claimed_at);
        script.arg(children_max).arg(GENERATIONS_MAX).arg(child.spec.waits_for().count());
        script.arg(child.spec.waits_for().map(JobId::as_str).collect::<Vec<_>>());
        submission(&mut script, &[unawaited(child)], true, retention);
        let (code, detail): (String, String) = self.invoke(DOING, &script).await?;
        Ok(match code.as_str() {
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
        })
    }
}
