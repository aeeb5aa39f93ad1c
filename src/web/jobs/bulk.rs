//! Retries, stops and deletes many jobs: those that are ticked, or all that match the filters.

use serde_json::{Map, Value, json};

use super::super::parts::{Confirm, bulk, things};
use super::super::prelude::*;
use super::super::web_error::{capitalized, sentence};
use super::filter::JobsQuery;
use crate::proto::job_filter::JobFilter;
use crate::proto::text::shown;
use crate::proto::word_table::words;
use crate::rpc::results::ManyChangedDocument;

/// The names in a form that are not filters.
const FORM: [&str; 9] = ["do", "id", "all", "sure", "csrf", "by", "limit", "cursor", "return"];

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
    fn asks(self, chosen: &Chosen) -> bool {
        match (self, chosen) {
            (Self::Delete, _) | (_, Chosen::All { .. }) => true,
            (Self::Retry, Chosen::Ids(_)) => false,
            (Self::Stop, Chosen::Ids(ids)) => ids.len() > 1,
        }
    }
}

enum Chosen {
    /// The jobs that are ticked.
    Ids(Vec<String>),
    /// The jobs that match the filters, from a place in the list on.
    All { cursor: String },
}

pub(super) fn bar(filter: &JobsQuery) -> Markup {
    let buttons = html! {
        button name="do" value="retry" data-key="retry" { "Retry" }
        @if !filter.is_of_dead() { button name="do" value="stop" data-key="stop" { "Stop…" } }
        button.danger name="do" value="delete" { "Delete…" }
        label {
            input type="checkbox" name="all" value="1";
            " all that match"
        }
    };
    bulk(if filter.is_of_dead() { "dead letters" } else { "jobs" }, &buttons)
}

pub(in crate::web) async fn change(visit: Visit, fields: Fields) -> PageResult {
    let filter = filter_of(fields.pairs())?;
    change_chosen(&visit, &fields, &filter).await
}

pub(in crate::web) async fn change_dead(visit: Visit, fields: Fields) -> PageResult {
    let filter = filter_of(fields.pairs())?.of_dead();
    change_chosen(&visit, &fields, &filter).await
}

async fn change_chosen(visit: &Visit, fields: &Fields, filter: &JobsQuery) -> PageResult {
    let can = |verb: &Verb| *verb != Verb::Stop || !filter.is_of_dead();
    let Some(verb) = fields.get("do").parse().ok().filter(can) else {
        return Err(PageError::wrong("The form asks for nothing that jobs can do."));
    };
    let (is_sure, matches_all) = (fields.get("sure") == "1", fields.get("all") == "1");
    let chosen = if matches_all {
        Chosen::All { cursor: fields.get("cursor").to_owned() }
    } else {
        let mut ids: Vec<String> = fields.all("id").map(str::to_owned).collect();
        ids.sort_unstable();
        ids.dedup();
        Chosen::Ids(ids)
    };
    if matches!(&chosen, Chosen::Ids(ids) if ids.is_empty()) {
        return Err(PageError::wrong("The form names no job."));
    }
    if verb.asks(&chosen) && !is_sure {
        return ask(visit, verb, &chosen, filter).await;
    }
    let (said, rest) = change_all(visit, verb, &chosen, filter).await?;
    if let Some(rest) = rest {
        let title = format!("{said} {} left.", capitalized(&rest.number));
        let text = "One step takes a few seconds at most. The next goes on behind the last job of this one.";
        let chosen = vec![("all", "1"), ("cursor", rest.cursor.as_str())];
        return question(visit, (verb, &rest.number), (Some(title), text), chosen, filter).await;
    }
    let back = filter.address(&super::SiteLinks::default(), filter.path(), &[]);
    Ok(visit.done(&back, &said))
}

/// Returns the filters of a form. A form with an unknown name is refused: it might change all jobs.
fn filter_of<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> PageResult<JobsQuery> {
    let mut filter = JobFilter::default();
    for (name, value) in pairs.filter(|(name, _)| !FORM.contains(name)) {
        if JobFilter::row(name).is_none() {
            let message = format!("The form has an unknown field `{}`.", shown(name));
            return Err(PageError::of_parameter(name, message));
        }
        filter = filter.and(name, value);
    }
    Ok(JobsQuery { filter: filter.trimmed(), ..JobsQuery::default() })
}

/// Returns the method of a change, and its parameters.
fn call(verb: Verb, chosen: &Chosen, filter: &JobsQuery) -> (String, Map<String, Value>) {
    let mut params = Map::new();
    let is_of_dead = filter.is_of_dead();
    match chosen {
        Chosen::Ids(ids) => {
            params.insert("ids".to_owned(), json!(ids));
        }
        Chosen::All { cursor } => {
            let mut all = filter.filter.json();
            if !cursor.is_empty() {
                all.insert("cursor".to_owned(), json!(cursor));
            }
            if is_of_dead {
                params.extend(all);
                params.insert("all".to_owned(), json!(true));
            } else {
                params.insert("filter".to_owned(), json!(all));
                params.insert("yes".to_owned(), json!(true));
            }
        }
    }
    if is_of_dead {
        return (format!("dead.{verb}"), params);
    }
    params.insert("change".to_owned(), json!(verb));
    ("job.change_many".to_owned(), params)
}

/// Changes the jobs. Returns a sentence about it, and what is left if not all that match were reached.
async fn change_all(
    visit: &Visit,
    verb: Verb,
    chosen: &Chosen,
    filter: &JobsQuery,
) -> PageResult<(String, Option<Unreached>)> {
    if let (Chosen::Ids(ids), false) = (chosen, filter.is_of_dead())
        && let [id] = ids.as_slice()
    {
        // The page of the error says more than a sentence.
        visit.call(&format!("job.{verb}"), json!({ "id": id })).await?;
        return Ok((tally(verb, "job", (1, 0), None), None));
    }
    let (method, params) = call(verb, chosen, filter);
    let changed: ManyChangedDocument = visit.call_for(&method, Value::Object(params)).await?;
    let reason = changed.reason.as_deref().map(sentence);
    let said = tally(verb, filter.noun(), (changed.done, changed.left), reason.as_deref());
    let said = match changed.told {
        0 => said,
        told => format!("{said} {told} still run until their actors stop them."),
    };
    let rest = changed.next.filter(|_| changed.remaining > 0 || !changed.remaining_complete);
    let number = at_least(changed.remaining, changed.remaining_complete, filter.noun());
    Ok((said, rest.map(|cursor| Unreached { cursor, number })))
}

/// The jobs that match and were not reached.
struct Unreached {
    cursor: String,
    /// Their number, in words.
    number: String,
}

fn at_least(number: u64, is_all: bool, noun: &str) -> String {
    let begin = if is_all { "" } else { "at least " };
    format!("{begin}{}", things(number, noun))
}

/// Asks before the jobs of these fields, which are so many, are changed. Without a title it is the verb with the number.
async fn question(
    visit: &Visit,
    (verb, number): (Verb, &str),
    (title, text): (Option<String>, &str),
    chosen: Vec<(&str, &str)>,
    filter: &JobsQuery,
) -> PageResult {
    let verb_text = format!("{} {number}", capitalized(verb.as_str()));
    let mut fields = chosen;
    fields.extend(filter.fields());
    fields.extend([("do", verb.as_str()), ("sure", "1")]);
    let question = Confirm {
        title: title.unwrap_or_else(|| format!("{verb_text}?")),
        text: text.to_owned(),
        back: filter.address(visit.links(), filter.path(), &[]),
        action: visit.links().to(filter.path()),
        fields,
        verb: &verb_text,
    };
    let nav = if filter.is_of_dead() { Nav::DeadLetters } else { Nav::Jobs(None) };
    visit.question(nav, &question).await
}

fn tally(verb: Verb, noun: &str, (done, left): (u64, u64), reason: Option<&str>) -> String {
    let first = format!("{} {}.", verb.done(), things(done, noun));
    match reason {
        Some(reason) => format!("{first} {} stayed as before: {reason}", things(left, noun)),
        None => first,
    }
}

async fn ask(visit: &Visit, verb: Verb, chosen: &Chosen, filter: &JobsQuery) -> PageResult {
    let number = match chosen {
        Chosen::Ids(ids) => things(ids.len() as u64, filter.noun()),
        Chosen::All { .. } => {
            let (method, mut params) = call(verb, chosen, filter);
            params.insert("dry_run".to_owned(), json!(true));
            let of: ManyChangedDocument = visit.call_for(&method, Value::Object(params)).await?;
            if of.matching() == 0 && of.remaining_complete {
                return Err(PageError::wrong("No job matches that this can change."));
            }
            at_least(of.matching(), of.remaining_complete, filter.noun())
        }
    };
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
    let chosen = match chosen {
        Chosen::Ids(ids) => ids.iter().map(|id| ("id", id.as_str())).collect(),
        Chosen::All { .. } => vec![("all", "1")],
    };
    question(visit, (verb, &number), (None, text), chosen, filter).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::job_filter::JOB_FILTERS;

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
        let given = JOB_FILTERS.map(|row| (row.name, "1"));
        let form = [("do", "delete"), ("csrf", "x"), ("cursor", "y"), ("all", "1"), ("id", "a")];
        let list = filter_of(given.into_iter().chain(form)).expect("a filter");
        assert_eq!((list.fields(), list.place.cursor.as_str()), (given.to_vec(), ""));
        let wrong = filter_of([("do", "delete"), ("stat", "failed")].into_iter());
        assert!(wrong.expect_err("no filter").text.contains("unknown field `stat`"));
    }

    #[test]
    fn what_destroys_or_changes_all_that_match_is_asked_about() {
        let of = |number: usize| Chosen::Ids(vec![String::new(); number]);
        let all = Chosen::All { cursor: String::new() };
        assert!(Verb::Delete.asks(&of(1)) && Verb::Stop.asks(&of(2)) && Verb::Stop.asks(&all));
        assert!(!Verb::Stop.asks(&of(1)) && !Verb::Retry.asks(&of(500)));
        assert!(Verb::Retry.asks(&all), "the number that match is shown first");
        assert!("drop".parse::<Verb>().is_err());
    }
}
