//! Ticks of rows, and the bar that appears once one is ticked.

use maud::{Markup, html};

/// Returns the head of the column of ticks.
pub(in crate::web) fn pick_all() -> Markup {
    html! {
        th.c-pick role="columnheader" {
            input type="checkbox" aria-label="Select all on this page" data-all;
        }
    }
}

/// Returns the tick of a row. `name` and `value` belong to the form's field.
pub(in crate::web) fn pick(name: &str, value: &str, label: &str) -> Markup {
    html! {
        td.m0 role="cell" {
            input.pick type="checkbox" name=(name) value=(value) aria-label={ "Select " (label) };
        }
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
