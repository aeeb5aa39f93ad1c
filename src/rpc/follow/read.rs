//! The readers: one task for each thing that is followed.

use std::time::Duration;

use jiff::Timestamp;

use super::feed::{FeedEntry, SharedFeed};
use super::topic::{FollowTopic, StreamPlace};
use crate::client::{Client, ClientError};
use crate::proto::job::JobId;
use crate::store::LogLine;

/// The time between two reads: lines gather meanwhile, as each read costs a message to every follower.
const PACE: Duration = Duration::from_millis(100);
/// The time between two looks at the statistics.
const STATS_PACE: Duration = Duration::from_secs(1);
/// The time between two attempts while Redis cannot be reached.
const AGAIN: Duration = Duration::from_secs(1);
/// The bytes that an entry takes beside its texts.
const ENTRY_BYTES: usize = 100;

/// Reads what is followed until it ends; mostly it is aborted when the last follower has left.
pub(super) async fn read(client: &Client, topic: &FollowTopic, feed: &SharedFeed) {
    match topic {
        FollowTopic::Job(id, created_at) => read_job(client, (id, *created_at), feed).await,
        FollowTopic::Events => read_events(client, feed).await,
        FollowTopic::Stats => read_stats(client, feed).await,
    }
}

/// Reports why nothing can be read. Returns once another attempt makes sense.
async fn trouble(client: &Client, feed: &SharedFeed, error: &ClientError) {
    feed.trouble(&error.to_string());
    let is_away = matches!(error, ClientError::Store(error) if error.is_transient());
    loop {
        tokio::time::sleep(AGAIN).await;
        if !is_away {
            return;
        }
        if client.ping().await.is_ok() {
            feed.change(|content| content.problem = None);
            return;
        }
    }
}

async fn read_job(
    client: &Client,
    (id, created_at): (&JobId, Option<Timestamp>),
    feed: &SharedFeed,
) {
    let begin = loop {
        match client.logs().last(id, 1).await {
            Ok(last) => break last.first().map_or("0-0".to_owned(), |line| line.id.clone()),
            Err(error) => trouble(client, feed, &error).await,
        }
    };
    feed.change(|content| content.open(StreamPlace::of(&begin)));
    let mut follower = client.jobs().follow(id, begin).created_at(created_at);
    loop {
        let news = match follower.next().await {
            Ok(news) => news,
            Err(error @ ClientError::NoSuchJob(_)) => {
                feed.change(|content| content.ended = Some(Err(error.into())));
                return;
            }
            Err(error) => {
                trouble(client, feed, &error).await;
                continue;
            }
        };
        feed.change(|content| {
            content.problem = None;
            for line in news.lines {
                let (place, bytes) = (StreamPlace::of(&line.id), line.line.len() + ENTRY_BYTES);
                content.add(place, bytes, FeedEntry::Line(line.into()));
            }
            if *content.unfinished != *news.unfinished {
                content.unfinished = news.unfinished.into();
            }
            if news.is_last {
                content.ended = Some(Ok(()));
            }
            if news.is_last || !news.status.is_terminal() {
                content.status = Some(news.status);
            }
        });
        if news.is_last {
            return;
        }
        tokio::time::sleep(PACE).await;
    }
}

async fn read_events(client: &Client, feed: &SharedFeed) {
    let now = loop {
        match client.system().now().await {
            Ok(now) => break now,
            Err(error) => trouble(client, feed, &error).await,
        }
    };
    feed.change(|content| content.open(StreamPlace::of(&LogLine::place_before(now))));
    let mut follower = client.events().follow(now);
    loop {
        match follower.next().await {
            Ok(events) => feed.change(|content| {
                content.problem = None;
                for event in events {
                    let texts = [&event.id, &event.script_type, &event.actor].map(String::len);
                    let bytes = texts.iter().sum::<usize>() + ENTRY_BYTES;
                    let place = StreamPlace::of(&event.place);
                    content.add(place, bytes, FeedEntry::Event(event));
                }
            }),
            Err(error) => trouble(client, feed, &error).await,
        }
        tokio::time::sleep(PACE).await;
    }
}

async fn read_stats(client: &Client, feed: &SharedFeed) {
    let mut last = None;
    loop {
        let read = async {
            let stats = client.stats().get().await?;
            Ok((stats, LogLine::place_before(client.system().now().await?)))
        };
        match read.await {
            Ok((stats, place)) => {
                let was_away = feed.content().problem.is_some();
                let is_news = last.as_ref() != Some(&stats);
                if is_news || was_away {
                    let entry = FeedEntry::Stats(std::sync::Arc::new(stats.clone()));
                    last = Some(stats);
                    feed.change(|content| {
                        (content.is_open, content.problem) = (true, None);
                        if is_news {
                            content.replace(StreamPlace::of(&place), entry);
                        }
                    });
                }
            }
            Err(error) => trouble(client, feed, &error).await,
        }
        tokio::time::sleep(STATS_PACE).await;
    }
}
