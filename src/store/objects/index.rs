//! Indexes on fields: built while all else goes on, a step at a time, by whoever needs them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::{Objects, Result};
use crate::config::OsisConfig;
use crate::proto::object::{Context, Field, ObjectError, ObjectId, ObjectType};
use crate::store::{Store, StoreError};

/// Objects of one step.
const STEP_OBJECTS: usize = 200;
/// The most bytes that the objects of one step may have together.
const STEP_BYTES_MAX: u64 = 8 << 20;
/// How long one query works on an index that it needs before it says that it is being built.
const QUERY_BUILDS_MAX: Duration = Duration::from_secs(2);

/// What became of the indexes of one type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reindexed {
    /// Those that were built.
    pub built: Vec<Field>,
    /// Those that are declared no more.
    pub removed: Vec<Field>,
}

/// How far an index is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Absent,
    /// Everything up to this id is in it.
    UpTo(Option<ObjectId>),
    Ready,
}

impl State {
    fn read(text: &str) -> Self {
        match text.strip_prefix('@') {
            Some(id) => Self::UpTo(id.parse().ok()),
            None if text == "ready" => Self::Ready,
            None => Self::Absent,
        }
    }
}

impl Store {
    /// Builds every declared index of a type in a context that is not whole, to its end, and
    /// removes those that are declared no more.
    ///
    /// # Errors
    /// [`ObjectError::Unavailable`]; what was done stays.
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
            if states.iter().any(|(known, state)| known == field && *state == State::Ready) {
                continue;
            }
            let mut state = objects.index(object_type, field, "begin", &[]).await?;
            while let State::UpTo(last) = state {
                state = objects.step(object_type, field, last.as_ref()).await?;
            }
            if state == State::Ready {
                done.built.push(field.clone());
            }
        }
        Ok(done)
    }
}

impl Objects<'_> {
    /// Sees to it that the fields have whole indexes, and tells whether there is any object at
    /// all.
    pub(super) async fn have_indexes(
        &self,
        object_type: &ObjectType,
        fields: &[&Field],
    ) -> Result<bool> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("HLEN").arg(self.store.keys.object_heads(self.context, object_type));
        for field in fields {
            let states = self.store.keys.object_indexes(self.context, object_type);
            pipeline.cmd("HGET").arg(states).arg(field.as_str());
        }
        let answers: Vec<redis::Value> =
            self.store.link.pipeline("looking for indexes", &pipeline).await?;
        let unexpected = || StoreError::unexpected("looking for indexes");
        let mut answers = answers.into_iter();
        let count = answers.next().ok_or_else(unexpected)?;
        let count: u64 =
            redis::FromRedisValue::from_redis_value(count).map_err(|_| unexpected())?;
        let until = Instant::now() + QUERY_BUILDS_MAX;
        for (field, state) in fields.iter().zip(answers) {
            let state: Option<String> =
                redis::FromRedisValue::from_redis_value(state).map_err(|_| unexpected())?;
            let mut state = State::read(state.as_deref().unwrap_or_default());
            let is_declared = self.config.indexes(object_type).any(|known| known == *field);
            if state == State::Absent {
                if !is_declared {
                    let (object_type, field) = (object_type.clone(), (*field).clone());
                    return Err(ObjectError::NotIndexed { object_type, field });
                }
                if count > 0 {
                    state = self.index(object_type, field, "begin", &[]).await?;
                }
            }
            while let State::UpTo(last) = state {
                if Instant::now() >= until {
                    return Err(self.building(object_type, field, count).await?);
                }
                state = self.step(object_type, field, last.as_ref()).await?;
            }
        }
        Ok(count > 0)
    }

    /// Brings the next objects into an index.
    async fn step(
        &self,
        object_type: &ObjectType,
        field: &Field,
        last: Option<&ObjectId>,
    ) -> Result<State> {
        let ids = self.ids(object_type, last, STEP_OBJECTS).await?;
        let Some(last_id) = ids.last() else {
            return self.index(object_type, field, "step", &["ready".to_owned()]).await;
        };
        let (objects, looked) = self.read(object_type, &ids, STEP_BYTES_MAX).await?;
        let last = ids.get(looked.saturating_sub(1)).unwrap_or(last_id);
        let mut words = vec![format!("@{last}")];
        for object in objects {
            words.push(object.id.to_string());
            words.push(object.version.to_string());
            words.push(field.term(&object.body).indexed().to_owned());
        }
        self.index(object_type, field, "step", &words).await
    }

    async fn index(
        &self,
        object_type: &ObjectType,
        field: &Field,
        doing: &str,
        words: &[String],
    ) -> Result<State> {
        let mut script = self.store.scripts.objects_index.prepare_invoke();
        script.arg(self.context.as_key_part()).arg(object_type.as_str()).arg(field.as_str());
        script.arg(doing).arg(words);
        let state: String = self.store.invoke("building an index", &script).await?;
        Ok(State::read(&state))
    }

    async fn indexes(&self, object_type: &ObjectType) -> Result<Vec<(Field, State)>> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.store.keys.object_indexes(self.context, object_type));
        let states: Vec<(String, String)> =
            self.store.link.query("looking for indexes", &command).await?;
        let read =
            |(field, state): &(String, String)| Some((field.parse().ok()?, State::read(state)));
        Ok(states.iter().filter_map(read).collect())
    }

    /// What is said of an index that is not whole yet.
    async fn building(
        &self,
        object_type: &ObjectType,
        field: &Field,
        objects: u64,
    ) -> Result<ObjectError> {
        let mut command = redis::cmd("ZCARD");
        command.arg(self.store.keys.object_index(self.context, object_type, field));
        let done = self.store.link.query("looking at an index", &command).await?;
        let (object_type, field) = (object_type.clone(), field.clone());
        Ok(ObjectError::Building { object_type, field, done, objects })
    }
}
