//! The state of one script's run, as hooks and functions reach it. Imports nothing of the engine above it.

pub(super) mod context;
pub(super) mod failure;
pub(super) mod json_form;
pub(super) mod memory;
pub(super) mod run;
pub(super) mod settings;
