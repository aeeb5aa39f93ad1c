//! Limits two things that Rhai does not: the nesting of values through closures, and the growth of a
//! map by assignments to its elements.
//!
//! Rhai counts the elements of arrays and maps, which limits their nesting, but not the values that
//! a closure captures. A loop where each closure captures the previous one builds a chain of any
//! length; dropping it takes one stack frame per link and overflows the stack of the process. Each
//! link is created by reading the captured variable, which Rhai has made shared by then, so the
//! captured value is measured there.

use ::rhai::{Array, Dynamic, EvalAltResult, FnPtr, Map, Position};

use crate::engine::rhai::runtime::run::{Stop, terminated, with};

/// The nesting limit of a value that a closure captures, with the values that closures in it captured.
const DEPTH_MAX: usize = 1_000;
/// The limit of values that one check visits; a value with more is rejected.
const VISITS_MAX: usize = 1_000_000;

/// Checks a variable that is being read. Fails with the error that ends the script, if its values nest too deeply.
pub(super) fn check(value: Option<&Dynamic>, map_len_max: usize) -> Result<(), Box<EvalAltResult>> {
    let Some(value) = value else { return Ok(()) };
    let is_map = value.is_map();
    // For `map[key] = value` Rhai checks the size of the value only.
    if is_map && value.read_lock::<Map>().is_some_and(|map| map.len() > map_len_max) {
        let what = "Size of object map".to_owned();
        return Err(EvalAltResult::ErrorDataTooLarge(what, Position::NONE).into());
    }
    if !(value.is_fnptr() || value.is_shared()) {
        return Ok(());
    }
    let mut visits_left = VISITS_MAX;
    if fits(value, DEPTH_MAX, &mut visits_left) {
        return Ok(());
    }
    let _ = with(|run| run.end(Stop::NestsTooDeeply));
    Err(terminated().into())
}

fn fits(value: &Dynamic, depth_left: usize, visits_left: &mut usize) -> bool {
    if depth_left == 0 || *visits_left == 0 {
        return false;
    }
    *visits_left -= 1;
    let inner = |value| fits(value, depth_left - 1, visits_left);
    if let Some(closure) = value.read_lock::<FnPtr>() {
        return closure.iter_curry().all(inner);
    }
    if let Some(array) = value.read_lock::<Array>() {
        return array.iter().all(inner);
    }
    if let Some(map) = value.read_lock::<Map>() {
        return map.values().all(inner);
    }
    true
}
