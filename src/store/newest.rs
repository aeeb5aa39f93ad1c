//! The newest entries of indexes, page by page. A page costs the page, however many entries there are and
//! share one time.

use super::listing::Cursor;
use super::{Store, StoreError};
use crate::proto::job::JobId;

/// An entry of an index: the score and the id.
pub(super) type Entry = (i64, JobId);
/// The same, with an id that may be illegal.
type IndexPlace = (i64, String);

impl Store {
    /// The newest entries of several indexes together, after a cursor. Reads a portion of each index, and
    /// further ones only where the newest entries may go on. Redis has entries of one score in the order of
    /// their ids too, so thousands of the same time cost no more.
    pub(super) async fn newest(
        &self,
        indexes: &[String],
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let most = after.map_or_else(|| "+inf".to_owned(), |cursor| cursor.score.to_string());
        let passed = after.map(|cursor| (cursor.score, cursor.id.as_str().to_owned()));
        let mut entries: Vec<Entry> = Vec::new();
        let mut open: Vec<(&String, Option<usize>)> = indexes.iter().map(|of| (of, None)).collect();
        let mut portion = (2 * limit / indexes.len().max(1)).clamp(1, limit + 1);
        while !open.is_empty() {
            let mut pipeline = redis::pipe();
            for (index, rank) in &open {
                match rank {
                    None => {
                        let command = pipeline.cmd("ZREVRANGEBYSCORE").arg(index).arg(&most);
                        command.arg("-inf").arg("WITHSCORES").arg("LIMIT").arg(0).arg(portion);
                    }
                    Some(rank) => {
                        let command = pipeline.cmd("ZREVRANGE").arg(index).arg(rank);
                        command.arg(rank + portion - 1).arg("WITHSCORES");
                    }
                }
            }
            let pages: Vec<Vec<(String, f64)>> =
                self.link.pipeline("listing jobs", &pipeline).await?;
            let last = |page: &Vec<(String, f64)>| {
                let is_full = page.len() == portion;
                page.last().filter(|_| is_full).map(|(id, score)| (whole(*score), id.clone()))
            };
            let lasts: Vec<Option<IndexPlace>> = pages.iter().map(last).collect();
            entries.extend(pages.into_iter().flatten().filter_map(|of| entry_after(of, after)));
            // A job that moves may stand in two indexes.
            entries.sort_unstable_by(|a, b| b.cmp(a));
            entries.dedup();
            entries.truncate(limit);
            let oldest = entries.get(limit - 1).map(|(score, id)| (*score, id.as_str().to_owned()));
            let go_on = open.into_iter().zip(lasts).filter_map(|((index, _), last)| {
                let last =
                    last.filter(|last| oldest.as_ref().is_none_or(|oldest| last > oldest))?;
                // Past the cursor, if the portion did not get there.
                Some((index, passed.iter().fold(last, |last, passed| last.min(passed.clone()))))
            });
            open = self.ranks_behind(go_on.collect()).await?;
            portion = (portion * 2).min(limit + 1);
        }
        Ok(entries)
    }

    /// The rank of the first entry behind a place of each index, the newest first.
    async fn ranks_behind<'a>(
        &self,
        places: Vec<(&'a String, IndexPlace)>,
    ) -> Result<Vec<(&'a String, Option<usize>)>, StoreError> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        for (index, (_, id)) in &places {
            pipeline.cmd("ZREVRANK").arg(index).arg(id);
            pipeline.cmd("ZSCORE").arg(index).arg(id);
        }
        let answers: Vec<Option<f64>> = self.link.pipeline("listing jobs", &pipeline).await?;
        let mut ranks = Vec::with_capacity(places.len());
        for ((index, place), answer) in places.into_iter().zip(answers.chunks(2)) {
            let rank = match answer {
                [Some(rank), Some(score)] if whole(*score) == place.0 => {
                    usize::try_from(whole(*rank)).unwrap_or_default() + 1
                }
                // It has left the index, or was never in it.
                _ => self.search_rank_behind(index, &place).await?,
            };
            ranks.push((index, Some(rank)));
        }
        Ok(ranks)
    }

    /// Searches for the first entry behind a place among those of its score.
    async fn search_rank_behind(
        &self,
        index: &str,
        place: &IndexPlace,
    ) -> Result<usize, StoreError> {
        let mut pipeline = redis::pipe();
        let score = place.0;
        pipeline.cmd("ZCOUNT").arg(index).arg(format!("({score}")).arg("+inf");
        pipeline.cmd("ZCOUNT").arg(index).arg(score).arg(score);
        let (newer, same): (usize, usize) = self.link.pipeline("listing jobs", &pipeline).await?;
        let (mut low, mut high) = (newer, newer + same);
        while low < high {
            let middle = low.midpoint(high);
            let mut command = redis::cmd("ZREVRANGE");
            command.arg(index).arg(middle).arg(middle).arg("WITHSCORES");
            let found: Vec<(String, f64)> = self.link.query("listing jobs", &command).await?;
            match found.into_iter().next() {
                Some((id, score)) if (whole(score), id.as_str()) >= (place.0, place.1.as_str()) => {
                    low = middle + 1;
                }
                _ => high = middle,
            }
        }
        Ok(low)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "microseconds are whole")]
fn whole(score: f64) -> i64 {
    score as i64
}

/// `None` for an entry of an earlier page, and for an illegal id.
fn entry_after((id, score): (String, f64), after: Option<&Cursor>) -> Option<Entry> {
    let entry = (whole(score), id.parse::<JobId>().ok()?);
    let passed = after.is_some_and(|cursor| entry.0 == cursor.score && entry.1 >= cursor.id);
    (!passed).then_some(entry)
}
