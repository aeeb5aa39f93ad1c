//! The functions of `osis`: objects that outlive a script, and the time and random values of its attempt.

mod attempt;
mod context;
mod declared;
mod objects;
mod values;

pub(super) use declared::register as register_declared;

use super::functions::Functions;

pub(super) fn register(functions: &mut Functions<'_>) {
    objects::register(functions);
    attempt::register(functions);
}
