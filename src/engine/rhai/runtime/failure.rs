//! The error message of a failed script: one line, the problem first, its position last.

use ::rhai::{Dynamic, EvalAltResult, ParseErrorType, Position};

use super::json_form;

/// The size limit of a message; a script can throw a text of any size.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// Returns the message for an error, as `variable not found: x (line 3, position 5)`.
pub(crate) fn message(error: &EvalAltResult) -> String {
    // The innermost position is the one to fix, not the calls that led to it.
    let inner = error.unwrap_inner();
    let position = match inner.position() {
        Position::NONE => error.position(),
        inner => inner,
    };
    let message = shortened(description(inner));
    match (position.is_none(), file(error)) {
        (false, Some(file)) => format!("{message} ({position}, in {file})"),
        (false, None) => format!("{message} ({position})"),
        (true, Some(file)) => format!("{message} (in {file})"),
        (true, None) => message,
    }
}

/// Returns the file of the module where the error arose; `None` for the script itself.
fn file(error: &EvalAltResult) -> Option<&str> {
    let (mut error, mut file) = (error, None);
    loop {
        (error, file) = match error {
            EvalAltResult::ErrorInFunctionCall(_, source, inner, _) => {
                (inner, Some(source.as_str()).filter(|source| !source.is_empty()))
            }
            EvalAltResult::ErrorInModule(file, inner, _) => (inner, Some(file.as_str())),
            _ => return file,
        };
    }
}

fn description(error: &EvalAltResult) -> String {
    match error {
        EvalAltResult::ErrorParsing(problem, _) => syntax(problem),
        EvalAltResult::ErrorTooManyOperations(_) => "too many operations".to_owned(),
        EvalAltResult::ErrorTooManyVariables(_) => "too many variables".to_owned(),
        EvalAltResult::ErrorTooManyModules(_) => "too many modules".to_owned(),
        EvalAltResult::ErrorStackOverflow(_) => "call stack overflow".to_owned(),
        EvalAltResult::ErrorDataTooLarge(what, _) => too_large(what),
        EvalAltResult::ErrorRuntime(value, _) => thrown(value),
        EvalAltResult::ErrorFunctionNotFound(..)
        | EvalAltResult::ErrorMismatchDataType(..)
        | EvalAltResult::ErrorMismatchOutputType(..)
        | EvalAltResult::ErrorIndexingType(..) => in_lower_case(&plain_types(&bare(error))),
        other => in_lower_case(&bare(other)),
    }
}

/// Names types as scripts know them, not as Rust does.
fn plain_types(text: &str) -> String {
    const NAMES: [(&str, &str); 3] = [
        ("&str | ImmutableString | String", "string"),
        ("ImmutableString", "string"),
        ("usize", "i64"),
    ];
    NAMES.iter().fold(text.to_owned(), |text, (of_rust, name)| text.replace(of_rust, name))
}

fn syntax(problem: &ParseErrorType) -> String {
    match problem {
        ParseErrorType::ExprTooDeep => "expression nested too deeply".to_owned(),
        ParseErrorType::TooManyFunctions => "too many functions".to_owned(),
        ParseErrorType::LiteralTooLarge(what, _) => too_large(what),
        other => format!("syntax error: {}", in_lower_case(&other.to_string())),
    }
}

/// Returns the name of the exceeded limit; Rhai names the value in several ways.
fn too_large(what: &str) -> String {
    let what = what.to_lowercase();
    if what.contains("string") {
        "string too long".to_owned()
    } else if what.contains("map") {
        "map too large".to_owned()
    } else if what.contains("array") || what.contains("blob") {
        "array too large".to_owned()
    } else {
        format!("{what} too large")
    }
}

fn thrown(value: &Dynamic) -> String {
    match json_form::text(value, u64::MAX, &str::to_owned) {
        Ok(text) if text.is_empty() => "the script threw an error without a message".to_owned(),
        Ok(text) => text,
        Err(reason) => reason,
    }
}

/// Returns Rhai's text without the position, which is appended once at the end.
fn bare(error: &EvalAltResult) -> String {
    let text = error.to_string();
    let position = format!(" ({})", error.position());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

/// Makes the first letter lower case, unless the word is an abbreviation.
fn in_lower_case(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if first.is_ascii_uppercase() && second.is_lowercase() => {
            format!("{}{}", first.to_ascii_lowercase(), letters.as_str())
        }
        _ => text.to_owned(),
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > MESSAGE_BYTES_MAX {
        text.truncate(text.floor_char_boundary(MESSAGE_BYTES_MAX));
        text.push('…');
    }
    text
}
