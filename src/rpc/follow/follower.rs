//! A follower: one subscription; its client has everything up to its place.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::super::caller::Caller;
use super::super::rpc_error::Result;
use super::feed::{FeedEntry, SharedFeed};
use super::hub::{FeedSeat, FollowHub};
use super::notice::{EventsNotice, JobNotice, NoticeHead, StatsNotice};
use super::topic::{FollowTopic, Following, StreamPlace};
use crate::client::{ClientError, StatsDocument};
use crate::proto::job::JobStatus;

/// The bytes of entries in one notification.
const NOTICE_BYTES_MAX: usize = 64 << 10;
/// The entries that a follower reads itself at a time, if they are not kept any more.
const PAGE: usize = 100;
/// The pause before a failed read is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The longest that a subscription waits for the place of now, while Redis does not answer.
const OPEN_WAIT: Duration = Duration::from_secs(2);

pub(crate) struct Follower {
    subscription: String,
    hub: FollowHub,
    topic: FollowTopic,
    bound: Option<Arc<Caller>>,
    /// The client has everything up to here; `None`: it wants what comes from now on.
    place: Option<StreamPlace>,
    status: Option<JobStatus>,
    unfinished: Arc<str>,
    problem: Option<String>,
    news: watch::Receiver<()>,
    /// True if there is more than the last notification had.
    has_more: bool,
    seat: FeedSeat,
}

pub(crate) enum NextNotice {
    /// Nothing has changed.
    None,
    Some(Value),
    /// The parameters of the last notification.
    Last(Value),
}

/// The entries for a notification, with what else has changed.
#[derive(Default)]
struct Taken {
    entries: Vec<FeedEntry>,
    status: Option<JobStatus>,
    unfinished: Option<Arc<str>>,
    problem: Option<String>,
    ended: Option<Result<()>>,
}

impl Follower {
    /// Subscribes. What comes after the return is told, also what comes before the first notification.
    ///
    /// # Errors
    /// Too many subscriptions are open.
    pub(crate) async fn new(
        hub: &FollowHub,
        subscription: String,
        following: Following,
    ) -> Result<Self> {
        let Following { topic, since, caller } = following;
        let seat = hub.join(&topic, &caller.name)?;
        let bound = Some(caller).filter(|caller| caller.is_bound());
        let news = seat.feed.news();
        let place = match (&topic, since) {
            (FollowTopic::Job(..), since) => Some(since.unwrap_or_default()),
            (FollowTopic::Events, None) => {
                tokio::time::timeout(OPEN_WAIT, seat.feed.place_of_now()).await.ok().flatten()
            }
            (FollowTopic::Events | FollowTopic::Stats, since) => since,
        };
        Ok(Self {
            subscription,
            hub: hub.clone(),
            topic,
            bound,
            place,
            status: None,
            unfinished: Arc::default(),
            problem: None,
            news,
            has_more: false,
            seat,
        })
    }

    /// Waits until there may be something to tell.
    pub(crate) async fn changed(&mut self) {
        if !self.has_more && self.news.changed().await.is_err() {
            // The reader never ends before it has told so.
            std::future::pending::<()>().await;
        }
    }

    pub(crate) async fn next(&mut self) -> NextNotice {
        self.news.mark_unchanged();
        let taken = match self.take() {
            Ok(taken) => taken,
            Err(place) => match self.read(place).await {
                Ok(entries) => {
                    let problem = self.told(None);
                    Taken { entries, problem, ..Taken::default() }
                }
                Err(error) => {
                    tokio::time::sleep(AGAIN).await;
                    self.has_more = true;
                    let problem = self.told(Some(&error.to_string()));
                    Taken { problem, ..Taken::default() }
                }
            },
        };
        let is_empty =
            taken.entries.is_empty() && taken.status.is_none() && taken.unfinished.is_none();
        if is_empty && taken.problem.is_none() && taken.ended.is_none() {
            return NextNotice::None;
        }
        if let Err(error) = self.check_bounds().await {
            let ended = Some(Err(error.into()));
            return NextNotice::Last(self.notice(Taken { ended, ..Taken::default() }));
        }
        let is_last = taken.ended.is_some();
        let notice = self.notice(taken);
        if is_last { NextNotice::Last(notice) } else { NextNotice::Some(notice) }
    }

    /// Refuses a job that has left the bounds of its follower meanwhile.
    async fn check_bounds(&self) -> Result<(), ClientError> {
        let (FollowTopic::Job(id, _), Some(caller)) = (&self.topic, &self.bound) else {
            return Ok(());
        };
        let found = self.hub.client().jobs().summaries(vec![id.clone()]).await?;
        let is_within = found.iter().all(|job| caller.sees(job));
        if is_within { Ok(()) } else { Err(ClientError::NoSuchJob(id.clone())) }
    }

    /// Returns the problem to tell, if it differs from the last one told; empty for none.
    fn told(&mut self, problem: Option<&str>) -> Option<String> {
        if self.problem.as_deref() == problem {
            return None;
        }
        self.problem = problem.map(str::to_owned);
        Some(problem.unwrap_or_default().to_owned())
    }

    /// Takes the feed's entries after the place. Fails with the place if the feed does not keep it any more.
    fn take(&mut self) -> Result<Taken, StreamPlace> {
        self.has_more = false;
        let feed: Arc<SharedFeed> = Arc::clone(&self.seat.feed);
        let content = feed.content();
        let is_stats = self.topic == FollowTopic::Stats;
        let mut place = match self.place {
            Some(place) if place < content.begin && !is_stats => return Err(place),
            Some(place) => place,
            None if is_stats => content.begin,
            None => content.end,
        };
        let mut taken =
            Taken { problem: self.told(content.problem.as_deref()), ..Taken::default() };
        if !content.is_open {
            return Ok(taken);
        }
        let found = content.after(place, NOTICE_BYTES_MAX);
        if let Some((last, _)) = found.last() {
            place = *last;
        }
        self.place = Some(place);
        self.has_more = place < content.end;
        taken.entries = found.into_iter().map(|(_, entry)| entry).collect();
        // The end comes after all lines.
        if !self.has_more {
            taken.ended.clone_from(&content.ended);
        }
        let is_due = content.ended.is_none() || taken.ended.is_some();
        if is_due && content.status != self.status {
            (self.status, taken.status) = (content.status, content.status);
        }
        if is_due && !self.has_more && content.unfinished != self.unfinished {
            self.unfinished = Arc::clone(&content.unfinished);
            taken.unfinished = Some(Arc::clone(&content.unfinished));
        }
        Ok(taken)
    }

    /// Reads a part of the entries that the feed does not keep any more.
    async fn read(&mut self, place: StreamPlace) -> Result<Vec<FeedEntry>, ClientError> {
        let (client, after) = (self.hub.client(), place.to_string());
        let (places, entries): (Vec<String>, Vec<FeedEntry>) = match &self.topic {
            FollowTopic::Job(id, created_at) => {
                let lines = client.get_job_logs(id, Some(&after), PAGE).await?;
                client.jobs().check_same(id, *created_at).await?;
                lines
                    .into_iter()
                    .map(|line| (line.id.clone(), FeedEntry::Line(line.into())))
                    .unzip()
            }
            FollowTopic::Events => {
                let events = client.events().list(Some(&after), PAGE).await?;
                events.into_iter().map(|of| (of.place.clone(), FeedEntry::Event(of))).unzip()
            }
            FollowTopic::Stats => (Vec::new(), Vec::new()),
        };
        // Without entries up to where the feed begins, they were trimmed or deleted.
        let begin = self.seat.feed.content().begin;
        self.place = Some(places.last().map_or(begin, |last| StreamPlace::of(last)));
        self.has_more = true;
        Ok(entries)
    }

    fn notice(&self, taken: Taken) -> Value {
        let head = NoticeHead {
            subscription: self.subscription.clone(),
            seq: self.place.unwrap_or_default().to_string(),
            problem: taken.problem,
        };
        let entries = taken.entries.into_iter();
        match self.topic {
            FollowTopic::Job(..) => {
                let line =
                    |entry| if let FeedEntry::Line(line) = entry { Some(line) } else { None };
                let (ended, error) = match taken.ended {
                    None => (false, None),
                    Some(end) => (true, end.err()),
                };
                let lines = entries.filter_map(line).collect();
                let unfinished_line = taken.unfinished.map(|text| text.to_string());
                json!(JobNotice {
                    head,
                    status: taken.status,
                    lines,
                    unfinished_line,
                    ended,
                    error
                })
            }
            FollowTopic::Events => {
                let event =
                    |entry| if let FeedEntry::Event(event) = entry { Some(event) } else { None };
                json!(EventsNotice { head, events: entries.filter_map(event).collect() })
            }
            FollowTopic::Stats => {
                let stats =
                    |entry| if let FeedEntry::Stats(stats) = entry { Some(stats) } else { None };
                let stats = entries.filter_map(stats).last();
                json!(StatsNotice { head, stats: stats.map(|stats| self.visible(&stats)) })
            }
        }
    }

    /// Returns the statistics that the caller may see.
    fn visible(&self, stats: &StatsDocument) -> StatsDocument {
        let mut stats = stats.clone();
        if let Some(types) = self.bound.as_ref().and_then(|caller| caller.bounds.types.as_ref()) {
            stats.types.retain(|of| types.contains(&of.script_type));
        }
        stats
    }
}
