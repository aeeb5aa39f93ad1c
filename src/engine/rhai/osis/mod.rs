//! The functions of `osis`: objects that outlive a script.

mod context;
mod objects;
mod values;

pub(super) use objects::register;
