//! What a failed script is told: one line that starts with the matter and ends with the place.

use ::rhai::{Dynamic, EvalAltResult, ParseErrorType, Position};

use super::output;

/// The longest message; a script can throw a text of any size.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// The message for an error, as `variable not found: x (line 3, position 5)`.
pub(super) fn message(error: &EvalAltResult) -> String {
    // Where it happened, not through which calls: the innermost place is what has to be mended.
    let inner = error.unwrap_inner();
    let position = match inner.position() {
        Position::NONE => error.position(),
        inner => inner,
    };
    let mut message = shortened(matter(inner));
    if !position.is_none() {
        message = format!("{message} ({position})");
    }
    message
}

fn matter(error: &EvalAltResult) -> String {
    match error {
        EvalAltResult::ErrorParsing(problem, _) => syntax(problem),
        EvalAltResult::ErrorTooManyOperations(_) => "too many operations".to_owned(),
        EvalAltResult::ErrorTooManyVariables(_) => "too many variables".to_owned(),
        EvalAltResult::ErrorTooManyModules(_) => "too many modules".to_owned(),
        EvalAltResult::ErrorStackOverflow(_) => "call stack overflow".to_owned(),
        EvalAltResult::ErrorDataTooLarge(what, _) => too_large(what),
        EvalAltResult::ErrorRuntime(value, _) => thrown(value),
        other => in_house_style(&bare(other)),
    }
}

fn syntax(problem: &ParseErrorType) -> String {
    match problem {
        ParseErrorType::ExprTooDeep => "expression nested too deeply".to_owned(),
        ParseErrorType::TooManyFunctions => "too many functions".to_owned(),
        ParseErrorType::LiteralTooLarge(what, _) => too_large(what),
        other => format!("syntax error: {}", in_house_style(&other.to_string())),
    }
}

/// The name of the limit that a value has hit; Rhai names the thing in several ways.
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
    match output::text(value, u64::MAX, &str::to_owned) {
        Ok(text) if text.is_empty() => "the script threw an error without a text".to_owned(),
        Ok(text) => text,
        Err(reason) => reason,
    }
}

/// Rhai's own text without the place, which comes last and only once.
fn bare(error: &EvalAltResult) -> String {
    let text = error.to_string();
    let place = format!(" ({})", error.position());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

/// Messages start in lower case, but for words that are not written so.
fn in_house_style(text: &str) -> String {
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
