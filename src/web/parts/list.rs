//! Heads of pages and sections, and parts of lists: ids, ticks of rows, the line with the next page, and the sentence of an empty one.

use std::ops::Range;

use maud::{Markup, html};

use super::super::links::SiteLinks;
use super::number::things;
use crate::proto::job::JobId;

pub(in crate::web) fn id_link(id: &str, links: &SiteLinks) -> Markup {
    html! { a.id href=(links.job(id)) title=(id) { (short_id(id)) } }
}

/// Returns the name of a thing as a link to its page, which the list of these things has.
pub(in crate::web) fn page_link(list: &str, name: &str, links: &SiteLinks) -> Markup {
    html! { a.id href=(links.page(list, name)) { (name) } }
}

/// Returns a script type as a link to its jobs.
pub(in crate::web) fn type_link(script_type: &str, links: &SiteLinks) -> Markup {
    html! { a.id href=(links.with("/jobs", &[("type", script_type)])) { (script_type) } }
}

/// Returns 8 characters of a UUID, and an id of one's own whole.
pub(in crate::web) fn short_id(id: &str) -> &str {
    if JobId::is_uuid(id) { &id[..JobId::SHORT_CHARS] } else { id }
}

/// Returns the line below a list: what it shows, and the links to the first page, unless this is it, and to the next.
/// `after` is the place of this page, `address` returns the address of a page by its place.
pub(in crate::web) fn pager(
    shown: &str,
    (after, next): (&str, Option<&str>),
    address: impl Fn(&str) -> String,
) -> Markup {
    html! {
        div.pager {
            span { (shown) }
            @if !after.is_empty() { a href=(address("")) { "Newest" } }
            @if let Some(next) = next { a href=(address(next)) rel="next" { "Older" } }
        }
    }
}

/// Returns the head of a page: its `h1`, one line below it, and its buttons.
pub(in crate::web) fn head(title: &str, line: &Markup, actions: &Markup) -> Markup {
    html! {
        div.head {
            div { h1 { (title) } p #headline { (line) } }
            (actions)
        }
    }
}

/// Returns the head of a form that corrects a thing, below the links to the list and to the thing.
pub(in crate::web) fn correction_head(
    list: &Markup,
    (label, href): (&str, &str),
    line: &str,
) -> Markup {
    html! {
        div.head {
            div {
                p.crumb { (list) " / " a href=(href) { (label) } " / Correct" }
                h1.plain-h { "Correct " (label) }
                p.meta { (line) }
            }
        }
    }
}

/// Returns a heading of a section, with a link at its right.
pub(in crate::web) fn bar(title: &str, small: &str, link: Option<(&str, &str)>) -> Markup {
    html! {
        div.bar {
            h2 { (title) @if !small.is_empty() { " " small { (small) } } }
            @if let Some((text, href)) = link { a href=(href) { (text) } }
        }
    }
}

/// Returns the section of facts about a thing: terms and their values.
pub(in crate::web) fn fact_list(link: Option<(&str, &str)>, terms: &Markup) -> Markup {
    html! { section #facts { (bar("Facts", "", link)) dl.facts { (terms) } } }
}

/// The rows of a page of a list that is known as a whole.
const PAGE_ROWS: usize = 100;

/// A page of a list that is known as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) struct Paged {
    /// From 1 on.
    page: usize,
    all: usize,
}

impl Paged {
    /// Takes the page that an address names; the nearest one if it does not exist.
    pub(in crate::web) fn of(asked: &str, all: usize) -> Self {
        let last = all.div_ceil(PAGE_ROWS).max(1);
        Self { page: asked.parse().unwrap_or(1).clamp(1, last), all }
    }

    pub(in crate::web) fn range(self) -> Range<usize> {
        let first = (self.page - 1) * PAGE_ROWS;
        first..(first + PAGE_ROWS).min(self.all)
    }

    /// Returns the line below the list, with links to the pages around; nothing if all rows are shown.
    pub(in crate::web) fn line(self, noun: &str, address: impl Fn(&str) -> String) -> Markup {
        let Range { start, end } = self.range();
        let to = |page: usize| address(&page.to_string());
        html! {
            @if self.all > PAGE_ROWS {
                div.pager {
                    span { (start + 1) " to " (end) " of " (things(self.all as u64, noun)) }
                    @if start > 0 { a href=(to(self.page - 1)) rel="prev" { "Previous" } }
                    @if end < self.all { a href=(to(self.page + 1)) rel="next" { "Next" } }
                }
            }
        }
    }
}

pub(in crate::web) fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// Returns a text of at most so many letters; `…` stands for the rest.
pub(in crate::web) fn shortened(text: &str, letters_max: usize) -> String {
    match text.char_indices().nth(letters_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub(in crate::web) fn empty(text: &Markup) -> Markup {
    html! { p.empty { (text) } }
}

/// Returns the tick of a row. `name` and `value` belong to the form's field.
pub(in crate::web) fn tick(name: &str, value: &str, label: &str) -> Markup {
    html! { input.pick type="checkbox" name=(name) value=(value) aria-label={ "Select " (label) }; }
}

/// Returns the button of a row that does something with its thing: the verb is its name. The title of the thing is for those
/// who do not see the row.
pub(in crate::web) fn row_button(verb: &str, word: &str, (name, title): (&str, &str)) -> Markup {
    html! {
        button.plain id={ (verb) "-" (name) } name=(verb) value=(name) { (word) span.sr { " " (title) } }
    }
}

/// Returns the bar with its buttons. `things` names the ticked rows: "jobs".
pub(in crate::web) fn bulk(things: &str, buttons: &Markup) -> Markup {
    html! {
        div.bulk role="group" aria-label={ "Selected " (things) } {
            strong { span data-picked { "0" } " selected" }
            (buttons)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_list_has_pages_and_every_row_is_on_one() {
        let of = |asked, all| Paged::of(asked, all).range();
        assert_eq!((of("", 250), of("2", 250), of("3", 250)), (0..100, 100..200, 200..250));
        assert_eq!((of("9", 250), of("0", 250), of("x", 0)), (200..250, 0..100, 0..0));
        let line = |asked| Paged::of(asked, 250).line("queue", |page| format!("/q{page}"));
        let shown = line("2").into_string();
        assert!(shown.contains("101 to 200 of 250 queues"), "{shown}");
        assert!(shown.contains("\"/q1\"") && shown.contains("\"/q3\""), "{shown}");
        assert_eq!(Paged::of("", 100).line("queue", str::to_owned).into_string(), "");
    }

    #[test]
    fn only_a_uuid_is_cut() {
        assert_eq!(short_id("8e81973e-0bec-47b0-a898-d190f9ebdacc"), "8e81973e");
        assert_eq!(short_id("invoice-20261122-0417"), "invoice-20261122-0417");
    }
}
