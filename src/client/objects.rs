//! The objects of scripts, for operators.

use std::collections::BTreeMap;

use super::{ObjectClient, Result};
use crate::config::OsisConfig;
use crate::proto::object::{
    Answer, Ask, Change, Context, Object, ObjectId, ObjectType, Write, Written,
};
use crate::proto::text::counted;
use crate::store::Reindexed;

impl ObjectClient<'_> {
    /// Runs an operation on the objects of a context; `config` bounds them and declares their
    /// indexes.
    pub async fn list(self, context: &Context, ask: Ask, config: &OsisConfig) -> Result<Answer> {
        Ok(self.client.store.objects(context, ask, config).await?)
    }

    /// Changes objects of a context for a person or program that is no script, and records it. Returns what became of each.
    pub async fn change(
        self,
        context: &Context,
        writes: Vec<Write>,
        config: &OsisConfig,
    ) -> Result<Vec<Written>> {
        const NAMED: usize = 10;
        let deletes = writes.iter().all(|write| write.change == Change::Delete);
        let ids: Vec<String> =
            writes.iter().take(NAMED).map(|of| format!("{} {}", of.object_type, of.id)).collect();
        let answer = self.list(context, Ask::Write(writes), config).await?;
        let Answer::Written(written) = answer else { return Ok(Vec::new()) };
        let changed = written.iter().filter(|of| of.existed || !deletes).count() as u64;
        if changed > 0 {
            let objects = counted(changed, "object", "objects");
            let what = if deletes { "object.delete" } else { "object.import" };
            let to = format!("{objects} in context {}: {}", context.text(), ids.join(", "));
            self.client.audit().note(what, to).await;
        }
        Ok(written)
    }

    /// Reads a page of objects of one type by id, and the id before the next page. A
    /// page has fewer objects where they are large.
    pub async fn page(
        self,
        context: &Context,
        object_type: &ObjectType,
        after: Option<&ObjectId>,
        limit: usize,
    ) -> Result<(Vec<Object>, Option<ObjectId>)> {
        let ask = Ask::Ids { object_type: object_type.clone(), after: after.cloned(), limit };
        let answer = self.list(context, ask, &OsisConfig::default()).await?;
        let Answer::Ids(mut ids) = answer else { return Ok((Vec::new(), None)) };
        let is_full = ids.len() >= limit;
        let (objects, looked) = self.client.store.objects_by_id(context, object_type, &ids).await?;
        let is_cut = looked < ids.len();
        ids.truncate(looked);
        Ok((objects, ids.pop().filter(|_| is_full || is_cut)))
    }

    pub async fn counts(self, context: &Context) -> Result<BTreeMap<ObjectType, u64>> {
        Ok(self.client.store.object_counts(context).await?)
    }

    /// Lists up to `limit` contexts that have objects, after a given one.
    pub async fn contexts(self, after: Option<&Context>, limit: usize) -> Result<Vec<Context>> {
        Ok(self.client.store.object_contexts(after, limit).await?)
    }

    /// Completes the declared indexes of a type, and removes those that are not declared any more.
    pub async fn reindex(
        self,
        context: &Context,
        object_type: &ObjectType,
        config: &OsisConfig,
    ) -> Result<Reindexed> {
        Ok(self.client.store.reindex(context, object_type, config).await?)
    }
}
