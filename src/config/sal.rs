//! `[sal]`: the permissions of the engine `sal`.

use std::path::PathBuf;

use super::config_error::{Fault, KeyPath};
use super::redis_url::RedisUrl;
use super::units;
use crate::config::toml_table::toml_table;

toml_table! {
    /// `[sal]`: the permissions of the functions of SAL.
    ///
    /// The defaults allow everything that the daemon's user may do, as SAL is for scripts that manage
    /// machines.
    pub struct SalConfig {
        /// The folders where files may be read.
        pub read: Vec<PathBuf> = vec![PathBuf::from("/")],
        /// The folders where files may be written and deleted.
        pub write: Vec<PathBuf> = vec![PathBuf::from("/")],
        /// Allows to start programs and to end processes.
        pub run: bool = true,
        /// Allows connections to other machines.
        pub network: bool = true,
        /// The folders whose scripts may be run by other scripts.
        pub exec: Vec<PathBuf> = Vec::new(),
        /// Allows to run scripts from a url.
        pub exec_urls: bool = false,
        /// The Redis that scripts may use; empty for none.
        pub redis_url: RedisUrl = String::new().into(),
        /// The largest download, in bytes.
        #[serde(with = "units::size")]
        pub download_size_max: u64 = 1 << 30,
    }
}

impl SalConfig {
    /// Returns true if neither reading nor writing is allowed everywhere.
    pub(super) fn is_sandboxed(&self) -> bool {
        let is_everything = |folder: &PathBuf| folder.components().count() == 1;
        !self.read.iter().chain(&self.write).any(is_everything)
    }

    /// Checks the url.
    pub(super) fn check(&self) -> Result<(), Fault> {
        if !self.redis_url.expose().is_empty() {
            let key = KeyPath::of(&["sal", "redis_url"]);
            if self.redis_url.is_cluster() {
                let message = "cannot be a redis+cluster url: commands of scripts go to one server";
                return Err(Fault::new(key, message));
            }
            self.redis_url.check().map_err(|reason| Fault::new(key, reason))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn folders_are_absolute_and_plain() {
        for (text, place) in [
            ("[sal]\nread = [\"/srv\", \"data\"]", "2:17: sal.read[1]"),
            ("[sal]\nwrite = [\"/a/../b\"]", "2:10: sal.write[0]"),
        ] {
            let error = Config::from_toml("hero.toml".as_ref(), text).expect_err(text);
            let expected = format!("hero.toml:{place} must be an absolute path without ..");
            assert_eq!(error.to_string(), expected);
        }
    }
}
