//! The limits of a value that is built from a text. Rhai checks a value only when it is complete; by
//! then a small text with aliases could have filled the memory.

use ::rhai::{Array, Dynamic, ImmutableString, Map};

use crate::config::RhaiLimits;
use crate::engine::rhai::runtime::json_form::DEPTH_MAX;
use crate::engine::rhai::runtime::run::with;

/// The error of a value that is nested deeper than [`DEPTH_MAX`].
pub(super) const TOO_DEEP: &str = "the value is nested deeper than 127 levels; flatten it";

/// Counts what a value still may have, as Rhai counts: the elements of all its arrays, the entries of
/// all its maps, and the bytes of all its strings, here with the keys.
pub(in crate::rhai) struct Budget<'a> {
    limits: &'a RhaiLimits,
    /// The advice about a value that is too large.
    remedy: &'static str,
    elements_left: u64,
    entries_left: u64,
    bytes_left: u64,
}

impl<'a> Budget<'a> {
    pub(super) fn of_text(limits: &'a RhaiLimits) -> Self {
        Self::new(limits, "split the text")
    }

    pub(in crate::rhai) fn new(limits: &'a RhaiLimits, remedy: &'static str) -> Self {
        Self {
            limits,
            remedy,
            elements_left: limits.array_len_max as u64,
            entries_left: limits.map_len_max as u64,
            bytes_left: limits.string_size_max,
        }
    }

    pub(in crate::rhai) fn element(&mut self) -> Result<(), String> {
        let max = self.limits.array_len_max as u64;
        self.elements_left =
            self.left(self.elements_left, 1, (max, "elements of arrays", "array_len_max"))?;
        polled()
    }

    pub(in crate::rhai) fn entry(&mut self, key: &str) -> Result<(), String> {
        let max = self.limits.map_len_max as u64;
        self.entries_left =
            self.left(self.entries_left, 1, (max, "entries of maps", "map_len_max"))?;
        self.text(key)?;
        polled()
    }

    pub(super) fn text(&mut self, text: &str) -> Result<(), String> {
        let max = self.limits.string_size_max;
        let bytes = text.len() as u64;
        self.bytes_left =
            self.left(self.bytes_left, bytes, (max, "bytes of strings", "string_size_max"))?;
        Ok(())
    }

    fn left(
        &self,
        left: u64,
        taken: u64,
        (max, what, limit): (u64, &str, &str),
    ) -> Result<u64, String> {
        left.checked_sub(taken).ok_or_else(|| {
            let remedy = self.remedy;
            format!(
                "more than {max} {what}, the limit type.NAME.limits.{limit}; {remedy}, or raise it"
            )
        })
    }

    /// Takes the budget of a copy of a value at a place nested `depth` levels deep.
    pub(super) fn copy(&mut self, value: &Dynamic, depth: usize) -> Result<(), String> {
        nests(depth)?;
        if let Some(array) = value.read_lock::<Array>() {
            for element in array.iter() {
                self.element()?;
                self.copy(element, depth + 1)?;
            }
        } else if let Some(map) = value.read_lock::<Map>() {
            for (key, entry) in map.iter() {
                self.entry(key)?;
                self.copy(entry, depth + 1)?;
            }
        } else if let Some(text) = value.read_lock::<ImmutableString>() {
            self.text(&text)?;
        }
        Ok(())
    }
}

pub(super) fn nests(depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX { Err(TOO_DEEP.to_owned()) } else { Ok(()) }
}

/// Ends the work of a job that was stopped; the stop replaces this error.
fn polled() -> Result<(), String> {
    if with(|run| run.poll().is_some()) == Some(true) { Err("stopped".to_owned()) } else { Ok(()) }
}
