//! Failures by the kind of their error: without its numbers, ids, paths and quoted texts.

use jiff::Timestamp;
use maud::{Markup, html};

use super::super::links::SiteLinks;
use super::super::parts::{ago, count, data_table, empty, id_link, things};
use super::filter::JobsQuery;
use crate::client::{ErrorGroupDocument, ErrorGroupsDocument};

pub(super) const KINDS_MAX: usize = 50;

pub(super) fn headline(found: &ErrorGroupsDocument) -> Markup {
    let (kinds, shown) = (found.kinds as u64, found.groups.len() as u64);
    html! {
        (count(found.jobs)) " failed jobs by their errors, without numbers, ids, paths and quoted texts"
        @if kinds > shown { ", the " (count(shown)) " most frequent of " (count(kinds)) " kinds" }
        @if !found.complete { ", among the latest " (count(found.searched as u64)) }
    }
}

/// The last is for those who may retry jobs.
const HEADS: [(&str, &str); 6] = [
    ("c-ca", "Jobs"),
    ("", "Error"),
    ("c-ca", "Types"),
    ("c-tg", "The latest"),
    ("num c-tk", "Ended"),
    ("sr c-ca", "Retry"),
];

/// The table of kinds.
#[derive(Clone, Copy)]
pub(super) struct FailureTable<'a> {
    pub(super) filter: &'a JobsQuery,
    pub(super) links: &'a SiteLinks,
    pub(super) now: Timestamp,
    /// The field of a form, if the visitor may retry jobs.
    pub(super) forgery: Option<&'a Markup>,
}

impl FailureTable<'_> {
    pub(super) fn markup(self, found: &ErrorGroupsDocument) -> Markup {
        if found.groups.is_empty() && found.complete {
            return empty(&html! { "No jobs failed." });
        }
        if found.groups.is_empty() {
            return empty(
                &html! { "None failed among the latest " (count(found.searched as u64)) "." },
            );
        }
        let rows = html! { @for group in &found.groups { (self.row(group)) } };
        let heads = &HEADS[..if self.forgery.is_some() { 6 } else { 5 }];
        data_table("nopick fix fails", "Failures by error, the most frequent first", heads, &rows)
    }

    fn row(self, group: &ErrorGroupDocument) -> Markup {
        let Self { filter, links, now, forgery } = self;
        let of_kind = filter.with("kind", &group.kind);
        let jobs = of_kind.address(links, of_kind.path(), &[]);
        let types: Vec<&str> = group.types.keys().map(String::as_str).collect();
        let ended = group.last_at.as_deref().and_then(|at| at.parse().ok());
        html! {
            tr role="row" {
                td.m4 role="cell" { (things(group.jobs, "job")) }
                td.cut.m1 role="cell" {
                    @if group.kind.is_empty() { "no error text" }
                    @else { a.err href=(jobs) title=(group.last_error) { (group.kind) } }
                }
                td.dim.wide.cut role="cell" { (types.join(", ")) }
                td.wide.cut role="cell" {
                    (id_link(&group.last_job, links))
                }
                td.num.mr role="cell" { @if let Some(at) = ended { (ago(at, now)) } @else { "–" } }
                @if let Some(forgery) = forgery {
                    td.m5 role="cell" { @if !group.kind.is_empty() { (self.retry_form(&group.kind, forgery)) } }
                }
            }
        }
    }

    /// Returns the button that asks before all failures of a kind are retried.
    fn retry_form(self, kind: &str, forgery: &Markup) -> Markup {
        let filter = self.filter;
        html! {
            form method="post" action=(self.links.to(filter.path())) {
                (forgery)
                @for (name, value) in filter.fields().into_iter().filter(|(name, _)| *name != "kind") {
                    input type="hidden" name=(name) value=(value);
                }
                input type="hidden" name="kind" value=(kind);
                input type="hidden" name="all" value="1";
                button.plain name="do" value="retry" aria-label={ "Retry all: " (kind) } { "Retry…" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn hostile_error_is_escaped_and_links_to_the_jobs_of_its_kind() {
        let group = ErrorGroupDocument {
            kind: "<script>N".to_owned(),
            jobs: 2,
            cancelled: false,
            types: BTreeMap::from([("<b>".to_owned(), 2)]),
            last_job: "<b>".to_owned(),
            last_error: "<script>1".to_owned(),
            last_at: None,
        };
        let groups = vec![group];
        let found =
            ErrorGroupsDocument { groups, kinds: 3, jobs: 9, searched: 10, complete: false };
        let now: Timestamp = "2026-01-31T13:00:00Z".parse().expect("a time");
        let filter = JobsQuery::default().with("status", "failed");
        let (links, forgery) = (&SiteLinks::new("/"), Some(&html! {}));
        let table = FailureTable { filter: &filter, links, now, forgery };
        let text = table.markup(&found).into_string();
        assert!(!text.contains("<script") && !text.contains("<b>"), "{text}");
        assert!(text.contains("/jobs?status=failed&amp;kind=%3Cscript%3EN"), "{text}");
        let line = headline(&found).into_string();
        assert!(line.starts_with("9 failed jobs "), "{line}");
        assert!(line.ends_with(", the 1 most frequent of 3 kinds, among the latest 10"), "{line}");
    }
}
