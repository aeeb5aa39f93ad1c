//! The expressions of `where` that jobs have in their queues, by type.

use std::collections::BTreeMap;

use super::text::StoredText;
use super::{Result, Store};
use crate::proto::queue::Queue;
use crate::proto::target::{ScriptType, SelectorDigest};

const READING: &str = "reading the expressions of jobs";

const PER_PAGE: usize = 1000;

/// The expressions of a type that were used since a time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsedSelectors {
    pub texts: BTreeMap<SelectorDigest, String>,
    /// The number of all expressions of the type.
    pub number: usize,
    /// The time of the latest use, in µs.
    pub until_us: u64,
}

impl Store {
    /// Returns the expressions of a type that were used at this time or later.
    pub async fn selectors(
        &self,
        script_type: &ScriptType,
        since_us: u64,
    ) -> Result<UsedSelectors> {
        let key = self.keys.selectors_used(script_type);
        let mut found = UsedSelectors::default();
        let mut from_us = since_us;
        loop {
            let mut pipeline = redis::pipe();
            pipeline.cmd("ZCARD").arg(&key);
            pipeline.cmd("ZRANGEBYSCORE").arg(&key).arg(from_us).arg("+inf").arg("WITHSCORES");
            pipeline.arg("LIMIT").arg(0).arg(PER_PAGE);
            let (number, used): (usize, Vec<(StoredText, u64)>) =
                self.link.pipeline(READING, &pipeline).await?;
            found.number = number;
            let is_last = used.len() < PER_PAGE;
            // What is used meanwhile moves to the end: a place by rank would leave others out.
            let last_us = used.last().map_or(from_us, |(_, at)| *at);
            from_us = if last_us > from_us || is_last { last_us } else { from_us + 1 };
            let digests = used.into_iter().filter_map(|(of, _)| of.parse().ok());
            let digests: Vec<SelectorDigest> = digests.collect();
            found.texts.extend(self.texts_of(script_type, &digests).await?);
            if is_last {
                found.until_us = from_us;
                return Ok(found);
            }
        }
    }

    /// Returns the expressions of those queues that have one and are known.
    pub(super) async fn selectors_of(
        &self,
        queues: &[Queue],
    ) -> Result<BTreeMap<SelectorDigest, String>> {
        let mut of_types: BTreeMap<&ScriptType, Vec<SelectorDigest>> = BTreeMap::new();
        for target in queues.iter().map(|queue| &queue.target) {
            if let Some(digest) = target.selector() {
                of_types.entry(target.script_type()).or_default().push(digest.clone());
            }
        }
        let mut texts = BTreeMap::new();
        for (script_type, digests) in of_types {
            texts.extend(self.texts_of(script_type, &digests).await?);
        }
        Ok(texts)
    }

    async fn texts_of(
        &self,
        script_type: &ScriptType,
        digests: &[SelectorDigest],
    ) -> Result<BTreeMap<SelectorDigest, String>> {
        if digests.is_empty() {
            return Ok(BTreeMap::new());
        }
        let fields: Vec<&str> = digests.iter().map(SelectorDigest::as_str).collect();
        let arguments = (self.keys.selectors(script_type), fields);
        let texts: Vec<Option<StoredText>> = self.link.command(READING, "HMGET", arguments).await?;
        let known = digests.iter().zip(texts);
        Ok(known.filter_map(|(of, text)| Some((of.clone(), String::from(text?)))).collect())
    }
}
