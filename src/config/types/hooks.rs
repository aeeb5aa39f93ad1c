//! The hooks of a script type: scripts that run before and after each attempt of its jobs.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// The hooks of a script type. An empty path stands for none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HooksConfig {
    /// The file of the script that runs before each attempt.
    pub before: PathBuf,
    /// The file of the script that runs after each attempt.
    pub after: PathBuf,
    /// The longest time that one of them may take.
    pub timeout: Duration,
}

impl Default for HooksConfig {
    fn default() -> Self {
        let (before, after) = (PathBuf::new(), PathBuf::new());
        Self { before, after, timeout: Duration::from_secs(30) }
    }
}

impl HooksConfig {
    /// Returns the files that are configured.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let files = [&self.before, &self.after].into_iter().map(PathBuf::as_path);
        files.filter(|file| !file.as_os_str().is_empty())
    }
}
