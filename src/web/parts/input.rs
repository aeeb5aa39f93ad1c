//! Inputs of forms: choices, and fields with a label and a hint; the form of a question.

use maud::{Markup, html};

/// Returns the options of a choice, each with its value and its text. A chosen value that they lack is added.
pub(in crate::web) fn options<'a>(
    all: impl IntoIterator<Item = (&'a str, &'a str)>,
    chosen: &'a str,
) -> Markup {
    let mut all: Vec<(&str, &str)> = all.into_iter().collect();
    if !chosen.is_empty() && all.iter().all(|(value, _)| *value != chosen) {
        all.push((chosen, chosen));
    }
    html! {
        @for (value, text) in all { option value=(value) selected[value == chosen] { (text) } }
    }
}

pub(in crate::web) fn select(id: &str, name: &str, described: &str, options: &Markup) -> Markup {
    html! { select #(id) name=(name) aria-describedby=(described) { (options) } }
}

/// Returns the wide field of a filter that is searched for.
pub(in crate::web) fn search(name: &str, label: &str, placeholder: &str, value: &str) -> Markup {
    html! {
        label.grow {
            span.sr { (label) }
            input.w type="search" name=(name) value=(value) placeholder=(placeholder);
        }
    }
}

/// Returns a choice of a filter: the form is sent once another value is chosen.
pub(in crate::web) fn filter_choice<'a>(
    name: &str,
    all: impl IntoIterator<Item = (&'a str, &'a str)>,
    chosen: &'a str,
) -> Markup {
    html! { select name=(name) data-submit { (options(all, chosen)) } }
}

/// Returns the options of a choice whose values are their own texts, behind the one that chooses none of them.
pub(in crate::web) fn or_any<'a>(
    any: &'a str,
    names: impl IntoIterator<Item = &'a str>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    std::iter::once(("", any)).chain(names.into_iter().map(|name| (name, name)))
}

/// Returns an input with its label above and its hint below. The hint has the id of the input and `-hint`.
pub(in crate::web) fn labelled(id: &str, label: &str, input: &Markup, hint: &Markup) -> Markup {
    html! {
        div.f-l {
            label for=(id) { (label) }
            (input)
            small id={ (id) "-hint" } { (hint) }
        }
    }
}

/// Returns the ids of what describes an input: its hint, and before it the reason why it was refused.
pub(in crate::web) fn described(id: &str, is_wrong: bool) -> String {
    if is_wrong { format!("why {id}-hint") } else { format!("{id}-hint") }
}

/// Returns a text that was given; `None` if it is empty.
pub(in crate::web) fn given(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// A question before something is destroyed. It is a page; the script shows the same form as a dialog.
#[derive(Debug, Clone)]
pub(in crate::web) struct Confirm<'a> {
    /// The question with the thing and the number: "Delete 3 jobs?".
    pub(in crate::web) title: String,
    /// The loss and the consequences.
    pub(in crate::web) text: String,
    /// The address of the page to go back to.
    pub(in crate::web) back: String,
    /// The address that the form is posted to.
    pub(in crate::web) action: String,
    /// The hidden fields, besides the token against forgery.
    pub(in crate::web) fields: Vec<(&'a str, &'a str)>,
    pub(in crate::web) verb: &'a str,
}

/// Returns the question as a form. `forgery` is the hidden field of the visitor.
pub(in crate::web) fn confirm(question: &Confirm, forgery: &Markup) -> Markup {
    html! {
        form.form method="post" action=(question.action) data-question {
            (forgery)
            @for (name, value) in &question.fields { input type="hidden" name=(name) value=(value); }
            h1 #question { (question.title) }
            p.dim { (question.text) }
            div.actions {
                a.btn href=(question.back) data-keep autofocus { "Keep" }
                button.danger { (question.verb) }
            }
        }
    }
}
