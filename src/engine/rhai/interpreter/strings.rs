//! Functions of strings that Rhai limits only once their result is there: a short text replaced by a
//! long one, or a text cut at each of its characters, could take all memory of the machine.

use ::rhai::{Array, Dynamic, Engine, EvalAltResult, INT, ImmutableString, Position};

use crate::config::RhaiLimits;

type Limited<T> = Result<T, Box<EvalAltResult>>;

/// Registers the functions in the place of Rhai's own.
pub(super) fn register(engine: &mut Engine, limits: &RhaiLimits) {
    let bytes_max = usize::try_from(limits.string_size_max).unwrap_or(usize::MAX);
    let len_max = limits.array_len_max;
    engine
        .register_fn("replace", move |text: &mut ImmutableString, from: &str, to: &str| {
            replace(text, from, to, bytes_max)
        })
        .register_fn("replace", move |text: &mut ImmutableString, from: &str, to: char| {
            replace(text, from, to.encode_utf8(&mut [0; 4]), bytes_max)
        })
        .register_fn("replace", move |text: &mut ImmutableString, from: char, to: &str| {
            replace(text, from.encode_utf8(&mut [0; 4]), to, bytes_max)
        })
        .register_fn("to_chars", move |text: &str| array(text.chars(), len_max))
        .register_fn("split", move |text: &str| parts(text, text.split_whitespace(), len_max))
        .register_fn("split", move |text: &str, at: &str| parts(text, text.split(at), len_max))
        .register_fn("split", move |text: &str, at: char| parts(text, text.split(at), len_max))
        .register_fn("split", move |text: &str, at: &str, most: INT| {
            parts(text, text.splitn(at_least_one(most), at), len_max)
        })
        .register_fn("split", move |text: &str, at: char, most: INT| {
            parts(text, text.splitn(at_least_one(most), at), len_max)
        })
        .register_fn("split_rev", move |text: &str, at: &str| parts(text, text.rsplit(at), len_max))
        .register_fn("split_rev", move |text: &str, at: char| parts(text, text.rsplit(at), len_max))
        .register_fn("split_rev", move |text: &str, at: &str, most: INT| {
            parts(text, text.rsplitn(at_least_one(most), at), len_max)
        })
        .register_fn("split_rev", move |text: &str, at: char, most: INT| {
            parts(text, text.rsplitn(at_least_one(most), at), len_max)
        });
}

fn replace(text: &mut ImmutableString, from: &str, to: &str, bytes_max: usize) -> Limited<()> {
    // Rhai leaves an empty text as it is, although an empty part is in it.
    if text.is_empty() {
        return Ok(());
    }
    let number = text.matches(from).count();
    let bytes = (text.len() - number * from.len()).saturating_add(number.saturating_mul(to.len()));
    if bytes > bytes_max {
        return too_large("Length of string");
    }
    *text = text.replace(from, to).into();
    Ok(())
}

/// Collects the parts of a text. Rhai has one part of an empty text, however it is cut.
fn parts<'t>(text: &str, parts: impl Iterator<Item = &'t str>, len_max: usize) -> Limited<Array> {
    if text.is_empty() {
        Ok(vec![Dynamic::from(ImmutableString::new())])
    } else {
        array(parts, len_max)
    }
}

fn array<T: Into<Dynamic>>(parts: impl Iterator<Item = T>, len_max: usize) -> Limited<Array> {
    let parts: Array = parts.take(len_max.saturating_add(1)).map(Into::into).collect();
    if parts.len() > len_max { too_large("Size of array/BLOB") } else { Ok(parts) }
}

/// Returns a number of parts, which is one if the script gives less.
fn at_least_one(parts: INT) -> usize {
    usize::try_from(parts).unwrap_or(1).max(1)
}

fn too_large<T>(what: &str) -> Limited<T> {
    Err(EvalAltResult::ErrorDataTooLarge(what.to_owned(), Position::NONE).into())
}
