//! The additions for Python scripts: the module `hero`, and the packages that a script declares.

mod metadata;
mod packages;
mod uv;

pub(super) use packages::{Packages, environment, interpreter};

use super::scratch::Scratch;

/// The source of the module `hero`.
pub(in crate::engine::process) const HERO_MODULE: &str = include_str!("hero.py");
const MODULE_FILE: &str = "hero.py";

/// Puts the module beside a script that names it: Python searches the folder of the script first.
///
/// # Errors
/// Any error of writing the file.
pub(super) fn provide_module(source: &str, scratch: &Scratch) -> std::io::Result<()> {
    if source.contains("hero") {
        scratch.file(MODULE_FILE, HERO_MODULE)?;
    }
    Ok(())
}
