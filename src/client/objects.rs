//! The objects that scripts keep, for those who look after them.

use std::collections::BTreeMap;

use super::{Client, ClientError};
use crate::config::OsisConfig;
use crate::proto::object::{Answer, Ask, Context, Object, ObjectId, ObjectType};
use crate::store::Reindexed;

impl Client {
    /// Answers what is asked of the objects of a context; `config` bounds them and declares their
    /// indexes.
    ///
    /// # Errors
    /// [`ClientError::Object`].
    pub async fn objects(
        &self,
        context: &Context,
        ask: Ask,
        config: &OsisConfig,
    ) -> Result<Answer, ClientError> {
        Ok(self.store.objects(context, ask, config).await?)
    }

    /// A page of objects of one type in the order of their ids, those after one, and the id after
    /// which the next page begins. A page has fewer objects where they are large.
    ///
    /// # Errors
    /// [`ClientError::Object`].
    pub async fn object_page(
        &self,
        context: &Context,
        object_type: &ObjectType,
        after: Option<&ObjectId>,
        limit: usize,
    ) -> Result<(Vec<Object>, Option<ObjectId>), ClientError> {
        let ask = Ask::Ids { object_type: object_type.clone(), after: after.cloned(), limit };
        let answer = self.objects(context, ask, &OsisConfig::default()).await?;
        let Answer::Ids(mut ids) = answer else { return Ok((Vec::new(), None)) };
        let is_full = ids.len() >= limit;
        let (objects, looked) = self.store.objects_by_id(context, object_type, &ids).await?;
        let is_cut = looked < ids.len();
        ids.truncate(looked);
        Ok((objects, ids.pop().filter(|_| is_full || is_cut)))
    }

    /// How many objects of each type a context has.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn object_counts(
        &self,
        context: &Context,
    ) -> Result<BTreeMap<ObjectType, u64>, ClientError> {
        Ok(self.store.object_counts(context).await?)
    }

    /// Up to `limit` contexts that have objects, those after one.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn object_contexts(
        &self,
        after: Option<&Context>,
        limit: usize,
    ) -> Result<Vec<Context>, ClientError> {
        Ok(self.store.object_contexts(after, limit).await?)
    }

    /// Builds the declared indexes of a type that are not whole, and removes those that are
    /// declared no more.
    ///
    /// # Errors
    /// [`ClientError::Object`].
    pub async fn reindex_objects(
        &self,
        context: &Context,
        object_type: &ObjectType,
        config: &OsisConfig,
    ) -> Result<Reindexed, ClientError> {
        Ok(self.store.reindex(context, object_type, config).await?)
    }
}
