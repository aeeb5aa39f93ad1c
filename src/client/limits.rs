//! Limits: what runs under each, and what it holds.

use std::collections::BTreeMap;

use super::documents::LimitDocument;
use super::{Client, ClientError};
use crate::config::{LimitConfig, LimitName};

impl Client {
    /// Lists the limits of a configuration, the values that they count separately, and the serial lanes of
    /// actors, each with the jobs that run under it and that it holds. Of limits that count separately only
    /// the values that have running or held jobs are listed, of at most 10 000 running jobs.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn limit_documents(
        &self,
        limits: &BTreeMap<LimitName, LimitConfig>,
    ) -> Result<Vec<LimitDocument>, ClientError> {
        let states = self.store.limit_states(limits).await?;
        let of_name = |name: &str| limits.iter().find(|(of, _)| of.as_str() == name);
        let document = |state: crate::store::LimitState| {
            let limit = of_name(&state.name).map(|(_, limit)| limit);
            LimitDocument::of(state, limit)
        };
        Ok(states.into_iter().map(document).collect())
    }
}
