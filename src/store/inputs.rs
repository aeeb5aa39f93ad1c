//! The outputs of finished prerequisites, as inputs of jobs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use redis::Value;

use super::{Store, StoreError};
use crate::proto::job::{JobId, JobOutput, JobStatus};

/// The output of each prerequisite, in Base64 where it is not UTF-8; none if it did not finish or is gone.
pub type Outputs = BTreeMap<JobId, Option<String>>;

/// The prerequisites that one call reads.
const IDS_PER_CALL: usize = 500;
/// The answer of `inputs.lua` for an output with a key of its own.
const APART: i64 = -1;

impl Store {
    /// Reads the outputs of the prerequisites of jobs, in as many calls as their number and bytes
    /// need. `None` for a job whose inputs exceed `bytes_max`. Returns with them the prerequisites that
    /// left files.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn inputs(
        &self,
        prerequisites: &[Vec<JobId>],
        bytes_max: u64,
    ) -> Result<(Vec<Option<Outputs>>, BTreeSet<JobId>), StoreError> {
        const DOING: &str = "reading the outputs of prerequisites";
        let mut inputs = vec![Some(Outputs::new()); prerequisites.len()];
        let mut with_files = BTreeSet::new();
        let mut bytes = vec![0; prerequisites.len()];
        let all = prerequisites.iter().enumerate();
        let mut left: VecDeque<(usize, &JobId)> =
            all.flat_map(|(job, ids)| ids.iter().map(move |id| (job, id))).collect();
        while !left.is_empty() {
            let asked = left.len().min(IDS_PER_CALL);
            let mut script = self.scripts.inputs.prepare_invoke();
            script.arg(bytes_max);
            for (_, id) in left.iter().take(asked) {
                script.arg(id.as_str());
            }
            let answers: Vec<Value> = self.invoke(DOING, &script).await?;
            if answers.is_empty() || answers.len() > asked {
                return Err(StoreError::unexpected(DOING));
            }
            let answered = left.drain(..answers.len());
            for ((job, id), answer) in answered.zip(answers) {
                let answer = match answer {
                    Value::Array(mut of_files) => {
                        with_files.insert(id.clone());
                        of_files.pop().unwrap_or(Value::Nil)
                    }
                    answer => answer,
                };
                let (size, output) = match answer {
                    // The job has too much already.
                    Value::Int(APART) if inputs[job].is_none() => (0, None),
                    Value::Int(APART) => match self.outcome(id).await? {
                        Some((JobStatus::Finished, Some(output))) => {
                            sized(Value::BulkString(output))
                        }
                        _ => (0, None),
                    },
                    answer => sized(answer),
                };
                bytes[job] += size;
                match &mut inputs[job] {
                    Some(of) if bytes[job] <= bytes_max => _ = of.insert(id.clone(), output),
                    too_large => *too_large = None,
                }
            }
            left.retain(|(job, _)| inputs[*job].is_some());
        }
        Ok((inputs, with_files))
    }
}

/// The size and the text of an output; without the text if it is larger than asked for.
fn sized(answer: Value) -> (u64, Option<String>) {
    match answer {
        Value::BulkString(bytes) => (bytes.len() as u64, Some(JobOutput::from(bytes).into_text())),
        Value::Int(size) => (size.unsigned_abs(), None),
        _ => (0, None),
    }
}
