//! Failures by the kind of their error: without its numbers, ids, paths and quoted texts.

use jiff::Timestamp;
use maud::{Markup, html};

use super::super::links::SiteLinks;
use super::super::parts::{PageTable, ago_or_dash, count, id_link, things, time_of};
use super::filter::JobsQuery;
use crate::client::ErrorGroupsDocument;

pub(super) const KINDS_MAX: usize = 50;

pub(super) fn headline(found: &ErrorGroupsDocument) -> Markup {
    let (kinds, shown) = (found.kinds as u64, found.groups.len() as u64);
    html! {
        (things(found.jobs, "failed job")) " by error, without numbers, ids, paths and quoted texts"
        @if kinds > shown { ", the " (count(shown)) " most frequent of " (count(kinds)) " kinds" }
        @if !found.complete { ", among the latest " (count(found.searched as u64)) }
    }
}

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
        let Self { filter, links, now, forgery } = self;
        let none = html! {
            @if found.complete { "No jobs failed." }
            @else { "None failed among the latest " (count(found.searched as u64)) "." }
        };
        let caption = "Failures by error, the most frequent first";
        PageTable::of(&found.groups, "nopick fix fails", caption)
            .column("Jobs", "m4 c-ca", |of| html! { (things(of.jobs, "job")) })
            .column("Error", "cut m1", |of| {
                let of_kind = filter.with("kind", &of.kind);
                html! {
                    @if of.kind.is_empty() { "no error text" }
                    @else { a.err href=(of_kind.address(links, of_kind.path(), &[])) title=(of.last_error) { (of.kind) } }
                }
            })
            .column("Types", "dim wide cut c-ca", |of| {
                html! { (of.types.keys().cloned().collect::<Vec<_>>().join(", ")) }
            })
            .column("The latest", "wide cut c-tg", |of| id_link(&of.last_job, links))
            .column("Ended", "num mr c-tk", |of| ago_or_dash(of.last_at.as_deref().and_then(time_of), now))
            .column_if(forgery.is_some(), "Retry", "sr m5 c-ca", |of| html! {
                @if let Some(forgery) = forgery.filter(|_| !of.kind.is_empty()) { (self.retry_form(&of.kind, forgery)) }
            })
            .or(&none)
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
    use crate::client::ErrorGroupDocument;

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
