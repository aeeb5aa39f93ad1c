//! Finds objects by the words of their text fields. Each word is a stretch of the indexes of words.

use std::collections::BTreeSet;

use super::find::{FINDING, PASSED_MAX, TRIES_MAX, from, indexes_change, to};
use super::{Objects, Result};
use crate::proto::object::{
    Field, ObjectError, ObjectId, ObjectType, WordQuery, id_of, word_range,
};

const CHUNK: usize = 1000;

impl Objects<'_> {
    /// Returns the ids of the objects that match, in order, after a given one.
    pub(super) async fn search(
        &self,
        object_type: &ObjectType,
        query: &WordQuery,
        after: Option<&ObjectId>,
        limit: usize,
    ) -> Result<Vec<ObjectId>> {
        let leaves = query.leaves();
        let mut fields: Vec<&Field> = leaves
            .iter()
            .flat_map(|leaf| match leaf {
                WordQuery::Word { fields, .. } => fields.as_slice(),
                _ => &[],
            })
            .collect();
        fields.sort_unstable();
        fields.dedup();
        for _ in 0..TRIES_MAX {
            if !self.have_indexes(object_type, &fields).await? {
                return Ok(Vec::new());
            }
            let (mut found, mut passed) = (Vec::with_capacity(leaves.len()), 0);
            for leaf in &leaves {
                found.push(self.with_word(object_type, leaf, &mut passed).await?);
            }
            if self.are_whole(object_type, &fields).await? {
                let ids = matching(query, &mut found.into_iter()).into_iter();
                let ids = ids.filter(|id| after.is_none_or(|after| id > after));
                return Ok(ids.take(limit).collect());
            }
        }
        Err(indexes_change())
    }

    /// Returns the ids of the objects that have a word in one of its fields.
    async fn with_word(
        &self,
        object_type: &ObjectType,
        leaf: &WordQuery,
        passed: &mut usize,
    ) -> Result<BTreeSet<ObjectId>> {
        let mut ids = BTreeSet::new();
        let WordQuery::Word { fields, word, is_prefix } = leaf else { return Ok(ids) };
        for field in fields {
            let key = self.store.keys.object_index(self.context, object_type, field);
            let (mut low, high) = word_range(word, *is_prefix);
            loop {
                let arguments = (&key, from(&low), to(&high), "LIMIT", 0, CHUNK);
                let entries: Vec<Vec<u8>> =
                    self.store.link.command(FINDING, "ZRANGEBYLEX", arguments).await?;
                *passed += entries.len();
                if *passed > PASSED_MAX {
                    return Err(ObjectError::TooMuch(format!(
                        "more than {PASSED_MAX} objects have these words; search for rarer ones"
                    )));
                }
                let read = |entry: &Vec<u8>| std::str::from_utf8(id_of(entry)).ok()?.parse().ok();
                ids.extend(entries.iter().filter_map(read));
                match entries.last() {
                    Some(last) if entries.len() == CHUNK => low = [last.as_slice(), &[0]].concat(),
                    _ => break,
                }
            }
        }
        Ok(ids)
    }
}

/// Returns the ids that match a query; `found` has the ids of each word, in the order of its leaves.
fn matching(
    query: &WordQuery,
    found: &mut impl Iterator<Item = BTreeSet<ObjectId>>,
) -> BTreeSet<ObjectId> {
    match query {
        WordQuery::Word { .. } => found.next().unwrap_or_default(),
        WordQuery::Any(queries) => {
            queries.iter().flat_map(|query| matching(query, found)).collect()
        }
        WordQuery::Every(all, none) => {
            let mut every: Option<BTreeSet<ObjectId>> = None;
            for query in all {
                let ids = matching(query, found);
                every = Some(match every {
                    Some(every) => every.intersection(&ids).cloned().collect(),
                    None => ids,
                });
            }
            let mut every = every.unwrap_or_default();
            for query in none {
                let ids = matching(query, found);
                every.retain(|id| !ids.contains(id));
            }
            every
        }
    }
}
