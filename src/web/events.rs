//! `/events`: the changes of a page as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::cookie::decoded;
use super::fields::PageQuery;
use super::live::{Feed, LiveParts, PERIOD, Picture, Pictures};
use super::visit::Visit;
use super::web_error::{PageError, PageResult};
use super::{actors, brokers, graph, job, jobs, layout, limits, machines, overview, queues};
use crate::rpc::{BoundedWork, Caller};

/// A stream ends after this time; the browser opens the next one, for the visitor who is signed in then.
const STREAM_MAX: Duration = Duration::from_mins(5);
/// A rendering is followed by a pause of so many times its length, up to the limit: a slow one may have waited
/// for a Redis that stood still.
const PAUSE_TIMES: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The pause after a rendering if others join meanwhile.
const PAUSE_LEAST: Duration = Duration::from_millis(100);
/// After so many renderings without news the pause is a period longer, up to the limit.
const QUIET_PERIODS: u32 = 10;
const PERIODS_MAX: u32 = 3;
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// The time between two heartbeats: they tell a page without news that it is live.
const BEAT: Duration = Duration::from_secs(5);
/// No heartbeat is sent once the last rendering is so old.
const BEAT_AGE_MAX: Duration = Duration::from_secs(8);

#[derive(Deserialize)]
pub(super) struct EventsQuery {
    /// The path and query of the page.
    page: String,
}

pub(super) async fn follow(visit: Visit, PageQuery(asked): PageQuery<EventsQuery>) -> PageResult {
    // Pages differ by what their visitors may do.
    let Caller { name, scopes, bounds } = &*visit.caller;
    let name = if visit.is_bound() { name } else { "" };
    let key = format!("{} {scopes:?} {bounds:?} {name}", asked.page);
    let loaded = Instant::now();
    let begun = visit.site.service.table.work.try_begin(&visit.caller.name, BoundedWork::Page).ok();
    let Some((pictures, feed)) = visit.site.feeds.join(&key, begun.is_some()) else {
        return Err(PageError::overloaded("Too many pages are open."));
    };
    if let Some(feed) = feed {
        let rendered = render(visit.clone(), asked.page, key, feed);
        tokio::spawn(async move {
            rendered.await;
            drop(begun);
        });
    }
    let (events, mut receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        tokio::select! {
            () = events.closed() => {}
            () = signed_out(&visit) => {}
            _ = timeout(STREAM_MAX, send(pictures, loaded, &events)) => {}
        }
    });
    let alive = KeepAlive::new().interval(KEEP_ALIVE);
    let sent = stream::poll_fn(move |context| receiver.poll_recv(context));
    Ok(Sse::new(sent.map(Ok::<_, Infallible>)).keep_alive(alive).into_response())
}

/// Returns the pause after a rendering. `took` is its time, `quiet` the number of renderings in a row without news:
/// a page that costs much, or stays as it is, is rendered less often.
fn pause(took: Duration, quiet: u32) -> Duration {
    let calm = 1 + (quiet / QUIET_PERIODS).min(PERIODS_MAX - 1);
    (PERIOD * calm).max((took * PAUSE_TIMES).min(PAUSE_MAX))
}

/// Renders a page each second while it has readers, and for each who joins.
async fn render(visit: Visit, page: String, key: String, feed: Feed) {
    let Feed { pictures, joined } = feed;
    let mut quiet: u32 = 0;
    loop {
        let began = Instant::now();
        let rendered = parts(&visit, &page).await;
        // A wait for a Redis that does not answer is no cost of the page.
        let took = if rendered.is_ok() { began.elapsed() } else { Duration::ZERO };
        let picture = match rendered {
            Ok(parts) => Picture::new(parts, began),
            Err(error) => pictures.borrow().away(error.title, began),
        };
        let mut is_news = false;
        pictures.send_modify(|last| is_news = picture.replace(last));
        quiet = if is_news { 0 } else { quiet.saturating_add(1) };
        let pause = pause(took, quiet);
        tokio::time::sleep(PAUSE_LEAST).await;
        let _ = timeout(pause.saturating_sub(PAUSE_LEAST), joined.notified()).await;
        if pictures.receiver_count() == 0 && visit.site.feeds.leave(&key) {
            return;
        }
    }
}

/// Waits until a reader has signed out, or its token is not valid any more.
async fn signed_out(visit: &Visit) {
    let mut beats = tokio::time::interval(BEAT);
    loop {
        beats.tick().await;
        if !visit.is_still_known().await {
            return;
        }
    }
}

/// Sends one reader each change, and heartbeats. A slow reader gets the next change late, and all in between at once.
async fn send(mut pictures: Pictures, loaded: Instant, events: &mpsc::Sender<Event>) {
    let mut last: Option<Arc<Picture>> = None;
    let mut beats = tokio::time::interval(BEAT);
    loop {
        let picture = pictures.borrow_and_update().clone();
        if picture.is_after(loaded) {
            if let Some(message) = picture.since(last.as_deref()) {
                let event = Event::default().data(message.to_string());
                if events.send(event).await.is_err() {
                    return;
                }
            }
            last = Some(picture);
        }
        tokio::select! {
            changed = pictures.changed() => if changed.is_err() {
                return;
            },
            _ = beats.tick() => {
                let is_live = pictures.borrow().is_live(BEAT_AGE_MAX);
                // An event without data is not dispatched.
                let beat = Event::default().event("beat").data("1");
                if is_live && events.send(beat).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn parts(visit: &Visit, page: &str) -> LiveParts {
    let (path, query) = page.split_once('?').unwrap_or((page, ""));
    let names: Vec<&str> = path.trim_matches('/').split('/').collect();
    let now = visit.snapshot().await?;
    let mut parts = layout::live_parts(&now);
    parts.extend(match names.as_slice() {
        [""] => overview::live(visit, &now),
        ["jobs"] => jobs::live(visit, &now, query).await?,
        ["jobs", id, "graph"] => graph::live(visit, &now, id, query).await?,
        ["graphs", id] => graph::live_whole(visit, &now, id, query).await?,
        ["jobs", id] => job::live(visit, &now, id, query).await?,
        ["brokers"] => brokers::live(visit, &now, query),
        ["limits"] => limits::live(visit).await?,
        ["queues"] => queues::live(visit, &now, query),
        ["queues", name] => queues::live_one(visit, &now, name),
        ["machines"] => machines::live(visit, &now, query),
        ["machines", name] => machines::live_one(visit, &now, &decoded(name).unwrap_or_default()),
        ["actors"] => actors::live(visit, &now, query),
        ["actors", name] => actors::live_one(visit, &now, name),
        _ => Vec::new(),
    });
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_that_stays_as_it_is_or_costs_much_is_rendered_less_often() {
        let quick = Duration::from_millis(2);
        assert_eq!(pause(quick, 0), PERIOD);
        assert_eq!(pause(quick, 9), PERIOD);
        assert_eq!((pause(quick, 10), pause(quick, u32::MAX)), (PERIOD * 2, PERIOD * 3));
        assert_eq!(pause(Duration::from_secs(1), 0), Duration::from_secs(4));
        assert_eq!(pause(Duration::from_secs(10), 0), PAUSE_MAX);
    }
}
