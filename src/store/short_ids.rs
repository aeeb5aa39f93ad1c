//! Looks for jobs by the beginning of their ids: in the indexes, the newest first, and never with `SCAN`.

use std::collections::BTreeSet;

use super::text::StoredText;
use super::{JobStore, Result};
use crate::proto::job::{JobId, JobStatus};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdsFound {
    /// The first of them, at most [`IdsFound::MOST`].
    pub ids: BTreeSet<JobId>,
    pub looked: usize,
    /// True if there are more than were looked at.
    pub more: bool,
}

impl IdsFound {
    pub const MOST: usize = 8;
    pub const LOOKED_MAX: usize = 100_000;
}

const IDS_PER_PAGE: usize = 500;
const INDEXES_PER_PAGE: usize = 20;

impl JobStore<'_> {
    /// Looks for the ids that begin with a text, among the newest of every state and type.
    pub async fn ids_beginning(self, text: &str) -> Result<IdsFound> {
        let mut open: Vec<String> = Vec::new();
        for status in JobStatus::ALL {
            open.extend(self.indexes(status, None).await?);
        }
        let mut found = IdsFound::default();
        let mut passed = 0;
        while !open.is_empty() {
            let mut longer = Vec::new();
            for indexes in open.chunks(INDEXES_PER_PAGE) {
                if found.looked >= IdsFound::LOOKED_MAX {
                    found.more = true;
                    return Ok(found);
                }
                let mut pipeline = redis::pipe();
                for index in indexes {
                    // From the end, where the newest stand.
                    let (from, to) = (passed + IDS_PER_PAGE, passed + 1);
                    let page = pipeline.cmd("ZRANGE").arg(index);
                    page.arg(format!("-{from}")).arg(format!("-{to}"));
                }
                let pages: Vec<Vec<StoredText>> =
                    self.store.link.pipeline("looking for a job", &pipeline).await?;
                for (index, page) in indexes.iter().zip(pages) {
                    found.looked += page.len();
                    if page.len() == IDS_PER_PAGE {
                        longer.push(index.clone());
                    }
                    let begin = page.iter().filter(|id| id.starts_with(text));
                    found.ids.extend(begin.filter_map(|id| id.parse().ok()));
                }
                if found.ids.len() >= IdsFound::MOST {
                    found.more = true;
                    return Ok(found);
                }
            }
            open = longer;
            passed += IDS_PER_PAGE;
        }
        Ok(found)
    }
}
