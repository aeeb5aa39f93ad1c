//! The question before something is destroyed. It is a page; the script shows the same form as a dialog.

use maud::{Markup, html};

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
