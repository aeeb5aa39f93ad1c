//! The functions of `osis`: objects that outlive a script.

mod context;
mod declared;
mod objects;
mod values;

pub(super) use declared::register as register_declared;
pub(super) use objects::register;
