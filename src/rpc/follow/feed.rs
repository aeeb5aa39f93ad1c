//! The latest entries that one reader of Redis has read, for all that follow the same thing.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::super::rpc_error::Result;
use super::notice::LoggedLine;
use super::topic::StreamPlace;
use crate::client::StatsDocument;
use crate::proto::job::JobStatus;
use crate::store::JobEvent;

/// The bytes of entries that are kept for slow followers; they read older ones themselves.
const KEPT_BYTES_MAX: usize = 256 << 10;

#[derive(Debug, Clone)]
pub(super) enum FeedEntry {
    Line(LoggedLine),
    Event(JobEvent),
    Stats(Arc<StatsDocument>),
}

/// The latest entries of a followed thing.
#[derive(Default)]
pub(super) struct SharedFeed {
    content: Mutex<FeedContent>,
    news: watch::Sender<()>,
}

#[derive(Default)]
pub(super) struct FeedContent {
    /// True once the reader knows where it began.
    pub(super) is_open: bool,
    /// All entries after this place are kept.
    pub(super) begin: StreamPlace,
    /// The place of the last entry.
    pub(super) end: StreamPlace,
    kept: VecDeque<RetainedEntry>,
    bytes: usize,
    pub(super) status: Option<JobStatus>,
    /// The text after the last line of the job's log that has no line end yet.
    pub(super) unfinished: Arc<str>,
    /// Why nothing can be read now.
    pub(super) problem: Option<Arc<str>>,
    /// Set once nothing follows.
    pub(super) ended: Option<Result<()>>,
}

struct RetainedEntry {
    place: StreamPlace,
    bytes: usize,
    entry: FeedEntry,
}

impl SharedFeed {
    /// Returns the content, which must not be held across an await.
    pub(super) fn content(&self) -> MutexGuard<'_, FeedContent> {
        self.content.lock()
    }

    /// Returns a receiver that is told of each change, and of the content so far.
    pub(super) fn news(&self) -> watch::Receiver<()> {
        let mut news = self.news.subscribe();
        news.mark_changed();
        news
    }

    /// Waits until the reader knows where it began, and returns the place of the last entry; `None` if it
    /// cannot read.
    pub(super) async fn place_of_now(&self) -> Option<StreamPlace> {
        let mut news = self.news();
        loop {
            {
                let content = self.content();
                if content.is_open {
                    return Some(content.end);
                }
                if content.problem.is_some() || content.ended.is_some() {
                    return None;
                }
            }
            news.changed().await.ok()?;
        }
    }

    /// Changes the content and tells the followers.
    pub(super) fn change(&self, change: impl FnOnce(&mut FeedContent)) {
        change(&mut self.content());
        self.news.send_replace(());
    }

    /// Notifies the followers why nothing can be read, once.
    pub(super) fn trouble(&self, reason: &str) {
        if self.content().problem.as_deref() != Some(reason) {
            self.change(|content| content.problem = Some(reason.into()));
        }
    }
}

impl FeedContent {
    /// Begins after a place.
    pub(super) fn open(&mut self, place: StreamPlace) {
        (self.is_open, self.begin, self.end, self.problem) = (true, place, place, None);
    }

    /// Adds an entry of this size, and drops the oldest ones.
    pub(super) fn add(&mut self, place: StreamPlace, bytes: usize, entry: FeedEntry) {
        self.kept.push_back(RetainedEntry { place, bytes, entry });
        (self.end, self.bytes) = (place, self.bytes + bytes);
        while self.bytes > KEPT_BYTES_MAX && self.kept.len() > 1 {
            let Some(oldest) = self.kept.pop_front() else { return };
            (self.begin, self.bytes) = (oldest.place, self.bytes - oldest.bytes);
        }
    }

    /// Keeps an entry in place of all others.
    pub(super) fn replace(&mut self, place: StreamPlace, entry: FeedEntry) {
        self.kept.clear();
        (self.begin, self.bytes) = (self.end, 0);
        self.add(place, 0, entry);
    }

    /// Returns the entries after a place, up to about this number of bytes.
    pub(super) fn after(
        &self,
        place: StreamPlace,
        bytes_max: usize,
    ) -> Vec<(StreamPlace, FeedEntry)> {
        let first = self.kept.partition_point(|kept| kept.place <= place);
        let mut bytes = 0;
        let within = |kept: &&RetainedEntry| {
            let fits = bytes == 0 || bytes + kept.bytes <= bytes_max;
            bytes += kept.bytes.max(1);
            fits
        };
        let found = self.kept.range(first..).take_while(within);
        found.map(|kept| (kept.place, kept.entry.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::LogLine;

    fn place(number: u64) -> StreamPlace {
        StreamPlace::of(&format!("{number}-0"))
    }

    fn entry(number: u64) -> FeedEntry {
        let id = place(number).to_string();
        FeedEntry::Line(
            LogLine { id, fd: 1, line: String::new(), progress: None, output: false }.into(),
        )
    }

    fn places(content: &FeedContent, after: u64, bytes: usize) -> Vec<String> {
        content.after(place(after), bytes).iter().map(|(place, _)| place.to_string()).collect()
    }

    #[test]
    fn follower_gets_what_is_after_its_place_in_parts() {
        let mut content = FeedContent::default();
        content.open(place(3));
        (4..8).for_each(|number| content.add(place(number), 10, entry(number)));
        assert_eq!(places(&content, 3, 1000), ["4-0", "5-0", "6-0", "7-0"]);
        assert_eq!(places(&content, 5, 1000), ["6-0", "7-0"]);
        assert_eq!(places(&content, 3, 20), ["4-0", "5-0"]);
        assert_eq!(places(&content, 3, 1), ["4-0"], "one entry at least");
        assert!(places(&content, 7, 1000).is_empty());
    }

    #[test]
    fn kept_entries_are_bounded_in_bytes() {
        let mut content = FeedContent::default();
        content.open(place(0));
        (1..=1000).for_each(|number| content.add(place(number), 1 << 10, entry(number)));
        assert_eq!((content.begin, content.end), (place(1000 - 256), place(1000)));
        content.add(place(1001), KEPT_BYTES_MAX * 2, entry(1001));
        assert_eq!((content.begin, content.end), (place(1000), place(1001)));
    }
}
