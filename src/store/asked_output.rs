//! The outputs that a running script asks for.

use redis::Value;

use super::{Store, StoreError};
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
    ) -> Result<FoundOutput, StoreError> {
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
        let answer: Vec<Value> = self.invoke(DOING, &script).await?;
        let unexpected = || StoreError::unexpected(DOING);
        let text = |place: usize| -> Result<String, StoreError> {
            let value = answer.get(place).ok_or_else(unexpected)?;
            redis::from_redis_value(value.clone()).map_err(|_| unexpected())
        };
        let word = text(0)?;
        match word.as_str() {
            "lost" => return Ok(FoundOutput::Lost),
            "stranger" => return Ok(FoundOutput::Stranger),
            _ => {}
        }
        let id: JobId = text(1)?.parse().map_err(|_| unexpected())?;
        Ok(match word.as_str() {
            "gone" => FoundOutput::Gone(id),
            "error" => FoundOutput::Failed(id, text(2)?),
            "large" => FoundOutput::TooLarge(id, text(2)?.parse().map_err(|_| unexpected())?),
            "unended" => FoundOutput::Unended(id, text(2)?.parse().map_err(|_| unexpected())?),
            "finished" => {
                let output = answer.get(2).ok_or_else(unexpected)?.clone();
                let bytes: Vec<u8> = redis::from_redis_value(output).map_err(|_| unexpected())?;
                FoundOutput::Finished(id, JobOutput::from(bytes))
            }
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
