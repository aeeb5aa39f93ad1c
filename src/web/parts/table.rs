//! Tables: each column has its head and its cells in one place.

use maud::{Markup, Render, html};

use super::input::given;
use super::list::empty;

/// A function that returns a part of the row of an item.
type OfItem<'a, T, R> = Box<dyn Fn(&T) -> R + 'a>;

struct TableColumn<'a, T> {
    head: Markup,
    /// The classes of its cells.
    classes: String,
    cell: OfItem<'a, T, Markup>,
}

/// A table with a row for each item.
pub(in crate::web) struct PageTable<'a, T> {
    items: &'a [T],
    classes: &'a str,
    caption: &'a str,
    columns: Vec<TableColumn<'a, T>>,
    /// The ids of its rows, if it is changed while the page is open.
    id: OfItem<'a, T, Option<String>>,
    is_at: OfItem<'a, T, bool>,
}

impl<'a, T> PageTable<'a, T> {
    pub(in crate::web) fn of(items: &'a [T], classes: &'a str, caption: &'a str) -> Self {
        let (id, is_at) = (Box::new(|_: &T| None), Box::new(|_: &T| false));
        Self { items, classes, caption, columns: Vec::new(), id, is_at }
    }

    /// Adds a column. Of its classes the head has `num`, `xl` and widths, as `c-tk`; with `sr` nobody sees the title. The
    /// cells have all but widths and `sr`.
    pub(in crate::web) fn column(
        mut self,
        title: impl Render,
        classes: &str,
        cell: impl Fn(&T) -> Markup + 'a,
    ) -> Self {
        let is_width = |class: &&str| class.starts_with("c-");
        let all = || classes.split(' ').filter(|class| *class != "sr");
        let joined = |classes: Vec<&str>| classes.join(" ");
        let of_head = |class: &&str| is_width(class) || ["num", "xl"].contains(class);
        let of_head = joined(all().filter(of_head).collect());
        let head = html! {
            @if classes.split(' ').any(|class| class == "sr") {
                th class=[given(&of_head)] role="columnheader" scope="col" { span.sr { (title) } }
            } @else {
                th class=[given(&of_head)] role="columnheader" { (title) }
            }
        };
        let classes = joined(all().filter(|class| !is_width(class)).collect());
        self.columns.push(TableColumn { head, classes, cell: Box::new(cell) });
        self
    }

    /// Adds a column for those who may see it.
    pub(in crate::web) fn column_if(
        self,
        is_shown: bool,
        title: impl Render,
        classes: &str,
        cell: impl Fn(&T) -> Markup + 'a,
    ) -> Self {
        if is_shown { self.column(title, classes, cell) } else { self }
    }

    /// Adds a column of ticks, with one for all rows at its head, for those who may tick them.
    pub(in crate::web) fn ticks_if(
        mut self,
        is_shown: bool,
        tick: impl Fn(&T) -> Markup + 'a,
    ) -> Self {
        let head = html! {
            th.c-pick role="columnheader" {
                input type="checkbox" aria-label="Select all on this page" data-all;
            }
        };
        if is_shown {
            self.columns.push(TableColumn { head, classes: "m0".to_owned(), cell: Box::new(tick) });
        }
        self
    }

    /// Gives each row an id, by which it is changed while the page is open.
    pub(in crate::web) fn ids(self, id: impl Fn(&T) -> String + 'a) -> Self {
        Self { id: Box::new(move |item| Some(id(item))), ..self }
    }

    /// Marks the rows that the page is about.
    pub(in crate::web) fn at(self, is_at: impl Fn(&T) -> bool + 'a) -> Self {
        Self { is_at: Box::new(is_at), ..self }
    }

    pub(in crate::web) fn markup(&self) -> Markup {
        self.with(None, &html! { @for item in self.items { (self.tr(item)) } })
    }

    /// Returns it, or a sentence in its place if it has no rows.
    pub(in crate::web) fn or(&self, none: &Markup) -> Markup {
        if self.items.is_empty() { empty(none) } else { self.markup() }
    }

    /// Returns it with these rows, which are changed while the page is open by the id of their body.
    pub(in crate::web) fn live(&self, body: &str, rows: &[(String, Markup)]) -> Markup {
        self.with(Some(body), &html! { @for (_, row) in rows { (row) } })
    }

    fn with(&self, body: Option<&str>, rows: &Markup) -> Markup {
        html! {
            table.stack.(self.classes) role="table" {
                caption.sr { (self.caption) }
                thead role="rowgroup" {
                    tr role="row" { @for column in &self.columns { (column.head) } }
                }
                tbody id=[body] role="rowgroup" { (rows) }
            }
        }
    }

    fn tr(&self, item: &T) -> Markup {
        html! {
            tr.at[(self.is_at)(item)] role="row" id=[(self.id)(item)] {
                @for TableColumn { classes, cell, .. } in &self.columns {
                    td class=[given(classes)] role="cell" { (cell(item)) }
                }
            }
        }
    }

    /// Returns the rows by their ids.
    pub(in crate::web) fn rows(&self) -> Vec<(String, Markup)> {
        self.items.iter().map(|item| self.row(item)).collect()
    }

    pub(in crate::web) fn row(&self, item: &T) -> (String, Markup) {
        ((self.id)(item).unwrap_or_default(), self.tr(item))
    }

    /// Returns the rows, or a sentence as the only row if there are none: a live table needs its body.
    pub(in crate::web) fn rows_or(&self, id: &str, none: &Markup) -> Vec<(String, Markup)> {
        if !self.items.is_empty() {
            return self.rows();
        }
        let row = html! {
            tr role="row" id=(id) {
                td.empty role="cell" colspan=(self.columns.len()) { (none) }
            }
        };
        vec![(id.to_owned(), row)]
    }

    /// Returns the row above the rows of a group, by its id.
    pub(in crate::web) fn group_row(&self, id: &str, head: &Markup) -> (String, Markup) {
        let row = html! {
            tr.grp role="row" id=(id) {
                th role="rowheader" colspan=(self.columns.len()) { (head) }
            }
        };
        (id.to_owned(), row)
    }
}
