//! Objects of scripts: get, write, list. Finding them is in `find`, their indexes in `index`.
//!
//! The bodies of one type in one context are one hash, and their heads another; ids and entries of
//! indexes stand in sorted sets by their bytes alone. No call scans, and each has its bound.

mod find;
mod index;
mod search;
mod tending;

pub use index::Reindexed;
pub use tending::{TendedIndex, TendedIndexes};

use std::collections::BTreeMap;
use std::time::Duration;

use redis::Value;

/// The result of a function that only runs commands.
use super::Result as Stored;
use super::text::{Legal, StoredText, read};
use super::{Store, StoreError};
use crate::config::OsisConfig;
use crate::proto::object::{
    Answer, Ask, Change, Context, Field, Object, ObjectError, ObjectId, ObjectType, Write,
    WriteMark, Written,
};

/// The limit on the bytes of all bodies of one answer; a single one may exceed it.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// The objects that one call reads, and the bytes of their bodies; a single one may exceed them.
const READ_PER_CALL: usize = 1000;
const READ_BYTES_PER_CALL: u64 = 2 << 20;
/// The time that the changes of a message are known, so that a second delivery does not make them again.
const DONE_TTL: Duration = Duration::from_hours(24);
/// The retries of a write after another process has declared an index.
const DECLARED_MEANWHILE_MAX: usize = 5;

impl From<StoreError> for ObjectError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotPermitted { .. } => Self::NotPermitted(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

type Result<T> = std::result::Result<T, ObjectError>;

pub(super) struct Objects<'a> {
    store: &'a Store,
    context: &'a Context,
    config: &'a OsisConfig,
}

impl Store {
    /// The maximum number of changes of one write.
    pub const OBJECT_CHANGES_MAX: usize = 1000;

    /// The maximum number of ids or objects of one page.
    pub const OBJECT_PAGE_MAX: usize = 10_000;

    /// Answers a request for objects of a context.
    pub async fn objects(
        &self,
        context: &Context,
        ask: Ask,
        config: &OsisConfig,
    ) -> Result<Answer> {
        let objects = Objects { store: self, context, config };
        Ok(match ask {
            Ask::Get(object_type, id) => Answer::Object(objects.get(&object_type, &id).await?),
            Ask::Exists(object_type, id) => {
                let arguments = (self.keys.object_heads(context, &object_type), id.as_str());
                let doing = "looking for an object";
                Answer::Exists(self.link.command(doing, "HEXISTS", arguments).await?)
            }
            Ask::Write(writes) => Answer::Written(objects.write(&writes, None).await?),
            Ask::WriteOnce(writes, mark) => {
                Answer::Written(objects.write(&writes, Some(&mark)).await?)
            }
            Ask::Applied(mark) => Answer::Written(objects.applied(&mark).await?),
            Ask::Ids { object_type, after, limit } => {
                Answer::Ids(objects.ids(&object_type, after.as_ref(), limit).await?)
            }
            Ask::Search { object_type, query, after, limit } => {
                Answer::Ids(objects.search(&object_type, &query, after.as_ref(), limit).await?)
            }
            Ask::Find { object_type, query, after, limit } => {
                Answer::Objects(objects.find(&object_type, &query, after.as_ref(), limit).await?)
            }
        })
    }

    /// Objects by their ids, as many as fit one answer, and the number of ids read.
    pub async fn objects_by_id(
        &self,
        context: &Context,
        object_type: &ObjectType,
        ids: &[ObjectId],
    ) -> Result<(Vec<Object>, usize)> {
        let config = OsisConfig::default();
        let objects = Objects { store: self, context, config: &config };
        objects.read(object_type, ids, ANSWER_BYTES_MAX).await
    }

    pub async fn object_counts(&self, context: &Context) -> Stored<BTreeMap<ObjectType, u64>> {
        let key = self.keys.object_counts(context);
        let counts: Vec<(String, u64)> =
            self.link.command("counting objects", "HGETALL", key).await?;
        let legal = |(name, count): (String, u64)| Some((name.parse().ok()?, count));
        Ok(counts.into_iter().filter_map(legal).collect())
    }

    /// Up to `limit` contexts that have objects, those after one.
    pub async fn object_contexts(
        &self,
        after: Option<&Context>,
        limit: usize,
    ) -> Stored<Vec<Context>> {
        let from = after.map_or("-".to_owned(), |after| format!("({}", after.as_key_part()));
        let arguments = (self.keys.object_contexts(), from, "+", "LIMIT", 0, limit);
        let parts: Vec<StoredText> =
            self.link.command("listing contexts", "ZRANGEBYLEX", arguments).await?;
        Ok(parts.iter().filter_map(|part| Context::from_key_part(part)).collect())
    }
}

impl Objects<'_> {
    async fn get(&self, object_type: &ObjectType, id: &ObjectId) -> Result<Option<Object>> {
        let (objects, _) = self.read(object_type, std::slice::from_ref(id), u64::MAX >> 12).await?;
        Ok(objects.into_iter().next())
    }

    /// Reads objects, as many as `bytes_max` allows but at least one. Returns the number of ids read.
    async fn read(
        &self,
        object_type: &ObjectType,
        ids: &[ObjectId],
        bytes_max: u64,
    ) -> Result<(Vec<Object>, usize)> {
        let (objects, looked) = self.look(object_type, ids, bytes_max).await?;
        Ok((objects.into_iter().collect::<Result<_>>()?, looked))
    }

    /// As [`Objects::read`], with the error of each object that cannot be read.
    async fn look(
        &self,
        object_type: &ObjectType,
        ids: &[ObjectId],
        bytes_max: u64,
    ) -> Stored<(Vec<Result<Object>>, usize)> {
        let (mut all, mut looked, mut bytes) = (Vec::new(), 0, 0);
        while looked < ids.len() {
            let part = ids.iter().skip(looked).take(READ_PER_CALL);
            let bound = READ_BYTES_PER_CALL.min(bytes_max.saturating_sub(bytes));
            let (objects, number, size) = self.look_at_some(object_type, part, bound).await?;
            if looked > 0 && bytes + size > bytes_max {
                break;
            }
            all.extend(objects);
            looked += number;
            bytes += size;
        }
        Ok((all, looked))
    }

    /// One call. Returns the objects that exist, the number of ids read, at least one, and the bytes of the bodies.
    async fn look_at_some(
        &self,
        object_type: &ObjectType,
        ids: impl Iterator<Item = &ObjectId>,
        bytes_max: u64,
    ) -> Stored<(Vec<Result<Object>>, usize, u64)> {
        const READING: &str = "reading objects";
        let ids: Vec<&str> = ids.map(ObjectId::as_str).collect();
        let arguments = (self.context.as_key_part(), object_type.as_str(), bytes_max, ids);
        let answer: Vec<Value> =
            self.store.run_script(READING, &self.store.scripts.objects_read, arguments).await?;
        let (mut answer, unexpected) = (answer.into_iter(), || StoreError::unexpected(READING));
        // Without progress, the caller would never end.
        let looked = answer.next().and_then(read).filter(|looked| *looked > 0);
        let looked = looked.ok_or_else(unexpected)?;
        let mut bytes = 0;
        let objects = answer.map(|object| {
            let (id, head, body): (String, String, Vec<u8>) =
                read(object).ok_or_else(unexpected)?;
            bytes += body.len() as u64;
            Ok(object_of(&id, &head, &body).ok_or_else(|| damaged(object_type, &id)))
        });
        let objects = objects.collect::<Stored<_>>()?;
        Ok((objects, looked, bytes))
    }

    async fn ids(
        &self,
        object_type: &ObjectType,
        after: Option<&ObjectId>,
        limit: usize,
    ) -> Stored<Vec<ObjectId>> {
        let from = after.map_or("-".to_owned(), |after| format!("({after}"));
        let key = self.store.keys.object_ids(self.context, object_type);
        let arguments = (key, from, "+", "LIMIT", 0, limit.min(Store::OBJECT_PAGE_MAX));
        let Legal(ids) =
            self.store.link.command("listing objects", "ZRANGEBYLEX", arguments).await?;
        Ok(ids)
    }

    /// Returns the results of the changes of a message that were made before.
    async fn applied(&self, mark: &WriteMark) -> Result<Vec<Written>> {
        let doing = "looking for the changes of a message";
        let key = self.store.keys.amqp_done(&mark.name);
        let done: Option<String> = self.store.link.command(doing, "GET", key).await?;
        let Some(done) = done else { return Ok(Vec::new()) };
        let (digest, numbers) = done.split_once(' ').unwrap_or((&done, ""));
        if digest != mark.digest {
            return Err(ObjectError::OtherMessage);
        }
        let numbers: Vec<u64> = numbers.split(' ').filter_map(|text| text.parse().ok()).collect();
        let (pairs, _) = numbers.as_chunks::<2>();
        Ok(pairs
            .iter()
            .map(|[version, existed]| Written { version: *version, existed: *existed == 1 })
            .collect())
    }

    /// Makes all changes, or none; with a mark, once.
    async fn write(&self, writes: &[Write], mark: Option<&WriteMark>) -> Result<Vec<Written>> {
        const WRITING: &str = "writing objects";
        if writes.len() > Store::OBJECT_CHANGES_MAX {
            let most = Store::OBJECT_CHANGES_MAX;
            return Err(ObjectError::TooMuch(format!("more than {most} changes at once")));
        }
        let mut bodies = Vec::with_capacity(writes.len());
        for write in writes {
            bodies.push(self.encoded(write)?);
        }
        // Fields that another configuration has declared.
        let mut elsewhere: Vec<(ObjectType, Field)> = Vec::new();
        for _ in 0..DECLARED_MEANWHILE_MAX {
            let mut script = self.store.scripts.objects_write.prepare_invoke();
            script.arg(self.context.as_key_part()).arg(self.config.objects_max).arg(writes.len());
            for (write, body) in writes.iter().zip(&bodies) {
                let (doing, created_ms) = match &write.change {
                    Change::Set { created_ms, .. } => ("set", *created_ms),
                    Change::Delete => ("delete", None),
                };
                script
                    .arg(doing)
                    .arg(write.object_type.as_str())
                    .arg(write.id.as_str())
                    .arg(write.expected.map(|version| version.to_string()).unwrap_or_default())
                    .arg(created_ms.map(|ms| ms.to_string()).unwrap_or_default())
                    .arg(body.as_slice())
                    .arg(self.terms(write, &elsewhere));
            }
            if let Some(mark) = mark {
                script.arg(&mark.name).arg(&mark.digest).arg(DONE_TTL.as_secs());
            }
            let answer: Vec<Value> = self.store.invoke(WRITING, &script).await?;
            match self.written(writes, answer)? {
                Written_::Done(written) => return Ok(written),
                Written_::Fields(fields) => elsewhere.extend(fields),
            }
        }
        Err(StoreError::unexpected(WRITING).into())
    }

    fn encoded(&self, write: &Write) -> Result<Vec<u8>> {
        let Change::Set { body, .. } = &write.change else { return Ok(Vec::new()) };
        let encoded = serde_json::to_vec(body)
            .map_err(|error| ObjectError::TooMuch(format!("not written as JSON: {error}")))?;
        let max = self.config.object_size_max;
        if encoded.len() as u64 > max { Err(ObjectError::TooLarge { max }) } else { Ok(encoded) }
    }

    /// The fields that have an index and their terms, as the head of the object has them.
    fn terms(&self, write: &Write, elsewhere: &[(ObjectType, Field)]) -> String {
        let Change::Set { body, .. } = &write.change else { return "[]".to_owned() };
        let others = elsewhere.iter().filter(|(of, _)| *of == write.object_type);
        let fields = self.config.indexes(&write.object_type).chain(others.map(|(_, field)| field));
        let mut flat = Vec::new();
        for field in fields {
            for term in field.terms(body) {
                flat.push(serde_json::Value::from(field.as_str()));
                flat.push(term.into());
            }
        }
        serde_json::Value::from(flat).to_string()
    }

    fn written(&self, writes: &[Write], answer: Vec<Value>) -> Result<Written_> {
        let unexpected = || ObjectError::from(StoreError::unexpected("writing objects"));
        let mut answer = answer.into_iter();
        let what: String = answer.next().and_then(read).ok_or_else(unexpected)?;
        let rest = Value::Array(answer.collect());
        match what.as_str() {
            "ok" => {
                let versions: Vec<(u64, bool)> = read(rest).ok_or_else(unexpected)?;
                if versions.len() != writes.len() {
                    return Err(unexpected());
                }
                let written = |(version, existed)| Written { version, existed };
                Ok(Written_::Done(versions.into_iter().map(written).collect()))
            }
            "stale" => {
                let (place, found): (usize, u64) = read(rest).ok_or_else(unexpected)?;
                let write = place.checked_sub(1).and_then(|place| writes.get(place));
                let write = write.ok_or_else(unexpected)?;
                Err(ObjectError::Stale {
                    object_type: write.object_type.clone(),
                    id: write.id.clone(),
                    expected: write.expected.unwrap_or_default(),
                    found,
                })
            }
            "other" => Err(ObjectError::OtherMessage),
            "full" => Err(ObjectError::Full { max: self.config.objects_max }),
            "fields" => {
                let names: Vec<String> = read(rest).ok_or_else(unexpected)?;
                let (of, names) = names.split_first().ok_or_else(unexpected)?;
                let of: ObjectType = of.parse().map_err(|_| unexpected())?;
                let mut fields = Vec::new();
                for name in names {
                    let field: Field = name.parse().map_err(|_| unexpected())?;
                    if !self.config.indexes(&of).any(|known| *known == field) {
                        fields.push((of.clone(), field));
                    }
                }
                Ok(Written_::Fields(fields))
            }
            _ => Err(unexpected()),
        }
    }
}

enum Written_ {
    Done(Vec<Written>),
    /// Nothing was written: these fields have an index as well.
    Fields(Vec<(ObjectType, Field)>),
}

fn object_of(id: &str, head: &str, body: &[u8]) -> Option<Object> {
    let mut numbers = head.lines().next()?.split(' ');
    Some(Object {
        id: id.parse().ok()?,
        version: numbers.next()?.parse().ok()?,
        created_ms: numbers.next()?.parse().ok()?,
        modified_ms: numbers.next()?.parse().ok()?,
        body: serde_json::from_slice(body).ok()?,
    })
}

fn damaged(object_type: &ObjectType, id: &str) -> ObjectError {
    let id = id.escape_debug();
    ObjectError::Unavailable(format!(
        "cannot read {object_type} {id}: its value in redis is no object"
    ))
}
