//! Finds contents that may have no job any more, and takes them out of the folder in two steps: a content is
//! set aside under another name, its jobs are counted again, and only then it is deleted. So a job that names
//! it meanwhile either has a new file, or the old one is put back.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::folder::ContentFolder;
use crate::proto::job::ContentHash;

/// A content that is this old without a job is deleted. A file that is written, and one whose job is about to
/// be stored, is newer, by the clock of its file system; also if Redis was away for hours meanwhile.
const AGE_SECONDS: i64 = 24 * 60 * 60;
/// Follows the name of a content that is set aside.
const ASIDE: &str = ".aside-";
/// The maximum number of entries of one part of the folder that are looked at in one round.
const ENTRIES_MAX: usize = 100_000;

/// The old contents of one part of the folder.
#[derive(Debug, Default)]
pub struct AgedContents {
    pub contents: Vec<ContentHash>,
    /// The contents that a dead supervisor has set aside.
    pub aside: Vec<SetAside>,
}

/// A content that was taken out of the folder.
#[derive(Debug)]
pub struct SetAside {
    pub hash: ContentHash,
    path: PathBuf,
    home: PathBuf,
}

impl SetAside {
    /// Puts the content back, over a copy that was written meanwhile: they are equal.
    ///
    /// # Errors
    /// Errors of the file system, except that another process was first.
    pub fn put_back(self) -> io::Result<()> {
        found(fs::rename(self.path, self.home)).map(drop)
    }

    /// Deletes the content.
    ///
    /// # Errors
    /// Errors of the file system, except that another process was first.
    pub fn delete(self) -> io::Result<()> {
        found(fs::remove_file(self.path)).map(drop)
    }
}

impl ContentFolder {
    /// Returns the time by the clock of the file system, in seconds, and deletes files that were begun long ago.
    pub fn begin_round(&self) -> io::Result<i64> {
        let now = self.begin()?.as_file().metadata()?.mtime();
        for entry in fs::read_dir(self.path("new"))?.take(ENTRIES_MAX) {
            let entry = entry?;
            if let Some(data) = old(&entry.path(), now)?
                && data.is_file()
            {
                found(fs::remove_file(entry.path()))?;
            }
        }
        Ok(now)
    }

    /// Returns the old files in one of the 256 parts of the folder.
    pub fn aged(&self, part: u8, now: i64) -> io::Result<AgedContents> {
        let mut aged = AgedContents::default();
        let entries = found(fs::read_dir(self.path(&format!("{part:02x}"))))?;
        let Some(entries) = entries else { return Ok(aged) };
        for entry in entries.take(ENTRIES_MAX) {
            let entry = entry?;
            let name = entry.file_name();
            // Other files are not ours to delete.
            let Some(name) = name.to_str() else { continue };
            let (hash, is_aside) =
                name.split_once(ASIDE).map_or((name, false), |(hash, _)| (hash, true));
            let Ok(hash) = hash.parse::<ContentHash>() else { continue };
            let Some(data) = old(&entry.path(), now)? else { continue };
            if is_aside && data.ctime() + AGE_SECONDS < now {
                let home = self.path_of(&hash);
                aged.aside.push(SetAside { hash, path: entry.path(), home });
            } else if !is_aside {
                aged.contents.push(hash);
            }
        }
        Ok(aged)
    }

    /// Takes a content out of the folder. `None` if it is new again, or gone.
    pub fn set_aside(&self, hash: &ContentHash, now: i64) -> io::Result<Option<SetAside>> {
        let home = self.path_of(hash);
        let path = home.with_file_name(format!("{hash}{ASIDE}{:016x}", fastrand::u64(..)));
        if found(fs::rename(&home, &path))?.is_none() {
            return Ok(None);
        }
        let is_old = old(&path, now)?.is_some();
        let aside = SetAside { hash: hash.clone(), path, home };
        if is_old {
            return Ok(Some(aside));
        }
        aside.put_back()?;
        Ok(None)
    }
}

/// Returns the data of a file that was last written or touched long ago.
fn old(path: &Path, now: i64) -> io::Result<Option<fs::Metadata>> {
    let data = found(fs::symlink_metadata(path))?;
    Ok(data.filter(|data| data.mtime() + AGE_SECONDS < now))
}

/// Returns `None` for a file that does not exist.
fn found<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}
