//! Indexes on fields, built step by step while objects are read and written.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::{Objects, Result, Stored};
use crate::config::OsisConfig;
use crate::proto::object::{Context, Field, ObjectError, ObjectId, ObjectType};
use crate::store::{Store, StoreError};

const STEP_OBJECTS: usize = 200;
/// The limit on the bytes of all objects of one step.
const STEP_BYTES_MAX: u64 = 8 << 20;
/// The time that a query builds an index it needs, before it reports that the index is not ready.
const QUERY_BUILDS_MAX: Duration = Duration::from_secs(2);

const LOOKING: &str = "looking for indexes";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reindexed {
    pub built: Vec<Field>,
    /// The indexes that are no longer declared.
    pub removed: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IndexState {
    Absent,
    /// Everything up to this id is in it.
    UpTo(Option<ObjectId>),
    Ready,
}

impl IndexState {
    pub(super) fn read(text: &str) -> Stored<Self> {
        match (text, text.strip_prefix('@')) {
            ("", _) => Ok(Self::Absent),
            ("ready", _) => Ok(Self::Ready),
            (_, Some("")) => Ok(Self::UpTo(None)),
            (_, Some(id)) => Ok(Self::UpTo(Some(StoreError::or_parsed(LOOKING, id)?))),
            _ => Err(StoreError::unexpected(LOOKING)),
        }
    }
}

/// The prefix of the state of an unfinished index: everything up to this id is in it.
fn up_to(id: Option<&ObjectId>) -> String {
    format!("@{}", id.map_or("", ObjectId::as_str))
}

impl Store {
    /// Builds every declared index of a type in a context to its end, and removes those that are no
    /// longer declared.
    ///
    /// # Errors
    /// [`ObjectError::Unavailable`]; earlier changes stay.
    pub async fn reindex(
        &self,
        context: &Context,
        object_type: &ObjectType,
        config: &OsisConfig,
    ) -> Result<Reindexed> {
        let objects = Objects { store: self, context, config };
        let mut done = Reindexed::default();
        let states = objects.indexes(object_type).await?;
        let declared: BTreeSet<&Field> = config.indexes(object_type).collect();
        for (field, _) in &states {
            if !declared.contains(field) {
                objects.index(object_type, field, "drop", &[]).await?;
                done.removed.push(field.clone());
            }
        }
        for field in declared {
            if states.iter().any(|(known, state)| known == field && *state == IndexState::Ready) {
                continue;
            }
            if objects.build(object_type, field).await? {
                done.built.push(field.clone());
            }
        }
        Ok(done)
    }
}

impl Objects<'_> {
    /// The number of objects of a type, and the progress of the indexes on these fields.
    async fn states(
        &self,
        object_type: &ObjectType,
        fields: &[&Field],
    ) -> Stored<(u64, Vec<IndexState>)> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("HLEN").arg(self.store.keys.object_heads(self.context, object_type));
        let names: Vec<&str> = fields.iter().map(|field| field.as_str()).collect();
        let states = self.store.keys.object_indexes(self.context, object_type);
        pipeline.cmd("HMGET").arg(states).arg(names);
        let (count, states): (u64, Vec<Option<String>>) =
            self.store.link.pipeline(LOOKING, &pipeline).await?;
        let read = |state: &Option<String>| IndexState::read(state.as_deref().unwrap_or_default());
        Ok((count, states.iter().map(read).collect::<Stored<_>>()?))
    }

    /// Returns true if the indexes on these fields are complete: one dropped meanwhile gave no full answer.
    pub(super) async fn are_whole(
        &self,
        object_type: &ObjectType,
        fields: &[&Field],
    ) -> Stored<bool> {
        if fields.is_empty() {
            return Ok(true);
        }
        let (count, states) = self.states(object_type, fields).await?;
        Ok(count == 0 || states.iter().all(|state| *state == IndexState::Ready))
    }

    /// Completes the indexes on the fields. Returns true if there is any object.
    pub(super) async fn have_indexes(
        &self,
        object_type: &ObjectType,
        fields: &[&Field],
    ) -> Result<bool> {
        let (count, states) = self.states(object_type, fields).await?;
        let until = Instant::now() + QUERY_BUILDS_MAX;
        let is_declared = |field: &Field| self.config.indexes(object_type).any(|one| one == field);
        let missing: Vec<Field> = fields
            .iter()
            .zip(&states)
            .filter(|(field, state)| **state == IndexState::Absent && !is_declared(field))
            .map(|(field, _)| (*field).clone())
            .collect();
        if !missing.is_empty() {
            let all = self.config.indexes(object_type).chain(&missing).map(Field::to_string);
            let (object_type, all) = (object_type.clone(), all.collect());
            return Err(ObjectError::NotIndexed { object_type, missing, all });
        }
        for (field, mut state) in fields.iter().zip(states) {
            if state == IndexState::Absent && count > 0 {
                state = self.index(object_type, field, "begin", &[]).await?;
            }
            while let IndexState::UpTo(last) = state {
                if Instant::now() >= until {
                    return Err(self.building(object_type, field, count).await?);
                }
                state = self.step(object_type, field, last.as_ref()).await?;
            }
        }
        Ok(count > 0)
    }

    /// Builds an index to its end. Returns true if it is complete: a type without objects has none.
    pub(super) async fn build(&self, object_type: &ObjectType, field: &Field) -> Stored<bool> {
        let mut state = self.index(object_type, field, "begin", &[]).await?;
        while let IndexState::UpTo(last) = state {
            state = self.step(object_type, field, last.as_ref()).await?;
        }
        Ok(state == IndexState::Ready)
    }

    /// Adds the next objects to an index, unless another process has.
    async fn step(
        &self,
        object_type: &ObjectType,
        field: &Field,
        last: Option<&ObjectId>,
    ) -> Stored<IndexState> {
        let before = up_to(last);
        let ids = self.ids(object_type, last, STEP_OBJECTS).await?;
        let Some(last_id) = ids.last() else {
            let words = [before, "ready".to_owned()];
            return self.index(object_type, field, "step", &words).await;
        };
        let (objects, looked) = self.look(object_type, &ids, STEP_BYTES_MAX).await?;
        let last = ids.get(looked.saturating_sub(1)).unwrap_or(last_id);
        let mut words = vec![before, up_to(Some(last))];
        // A damaged object is in no answer, and must not stop the others.
        for object in objects.into_iter().flatten() {
            words.push(object.id.to_string());
            words.push(object.version.to_string());
            words.push(serde_json::Value::from(field.terms(&object.body)).to_string());
        }
        self.index(object_type, field, "step", &words).await
    }

    pub(super) async fn index(
        &self,
        object_type: &ObjectType,
        field: &Field,
        doing: &str,
        words: &[String],
    ) -> Stored<IndexState> {
        let names = (self.context.as_key_part(), object_type.as_str(), field.as_str());
        let script = &self.store.scripts.objects_index;
        let state: String =
            self.store.run_script("building an index", script, (names, doing, words)).await?;
        IndexState::read(&state)
    }

    async fn indexes(&self, object_type: &ObjectType) -> Stored<Vec<(Field, IndexState)>> {
        let key = self.store.keys.object_indexes(self.context, object_type);
        fields_and_states(self.store.link.command(LOOKING, "HGETALL", key).await?)
    }

    /// The error for an index that is not complete.
    pub(super) async fn building(
        &self,
        object_type: &ObjectType,
        field: &Field,
        objects: u64,
    ) -> Result<ObjectError> {
        let key = self.store.keys.object_index(self.context, object_type, field);
        let done = self.store.link.command("looking at an index", "ZCARD", key).await?;
        let (object_type, field) = (object_type.clone(), field.clone());
        Ok(ObjectError::Building { object_type, field, done, objects })
    }
}

/// The indexed fields of a type and the progress of each.
pub(super) fn fields_and_states(held: Vec<(String, String)>) -> Stored<Vec<(Field, IndexState)>> {
    let legal = |(field, state): (String, String)| Some((field.parse().ok()?, state));
    let read = |(field, state): (Field, String)| Ok((field, IndexState::read(&state)?));
    held.into_iter().filter_map(legal).map(read).collect()
}
