//! The hooks of a script type: scripts that run before and after each attempt of its jobs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::config_error::{Fault, KeyPath};
use crate::config::units;

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
    // The layer owns its values as options.
    #[expect(clippy::ref_option)]
    /// Returns the hooks of a file, with the defaults of the keys that it does not have.
    pub(super) fn of(
        before: &Option<PathBuf>,
        after: &Option<PathBuf>,
        timeout: Option<HookTimeout>,
    ) -> Self {
        let file = |path: &Option<PathBuf>| path.clone().unwrap_or_default();
        let timeout = timeout.map_or(Self::default().timeout, |HookTimeout(timeout)| timeout);
        Self { before: file(before), after: file(after), timeout }
    }

    /// Returns the files that are configured.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let files = [&self.before, &self.after].into_iter().map(PathBuf::as_path);
        files.filter(|file| !file.as_os_str().is_empty())
    }

    pub(in crate::config) fn check(&self, table: &KeyPath) -> Result<(), Fault> {
        for (key, file) in [("before", &self.before), ("after", &self.after)] {
            if !file.as_os_str().is_empty() && !file.is_absolute() {
                return Err(Fault::new(table.then(key), "must be an absolute path"));
            }
        }
        Ok(())
    }
}

/// The time of hooks in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct HookTimeout(#[serde(with = "units::duration")] pub(super) Duration);
