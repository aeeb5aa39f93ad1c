//! Retries, stops and deletes many jobs: those that are ticked, or all that match the filters.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::super::fields::Fields;
use super::super::layout::Nav;
use super::super::parts::{Confirm, bulk, count, things};
use super::super::site::Site;
use super::super::visitor::Visitor;
use super::super::web_error::{PageError, sentence};
use super::filter::JobFilter;
use crate::rpc::results::ManyChangedDocument;

/// The maximum number of jobs that one form changes.
const JOBS_MAX: usize = 1_000;

/// Something that can be done to many jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Retry,
    Stop,
    Delete,
}

impl Verb {
    fn parse(word: &str) -> Option<Self> {
        [Self::Retry, Self::Stop, Self::Delete].into_iter().find(|verb| verb.word() == word)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Stop => "stop",
            Self::Delete => "delete",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Retry => "Retry",
            Self::Stop => "Stop",
            Self::Delete => "Delete",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Retry => "Retried",
            Self::Stop => "Stopped",
            Self::Delete => "Deleted",
        }
    }

    /// Returns true if a question with the number comes first: jobs that nobody has ticked are counted before.
    fn asks(self, jobs: usize, matches_all: bool) -> bool {
        match self {
            Self::Retry => matches_all,
            Self::Stop => matches_all || jobs > 1,
            Self::Delete => true,
        }
    }
}

/// Returns the bar that appears once a row is ticked.
pub(super) fn bar(filter: &JobFilter) -> Markup {
    let buttons = html! {
        button name="do" value="retry" data-key="retry" { "Retry" }
        @if !filter.is_of_dead() { button name="do" value="stop" data-key="stop" { "Stop…" } }
        button.danger name="do" value="delete" { "Delete…" }
        label {
            input type="checkbox" name="all" value="1";
            " all that match, up to " (count(JOBS_MAX as u64))
        }
    };
    bulk(if filter.is_of_dead() { "dead letters" } else { "jobs" }, &buttons)
}

/// Changes the jobs of a form.
pub(in crate::web) async fn change(
    State(site): State<Site>,
    visitor: Visitor,
    fields: Fields,
) -> Result<Response, PageError> {
    let filter = filter_of(fields.pairs())?;
    change_chosen(&site, &visitor, &fields, &filter).await
}

/// Retries or deletes the dead letters of a form.
pub(in crate::web) async fn change_dead(
    State(site): State<Site>,
    visitor: Visitor,
    fields: Fields,
) -> Result<Response, PageError> {
    let filter = filter_of(fields.pairs())?.of_dead();
    change_chosen(&site, &visitor, &fields, &filter).await
}

async fn change_chosen(
    site: &Site,
    visitor: &Visitor,
    fields: &Fields,
    filter: &JobFilter,
) -> Result<Response, PageError> {
    let can = |verb: &Verb| *verb != Verb::Stop || !filter.is_of_dead();
    let Some(verb) = Verb::parse(fields.get("do")).filter(can) else {
        return Err(PageError::wrong("The form asks for nothing that jobs can do."));
    };
    let mut ids: Vec<String> = fields.all("id").map(str::to_owned).collect();
    if fields.get("all") == "1" && fields.get("sure") != "1" {
        let found = super::search::all(site, visitor, filter, JOBS_MAX).await?;
        ids = found.jobs.iter().map(|job| job.id().to_owned()).collect();
    }
    ids.sort_unstable();
    ids.dedup();
    ids.truncate(JOBS_MAX);
    if ids.is_empty() {
        return Err(PageError::wrong("The form names no job."));
    }
    let back = filter.address(&super::SiteLinks::new(""), filter.path(), &[]);
    if verb.asks(ids.len(), fields.get("all") == "1") && fields.get("sure") != "1" {
        return ask(site, visitor, verb, &ids, filter).await;
    }
    let said = change_all(site, visitor, verb, &ids, filter).await?;
    site.snapshots_are_old();
    Ok(site.done(&back, &said))
}

/// Returns the filters of a form; its place in the list is the first page.
fn filter_of<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Result<JobFilter, PageError> {
    let given: Map<String, Value> =
        pairs.map(|(name, value)| (name.to_owned(), json!(value))).collect();
    let filter: JobFilter = serde_json::from_value(Value::Object(given))
        .map_err(|error| PageError::wrong(format!("The filter cannot be read: {error}.")))?;
    let (by, limit, cursor) = (String::new(), String::new(), String::new());
    Ok(JobFilter { by, limit, cursor, ..filter })
}

/// Changes each job. Returns a sentence about it.
async fn change_all(
    site: &Site,
    visitor: &Visitor,
    verb: Verb,
    ids: &[String],
    filter: &JobFilter,
) -> Result<String, PageError> {
    if let ([id], false) = (ids, filter.is_of_dead()) {
        // The page of the error says more than a sentence.
        let method = format!("job.{}", verb.word());
        site.call(visitor, &method, json!({ "id": id })).await?;
        return Ok(tally(verb, "job", (1, 0), None));
    }
    let (method, params) = if filter.is_of_dead() {
        (format!("dead.{}", verb.word()), json!({ "ids": ids }))
    } else {
        ("job.change_many".to_owned(), json!({ "change": verb.word(), "ids": ids }))
    };
    let changed: ManyChangedDocument = site.call_for(visitor, &method, params).await?;
    let reason = changed.reason.as_deref().map(sentence);
    Ok(tally(verb, filter.noun(), (changed.done, changed.left), reason.as_deref()))
}

fn tally(verb: Verb, noun: &str, (done, left): (u64, u64), reason: Option<&str>) -> String {
    let first = format!("{} {}.", verb.done(), things(done, noun));
    match reason {
        Some(reason) => format!("{first} {} stayed as before: {reason}", things(left, noun)),
        None => first,
    }
}

async fn ask(
    site: &Site,
    visitor: &Visitor,
    verb: Verb,
    ids: &[String],
    filter: &JobFilter,
) -> Result<Response, PageError> {
    let number = things(ids.len() as u64, filter.noun());
    let text = match verb {
        Verb::Delete => {
            "Their scripts, outputs and logs are gone for good. Jobs that wait for one of them end in error. \
             Running jobs stay."
        }
        Verb::Retry => "Each starts again with its first attempt. Jobs that have not failed stay.",
        Verb::Stop => {
            "Each ends in error, and jobs that wait for one of them fail too. Running scripts are told to stop."
        }
    };
    let verb_text = format!("{} {number}", verb.title());
    let mut hidden: Vec<(&str, String)> = ids.iter().map(|id| ("id", id.clone())).collect();
    hidden.extend(filter.fields().into_iter().map(|(name, value)| (name, value.to_owned())));
    hidden.push(("do", verb.word().to_owned()));
    hidden.push(("sure", "1".to_owned()));
    let question = Confirm {
        title: format!("{verb_text}?"),
        text: text.to_owned(),
        back: filter.address(site.links(), filter.path(), &[]),
        action: site.links().to(filter.path()),
        fields: hidden,
        verb: &verb_text,
    };
    let nav = if filter.is_of_dead() { Nav::DeadLetters } else { Nav::Jobs(None) };
    site.question(visitor, nav, &question).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_counts_what_was_done_and_says_why_the_rest_stayed() {
        assert_eq!(tally(Verb::Retry, "job", (1, 0), None), "Retried 1 job.");
        assert_eq!(
            tally(Verb::Delete, "dead letter", (3, 1), Some("Job a is started.")),
            "Deleted 3 dead letters. 1 dead letter stayed as before: Job a is started."
        );
    }

    #[test]
    fn form_has_every_filter_of_the_list_but_its_place() {
        let given = [
            ("do", "delete"),
            ("state", "error"),
            ("q", "a"),
            ("type", "osis"),
            ("queue", "type:osis"),
            ("caller", "ann"),
            ("tag", "nightly"),
            ("since", "1h"),
            ("until", "1m"),
            ("ended_since", "yesterday"),
            ("ended_until", "today"),
            ("kind", "x"),
            ("dead", "1"),
        ];
        let filter = filter_of(given.into_iter().chain([("cursor", "y")])).expect("a filter");
        assert_eq!(filter.fields(), given[1..]);
        assert_eq!(filter.cursor, "");
    }

    #[test]
    fn what_destroys_or_changes_all_that_match_is_asked_about() {
        assert!(Verb::Delete.asks(1, false) && Verb::Stop.asks(2, false));
        assert!(!Verb::Stop.asks(1, false) && !Verb::Retry.asks(500, false));
        assert!(Verb::Retry.asks(1, true), "the number that match is shown first");
        assert_eq!(Verb::parse("drop"), None);
    }
}
