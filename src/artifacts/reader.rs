//! Reads a content of the folder in blocks, whole or a part of it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use super::ArtifactError;
use super::folder::{ContentFolder, Hasher, read};
use crate::proto::job::{Artifact, FileBody};

#[derive(Debug)]
pub struct ContentReader {
    source: ContentSource,
    range: Range<u64>,
}

#[derive(Debug)]
enum ContentSource {
    Memory(Vec<u8>),
    Folder { folder: ContentFolder, artifact: Artifact, opened: Option<Box<Opened>> },
}

#[derive(Debug)]
struct Opened {
    file: File,
    /// `None` for a part: its bytes alone have no known hash.
    hasher: Option<Hasher>,
}

impl ContentReader {
    /// Opens nothing yet. Of a whole content the last block comes only if all have its SHA-256.
    ///
    /// # Errors
    /// [`ArtifactError::NoFolder`] for a content of a folder without one.
    pub(super) fn new(
        folder: Option<&ContentFolder>,
        content: FileBody,
        range: Range<u64>,
    ) -> Result<Self, ArtifactError> {
        let source = match content {
            FileBody::Bytes(bytes) => ContentSource::Memory(bytes),
            FileBody::Artifact(artifact) => {
                let folder = folder.ok_or(ArtifactError::NoFolder)?.clone();
                ContentSource::Folder { folder, artifact, opened: None }
            }
        };
        Ok(Self { source, range })
    }

    /// Returns the next block of at most this many bytes; `None` at the end.
    ///
    /// # Errors
    /// [`ArtifactError`]; the content cannot be read on then.
    pub fn next_block(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, ArtifactError> {
        let left = self.range.end.saturating_sub(self.range.start);
        if left == 0 {
            return Ok(None);
        }
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(bytes_max);
        let block = match &mut self.source {
            ContentSource::Memory(bytes) => {
                let from = usize::try_from(self.range.start).unwrap_or(usize::MAX);
                bytes.get(from..from.saturating_add(len)).unwrap_or_default().to_vec()
            }
            ContentSource::Folder { folder, artifact, opened } => {
                let opened = match opened {
                    Some(opened) => opened,
                    None => opened.insert(Box::new(Opened::new(folder, artifact, &self.range)?)),
                };
                opened.block(folder, artifact, len, len as u64 == left)?
            }
        };
        self.range.start += block.len() as u64;
        Ok((!block.is_empty()).then_some(block))
    }
}

impl Opened {
    fn new(
        folder: &ContentFolder,
        artifact: &Artifact,
        range: &Range<u64>,
    ) -> Result<Self, ArtifactError> {
        let mut file = folder.open(artifact)?;
        file.seek(SeekFrom::Start(range.start)).map_err(|error| folder.failed(error))?;
        let hasher = (*range == (0..artifact.size)).then(Hasher::default);
        Ok(Self { file, hasher })
    }

    /// Reads a block; the last one of a whole content is returned only if the content is the right one.
    fn block(
        &mut self,
        folder: &ContentFolder,
        artifact: &Artifact,
        len: usize,
        is_last: bool,
    ) -> Result<Vec<u8>, ArtifactError> {
        let failed = |error: io::Error| folder.failed(error);
        let mut block = Vec::with_capacity(len);
        Read::by_ref(&mut self.file).take(len as u64).read_to_end(&mut block).map_err(failed)?;
        if block.len() < len {
            return Err(folder.damaged(artifact));
        }
        let Some(hasher) = &mut self.hasher else { return Ok(block) };
        hasher.add(&block);
        if is_last {
            let is_longer = read(&mut self.file, &mut [0]).map_err(failed)? > 0;
            let hash = std::mem::take(hasher).finish().map_err(failed)?;
            if is_longer || hash != artifact.hash {
                return Err(folder.damaged(artifact));
            }
        }
        Ok(block)
    }
}
