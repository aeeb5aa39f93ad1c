//! `/events`: the changes of a page as server-sent events.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use serde::Deserialize;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::error::PageError;
use super::live::{LivePart, PERIOD, Picture};
use super::site::Site;
use super::visitor::Visitor;
use super::{actors, graph, job, jobs, layout, limits, overview, queues};
use crate::rpc::Caller;

/// A stream ends after this time; the browser opens the next one, as the one who is signed in then.
const STREAM_MAX: Duration = Duration::from_mins(5);
const KEEP_ALIVE: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
pub(super) struct EventsQuery {
    /// The path and query of the page.
    page: String,
}

/// Follows a page.
///
/// # Errors
/// [`PageError`] if the page does not exist or has no live parts, or too many pages are open.
pub(super) async fn follow(
    State(site): State<Site>,
    visitor: Visitor,
    Query(EventsQuery { page }): Query<EventsQuery>,
) -> Result<Response, PageError> {
    // Pages differ by what their visitors may do.
    let Caller { name, scopes, bounds } = &*visitor.caller;
    let name = if visitor.is_bound() { name } else { "" };
    let key = format!("{page} {scopes:?} {bounds:?} {name}");
    let Some((pictures, renders)) = site.feeds().join(&key) else {
        return Err(PageError::away("Too many pages are open."));
    };
    if let Some(sender) = renders {
        tokio::spawn(render(site, visitor, page, key, sender));
    }
    let (events, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        tokio::select! {
            () = events.closed() => {}
            _ = timeout(STREAM_MAX, send(pictures, &events)) => {}
        }
    });
    let alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(EventStream(receiver)).keep_alive(alive).into_response())
}

/// Renders a page each second while it has readers.
async fn render(
    site: Site,
    visitor: Visitor,
    page: String,
    key: String,
    pictures: watch::Sender<Arc<Picture>>,
) {
    loop {
        let picture = match parts(&site, &visitor, &page).await {
            Ok(parts) => Picture::new(parts),
            Err(error) => pictures.borrow().away(error.text),
        };
        pictures.send_if_modified(|last| {
            let is_news = picture.since(Some(last)).is_some();
            if is_news {
                *last = Arc::new(picture);
            }
            is_news
        });
        tokio::time::sleep(PERIOD).await;
        if pictures.receiver_count() == 0 && site.feeds().leave(&key) {
            return;
        }
    }
}

/// Sends one reader each change. A slow reader gets the next change late, and all in between at once.
async fn send(mut pictures: watch::Receiver<Arc<Picture>>, events: &mpsc::Sender<Event>) {
    let mut last: Option<Arc<Picture>> = None;
    loop {
        let picture = pictures.borrow_and_update().clone();
        if let Some(message) = picture.since(last.as_deref()) {
            let event = Event::default().data(message.to_string());
            if events.send(event).await.is_err() {
                return;
            }
        }
        last = Some(picture);
        if pictures.changed().await.is_err() {
            return;
        }
    }
}

/// Returns the live parts of a page.
async fn parts(site: &Site, visitor: &Visitor, page: &str) -> Result<Vec<LivePart>, PageError> {
    let (path, query) = page.split_once('?').unwrap_or((page, ""));
    let names: Vec<&str> = path.trim_matches('/').split('/').collect();
    let now = site.snapshot(visitor).await?;
    let mut parts = layout::live_parts(&now);
    parts.extend(match names.as_slice() {
        [""] => overview::live(site, visitor, &now),
        ["jobs"] => jobs::live(site, visitor, &now, page).await?,
        ["jobs", id, "graph"] => graph::live(site, visitor, &now, id).await?,
        ["jobs", id] => job::live(site, visitor, &now, id).await?,
        ["limits"] => limits::live(site, visitor).await?,
        ["queues"] => queues::live(site, visitor, &now),
        ["queues", name] => queues::live_one(site, visitor, &now, name),
        ["actors"] => actors::live(site, visitor, &now, query),
        ["actors", name] => actors::live_one(site, &now, name),
        _ => Vec::new(),
    });
    Ok(parts)
}

/// The events of one reader.
struct EventStream(mpsc::Receiver<Event>);

impl Stream for EventStream {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|event| event.map(Ok))
    }
}
