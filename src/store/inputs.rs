//! What jobs find of their prerequisites: the outputs of those that finished.

use std::collections::BTreeMap;

use redis::Value;

use super::{Store, StoreError};
use crate::proto::job::JobId;

/// What each prerequisite left; nothing if it did not finish, or is gone.
pub type Outputs = BTreeMap<JobId, Option<String>>;

impl Store {
    /// Reads what the prerequisites of some jobs left, in one round trip unless that is very much.
    /// `None` for a job whose prerequisites left more than `bytes_max`. Every job must have some.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn inputs(
        &self,
        prerequisites: &[Vec<JobId>],
        bytes_max: u64,
    ) -> Result<Vec<Option<Outputs>>, StoreError> {
        const DOING: &str = "reading what prerequisites left";
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
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    }
}
