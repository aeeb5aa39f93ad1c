//! Finds objects: one walk along one index for each list of conditions; the walks are merged. A walk
//! yields candidates; the objects read in the end decide.
//!
//! A walk goes along the index that has the fewest entries to look at. If these are few, all of
//! them are collected and put in order; else the walk follows the index of the order itself, and
//! skips a bounded number of entries that the other conditions exclude.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{ANSWER_BYTES_MAX, Objects, Result};
use crate::proto::object::{
    Direction, Every, Field, Interval, Object, ObjectError, ObjectId, ObjectType, Query, Term,
    entry, id_of,
};
use crate::store::{Store, StoreError};

const CHUNK: usize = 1000;
/// Up to so many entries are collected and put in order.
const COLLECTED_MAX: u64 = 10_000;
/// The maximum number of entries that one query reads.
pub(super) const PASSED_MAX: usize = 100_000;

/// The retries of a query after an index was dropped.
pub(super) const TRIES_MAX: usize = 5;

pub(super) const FINDING: &str = "finding objects";

/// A candidate: its place in the order, and its id.
type Candidate = (Vec<u8>, ObjectId);
type Terms = BTreeMap<String, String>;

/// The order of an answer: an index, by id if none is named, and which way along it.
#[derive(Clone, Copy)]
struct Order<'a> {
    field: Option<&'a Field>,
    direction: Direction,
}

impl Order<'_> {
    fn is_by(&self, field: &Field) -> bool {
        self.field.map_or(field.is_id(), |own| own == field)
    }

    fn place(&self, id: &ObjectId, indexed: impl Fn(&Field) -> Option<String>) -> Vec<u8> {
        match self.field {
            None => id.as_str().into(),
            Some(field) => {
                let nothing = || Term::of(&Value::Null).indexed().to_owned();
                entry(&indexed(field).unwrap_or_else(nothing), id.as_str())
            }
        }
    }

    fn is_behind(&self, place: &[u8], after: Option<&[u8]>) -> bool {
        after.is_none_or(|after| match self.direction {
            Direction::Ascending => place > after,
            Direction::Descending => place < after,
        })
    }

    fn sort(&self, candidates: &mut Vec<Candidate>) {
        candidates.sort_unstable();
        candidates.dedup();
        if self.direction == Direction::Descending {
            candidates.reverse();
        }
    }
}

impl Objects<'_> {
    pub(super) async fn find(
        &self,
        object_type: &ObjectType,
        query: &Query,
        after: Option<&(ObjectId, Map<String, Value>)>,
        limit: usize,
    ) -> Result<Vec<Object>> {
        let mut fields: Vec<&Field> = query.fields().collect();
        fields.sort_unstable();
        fields.dedup();
        for _ in 0..TRIES_MAX {
            if !fields.is_empty() && !self.have_indexes(object_type, &fields).await? {
                return Ok(Vec::new());
            }
            if let Some(found) = self.walk(object_type, query, &fields, after, limit).await? {
                return Ok(found);
            }
        }
        Err(indexes_change())
    }

    /// The answer to a query; none if one of its indexes was dropped meanwhile.
    async fn walk(
        &self,
        object_type: &ObjectType,
        query: &Query,
        fields: &[&Field],
        after: Option<&(ObjectId, Map<String, Value>)>,
        limit: usize,
    ) -> Result<Option<Vec<Object>>> {
        let order = Order {
            field: query.order.as_ref().map(|(field, _)| field).filter(|field| !field.is_id()),
            direction: query.order.as_ref().map_or(Direction::default(), |(_, way)| *way),
        };
        let limit = limit.min(query.limit.unwrap_or(usize::MAX)).min(Store::OBJECT_PAGE_MAX);
        let mut after = after
            .map(|(id, body)| order.place(id, |field| Some(field.term(body).indexed().to_owned())));
        let (mut found, mut passed) = (Vec::new(), 0);
        while found.len() < limit {
            let wanted = limit - found.len();
            let mut candidates = Vec::new();
            for every in &query.any {
                let walk =
                    Walk { objects: self, object_type, every, order, after: after.as_deref() };
                candidates.extend(walk.go(wanted, &mut passed).await?);
            }
            order.sort(&mut candidates);
            candidates.truncate(wanted);
            let Some((last, _)) = candidates.last() else {
                let is_whole = self.are_whole(object_type, fields).await?;
                return Ok(is_whole.then_some(found));
            };
            after = Some(last.clone());
            let is_last = candidates.len() < wanted;
            let ids: Vec<ObjectId> = candidates.into_iter().map(|(_, id)| id).collect();
            // Both go on their way at once, after everything that was read along the indexes.
            let (read, is_whole) = tokio::join!(
                self.read(object_type, &ids, ANSWER_BYTES_MAX),
                self.are_whole(object_type, fields)
            );
            let (objects, looked) = read?;
            if !is_whole? {
                return Ok(None);
            }
            if looked < ids.len() {
                let mib = ANSWER_BYTES_MAX >> 20;
                let message = format!(
                    "the objects found are larger than {mib}MiB together; ask for fewer with `limit`"
                );
                return Err(ObjectError::TooMuch(message));
            }
            let is_meant = |object: &Object| query.means(object.id.as_str(), &object.body);
            found.extend(objects.into_iter().filter(is_meant));
            if is_last {
                break;
            }
        }
        Ok(Some(found))
    }
}

/// The way to the objects that meet one list of conditions.
struct Walk<'a> {
    objects: &'a Objects<'a>,
    object_type: &'a ObjectType,
    every: &'a Every,
    order: Order<'a>,
    after: Option<&'a [u8]>,
}

struct Stretch {
    key: String,
    low: Vec<u8>,
    high: Vec<u8>,
    direction: Direction,
}

impl Walk<'_> {
    /// The first candidates after `after`, in order.
    async fn go(&self, wanted: usize, passed: &mut usize) -> Result<Vec<Candidate>> {
        let conditions = &self.every.0;
        let along_order = self.along_order();
        let mut others = conditions.iter().filter(|(field, _)| !self.order.is_by(field));
        match (others.next(), others.next()) {
            (None, _) => return self.follow(along_order, wanted, passed, false).await,
            // Entries of one value stand in the order of their ids.
            (Some((field, interval)), None)
                if interval.is_one() && self.order.field.is_none() && conditions.len() == 1 =>
            {
                return self.follow(self.of_one(field, interval), wanted, passed, false).await;
            }
            _ => {}
        }
        match self.fewest().await? {
            Some((field, interval, count)) if count <= COLLECTED_MAX => {
                self.collect(self.along(field, interval), passed).await
            }
            _ => self.follow(along_order, wanted, passed, true).await,
        }
    }

    fn key(&self, field: Option<&Field>) -> String {
        let (keys, context) = (&self.objects.store.keys, self.objects.context);
        match field.filter(|field| !field.is_id()) {
            Some(field) => keys.object_index(context, self.object_type, field),
            None => keys.object_ids(context, self.object_type),
        }
    }

    fn along(&self, field: &Field, interval: &Interval) -> Stretch {
        let (low, high) = interval.in_index();
        Stretch { key: self.key(Some(field)), low, high, direction: Direction::Ascending }
    }

    /// The remaining stretch of the order's own index.
    fn along_order(&self) -> Stretch {
        let own = self.every.0.iter().find(|(field, _)| self.order.is_by(field));
        let (low, high) =
            own.map_or_else(Interval::all, |(_, interval)| interval.clone()).in_index();
        self.unpassed(Stretch {
            key: self.key(self.order.field),
            low,
            high,
            direction: self.order.direction,
        })
    }

    /// The remaining stretch of a single value, in the order of ids.
    fn of_one(&self, field: &Field, interval: &Interval) -> Stretch {
        let mut stretch =
            Stretch { direction: self.order.direction, ..self.along(field, interval) };
        if let Some(after) = self.after {
            // The place of the same value with that id.
            let end = [&stretch.low, after].concat();
            match stretch.direction {
                Direction::Ascending => stretch.low = [end.as_slice(), &[0]].concat(),
                Direction::Descending => stretch.high = end,
            }
        }
        stretch
    }

    fn unpassed(&self, mut stretch: Stretch) -> Stretch {
        if let Some(after) = self.after {
            match stretch.direction {
                // The next entry that can be.
                Direction::Ascending => stretch.low = stretch.low.max([after, &[0]].concat()),
                Direction::Descending => stretch.high = stretch.high.min(after.to_vec()),
            }
        }
        stretch
    }

    /// The condition with the fewest entries to look at.
    async fn fewest(&self) -> Result<Option<(&Field, &Interval, u64)>> {
        let mut pipeline = redis::pipe();
        for (field, interval) in &self.every.0 {
            let stretch = self.along(field, interval);
            pipeline
                .cmd("ZLEXCOUNT")
                .arg(stretch.key)
                .arg(from(&stretch.low))
                .arg(to(&stretch.high));
        }
        let counts: Vec<u64> = self.objects.store.link.pipeline(FINDING, &pipeline).await?;
        let counted = self.every.0.iter().zip(counts);
        Ok(counted
            .map(|((field, interval), count)| (field, interval, count))
            .min_by_key(|(.., count)| *count))
    }

    /// Follows a stretch that is in order. `checked` if it does not answer all conditions.
    async fn follow(
        &self,
        mut stretch: Stretch,
        wanted: usize,
        passed: &mut usize,
        checked: bool,
    ) -> Result<Vec<Candidate>> {
        let mut candidates = Vec::new();
        while candidates.len() < wanted && stretch.low < stretch.high {
            let chunk = if checked { CHUNK } else { wanted - candidates.len() };
            let ids = self.next(&mut stretch, chunk, passed).await?;
            let is_last = ids.len() < chunk;
            if self.order.field.is_none() && !checked {
                candidates.extend(ids.into_iter().map(|id| (id.as_str().into(), id)));
            } else {
                candidates.extend(self.candidates(ids).await?);
            }
            if is_last {
                break;
            }
        }
        candidates.truncate(wanted);
        Ok(candidates)
    }

    /// Collects a stretch, and returns the candidates after `after` in order.
    async fn collect(&self, mut stretch: Stretch, passed: &mut usize) -> Result<Vec<Candidate>> {
        let mut candidates = Vec::new();
        loop {
            let ids = self.next(&mut stretch, CHUNK, passed).await?;
            let is_last = ids.len() < CHUNK;
            candidates.extend(self.candidates(ids).await?);
            if is_last {
                break;
            }
        }
        candidates.retain(|(place, _)| self.order.is_behind(place, self.after));
        self.order.sort(&mut candidates);
        Ok(candidates)
    }

    /// The next ids along a stretch, which becomes shorter by them.
    async fn next(
        &self,
        stretch: &mut Stretch,
        count: usize,
        passed: &mut usize,
    ) -> Result<Vec<ObjectId>> {
        let Stretch { key, low, high, direction } = stretch;
        let (command, first, last) = match direction {
            Direction::Ascending => ("ZRANGEBYLEX", from(low), to(high)),
            Direction::Descending => ("ZREVRANGEBYLEX", to(high), from(low)),
        };
        let arguments = (&*key, first, last, "LIMIT", 0, count);
        let entries: Vec<Vec<u8>> =
            self.objects.store.link.command(FINDING, command, arguments).await?;
        *passed += entries.len();
        if *passed > PASSED_MAX {
            return Err(ObjectError::TooMuch(format!(
                "the query passes more than {PASSED_MAX} objects that it does not mean; add a \
                 condition on an indexed field that few objects meet"
            )));
        }
        if let Some(last) = entries.last() {
            match direction {
                Direction::Ascending => *low = [last.as_slice(), &[0]].concat(),
                Direction::Descending => high.clone_from(last),
            }
        }
        let read = |entry: &Vec<u8>| std::str::from_utf8(id_of(entry)).ok()?.parse().ok();
        let ids: Vec<ObjectId> = entries.iter().filter_map(read).collect();
        if ids.len() < entries.len() {
            return Err(StoreError::unexpected(FINDING).into());
        }
        Ok(ids)
    }

    /// The candidates among objects, each with its place in the order.
    async fn candidates(&self, ids: Vec<ObjectId>) -> Result<Vec<Candidate>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let store = self.objects.store;
        let key = store.keys.object_heads(self.objects.context, self.object_type);
        let arguments = (key, ids.iter().map(ObjectId::as_str).collect::<Vec<_>>());
        let heads: Vec<Option<String>> = store.link.command(FINDING, "HMGET", arguments).await?;
        let known = ids.into_iter().zip(heads).filter_map(|(id, head)| {
            let terms = terms_of(&head?);
            let indexed = |field: &Field| terms.get(field.as_str()).map(String::as_str);
            let may = self.every.may_be_met(id.as_str(), indexed);
            let place = self.order.place(&id, |field| indexed(field).map(str::to_owned));
            may.then_some((place, id))
        });
        Ok(known.collect())
    }
}

fn terms_of(head: &str) -> Terms {
    let encoded = head.split_once('\n').map_or("[]", |(_, encoded)| encoded);
    let flat: Vec<String> = serde_json::from_str(encoded).unwrap_or_default();
    let mut flat = flat.into_iter();
    let mut terms = Terms::new();
    while let (Some(field), Some(term)) = (flat.next(), flat.next()) {
        terms.insert(field, term);
    }
    terms
}

/// The error of a query whose indexes were dropped at each of its tries.
pub(super) fn indexes_change() -> ObjectError {
    let message = "its indexes are being taken away and built again; try again";
    ObjectError::TooMuch(message.to_owned())
}

/// An end of a stretch as Redis takes it: the low one belongs to it, the high one does not.
pub(super) fn from(low: &[u8]) -> Vec<u8> {
    [b"[", low].concat()
}

pub(super) fn to(high: &[u8]) -> Vec<u8> {
    [b"(", high].concat()
}
