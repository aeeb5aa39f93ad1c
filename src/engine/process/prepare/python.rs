//! The additions for Python: the module `hero` and semaphores, and the installer `uv`.

mod uv;

pub(super) use uv::find_uv;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

use super::environment::{Environment, MODULES};
use super::scratch::Scratch;
use crate::engine::process::tree;

pub(in crate::process) const HERO_MODULE: &str = include_str!("python/hero.py");
/// The source of the module that makes semaphores for `multiprocessing`.
pub(in crate::process) const SEMAPHORES: &str = include_str!("python/semaphores.py");
/// Python finds it before its own module of this name, and so calls the other.
const SEMAPHORES_CALLER: &str = "import _hero_semaphores\n_hero_semaphores.install(__file__)\n";
const FOLDER: &str = "python";

/// Puts the modules beside the working directory, and their folder after the others in [`MODULES`]: scripts of all
/// types may start Python. The module `hero` is for scripts in Python. Returns the folder.
pub(super) fn provide_modules(
    env: &mut Environment,
    is_python: bool,
    scratch: &Scratch,
) -> io::Result<PathBuf> {
    let folder = scratch.own().join(FOLDER);
    tree::create_private(&folder)?;
    let semaphores =
        [("_hero_semaphores.py", SEMAPHORES), ("_multiprocessing.py", SEMAPHORES_CALLER)];
    let own = is_python.then_some(("hero.py", HERO_MODULE));
    for (file, text) in semaphores.into_iter().chain(own) {
        scratch.own_file(&format!("{FOLDER}/{file}"), text)?;
    }
    let before = env.remove(OsStr::new(MODULES)).filter(|before| !before.is_empty());
    let folders = before.iter().map(OsString::as_os_str).chain([folder.as_os_str()]);
    let folders: Vec<&OsStr> = folders.collect();
    env.insert(MODULES.into(), folders.join(OsStr::new(":")));
    Ok(folder)
}
