//! Dead letters: jobs in `error` that used up their attempts, or took down too many actors. Beside the index of their
//! state they stand in a list per type, which is bounded.

use super::cursor::Cursor;
use super::newest::{Entry, entry_after};
use super::{Result, Store};
use crate::proto::job::{JobEnd, JobId};
use crate::proto::target::ScriptType;

/// The maximum number of ids that are looked up in one round trip.
const IDS_PER_CALL: usize = 1000;

impl Store {
    /// The newest dead letters, of one type or of all together, after a cursor. Their lists are read whole: the bound of a
    /// list is small, and the index of the state has the order.
    pub(super) async fn newest_dead(
        &self,
        script_type: Option<&ScriptType>,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Vec<Entry>> {
        const DOING: &str = "listing dead letters";
        let types = self.types_or_only(script_type).await?;
        let list = |of| ("LRANGE", (self.keys.dead(of), 0, -1));
        let lists: Vec<Option<Vec<Vec<u8>>>> = self.link.each(DOING, &types, list).await?;
        let mut entries: Vec<Entry> = Vec::new();
        for (script_type, list) in types.iter().zip(lists) {
            let ids = list.unwrap_or_default();
            for ids in ids.chunks(IDS_PER_CALL) {
                // Its error may be the words of a stop. One without a score runs again, or its job is gone.
                for end in JobEnd::IN_ERROR {
                    let index = self.keys.ended(end, script_type);
                    let place = |id| ("ZSCORE", (&index, id));
                    let scores: Vec<Option<f64>> = self.link.each(DOING, ids, place).await?;
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

    pub async fn is_dead(&self, script_type: &ScriptType, id: &JobId) -> Result<bool> {
        let arguments = (self.keys.dead(script_type), id.as_str());
        let place: Option<u64> =
            self.link.command("looking for a dead letter", "LPOS", arguments).await?;
        Ok(place.is_some())
    }
}
