//! Retries, stops and deletes many jobs: those that are ticked, or all that match the filters.

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::super::fields::Fields;
use super::super::layout::Nav;
use super::super::parts::{Confirm, bulk, count, things};
use super::super::visit::Visit;
use super::super::web_error::{PageError, PageResult, capitalized, sentence};
use super::filter::JobFilter;
use crate::proto::word_table::words;
use crate::rpc::results::ManyChangedDocument;

/// The maximum number of jobs that one form changes.
const JOBS_MAX: usize = 1_000;

words! {
    /// Something that can be done to many jobs.
    Verb, "change of jobs", "retry, stop or delete";
    Retry = "retry",
    Stop = "stop",
    Delete = "delete",
}

impl Verb {
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
pub(in crate::web) async fn change(visit: Visit, fields: Fields) -> PageResult {
    let filter = filter_of(fields.pairs())?;
    change_chosen(&visit, &fields, &filter).await
}

/// Retries or deletes the dead letters of a form.
pub(in crate::web) async fn change_dead(visit: Visit, fields: Fields) -> PageResult {
    let filter = filter_of(fields.pairs())?.of_dead();
    change_chosen(&visit, &fields, &filter).await
}

async fn change_chosen(visit: &Visit, fields: &Fields, filter: &JobFilter) -> PageResult {
    let can = |verb: &Verb| *verb != Verb::Stop || !filter.is_of_dead();
    let Some(verb) = fields.get("do").parse().ok().filter(can) else {
        return Err(PageError::wrong("The form asks for nothing that jobs can do."));
    };
    let mut ids: Vec<String> = fields.all("id").map(str::to_owned).collect();
    let (is_sure, matches_all) = (fields.get("sure") == "1", fields.get("all") == "1");
    if matches_all && !is_sure {
        let found = super::search::all(visit, filter, JOBS_MAX).await?;
        ids = found.jobs.iter().map(|job| job.id().to_owned()).collect();
    }
    ids.sort_unstable();
    ids.dedup();
    ids.truncate(JOBS_MAX);
    if ids.is_empty() {
        return Err(PageError::wrong("The form names no job."));
    }
    if verb.asks(ids.len(), matches_all) && !is_sure {
        return ask(visit, verb, &ids, filter).await;
    }
    let said = change_all(visit, verb, &ids, filter).await?;
    let back = filter.address(&super::SiteLinks::default(), filter.path(), &[]);
    Ok(visit.done(&back, &said))
}

/// Returns the filters of a form; its place in the list is the first page.
fn filter_of<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> PageResult<JobFilter> {
    let given: Map<String, Value> =
        pairs.map(|(name, value)| (name.to_owned(), json!(value))).collect();
    let filter: JobFilter = serde_json::from_value(Value::Object(given))
        .map_err(|error| PageError::wrong(format!("The filter cannot be read: {error}.")))?;
    let [by, limit, cursor] = Default::default();
    Ok(JobFilter { by, limit, cursor, ..filter })
}

/// Changes each job. Returns a sentence about it.
async fn change_all(
    visit: &Visit,
    verb: Verb,
    ids: &[String],
    filter: &JobFilter,
) -> PageResult<String> {
    if let ([id], false) = (ids, filter.is_of_dead()) {
        // The page of the error says more than a sentence.
        visit.call(&format!("job.{verb}"), json!({ "id": id })).await?;
        return Ok(tally(verb, "job", (1, 0), None));
    }
    let (method, params) = if filter.is_of_dead() {
        (format!("dead.{verb}"), json!({ "ids": ids }))
    } else {
        ("job.change_many".to_owned(), json!({ "change": verb, "ids": ids }))
    };
    let changed: ManyChangedDocument = visit.call_for(&method, params).await?;
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

async fn ask(visit: &Visit, verb: Verb, ids: &[String], filter: &JobFilter) -> PageResult {
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
    let verb_text = format!("{} {number}", capitalized(verb.as_str()));
    let mut hidden: Vec<(&str, &str)> = ids.iter().map(|id| ("id", id.as_str())).collect();
    hidden.extend(filter.fields());
    hidden.extend([("do", verb.as_str()), ("sure", "1")]);
    let question = Confirm {
        title: format!("{verb_text}?"),
        text: text.to_owned(),
        back: filter.address(visit.links(), filter.path(), &[]),
        action: visit.links().to(filter.path()),
        fields: hidden,
        verb: &verb_text,
    };
    let nav = if filter.is_of_dead() { Nav::DeadLetters } else { Nav::Jobs(None) };
    visit.question(nav, &question).await
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
        assert!("drop".parse::<Verb>().is_err());
    }
}
