//! The V compiler: its own folder, and how it compiles scripts.

use std::path::{Path, PathBuf};

/// Lets `v -o PROGRAM SCRIPT.vsh` compile the script; without it V runs the script instead.
pub(super) const ONLY_COMPILES: (&str, &str) = ("VNORUN", "1");
pub(super) const RAN_INSTEAD: &str =
    "; a V of before 2024 runs .vsh scripts instead: install a newer V";

/// Returns the folder of V with its library: the folder of its real file; `v symlink` links to it
/// from `PATH`. `None` for any other program.
pub(super) fn folder_of(program: &Path) -> Option<PathBuf> {
    let real = program.canonicalize().ok()?;
    let folder = real.parent()?;
    folder.join("vlib/builtin").is_dir().then(|| folder.to_owned())
}
