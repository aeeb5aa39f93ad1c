//! Bounds what Rhai leaves unbounded: how deep values hold each other through closures, and how
//! large a map grows by assignments to its elements.
//!
//! Rhai counts the elements of arrays and maps, and so bounds how deep they nest; what a closure
//! has captured it does not count. A closure that captures the closure before it, in a loop, is a
//! chain of any length, and dropping it takes one stack frame per link, until there is none left
//! and the whole process dies. Every link is made by reading the variable that is captured, so
//! that is where the chain is measured.

use ::rhai::{Array, Dynamic, EvalAltResult, FnPtr, Map, Position};

use super::running::{Stop, terminated, with};

/// How deep closures may hold closures.
const CLOSURES_DEEP_MAX: usize = 64;
/// How many values one look may visit; more is taken for too much.
const VISITS_MAX: usize = 1_000_000;
/// An array or a map is looked through at one read in so many, at random so that no script can
/// time its reads: the chain stays shorter than the stack, and reads stay cheap.
const READS_PER_LOOK: u32 = 128;

/// Looks at a variable that is being read.
///
/// # Errors
/// The error that ends the script, if its values nest too deeply.
pub(super) fn check(value: Option<&Dynamic>, map_len_max: usize) -> Result<(), Box<EvalAltResult>> {
    let Some(value) = value else { return Ok(()) };
    let is_map = value.is_map();
    // `map[key] = value` is checked for the size of the value alone.
    if is_map && value.read_lock::<Map>().is_some_and(|map| map.len() > map_len_max) {
        let what = "Size of object map".to_owned();
        return Err(EvalAltResult::ErrorDataTooLarge(what, Position::NONE).into());
    }
    let wide = is_map || value.is_array();
    if !(value.is_fnptr() || wide && fastrand::u32(..READS_PER_LOOK) == 0) {
        return Ok(());
    }
    let mut visits_left = VISITS_MAX;
    if fits(value, CLOSURES_DEEP_MAX, &mut visits_left) {
        return Ok(());
    }
    let _ = with(|running| running.end(Stop::NestsTooDeeply));
    Err(terminated().into())
}

fn fits(value: &Dynamic, closures_left: usize, visits_left: &mut usize) -> bool {
    if *visits_left == 0 {
        return false;
    }
    *visits_left -= 1;
    if let Some(closure) = value.read_lock::<FnPtr>() {
        if closure.curry().is_empty() {
            return true;
        }
        return closures_left > 0
            && closure.iter_curry().all(|held| fits(held, closures_left - 1, visits_left));
    }
    if let Some(array) = value.read_lock::<Array>() {
        return array.iter().all(|element| fits(element, closures_left, visits_left));
    }
    if let Some(map) = value.read_lock::<Map>() {
        return map.values().all(|element| fits(element, closures_left, visits_left));
    }
    true
}
