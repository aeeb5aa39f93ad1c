//! Failures that have the same error, apart from numbers, ids and quoted words.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::doc::JobDoc;
use super::super::links::SiteLinks;
use super::super::parts::{count, empty};
use super::filter::JobFilter;
use super::rows::first_line;

/// The most groups that are shown.
const GROUPS_MAX: usize = 50;

/// Failures with one kind of error.
#[derive(Debug, PartialEq, Eq)]
struct FailureGroup<'a> {
    error: String,
    jobs: u64,
    /// The first job of the list, the newest of its type.
    newest: &'a JobDoc,
}

/// Returns an error without what differs from job to job.
fn normalised(error: &str) -> String {
    let mut text = String::new();
    let mut letters = first_line(error).trim().chars().take(160).peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' | '`' => {
                text.push(letter);
                let is_closed = letters.clone().any(|other| other == letter);
                if is_closed {
                    while letters.next().is_some_and(|other| other != letter) {}
                    text.push('…');
                    text.push(letter);
                }
            }
            _ if letter.is_ascii_hexdigit() => {
                let mut word = String::from(letter);
                while let Some(next) =
                    letters.next_if(|next| next.is_alphanumeric() || *next == '-')
                {
                    word.push(next);
                }
                let is_id = word.chars().any(|letter| letter.is_ascii_digit())
                    && word.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-');
                text.push_str(if is_id { "#" } else { &word });
            }
            _ if letter.is_alphanumeric() => {
                text.push(letter);
                while let Some(next) = letters.next_if(|next| next.is_alphanumeric()) {
                    text.push(next);
                }
            }
            _ => text.push(letter),
        }
    }
    text
}

fn groups(jobs: &[JobDoc]) -> Vec<FailureGroup<'_>> {
    let mut all: BTreeMap<String, FailureGroup> = BTreeMap::new();
    for job in jobs {
        let error = normalised(job.text("error"));
        let of = |error: &String| FailureGroup { error: error.clone(), jobs: 0, newest: job };
        all.entry(error.clone()).or_insert_with(|| of(&error)).jobs += 1;
    }
    let mut groups: Vec<FailureGroup> = all.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.jobs));
    groups
}

/// Returns the table of groups.
pub(super) fn table(jobs: &[JobDoc], filter: &JobFilter, links: &SiteLinks) -> Markup {
    let groups = groups(jobs);
    if groups.is_empty() {
        return empty(&html! { "No jobs failed." });
    }
    // A part of the error that all jobs of the group have.
    let common = |error: &str| {
        let parts = error.split(['#', '…']).max_by_key(|part| part.len()).unwrap_or_default();
        parts.trim().to_owned()
    };
    html! {
        table.stack.nopick.fix.fails role="table" {
            caption.sr { "Failures by error, the most frequent first" }
            thead role="rowgroup" {
                tr role="row" {
                    th.num.c-at role="columnheader" { "Jobs" }
                    th role="columnheader" { "Error" }
                    th.c-tg role="columnheader" { "One of them" }
                }
            }
            tbody role="rowgroup" {
                @for group in groups.iter().take(GROUPS_MAX) {
                    tr role="row" {
                        td.num.m1 role="cell" { (count(group.jobs)) }
                        td.cut.m5 role="cell" {
                            a.err href=(address(filter, links, &common(&group.error))) title=(group.error) {
                                @if group.error.is_empty() { "no error text" } @else { (group.error) }
                            }
                        }
                        td.cut.mr role="cell" {
                            a.id href=(links.job(group.newest.id())) title=(group.newest.id()) {
                                (group.newest.label())
                            }
                        }
                    }
                }
            }
        }
        @if groups.len() > GROUPS_MAX {
            p.faint { (count((groups.len() - GROUPS_MAX) as u64)) " more kinds of errors are not shown." }
        }
    }
}

fn address(filter: &JobFilter, links: &SiteLinks, text: &str) -> String {
    JobFilter { q: text.to_owned(), ..filter.clone() }.address(links, "/jobs", &[])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_that_differ_in_numbers_ids_and_quoted_words_are_one_group() {
        let job = |error: &str| JobDoc::from(json!({ "id": "a", "error": error }));
        let jobs = [
            job("HTTP Error 503 (line 14)"),
            job("no file 'a.txt' of 8e81973e-0bec-47b0-a898-d190f9ebdacc"),
            job("HTTP Error 500 (line 2)\nmore"),
            job("no file 'b.txt' of 0e81973e-0bec-47b0-a898-d190f9ebdacf"),
            job("HTTP Error 404 (line 9)"),
        ];
        let found: Vec<(String, u64)> =
            groups(&jobs).into_iter().map(|group| (group.error, group.jobs)).collect();
        assert_eq!(
            found,
            [("HTTP Error # (line #)".to_owned(), 3), ("no file '…' of #".to_owned(), 2)]
        );
    }

    #[test]
    fn words_and_unclosed_quotes_stay() {
        assert_eq!(normalised("bad face: can't"), "bad face: can't");
        assert_eq!(normalised(""), "");
    }

    #[test]
    fn hostile_error_is_escaped() {
        let job = JobDoc::from(json!({ "id": "<b>", "error": "<script>x</script>" }));
        let text = table(&[job], &JobFilter::default(), &SiteLinks::new("/")).into_string();
        assert!(!text.contains("<script") && !text.contains("<b>"), "{text}");
    }
}
