//! Indexes of all contexts, for the supervisor: declared ones are built, undeclared ones removed.
//!
//! A changed declaration reaches one supervisor after the other. So an index stays while any of them
//! declares it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::index::{IndexState, fields_and_states};
use super::{Objects, Stored};
use crate::config::OsisConfig;
use crate::proto::object::{Context, Field, ObjectType};
use crate::store::Store;
use crate::store::backoff::micros;
use crate::store::text::Legal;

/// An index is removed when no supervisor has declared it for this time.
const UNDECLARED_FOR: Duration = Duration::from_mins(10);
const COMMANDS: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TendedIndex {
    pub context: Context,
    pub object_type: ObjectType,
    pub field: Field,
}

impl TendedIndex {
    /// Its name in the declaration, without the context.
    fn name(&self) -> String {
        format!("{}:{}", self.object_type, self.field)
    }
}

/// The result of tending indexes of some contexts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TendedIndexes {
    /// The indexes completed now.
    pub built: Vec<TendedIndex>,
    pub removed: Vec<TendedIndex>,
    /// The last context looked at; none at the end.
    pub last: Option<Context>,
}

impl Store {
    /// Builds every declared index that is not complete, and removes those that no supervisor has
    /// declared for ten minutes, in up to `limit` contexts after one. It is idempotent; an
    /// interrupted build continues.
    ///
    /// # Errors
    /// [`StoreError`](crate::store::StoreError); earlier changes stay.
    pub async fn tend_object_indexes(
        &self,
        config: &OsisConfig,
        after: Option<&Context>,
        limit: usize,
    ) -> Stored<TendedIndexes> {
        let contexts = self.object_contexts(after, limit).await?;
        let mut tended = TendedIndexes { last: contexts.last().cloned(), ..Default::default() };
        let mut undeclared = Vec::new();
        for (context, object_type, states) in self.object_indexes(&contexts).await? {
            let objects = Objects { store: self, context: &context, config };
            let index = |field: &Field| TendedIndex {
                context: context.clone(),
                object_type: object_type.clone(),
                field: field.clone(),
            };
            let declared: BTreeSet<&Field> = config.indexes(&object_type).collect();
            let is_whole =
                |field: &Field| states.iter().any(|(f, s)| f == field && *s == IndexState::Ready);
            for field in declared.iter().filter(|field| !is_whole(field)) {
                if objects.build(&object_type, field).await? {
                    tended.built.push(index(field));
                }
            }
            let others = states.iter().map(|(field, _)| field);
            undeclared.extend(others.filter(|field| !declared.contains(field)).map(index));
        }
        let gone = self.undeclared(config, &undeclared).await?;
        for index in undeclared.into_iter().filter(|index| gone.contains(&index.name())) {
            let objects = Objects { store: self, context: &index.context, config };
            objects.index(&index.object_type, &index.field, "drop", &[]).await?;
            tended.removed.push(index);
        }
        Ok(tended)
    }

    /// The types with objects in these contexts, and the progress of their indexes.
    async fn object_indexes(
        &self,
        contexts: &[Context],
    ) -> Stored<Vec<(Context, ObjectType, Vec<(Field, IndexState)>)>> {
        const LOOKING: &str = "looking for indexes";
        let mut types: Vec<(Context, ObjectType)> = Vec::new();
        for contexts in contexts.chunks(COMMANDS) {
            let mut pipeline = redis::pipe();
            for context in contexts {
                pipeline.cmd("HKEYS").arg(self.keys.object_counts(context));
            }
            let legal: Vec<Legal<ObjectType>> = self.link.pipeline(LOOKING, &pipeline).await?;
            for (context, Legal(legal)) in contexts.iter().zip(legal) {
                types.extend(legal.into_iter().map(|object_type| (context.clone(), object_type)));
            }
        }
        let mut found = Vec::with_capacity(types.len());
        for types in types.chunks(COMMANDS) {
            let mut pipeline = redis::pipe();
            for (context, object_type) in types {
                pipeline.cmd("HGETALL").arg(self.keys.object_indexes(context, object_type));
            }
            let held: Vec<Vec<(String, String)>> = self.link.pipeline(LOOKING, &pipeline).await?;
            for ((context, object_type), held) in types.iter().zip(held) {
                found.push((context.clone(), object_type.clone(), fields_and_states(held)?));
            }
        }
        Ok(found)
    }

    /// Reports the declared indexes, and undeclared ones. Returns the names of those undeclared for long.
    async fn undeclared(
        &self,
        config: &OsisConfig,
        indexes: &[TendedIndex],
    ) -> Stored<BTreeSet<String>> {
        let declared = config.all_indexes().map(|(of, field)| format!("{of}:{field}"));
        let declared: Vec<String> = declared.collect();
        let names: BTreeSet<String> = indexes.iter().map(TendedIndex::name).collect();
        if declared.is_empty() && names.is_empty() {
            return Ok(names);
        }
        let arguments = (micros(UNDECLARED_FOR), declared.len(), &declared, &names);
        let (doing, script) = ("looking for declared indexes", &self.scripts.objects_undeclared);
        let gone: Vec<String> = self.run_script(doing, script, arguments).await?;
        Ok(gone.into_iter().collect())
    }
}
