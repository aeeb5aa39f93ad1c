//! The requests of the script of a running job: jobs that it submits, and outputs of others.

use super::submission::{Submitted, refused, submission, unawaited};
use super::{JobStore, JobSummary, NewGraph, Result, StoreError};
use crate::proto::job::{
    ASKED_OUTPUT_BYTES_MAX, AskedOutput, BootId, ChildName, FoundOutput, GENERATIONS_MAX, Job,
    JobId, JobOutput, JobStatus, Retention, child_id,
};
use crate::proto::job_rights::JobRights;

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

impl JobStore<'_> {
    /// Returns the jobs that the script of a job has submitted and that are still there; none if it is gone. A job that its
    /// hash names, and that names another parent or none, is none of them: a program wrote it there.
    pub async fn children(self, id: &JobId) -> Result<Vec<JobId>> {
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
        self,
        boot: &BootId,
        (parent, claimed_at): (&JobId, u64),
        (children, graph): (&[Job], Option<&NewGraph>),
        children_max: u64,
        retention: impl Into<Retention>,
    ) -> Result<(ChildSubmitted, usize)> {
        const DOING: &str = "submitting children of a job";
        let mut script = self.store.scripts.submit_children.prepare_invoke();
        script.arg(boot.as_str()).arg(parent.as_str()).arg(claimed_at);
        script.arg(children_max).arg(GENERATIONS_MAX);
        let jobs: Vec<_> = children.iter().map(unawaited).collect();
        submission(&mut script, &jobs, true, retention);
        match graph {
            Some(graph) => graph.write(&mut script, 0),
            None => drop(script.arg("")),
        }
        let (code, detail, number): (String, String, String) =
            self.store.invoke(DOING, &script).await?;
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

const DOING: &str = "reading the output of a job for a script";

impl JobStore<'_> {
    /// Reads the output of a job for the script of another one that runs, and that may have it.
    pub async fn asked_output(
        self,
        boot: &BootId,
        (job, claimed_at): (&Job, u64),
        asked: &AskedOutput,
    ) -> Result<FoundOutput> {
        let mut script = self.store.scripts.asked_output.prepare_invoke();
        script.arg(boot.as_str()).arg(job.id.as_str()).arg(claimed_at);
        script.arg(ASKED_OUTPUT_BYTES_MAX).arg(asked.as_str());
        script.arg(job.graph_id.as_ref().map_or("", JobId::as_str)).arg(&job.spec.caller_id);
        script.arg(job.prerequisites_at.map(|at| at.to_string()).unwrap_or_default());
        script.arg(JobRights::to_outputs(job));
        for id in self.candidates(job, asked) {
            let is_awaited = job.spec.waits_for().any(|of| *of == id);
            script.arg(id.as_str()).arg(if is_awaited { "1" } else { "" });
        }
        let mut answer: Vec<Vec<u8>> = self.store.invoke(DOING, &script).await?;
        let detail = answer.drain(2.min(answer.len())..).next().unwrap_or_default();
        let unexpected = || StoreError::unexpected(DOING);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| unexpected());
        let (word, id) = match answer.as_slice() {
            [word] if word == b"lost" => return Ok(FoundOutput::Lost),
            [word] if word == b"stranger" => return Ok(FoundOutput::Stranger),
            [word, id] => (text(word)?, StoreError::or_parsed(DOING, &text(id)?)?),
            _ => return Err(unexpected()),
        };
        Ok(match word.as_str() {
            "gone" => FoundOutput::Gone(id),
            "error" => FoundOutput::Failed(id, text(&detail)?),
            "large" => FoundOutput::TooLarge(id, StoreError::or_parsed(DOING, &text(&detail)?)?),
            "unended" => FoundOutput::Unended(id, StoreError::or_parsed(DOING, &text(&detail)?)?),
            "finished" => FoundOutput::Finished(id, JobOutput::from(detail)),
            _ => match self.outcome(&id).await? {
                Some((JobStatus::Finished, output)) => bounded(id, output.unwrap_or_default()),
                Some((status, _)) => FoundOutput::Unended(id, status),
                None => FoundOutput::Gone(id),
            },
        })
    }

    /// Returns the jobs that a script may mean by a name: a prerequisite by its name in the graph, a job by its id, a child.
    fn candidates(self, job: &Job, asked: &AskedOutput) -> Vec<JobId> {
        let mut given = job.spec.prerequisite_names.iter();
        let of_graph = given.find(|(name, _)| name.as_str() == asked.as_str());
        let awaited = of_graph.map(|(_, id)| id.clone()).into_iter();
        let child = self.store.shard().id(&child_id(job, &ChildName::Named(asked.as_str())));
        awaited.chain(asked.as_str().parse()).chain([child]).collect()
    }
}

/// The outcome of a job whose output was read apart.
fn bounded(id: JobId, output: Vec<u8>) -> FoundOutput {
    let bytes = output.len() as u64;
    if bytes > ASKED_OUTPUT_BYTES_MAX {
        return FoundOutput::TooLarge(id, bytes);
    }
    FoundOutput::Finished(id, JobOutput::from(output))
}
