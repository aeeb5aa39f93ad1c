//! The posted form of a new job. Its files are streamed to where files of jobs are kept.

use std::io::{self, Read};

use axum::extract::multipart::{Field, Multipart, MultipartError};
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use tokio::sync::mpsc;

use super::super::prelude::*;
use super::super::site::Site;
use crate::artifacts::{ArtifactError, Contents};
use crate::config::JobConfig;
use crate::proto::job::{FileBody, FileName, JobFiles};
use crate::rpc::Scope;

/// The fields of the form that hold files.
pub(super) const INPUTS: &str = "inputs";
pub(super) const STDIN_FILE: &str = "stdin";
/// The pieces of a file that wait for the disk.
const PIECES_MAX: usize = 4;

/// Returns the limit on the bytes of a form's texts: the script, with up to three letters a byte, and the rest.
pub(super) fn text_bytes_max(job: &JobConfig) -> u64 {
    job.script_size_max.saturating_mul(3).saturating_add(1024 * 1024)
}

pub(in crate::web) struct SubmitForm {
    pub(super) fields: Fields,
    pub(super) files: JobFiles,
    /// The reason why a file cannot be taken; the others of the form were read.
    pub(super) refused: Option<String>,
}

impl FromRequest<Site> for SubmitForm {
    type Rejection = PageError;

    async fn from_request(request: Request, site: &Site) -> PageResult<Self> {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("multipart/form-data")) {
            let fields = Fields::from_request(request, site).await?;
            return Ok(Self { fields, files: JobFiles::default(), refused: None });
        }
        let visit = Visit::of(request.extensions())?;
        let parts = Multipart::from_request(request, site)
            .await
            .map_err(|error| PageError::wrong(error.body_text()))?;
        FormReader::new(&visit).read(parts).await
    }
}

struct FormReader<'a> {
    visit: &'a Visit,
    contents: Contents,
    /// The bytes of texts and of files in memory that may still come.
    text_room: u64,
    file_room: u64,
    fields: Vec<(String, String)>,
    files: JobFiles,
    refused: Option<String>,
}

impl<'a> FormReader<'a> {
    fn new(visit: &'a Visit) -> Self {
        let job = &visit.site.config().job;
        Self {
            visit,
            contents: Contents::of(job),
            text_room: text_bytes_max(job),
            file_room: job.files_size_max,
            fields: Vec::new(),
            files: JobFiles::default(),
            refused: None,
        }
    }

    async fn read(mut self, mut parts: Multipart) -> PageResult<SubmitForm> {
        while let Some(part) = parts.next_field().await.map_err(unreadable)? {
            let name = part.name().unwrap_or_default().to_owned();
            if [INPUTS, STDIN_FILE].contains(&name.as_str()) {
                // Nobody else writes to the disk. The rest is read, as a browser shows no answer before its end.
                if self.visit.may(Scope::Submit) && self.check_forgery().is_ok() {
                    self.file(&name, part).await?;
                } else {
                    skip(part).await?;
                }
            } else {
                let text = self.text(part).await?;
                self.fields.push((name, text));
            }
        }
        self.check_forgery()?;
        self.visit.needs(Scope::Submit, "submit jobs")?;
        let Self { fields, files, refused, .. } = self;
        Ok(SubmitForm { fields: Fields::of(fields), files, refused })
    }

    /// Refuses a form without its token: it stands before all files.
    fn check_forgery(&self) -> PageResult<()> {
        let token = self.fields.iter().find(|(name, _)| name == "csrf");
        if self.visit.is_forged(token.map_or("", |(_, token)| token)) {
            Err(PageError::forged())
        } else {
            Ok(())
        }
    }

    async fn text(&mut self, mut part: Field<'_>) -> PageResult<String> {
        let mut bytes = Vec::new();
        while let Some(piece) = part.chunk().await.map_err(unreadable)? {
            let left = self.text_room.checked_sub(piece.len() as u64);
            self.text_room =
                left.ok_or_else(|| PageError::wrong("The texts of the form are too long."))?;
            bytes.extend_from_slice(&piece);
        }
        String::from_utf8(bytes).map_err(|_| PageError::wrong("A text of the form is not UTF-8."))
    }

    /// Takes a file, or notes why it cannot be taken. A field without a file has no name. A refused file, and all files
    /// after it, are not written to the disk.
    async fn file(&mut self, field: &str, part: Field<'_>) -> PageResult<()> {
        let given = part.file_name().unwrap_or_default().to_owned();
        let name = given.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
        if name.is_empty() || self.refused.is_some() {
            return skip(part).await;
        }
        let place = match self.place_of(field, &name) {
            Ok(place) => place,
            Err(why) => {
                self.refused = Some(why);
                return skip(part).await;
            }
        };
        let body = match self.taken(part).await? {
            Ok(body) => body,
            Err(error) => {
                self.refused = Some(format!("the file `{name}` is {error}"));
                return Ok(());
            }
        };
        self.file_room = self.file_room.saturating_sub(body.redis_bytes());
        match place {
            Some(name) => drop(self.files.inputs.insert(name, body)),
            None => self.files.stdin = Some(body),
        }
        Ok(())
    }

    /// Returns the name of an input; `None` for standard input.
    fn place_of(&self, field: &str, name: &str) -> Result<Option<FileName>, String> {
        if field == STDIN_FILE {
            let is_taken = self.files.stdin.is_some();
            return if is_taken { Err("standard input is one file".to_owned()) } else { Ok(None) };
        }
        let name: FileName = name.parse().map_err(|error| format!("{error}"))?;
        if self.files.inputs.contains_key(&name) {
            return Err(format!("two files have the name `{name}`"));
        }
        if self.files.inputs.len() >= JobFiles::COUNT_MAX {
            return Err(format!("there are more than {} files", JobFiles::COUNT_MAX));
        }
        Ok(Some(name))
    }

    /// Streams a part to where contents are kept. All of it is read, also if it is not taken.
    async fn taken(&self, mut part: Field<'_>) -> PageResult<Result<FileBody, ArtifactError>> {
        let (pieces, receiver) = mpsc::channel(PIECES_MAX);
        let (contents, room) = (self.contents.clone(), self.file_room);
        let taking = tokio::task::spawn_blocking(move || {
            contents.take(&mut PieceReader { pieces: receiver, rest: Vec::new(), at: 0 }, room)
        });
        loop {
            match part.chunk().await {
                // Once it is refused nobody listens.
                Ok(Some(piece)) => drop(pieces.send(Ok(piece.to_vec())).await),
                Ok(None) => break,
                Err(error) => {
                    // A part of a file is none.
                    let lost = io::Error::from(io::ErrorKind::UnexpectedEof);
                    drop(pieces.send(Err(lost)).await);
                    return Err(unreadable(error));
                }
            }
        }
        drop(pieces);
        taking.await.map_err(|error| PageError::wrong(error.to_string()))
    }
}

async fn skip(mut part: Field<'_>) -> PageResult<()> {
    while part.chunk().await.map_err(unreadable)?.is_some() {}
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "it maps an error")]
fn unreadable(error: MultipartError) -> PageError {
    PageError::wrong(format!("The form cannot be read: {}.", error.body_text()))
}

struct PieceReader {
    pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
    rest: Vec<u8>,
    /// The bytes of the rest that were read.
    at: usize,
}

impl Read for PieceReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.at == self.rest.len() {
            let Some(piece) = self.pieces.blocking_recv() else { return Ok(0) };
            (self.rest, self.at) = (piece?, 0);
        }
        let length = to.len().min(self.rest.len() - self.at);
        to[..length].copy_from_slice(&self.rest[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}
