//! The additions for Python scripts: the module `hero`, and the packages that a script declares.

mod metadata;
mod packages;
mod uv;

pub(super) use packages::{Packages, environment, interpreter};

use super::scratch::Scratch;

/// The source of the module `hero`.
pub(in crate::engine::process) const HERO_MODULE: &str = include_str!("hero.py");
const MODULE_FILE: &str = "hero.py";
/// The source of the module that makes semaphores for `multiprocessing`.
pub(in crate::engine::process) const SEMAPHORES: &str = include_str!("semaphores.py");
const SEMAPHORES_FILE: &str = "_hero_semaphores.py";
/// Python finds it before its own module of this name, and so calls the other.
const SEMAPHORES_CALLER: (&str, &str) =
    ("_multiprocessing.py", "import _hero_semaphores\n_hero_semaphores.install(__file__)\n");
/// Texts of scripts that may use `multiprocessing`, themselves or by their packages.
const USES_PROCESSES: [&str; 6] =
    ["multiprocessing", "concurrent", "# /// script", "joblib", "loky", "sklearn"];

/// Puts the modules beside a script that it names: Python searches the folder of the script first.
///
/// # Errors
/// Any error of writing the file.
pub(super) fn provide_modules(source: &str, scratch: &Scratch) -> std::io::Result<()> {
    if source.contains("hero") {
        scratch.file(MODULE_FILE, HERO_MODULE)?;
    }
    if USES_PROCESSES.iter().any(|text| source.contains(text)) {
        scratch.file(SEMAPHORES_FILE, SEMAPHORES)?;
        let (file, text) = SEMAPHORES_CALLER;
        scratch.file(file, text)?;
    }
    Ok(())
}
