//! Files of a folder.

use std::collections::BTreeSet;
use std::fs;
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

/// Replaces a file in one step, as an administrator's tools do.
pub(crate) fn replace_file(file: &Path, text: &str) {
    let new = file.with_extension("new");
    fs::write(&new, text).expect("written");
    fs::rename(new, file).expect("replaced");
}

/// Returns a script in bash that ends once a file exists.
pub(crate) fn until_exists(file: &Path) -> String {
    format!("while [ ! -e '{}' ]; do sleep 0.02; done", file.display())
}
