//! `[artifacts]`: the folder for the contents of files of jobs that are too large for Redis.

use std::path::PathBuf;
use std::time::Duration;

use super::connection::empty_is_none;
use super::key_row::{TEN_YEARS, TIB};
use super::units::{duration, size};
use crate::config::toml_table::toml_table;
use crate::proto::keys::Namespace;

toml_table! {
    /// Large files of jobs (`--input`, `--stdin`, `HERO_OUTPUT_DIR`).
    pub struct ArtifactsConfig in "artifacts" {
        /// The folder for files above 64KiB, by their SHA-256; Redis has only the hash and the size, and
        /// `job.files_size_max` bounds what is in Redis. All machines of the namespace share the folder, and no other
        /// namespace or Redis uses it. It belongs to the user hero, with mode 0700; `hero check` looks at it. Outside
        /// of `/var/lib/hero` the units need a drop-in with `ReadWritePaths=`. Supervisors delete files that are older
        /// than a day and that no job names. Empty: files are kept in Redis.
        ///
        ///     artifacts.dir = "/var/lib/hero/artifacts"
        dir: Option<PathBuf> as "empty_is_none" = None => FolderOrNone;
        /// The largest file.
        max_size: u64 as "size" = 256 << 20 => Size(1, TIB);
        /// The time that files stay after the end of their job, if that is shorter than the job stays; 0 for as long as
        /// the job.
        retention: Duration as "duration" = Duration::ZERO => Duration(0, TEN_YEARS);
    }
}

/// The folder of one namespace, and the bounds of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactFolder {
    /// `artifacts.dir`, for messages.
    pub dir: PathBuf,
    /// The folder inside it that belongs to the namespace.
    pub own: PathBuf,
    pub max_size: u64,
    /// The time that files stay after the end of their job; zero for as long as their job.
    pub retention: Duration,
}

impl ArtifactsConfig {
    /// Returns the folder of a namespace; `None` if files are kept in Redis alone.
    pub(super) fn folder(&self, namespace: &Namespace) -> Option<ArtifactFolder> {
        let dir = self.dir.clone()?;
        // A namespace may be `..`, this name is none.
        let own = dir.join(format!("{namespace}.files"));
        let (max_size, retention) = (self.max_size, self.retention);
        Some(ArtifactFolder { dir, own, max_size, retention })
    }
}
