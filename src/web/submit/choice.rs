//! Fields of the form that are no text: choices and files.

use maud::{Markup, html};

use super::upload::{INPUTS, STDIN_FILE};
use crate::proto::job::Setting;

/// A script type that the visitor may use.
#[derive(Debug, Clone)]
pub(in crate::web) struct OfferedType {
    pub(in crate::web) name: String,
    pub(in crate::web) is_sandboxed: bool,
}

/// A field that cannot be used, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::web) struct DraftError {
    /// The field of the hash; empty if it is none of the form.
    pub(in crate::web) field: String,
    pub(in crate::web) message: String,
}

/// Returns the choice of a script type.
pub(super) fn choice(
    id: &str,
    field: &str,
    text: &str,
    types: &[OfferedType],
    described: &str,
) -> Markup {
    let is_known = text.is_empty() || types.iter().any(|of| of.name == text);
    html! {
        select #(id) name=(field) aria-describedby=(described) {
            @if !is_known { option value=(text) selected { (text) } }
            @for of in types {
                option value=(of.name) selected[of.name == text] {
                    (of.name) @if !of.is_sandboxed { " (not sandboxed)" }
                }
            }
        }
    }
}

/// Returns the words of a setting that has no other values; none for any other.
pub(super) fn closed(setting: &Setting) -> Vec<&'static str> {
    let words: Vec<&str> = setting.value_name.split('|').collect();
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
    if words.len() > 1 && words.iter().all(is_word) { words } else { Vec::new() }
}

/// Returns the choice of such a setting.
pub(super) fn closed_choice(id: &str, setting: &Setting, text: &str, described: &str) -> Markup {
    let words = closed(setting);
    let is_known = text.is_empty() || words.contains(&text);
    html! {
        select #(id) name=(setting.field) aria-describedby=(described) {
            option value="" selected[text.is_empty()] { "default" }
            @if !is_known { option value=(text) selected { (text) } }
            @for word in words { option value=(word) selected[word == text] { (word) } }
        }
    }
}

/// Returns the choice of a priority.
pub(super) fn priority(id: &str, text: &str, described: &str) -> Markup {
    let text = if text.is_empty() { "1" } else { text };
    html! {
        select #(id) name="priority" aria-describedby=(described) {
            @for (value, word) in [("0", "Urgent"), ("1", "Normal"), ("2", "Background")] {
                option value=(value) selected[value == text] { (word) }
            }
        }
    }
}

/// Returns the fields of files.
pub(super) fn files(error: &DraftError, hint: &str) -> Markup {
    let is_wrong = error.field == INPUTS;
    html! {
        div.row {
            div.f-l {
                label for="f-inputs" { "Files" }
                input #f-inputs type="file" name=(INPUTS) multiple
                    aria-invalid=[is_wrong.then_some("true")]
                    aria-describedby=(if is_wrong { "why f-inputs-hint" } else { "f-inputs-hint" });
                small #f-inputs-hint { (hint) }
            }
            div.f-l {
                label for="f-stdin" { "Standard input" }
                input #f-stdin type="file" name=(STDIN_FILE) aria-describedby="f-stdin-hint";
                small #f-stdin-hint { "A file that the script reads as its standard input" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_setting_whose_values_are_all_words_is_a_choice() {
        let words = |field: &str| closed(Setting::of_field(field).expect("a setting"));
        assert_eq!(words("unique_by"), ["key", "script", "params"]);
        assert_eq!(words("fallback"), ["none", "group", "type"]);
        for open in ["network", "backoff", "name", "durable", "secrets"] {
            assert!(words(open).is_empty(), "{open}");
        }
    }
}
