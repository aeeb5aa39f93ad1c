//! Live parts of pages. Each kind of page is rendered once a second for all who have it open; what changed goes
//! to the browsers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::Query;
use axum::http::Uri;
use maud::{Markup, html};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::visible::visible;
use super::web_error::PageResult;

/// The time between two renderings.
pub(super) const PERIOD: Duration = Duration::from_secs(1);
/// The maximum number of kinds of pages that are open at once.
const FEEDS_MAX: usize = 500;

/// The parts of a page that change.
pub(super) type LiveParts = PageResult<Vec<LivePart>>;

/// A part of a page that changes: an element with an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LivePart {
    id: String,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    /// The element itself.
    Whole(Arc<str>),
    /// The children of the element, each with its id.
    Rows(Vec<(String, Arc<str>)>),
}

impl LivePart {
    pub(super) fn whole(id: &str, element: Markup) -> Self {
        Self { id: id.to_owned(), content: Content::Whole(visible(element).into()) }
    }

    /// Creates the part of the line below the title of a page.
    pub(super) fn headline(line: &Markup) -> Self {
        Self::whole("headline", html! { p #headline { (line) } })
    }

    /// Creates a part from the children of the element with this id: rows, or lines of a log. Each has an id of
    /// its own. Rows that are new at the end are appended, rows that changed are replaced.
    pub(super) fn rows(id: &str, rows: impl IntoIterator<Item = (String, Markup)>) -> Self {
        let rows = rows.into_iter().map(|(id, row)| (id, visible(row).into())).collect();
        Self { id: id.to_owned(), content: Content::Rows(rows) }
    }

    /// Returns the messages that bring an older part up to this one.
    fn since(&self, old: Option<&Self>) -> Vec<Value> {
        match (&self.content, old.map(|old| &old.content)) {
            (Content::Whole(new), Some(Content::Whole(old))) if is_same(new, old) => Vec::new(),
            (Content::Whole(new), _) => vec![json!(["set", self.id, **new])],
            (Content::Rows(new), Some(Content::Rows(old))) => self.rows_since(new, old),
            (Content::Rows(new), _) => vec![json!(["rows", self.id, joined(new)])],
        }
    }

    fn rows_since(&self, new: &[(String, Arc<str>)], old: &[(String, Arc<str>)]) -> Vec<Value> {
        let starts_alike = new.iter().zip(old).all(|(new, old)| new.0 == old.0);
        if !starts_alike || new.len() < old.len() {
            return vec![json!(["rows", self.id, joined(new)])];
        }
        let changed = new.iter().zip(old).filter(|(new, old)| !is_same(&new.1, &old.1));
        let mut messages: Vec<Value> =
            changed.map(|((id, row), _)| json!(["set", id, **row])).collect();
        if new.len() > old.len() {
            messages.push(json!(["add", self.id, joined(&new[old.len()..])]));
        }
        messages
    }
}

fn joined(rows: &[(String, Arc<str>)]) -> String {
    rows.iter().map(|(_, row)| row.as_ref()).collect()
}

/// Returns true if two texts differ in nothing but the words of relative times, which the script of the page
/// keeps current.
fn is_same(new: &Arc<str>, old: &Arc<str>) -> bool {
    Arc::ptr_eq(new, old) || new == old || without_ages(new).eq(without_ages(old))
}

/// Returns the pieces of a text without the words inside of `<time>`.
fn without_ages(text: &str) -> impl Iterator<Item = &str> {
    let mut is_time = false;
    text.split_inclusive('>').map(move |piece| {
        let own = if is_time { "" } else { piece };
        is_time =
            ["data-ago>", "data-was>", "data-until>"].into_iter().any(|end| piece.ends_with(end));
        own
    })
}

/// Returns the filters of a page from the query of its address; none if they cannot be parsed.
pub(super) fn filters_of<T: DeserializeOwned + Default>(query: &str) -> T {
    let uri: Option<Uri> = format!("/?{query}").parse().ok();
    let filters = uri.and_then(|uri| Query::<T>::try_from_uri(&uri).ok());
    filters.map(|Query(filters)| filters).unwrap_or_default()
}

/// The parts of a page at one moment.
#[derive(Debug, Default)]
pub(super) struct Picture {
    parts: Arc<[LivePart]>,
    /// Why there are no new parts; they are then those before.
    away: Option<&'static str>,
    /// The time when its rendering began; `None` before the first.
    at: Option<Instant>,
}

impl Picture {
    pub(super) fn new(parts: Vec<LivePart>, at: Instant) -> Self {
        Self { parts: parts.into(), away: None, at: Some(at) }
    }

    /// Returns true if it is newer than a page that was loaded at a time: an older one would undo what the page
    /// shows.
    pub(super) fn is_after(&self, loaded: Instant) -> bool {
        self.at.is_some_and(|at| at >= loaded)
    }

    /// Returns true if it shows how things are, and was rendered within a time.
    pub(super) fn is_live(&self, within: Duration) -> bool {
        self.away.is_none() && self.at.is_some_and(|at| at.elapsed() < within)
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.parts, &other.parts) && self.away == other.away
    }

    /// Returns the message that brings a browser from an older picture to this one; `None` if nothing changed.
    pub(super) fn since(&self, old: Option<&Self>) -> Option<Value> {
        if old.is_some_and(|old| self.is_same(old)) {
            return None;
        }
        let old_parts = old.map_or(&[][..], |old| &old.parts);
        let mut changes = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            let same_place = old_parts.get(at).filter(|old| old.id == part.id);
            let before = same_place.or_else(|| old_parts.iter().find(|old| old.id == part.id));
            changes.extend(part.since(before));
        }
        let was_away = old.and_then(|old| old.away);
        if changes.is_empty() && self.away == was_away && old.is_some() {
            return None;
        }
        Some(json!({ "parts": changes, "away": self.away }))
    }

    /// Returns the same parts with a reason why there are no new ones.
    pub(super) fn away(&self, reason: &'static str, at: Instant) -> Self {
        Self { parts: Arc::clone(&self.parts), away: Some(reason), at: Some(at) }
    }

    /// Takes the place of an older picture. Returns true if anything changed.
    pub(super) fn replace(mut self, old: &mut Arc<Self>) -> bool {
        let is_news = self.since(Some(old)).is_some();
        if !is_news {
            // Readers see by the address that nothing changed.
            self.parts = Arc::clone(&old.parts);
        }
        *old = Arc::new(self);
        is_news
    }
}

pub(super) type Pictures = watch::Receiver<Arc<Picture>>;

#[derive(Clone)]
pub(super) struct Feed {
    pub(super) pictures: watch::Sender<Arc<Picture>>,
    /// Ends the pause before the next rendering, for a reader who joined.
    pub(super) joined: Arc<Notify>,
}

/// The pages that are open, each with the picture of all who look at it.
#[derive(Default)]
pub(super) struct Feeds {
    open: Mutex<HashMap<String, Feed>>,
}

impl Feeds {
    /// Joins those who look at a page. Returns the feed too if nobody renders it yet: the caller then starts a
    /// task that does. `None` if too many pages are open, or if the caller may not open another one.
    pub(super) fn join(&self, page: &str, may_open: bool) -> Option<(Pictures, Option<Feed>)> {
        let mut open = self.open.lock();
        let number = open.len();
        match open.entry(page.to_owned()) {
            Entry::Occupied(feed) => {
                feed.get().joined.notify_one();
                Some((feed.get().pictures.subscribe(), None))
            }
            Entry::Vacant(_) if number >= FEEDS_MAX || !may_open => None,
            Entry::Vacant(place) => {
                let (pictures, receiver) = watch::channel(Arc::new(Picture::default()));
                let feed = Feed { pictures, joined: Arc::default() };
                place.insert(feed.clone());
                Some((receiver, Some(feed)))
            }
        }
    }

    /// Ends a page that nobody looks at. Returns false if one joined meanwhile.
    pub(super) fn leave(&self, page: &str) -> bool {
        let mut open = self.open.lock();
        let is_unused = open.get(page).is_none_or(|feed| feed.pictures.receiver_count() == 0);
        if is_unused {
            open.remove(page);
        }
        is_unused
    }
}

#[cfg(test)]
mod tests {
    use maud::PreEscaped;

    use super::*;

    fn text(text: &str) -> Markup {
        PreEscaped(text.to_owned())
    }

    fn rows(all: &[(&str, &str)]) -> Picture {
        let rows = all.iter().map(|(id, row)| ((*id).to_owned(), text(row)));
        Picture::new(vec![LivePart::rows("list", rows)], Instant::now())
    }

    fn changes(new: &Picture, old: &Picture) -> Value {
        new.since(Some(old)).map_or(Value::Null, |message| message["parts"].clone())
    }

    #[test]
    fn only_what_changed_is_sent() {
        let of = |a, b| {
            let parts = vec![LivePart::whole("a", text(a)), LivePart::whole("b", text(b))];
            Picture::new(parts, Instant::now())
        };
        assert_eq!(changes(&of("1", "2"), &of("1", "3")), json!([["set", "b", "2"]]));
        assert_eq!(of("1", "2").since(Some(&of("1", "2"))), None);
        let first = of("1", "2").since(None).expect("all of it");
        assert_eq!(first["parts"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn rows_are_replaced_alone_appended_or_sent_as_a_whole() {
        let old = rows(&[("r1", "a"), ("r2", "b")]);
        let one = rows(&[("r1", "a"), ("r2", "c")]);
        assert_eq!(changes(&one, &old), json!([["set", "r2", "c"]]));
        let longer = rows(&[("r1", "a"), ("r2", "b"), ("r3", "c")]);
        assert_eq!(changes(&longer, &old), json!([["add", "list", "c"]]));
        let other = rows(&[("r0", "z"), ("r1", "a"), ("r2", "b")]);
        assert_eq!(changes(&other, &old), json!([["rows", "list", "zab"]]));
    }

    #[test]
    fn words_of_a_relative_time_are_no_change() {
        let of = |age: &str, name: &str| {
            let row = format!("<td>{name}</td><time datetime=\"x\" data-ago>{age}</time><b>1</b>");
            Picture::new(vec![LivePart::whole("a", text(&row))], Instant::now())
        };
        assert_eq!(of("1 s", "n").since(Some(&of("2 s", "n"))), None);
        assert!(of("1 s", "n").since(Some(&of("1 s", "m"))).is_some());
        // Whether a time is ahead is one.
        let of = |kind: &str, text_of: &str| {
            let time = format!("<time datetime=\"x\" data-{kind}>{text_of}</time>");
            Picture::new(vec![LivePart::whole("a", text(&time))], Instant::now())
        };
        assert_eq!(of("was", "1 s ago").since(Some(&of("was", "2 s ago"))), None);
        assert!(of("was", "0 s ago").since(Some(&of("until", "in 1 s"))).is_some());
    }

    #[test]
    fn picture_that_is_older_than_a_page_is_known_and_one_without_news_keeps_its_parts() {
        let began = Instant::now();
        let loaded = began + Duration::from_millis(1);
        let mut last = Arc::new(Picture::default());
        assert!(!last.is_after(began));
        let of = |number: &str, at| Picture::new(vec![LivePart::whole("a", text(number))], at);
        assert!(of("1", began).replace(&mut last));
        assert!(last.is_after(began) && !last.is_after(loaded));
        let before = Arc::clone(&last);
        assert!(!of("1", loaded).replace(&mut last));
        assert!(last.is_after(loaded) && last.is_same(&before));
        assert!(of("2", loaded).replace(&mut last));
    }

    #[test]
    fn page_is_rendered_by_one_task_and_ends_with_its_last_reader() {
        let feeds = Feeds::default();
        let (first, sender) = feeds.join("/", true).expect("room");
        assert!(sender.is_some());
        let (second, another) = feeds.join("/", true).expect("room");
        assert!(another.is_none() && !feeds.leave("/"));
        drop((first, second));
        assert!(feeds.leave("/"));
        assert!(feeds.join("/", false).is_none());
        assert!(feeds.join("/", true).expect("room").1.is_some());
    }
}
