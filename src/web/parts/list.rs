//! Parts of lists: ids, the line with the next page, and the sentence of an empty one.

use maud::{Markup, html};

/// Returns a link to a job: 8 characters of a UUID, an id of one's own whole.
pub(in crate::web) fn id_link(id: &str, href: &str) -> Markup {
    html! { a.id href=(href) title=(id) { (short_id(id)) } }
}

/// Returns 8 characters of a UUID, and an id of one's own whole.
pub(in crate::web) fn short_id(id: &str) -> &str {
    let is_uuid = id.len() == 36
        && id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if is_uuid { &id[..8] } else { id }
}

/// Returns the line below a list: what it shows, and the links to the first and to the next page.
pub(in crate::web) fn pager(shown: &str, first: Option<&str>, next: Option<&str>) -> Markup {
    html! {
        div.pager {
            span { (shown) }
            @if let Some(href) = first { a href=(href) { "Newest" } }
            @if let Some(href) = next { a href=(href) rel="next" { "Older" } }
        }
    }
}

/// Returns the sentence of an empty list: what there is not, and what to do.
pub(in crate::web) fn empty(text: &Markup) -> Markup {
    html! { p.empty { (text) } }
}

/// Returns the sentence of an empty table as its only row, with the id of this row: a live table needs its body.
pub(in crate::web) fn empty_row(id: &str, columns: u8, text: &Markup) -> (String, Markup) {
    let row = html! {
        tr role="row" id=(id) { td.empty role="cell" colspan=(columns) { (text) } }
    };
    (id.to_owned(), row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_uuid_is_cut() {
        assert_eq!(short_id("8e81973e-0bec-47b0-a898-d190f9ebdacc"), "8e81973e");
        assert_eq!(short_id("invoice-20261122-0417"), "invoice-20261122-0417");
    }
}
