//! The outputs of finished prerequisites, as inputs of jobs.

use std::collections::BTreeMap;

use redis::Value;

use super::{Store, StoreError};
use crate::proto::job::{JobId, JobOutput};

/// The output of each prerequisite, in Base64 where it is not UTF-8; none if it did not finish or is gone.
pub type Outputs = BTreeMap<JobId, Option<String>>;

impl Store {
    /// Reads the outputs of the prerequisites of jobs, in one round trip unless they are large.
    /// `None` for a job whose inputs exceed `bytes_max`. Every job must have prerequisites.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn inputs(
        &self,
        prerequisites: &[Vec<JobId>],
        bytes_max: u64,
    ) -> Result<Vec<Option<Outputs>>, StoreError> {
        const DOING: &str = "reading the outputs of prerequisites";
        let mut inputs = Vec::with_capacity(prerequisites.len());
        while inputs.len() < prerequisites.len() {
            let left = &prerequisites[inputs.len()..];
            let mut script = self.scripts.inputs.prepare_invoke();
            script.arg(bytes_max).arg(left.len());
            for ids in left {
                script.arg(ids.len());
                for id in ids {
                    script.arg(id.as_str());
                }
            }
            let answers: Vec<Vec<Value>> = self.invoke(DOING, &script).await?;
            if answers.is_empty() || answers.len() > left.len() {
                return Err(StoreError::unexpected(DOING));
            }
            inputs.extend(left.iter().zip(answers).map(|(ids, values)| {
                let is_whole = values.len() == ids.len();
                is_whole.then(|| ids.iter().cloned().zip(values.into_iter().map(text)).collect())
            }));
        }
        Ok(inputs)
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(JobOutput::from(bytes).into_text()),
        _ => None,
    }
}
