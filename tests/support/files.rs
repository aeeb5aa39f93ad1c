//! Files of a folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Returns the files below a folder, by their paths.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let all: BTreeSet<PathBuf> = entries
        .flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] })
        .collect();
    all.into_iter().collect()
}
