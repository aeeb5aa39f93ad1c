//! The newest entries of indexes, page by page. A page costs the page, however many entries there are and
//! share one time.
//!
//! Dead letters, jobs in `error` that used up their attempts or took down too many actors, stand in a list per type as well, which
//! is bounded.

use super::cursor::Cursor;
use super::{JobStore, Result};
use crate::proto::job::{JobEnd, JobId};
use crate::proto::target::ScriptType;

/// An entry of an index: the score and the id.
pub(super) type Entry = (i64, JobId);
/// The same, with an id that may be illegal, and need not be text.
type IndexPlace = (i64, Vec<u8>);
/// An answer of Redis: ids with their scores.
type Page = Vec<(Vec<u8>, f64)>;

/// An index, and the score below which it is not read.
#[derive(Debug, Clone)]
pub(super) struct BoundedIndex {
    pub(super) key: String,
    pub(super) from: Option<i64>,
}

impl BoundedIndex {
    pub(super) fn whole(key: String) -> Self {
        Self { key, from: None }
    }
}

/// Entries of an index that follow each other.
struct Portion<'a> {
    index: &'a BoundedIndex,
    entries: Page,
    /// The index may go on after this place.
    last: Option<IndexPlace>,
}

impl<'a> Portion<'a> {
    fn of(index: &'a BoundedIndex, mut entries: Page, asked: usize) -> Self {
        let is_over = entries.len() < asked;
        let number = entries.len();
        entries.retain(|(_, score)| index.from.is_none_or(|from| whole(*score) >= from));
        let last = entries.last().filter(|_| !is_over && entries.len() == number);
        let last = last.map(|(id, score)| (whole(*score), id.clone()));
        Self { index, entries, last }
    }
}

impl JobStore<'_> {
    /// The newest entries of several indexes together, after a cursor. Reads a portion of each index, and
    /// further ones only where the newest entries may go on. Redis has entries of one score in the order of
    /// their ids too, so thousands of the same time cost no more.
    pub(super) async fn newest(
        self,
        indexes: &[BoundedIndex],
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Vec<Entry>> {
        let bytes = |id: &JobId| id.as_str().as_bytes().to_vec();
        let passed = after.map(|cursor| (cursor.score, bytes(&cursor.id)));
        let mut entries: Vec<Entry> = Vec::new();
        let mut portion = (2 * limit / indexes.len().max(1)).clamp(1, limit + 1);
        let mut portions = self.first_portions(indexes, after, portion).await?;
        while !portions.is_empty() {
            let mut open: Vec<(&BoundedIndex, IndexPlace)> = Vec::new();
            for Portion { index, entries: found, last } in portions {
                entries.extend(found.into_iter().filter_map(|of| entry_after(of, after)));
                // Past the cursor, if the portion did not get there.
                let last = last.map(|last| passed.iter().cloned().fold(last, IndexPlace::min));
                open.extend(last.map(|last| (index, last)));
            }
            // A job that moves may stand in two indexes.
            entries.sort_unstable_by(|a, b| b.cmp(a));
            entries.dedup();
            entries.truncate(limit);
            let oldest = entries.get(limit - 1).map(|(score, id)| (*score, bytes(id)));
            open.retain(|(_, last)| oldest.as_ref().is_none_or(|oldest| last > oldest));
            portion = (portion * 2).min(limit + 1);
            portions = self.portions_behind(open, portion).await?;
        }
        Ok(entries)
    }

    async fn first_portions<'a>(
        self,
        indexes: &'a [BoundedIndex],
        after: Option<&Cursor>,
        portion: usize,
    ) -> Result<Vec<Portion<'a>>> {
        let most = after.map_or_else(|| "+inf".to_owned(), |cursor| cursor.score.to_string());
        if indexes.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        for index in indexes {
            let least = index.from.map_or_else(|| "-inf".to_owned(), |from| from.to_string());
            let command = pipeline.cmd("ZREVRANGEBYSCORE").arg(&index.key).arg(&most).arg(least);
            command.arg("WITHSCORES").arg("LIMIT").arg(0).arg(portion);
        }
        let pages: Vec<Page> = self.store.link.pipeline("listing jobs", &pipeline).await?;
        Ok(indexes
            .iter()
            .zip(pages)
            .map(|(index, page)| Portion::of(index, page, portion))
            .collect())
    }

    /// The portion of each index after a place. A rank is known in one call and used in the next: if entries have
    /// left the index meanwhile, the range after it begins too late. So a range begins early, and its first entry
    /// shows that it left none out; else the rank is taken again, and the range begins earlier.
    async fn portions_behind(
        self,
        mut left: Vec<(&BoundedIndex, IndexPlace)>,
        portion: usize,
    ) -> Result<Vec<Portion<'_>>> {
        let mut portions = Vec::new();
        let mut early: usize = 1;
        while !left.is_empty() {
            let ranks = self.ranks_behind(&left).await?;
            let mut pipeline = redis::pipe();
            for ((index, _), rank) in left.iter().zip(&ranks) {
                let command =
                    pipeline.cmd("ZREVRANGE").arg(&index.key).arg(rank.saturating_sub(early));
                command.arg(rank + portion - 1).arg("WITHSCORES");
            }
            let pages: Vec<Page> = self.store.link.pipeline("listing jobs", &pipeline).await?;
            let mut again = Vec::new();
            for (((index, place), rank), page) in left.into_iter().zip(ranks).zip(pages) {
                let is_behind =
                    |(id, score): &(Vec<u8>, f64)| (whole(*score), id) < (place.0, &place.1);
                if rank > early && page.first().is_none_or(is_behind) {
                    again.push((index, place));
                    continue;
                }
                let asked = portion + rank.min(early);
                let mut read = Portion::of(index, page, asked);
                read.last = read.last.map(|last| last.min(place.clone()));
                portions.push(read);
            }
            (left, early) = (again, early * 2);
        }
        Ok(portions)
    }

    /// The rank of the first entry after a place of each index, the newest first.
    async fn ranks_behind(self, places: &[(&BoundedIndex, IndexPlace)]) -> Result<Vec<usize>> {
        let mut pipeline = redis::pipe();
        for (index, (_, id)) in places {
            pipeline.cmd("ZREVRANK").arg(&index.key).arg(id);
            pipeline.cmd("ZSCORE").arg(&index.key).arg(id);
        }
        let answers: Vec<Option<f64>> = self.store.link.pipeline("listing jobs", &pipeline).await?;
        let mut ranks = Vec::with_capacity(places.len());
        for ((index, place), answer) in places.iter().zip(answers.chunks(2)) {
            ranks.push(match answer {
                [Some(rank), Some(score)] if whole(*score) == place.0 => {
                    usize::try_from(whole(*rank)).unwrap_or_default() + 1
                }
                // It has left the index, or was never in it.
                _ => self.search_rank_behind(&index.key, place).await?,
            });
        }
        Ok(ranks)
    }

    /// Searches for the first entry after a place among the entries of its score.
    async fn search_rank_behind(self, index: &str, place: &IndexPlace) -> Result<usize> {
        let mut pipeline = redis::pipe();
        let score = place.0;
        pipeline.cmd("ZCOUNT").arg(index).arg(format!("({score}")).arg("+inf");
        pipeline.cmd("ZCOUNT").arg(index).arg(score).arg(score);
        let (newer, same): (usize, usize) =
            self.store.link.pipeline("listing jobs", &pipeline).await?;
        let (mut low, mut high) = (newer, newer + same);
        while low < high {
            let middle = low.midpoint(high);
            let arguments = (index, middle, middle, "WITHSCORES");
            let found: Page =
                self.store.link.command("listing jobs", "ZREVRANGE", arguments).await?;
            match found.into_iter().next() {
                Some((id, score)) if (whole(score), &id) >= (place.0, &place.1) => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "microseconds are whole")]
pub(super) fn whole(score: f64) -> i64 {
    score as i64
}

/// `None` for an entry of an earlier page, and for an illegal id.
pub(super) fn entry_after((id, score): (Vec<u8>, f64), after: Option<&Cursor>) -> Option<Entry> {
    let entry = (whole(score), std::str::from_utf8(&id).ok()?.parse::<JobId>().ok()?);
    let passed = after.is_some_and(|cursor| entry.0 == cursor.score && entry.1 >= cursor.id);
    (!passed).then_some(entry)
}

const IDS_PER_CALL: usize = 1000;

impl JobStore<'_> {
    /// The newest dead letters, of one type or of all together, after a cursor. Their lists are read whole: the bound of a
    /// list is small, and the index of the state has the order.
    pub(super) async fn newest_dead(
        self,
        script_type: Option<&ScriptType>,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Vec<Entry>> {
        const DOING: &str = "listing dead letters";
        let types = self.types_or_only(script_type).await?;
        let list = |of| ("LRANGE", (self.store.keys.dead(of), 0, -1));
        let lists: Vec<Option<Vec<Vec<u8>>>> = self.store.link.each(DOING, &types, list).await?;
        let mut entries: Vec<Entry> = Vec::new();
        for (script_type, list) in types.iter().zip(lists) {
            let ids = list.unwrap_or_default();
            for ids in ids.chunks(IDS_PER_CALL) {
                // Its error may be the words of a stop. One without a score runs again, or its job is gone.
                for end in JobEnd::IN_ERROR {
                    let index = self.store.keys.ended(end, script_type);
                    let place = |id| ("ZSCORE", (&index, id));
                    let scores: Vec<Option<f64>> = self.store.link.each(DOING, ids, place).await?;
                    let placed = ids
                        .iter()
                        .zip(scores)
                        .filter_map(|(id, score)| entry_after((id.clone(), score?), after));
                    entries.extend(placed);
                }
            }
        }
        if let Some(passed) = after {
            entries.retain(|(score, _)| *score <= passed.score);
        }
        entries.sort_unstable_by(|a, b| b.cmp(a));
        entries.dedup();
        entries.truncate(limit);
        Ok(entries)
    }

    pub async fn is_dead(self, script_type: &ScriptType, id: &JobId) -> Result<bool> {
        let arguments = (self.store.keys.dead(script_type), id.as_str());
        let place: Option<u64> =
            self.store.link.command("looking for a dead letter", "LPOS", arguments).await?;
        Ok(place.is_some())
    }
}
