//! Fields of the form that are no text: choices and files.

use maud::{Markup, html};

use super::super::parts::{described, given, labelled, options, or_any};
use super::super::web_error::{PageError, PageResult, sentence};
use super::upload::{INPUTS, STDIN_FILE};
use crate::proto::job::Setting;
use crate::rpc::RpcError;

#[derive(Debug, Clone)]
pub(in crate::web) struct OfferedType {
    pub(in crate::web) name: String,
    /// The text of its choice, which says if it is not sandboxed.
    pub(in crate::web) label: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::web) struct DraftError {
    /// The field of the hash; empty if it is none of the form.
    pub(in crate::web) field: String,
    pub(in crate::web) message: String,
}

impl DraftError {
    /// Takes the answer to a form. An error that is about no field, and that no change of the form mends, has a page of its own.
    pub(in crate::web) fn of(error: RpcError, field: String) -> PageResult<Self> {
        let page = PageError::from(error.clone());
        if field.is_empty() && !matches!(page.status.as_u16(), 400 | 403 | 409) {
            return Err(page);
        }
        Ok(Self { field, message: error.message })
    }

    /// Returns the note above a form that was refused: what was not done, the field and the reason.
    pub(in crate::web) fn note(&self, undone: &str, more: &Markup) -> Markup {
        html! {
            div.note-err #why role="alert" {
                p { (undone) @if !self.field.is_empty() { " The field: " (self.field) } }
                pre { (sentence(&self.message)) }
                (more)
            }
        }
    }
}

/// Returns the options of a setting that is a choice; `None` for any other.
pub(super) fn choices(setting: &Setting, text: &str, types: &[OfferedType]) -> Option<Markup> {
    match setting.field {
        "priority" => {
            let all = [("0", "Urgent"), ("1", "Normal"), ("2", "Background")];
            Some(options(all, given(text).unwrap_or("1")))
        }
        "script_type" => {
            let all = types.iter().map(|of| (of.name.as_str(), of.label.as_str()));
            Some(options(all, text))
        }
        _ => {
            let all = Some(closed(setting)).filter(|words| !words.is_empty())?;
            Some(options(or_any("default", all), text))
        }
    }
}

/// Returns the words of a setting that has no other values; none for any other.
pub(super) fn closed(setting: &Setting) -> Vec<&'static str> {
    let words: Vec<&str> = setting.value_name.split('|').collect();
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
    if words.len() > 1 && words.iter().all(is_word) { words } else { Vec::new() }
}

pub(super) fn files(error: &DraftError, hint: &str) -> Markup {
    let is_wrong = error.field == INPUTS;
    let inputs = html! {
        input #f-inputs type="file" name=(INPUTS) multiple aria-invalid=[is_wrong.then_some("true")]
            aria-describedby=(described("f-inputs", is_wrong));
    };
    let stdin = html! {
        input #f-stdin type="file" name=(STDIN_FILE) aria-describedby="f-stdin-hint";
    };
    let stdin_hint = html! { "A file that the script reads as its standard input" };
    html! {
        div.row {
            (labelled("f-inputs", "Files", &inputs, &html! { (hint) }))
            (labelled("f-stdin", "Standard input", &stdin, &stdin_hint))
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
