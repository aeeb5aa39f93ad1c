//! The outputs that a running script asks for.

use super::{Result, Store, StoreError};
use crate::proto::job::{
    ASKED_OUTPUT_BYTES_MAX, AskedOutput, BootId, ChildName, FoundOutput, Job, JobId, JobOutput,
    JobStatus, child_id,
};
use crate::proto::job_rights::JobRights;

const DOING: &str = "reading the output of a job for a script";

impl Store {
    /// Reads the output of a job for the script of another one that runs, and that may have it.
    pub async fn asked_output(
        &self,
        boot: &BootId,
        (job, claimed_at): (&Job, u64),
        asked: &AskedOutput,
    ) -> Result<FoundOutput> {
        let mut script = self.scripts.asked_output.prepare_invoke();
        script.arg(boot.as_str()).arg(job.id.as_str()).arg(claimed_at);
        script.arg(ASKED_OUTPUT_BYTES_MAX).arg(asked.as_str());
        script.arg(job.graph_id.as_ref().map_or("", JobId::as_str)).arg(&job.spec.caller_id);
        script.arg(job.prerequisites_at.map(|at| at.to_string()).unwrap_or_default());
        script.arg(JobRights::to_outputs(job));
        for id in self.candidates(job, asked) {
            let is_awaited = job.spec.waits_for().any(|of| *of == id);
            script.arg(id.as_str()).arg(if is_awaited { "1" } else { "" });
        }
        let mut answer: Vec<Vec<u8>> = self.invoke(DOING, &script).await?;
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
    fn candidates(&self, job: &Job, asked: &AskedOutput) -> Vec<JobId> {
        let mut given = job.spec.prerequisite_names.iter();
        let of_graph = given.find(|(name, _)| name.as_str() == asked.as_str());
        let awaited = of_graph.map(|(_, id)| id.clone()).into_iter();
        let child = self.shard().id(&child_id(job, &ChildName::Named(asked.as_str())));
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
