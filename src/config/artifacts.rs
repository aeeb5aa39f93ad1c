//! `[artifacts]`: the folder for the contents of files of jobs that are too large for Redis.

use std::path::PathBuf;
use std::time::Duration;

use super::units;
use crate::config::toml_table::toml_table;
use crate::proto::keys::Namespace;

toml_table! {
    /// `[artifacts]`: a folder that keeps contents by their SHA-256.
    pub struct ArtifactsConfig {
        /// The folder, which all machines of the namespace share; all files are in Redis without one.
        #[serde(with = "super::connection::empty_is_none")]
        pub dir: Option<PathBuf> = None,
        /// The largest file, in bytes.
        #[serde(with = "units::size")]
        pub max_size: u64 = 256 << 20,
        /// The time that files stay after the end of their job; zero for as long as their job.
        #[serde(with = "units::duration")]
        pub retention: Duration = Duration::ZERO,
    }
}

/// The folder of one namespace, and the bounds of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactFolder {
    /// `artifacts.dir`, for messages.
    pub dir: PathBuf,
    /// The folder inside it that belongs to the namespace.
    pub own: PathBuf,
    /// The largest file, in bytes.
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
