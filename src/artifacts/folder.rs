//! The folder: `NAMESPACE.files/ab/SHA-256`, and `NAMESPACE.files/new/` for files that are being written.

use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::stat::futimens;
use nix::sys::time::TimeSpec;
use nix::unistd::{AccessFlags, access};
use ring::digest::{Context, SHA256};
use tempfile::NamedTempFile;

use super::{ArtifactError, BLOCK_BYTES};
use crate::config::ArtifactFolder;
use crate::error::reason;
use crate::proto::job::{Artifact, ContentHash};
use crate::proto::text::hexadecimal;

/// The contents of one namespace, which all machines that have the folder share.
#[derive(Debug, Clone)]
pub struct ContentFolder {
    place: ArtifactFolder,
}

impl ContentFolder {
    /// Opens nothing yet.
    pub fn new(place: ArtifactFolder) -> Self {
        Self { place }
    }

    /// Returns the time that files stay after the end of their job; zero for as long as their job.
    pub fn retention(&self) -> Duration {
        self.place.retention
    }

    pub fn dir(&self) -> &Path {
        &self.place.dir
    }

    /// Returns why this process cannot keep files here, if it cannot, or others could read them.
    pub fn problem(&self) -> Option<String> {
        let dir = self.dir();
        let what = format!("artifacts.dir {}", dir.display());
        let user = "the user hero, with mode 0700";
        let data = match fs::metadata(dir) {
            Ok(data) => data,
            Err(error) => {
                return Some(format!("{what}: {}; make it a folder of {user}", reason(&error)));
            }
        };
        if !data.is_dir() {
            return Some(format!("{what}: not a folder; make it a folder of {user}"));
        }
        if access(dir, AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK).is_err() {
            return Some(format!("{what}: this user may not write there; run it as hero"));
        }
        (data.mode() & 0o007 != 0)
            .then(|| format!("{what}: open to all users of the machine; chmod 0700"))
    }

    pub(super) fn failed(&self, error: io::Error) -> ArtifactError {
        ArtifactError::Folder { dir: self.place.dir.clone(), error }
    }

    /// Creates the file of a content that is not known yet. It goes if it is dropped.
    pub(super) fn begin(&self) -> io::Result<NamedTempFile> {
        let new = self.path("new");
        // The folder itself too, unless that above it is missing: a file system that is not mounted.
        for folder in [&self.place.dir, &self.place.own, &new] {
            create(folder)?;
        }
        tempfile::Builder::new().prefix("").tempfile_in(new)
    }

    /// Writes the content and names its file after it.
    pub(super) fn write(
        &self,
        mut file: NamedTempFile,
        source: &mut dyn Read,
    ) -> Result<Artifact, ArtifactError> {
        let (hash, size) = self.copied(source, file.as_file_mut())?;
        let path = self.path_of(&hash);
        let folder = path.parent().unwrap_or(&path);
        let finish = || {
            file.as_file().sync_all()?;
            create(folder)?;
            // A file of the same content is replaced: this one is new, so it stays until a job names it.
            file.persist(&path)?;
            File::open(folder)?.sync_all()
        };
        finish().map_err(|error: io::Error| self.failed(error))?;
        Ok(Artifact { hash, size })
    }

    fn copied(
        &self,
        source: &mut dyn Read,
        to: &mut File,
    ) -> Result<(ContentHash, u64), ArtifactError> {
        let bytes_max = self.place.max_size;
        let mut hasher = Hasher::default();
        let mut part = vec![0; BLOCK_BYTES];
        loop {
            let len = read(source, &mut part).map_err(ArtifactError::Source)?;
            if len == 0 {
                let size = hasher.size;
                to.set_len(size).map_err(|error| self.failed(error))?;
                return hasher
                    .finish()
                    .map(|hash| (hash, size))
                    .map_err(|error| self.failed(error));
            }
            hasher.add(&part[..len]);
            if hasher.size > bytes_max {
                return Err(ArtifactError::TooLarge { bytes_max, key: "artifacts.max_size" });
            }
            // What takes no place in the source takes none here.
            let written = if part[..len].iter().all(|byte| *byte == 0) {
                to.seek(SeekFrom::Start(hasher.size)).map(drop)
            } else {
                to.write_all(&part[..len])
            };
            written.map_err(|error| self.failed(error))?;
        }
    }

    /// Makes a file look new.
    pub(super) fn touch(&self, artifact: &Artifact) -> Result<(), ArtifactError> {
        let file = self.open(artifact)?;
        futimens(&file, &TimeSpec::UTIME_NOW, &TimeSpec::UTIME_NOW)
            .map_err(|error| self.failed(error.into()))
    }

    pub(super) fn open(&self, artifact: &Artifact) -> Result<File, ArtifactError> {
        File::open(self.path_of(&artifact.hash)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let (dir, hash) = (self.place.dir.clone(), artifact.hash.clone());
                ArtifactError::Missing { dir, hash }
            }
            _ => self.failed(error),
        })
    }

    pub(super) fn damaged(&self, artifact: &Artifact) -> ArtifactError {
        let (dir, hash) = (self.place.dir.clone(), artifact.hash.clone());
        ArtifactError::Damaged { dir, hash }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.place.own.join(name)
    }

    pub(super) fn path_of(&self, hash: &ContentHash) -> PathBuf {
        let (shard, _) = hash.as_str().split_at(2);
        self.path(shard).join(hash.as_str())
    }
}

/// Creates a folder for this user alone. An existing folder stays as it is.
fn create(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

pub(super) fn read(source: &mut dyn Read, part: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(part) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// The SHA-256 of the added bytes.
pub(super) struct Hasher {
    context: Context,
    size: u64,
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hasher").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Default for Hasher {
    fn default() -> Self {
        Self { context: Context::new(&SHA256), size: 0 }
    }
}

impl Hasher {
    pub(super) fn add(&mut self, part: &[u8]) {
        self.context.update(part);
        self.size += part.len() as u64;
    }

    pub(super) fn finish(self) -> io::Result<ContentHash> {
        // 32 bytes have this form.
        let text = hexadecimal(self.context.finish().as_ref());
        text.parse().map_err(|_| io::Error::other("no SHA-256"))
    }
}
