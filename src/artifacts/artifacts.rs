//! Contents of files of jobs that are too large for Redis: each is a file of a folder, named by its SHA-256.
//! A content is written before any job names it, and is deleted when no job names it any more.

use hero_config as config;
use hero_error as error;
use hero_proto as proto;

mod aged;
mod folder;
mod reader;

use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::PathBuf;

pub use aged::{AgedContents, SetAside};
pub use folder::ContentFolder;
pub use reader::ContentReader;

use crate::config::{JobConfig, format_size};
use crate::error::{Exit, reason};
use crate::proto::job::{Artifact, ContentHash, FileBody};

/// A content of up to this size is kept in Redis, also if there is a folder.
const REDIS_BYTES_MAX: u64 = 64 << 10;
/// The part of a content that is in memory while it is copied.
const BLOCK_BYTES: usize = 128 << 10;

/// The key of the limit of files in Redis.
const OF_REDIS: &str = "job.files_size_max";

/// The reason why a content cannot be kept or had.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    #[error("larger than the limit of {} ({key}){}", format_size(*.bytes_max), remedy(.key))]
    TooLarge {
        bytes_max: u64,
        /// The key of the configuration that sets it.
        key: &'static str,
    },
    #[error("cannot read it: {}", reason(.0))]
    Source(io::Error),
    #[error("cannot write it: {}", reason(.0))]
    Target(io::Error),
    #[error("cannot use the folder {} (artifacts.dir): {}; see hero check", .dir.display(), reason(.error))]
    Folder { dir: PathBuf, error: io::Error },
    #[error("no content with the SHA-256 {hash} in the folder {} (artifacts.dir)", .dir.display())]
    Missing { dir: PathBuf, hash: ContentHash },
    #[error("the file {hash} in the folder {} (artifacts.dir) is damaged", .dir.display())]
    Damaged { dir: PathBuf, hash: ContentHash },
    #[error("its content is in a folder, and artifacts.dir is not set on this machine")]
    NoFolder,
}

impl ArtifactError {
    /// Returns the exit code of a command that fails so.
    pub fn exit(&self) -> Exit {
        match self {
            Self::TooLarge { .. } | Self::Source(_) | Self::Damaged { .. } => Exit::Data,
            Self::Target(_) => Exit::Output,
            Self::Folder { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                Exit::NotPermitted
            }
            Self::Folder { .. } => Exit::Unavailable,
            Self::Missing { .. } => Exit::NotFound,
            Self::NoFolder => Exit::Config,
        }
    }
}

/// Returns what to do about the limit of a key.
fn remedy(key: &str) -> &'static str {
    if key == OF_REDIS { "; for larger files set artifacts.dir, see hero.toml(5)" } else { "" }
}

/// The way to the contents of files: memory, and the folder if one is configured.
#[derive(Debug, Clone)]
pub struct Contents {
    folder: Option<ContentFolder>,
    redis_bytes_max: u64,
}

impl Contents {
    pub fn of(job: &JobConfig) -> Self {
        let folder = job.artifacts.clone().map(ContentFolder::new);
        Self { folder, redis_bytes_max: job.files_size_max }
    }

    pub fn has_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// Reads a content: to memory if it is small or there is no folder, else into the folder. At most `room`
    /// bytes of memory are used.
    ///
    /// # Errors
    /// [`ArtifactError`]. Nothing is kept then.
    pub fn take(&self, source: &mut dyn Read, room: u64) -> Result<FileBody, ArtifactError> {
        let in_memory = if self.folder.is_some() { room.min(REDIS_BYTES_MAX) } else { room };
        let mut bytes = Vec::new();
        if read_up_to(source, &mut bytes, in_memory)? {
            return Ok(FileBody::Bytes(bytes));
        }
        let key = OF_REDIS;
        let too_large = ArtifactError::TooLarge { bytes_max: self.redis_bytes_max, key };
        let Some(folder) = &self.folder else { return Err(too_large) };
        match folder.begin() {
            Ok(file) => {
                let mut rest = io::Cursor::new(bytes).chain(source);
                Ok(FileBody::Artifact(folder.write(file, &mut rest)?))
            }
            // Users of the machine may submit, though the folder is the daemon's.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && room > in_memory => {
                if read_up_to(source, &mut bytes, room)? {
                    return Ok(FileBody::Bytes(bytes));
                }
                Err(folder.failed(error))
            }
            Err(error) => Err(folder.failed(error)),
        }
    }

    /// Writes a content.
    ///
    /// # Errors
    /// [`ArtifactError`]. A part may be written.
    pub fn give(&self, content: &FileBody, to: &mut dyn Write) -> Result<(), ArtifactError> {
        match content {
            FileBody::Bytes(bytes) => to.write_all(bytes).map_err(ArtifactError::Target),
            FileBody::Artifact(artifact) => {
                let mut reader = self.reader(content.clone(), 0..artifact.size)?;
                while let Some(block) = reader.next_block(BLOCK_BYTES)? {
                    to.write_all(&block).map_err(ArtifactError::Target)?;
                }
                Ok(())
            }
        }
    }

    /// Returns the reader of these bytes of a content. Of a whole one the last block comes only if all have its SHA-256.
    pub fn reader(
        &self,
        content: FileBody,
        range: Range<u64>,
    ) -> Result<ContentReader, ArtifactError> {
        ContentReader::new(self.folder.as_ref(), content, range)
    }

    /// Returns the bytes of a content.
    ///
    /// # Errors
    /// [`ArtifactError`], also if it has more bytes than this.
    pub fn bytes(&self, content: FileBody, bytes_max: u64) -> Result<Vec<u8>, ArtifactError> {
        match content {
            FileBody::Bytes(bytes) => Ok(bytes),
            FileBody::Artifact(artifact) if artifact.size > bytes_max => {
                Err(ArtifactError::TooLarge { bytes_max, key: "hero job fetch has no such limit" })
            }
            content @ FileBody::Artifact(_) => {
                let mut bytes = Vec::new();
                self.give(&content, &mut bytes)?;
                Ok(bytes)
            }
        }
    }

    /// Notes that a job is about to name a content that exists, so that it is not deleted meanwhile.
    pub fn touch(&self, artifact: &Artifact) -> Result<(), ArtifactError> {
        self.folder.as_ref().ok_or(ArtifactError::NoFolder)?.touch(artifact)
    }
}

/// Appends to `bytes` until it has one more than `most`. Returns true if the source ended before.
fn read_up_to(
    source: &mut dyn Read,
    bytes: &mut Vec<u8>,
    most: u64,
) -> Result<bool, ArtifactError> {
    let room = most.saturating_add(1).saturating_sub(bytes.len() as u64);
    source.take(room).read_to_end(bytes).map_err(ArtifactError::Source)?;
    Ok(bytes.len() as u64 <= most)
}

#[cfg(test)]
mod tests;
