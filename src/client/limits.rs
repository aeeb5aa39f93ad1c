//! Limits: the jobs that run under each, and that it holds.

use std::collections::BTreeMap;

use super::documents::LimitDocument;
use super::{Client, ClientError};
use crate::config::{LimitConfig, LimitName};
use crate::proto::shard::{Shard, ShardCount};

impl Client {
    /// Lists the limits of a configuration, the values that they count separately, and the serial lanes of
    /// actors, each with the jobs that run under it and that it holds. Of limits that count separately only
    /// the values that have running or held jobs are listed, of at most 10 000 running jobs. Each shard counts for
    /// itself; of those beside the home shard only limits in use are listed.
    pub async fn limit_documents(
        &self,
        limits: &BTreeMap<LimitName, LimitConfig>,
    ) -> Result<Vec<LimitDocument>, ClientError> {
        let of_shards = self.shards.each(|store| store.limit_states(limits)).await?;
        let of_name = |name: &str| limits.iter().find(|(of, _)| of.as_str() == name);
        let has_several = self.shards.count() != ShardCount::ONE;
        let mut documents = Vec::new();
        for (store, states) in self.shards.all().iter().zip(of_shards) {
            for state in states {
                let is_used = state.running > 0 || state.held > 0 || state.started > 0;
                if store.shard() != Shard::HOME && !is_used {
                    continue;
                }
                let limit = of_name(&state.name).map(|(_, limit)| limit);
                let shard = has_several.then_some(store.shard().number());
                documents.push(LimitDocument { shard, ..LimitDocument::of(state, limit) });
            }
        }
        documents.sort_by(|a, b| (&a.name, &a.value, a.shard).cmp(&(&b.name, &b.value, b.shard)));
        Ok(documents)
    }
}
