//! A file of a job, or its output, as an answer of HTTP: in blocks, whole or a range of it, a few at a time for each caller.

use std::io;
use std::ops::Range;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use tokio::sync::OwnedSemaphorePermit;
use tracing::warn;

use super::caller_work::{BoundedWork, PATIENCE};
use super::method::CallContext;
use super::methods::{found_file, found_output};
use super::rpc_error::Result;
use super::table::MethodTable;
use crate::artifacts::{ArtifactError, ContentReader};
use crate::client::{Client, ClientError};
use crate::proto::job::{FileBody, JobOutput};

/// The part of a file that is in memory.
const BLOCK_BYTES: usize = 256 << 10;

impl MethodTable {
    /// Answers with a file of a job as the method `job.file` finds it, or the range of it that the header `Range` names.
    pub async fn file(
        &self,
        context: CallContext,
        (id, name): (&str, &str),
        headers: &HeaderMap,
    ) -> Result<Response> {
        self.permitted(&context, "job.file")?;
        let place = self.work.begin(&context.caller.name, BoundedWork::File, PATIENCE).await?;
        let found = found_file(&context, id, name).await?;
        let about = format!("`{name}` of job {id}");
        sent(&context.client, (found, place), about, headers).await
    }

    /// Answers with the output of a job as the method `job.output` finds it, as text or bytes, or a range of it.
    pub async fn output(
        &self,
        context: CallContext,
        id: &str,
        headers: &HeaderMap,
    ) -> Result<Response> {
        self.permitted(&context, "job.output")?;
        let place = self.work.begin(&context.caller.name, BoundedWork::File, PATIENCE).await?;
        let (kind, bytes) = match found_output(&context, id).await? {
            JobOutput::Text(text) => ("text/plain; charset=utf-8", text.into_bytes()),
            JobOutput::Bytes(bytes) => ("application/octet-stream", bytes),
        };
        let (found, about) = (FileBody::Bytes(bytes), format!("the output of job {id}"));
        let mut response = sent(&context.client, (found, place), about, headers).await?;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        Ok(response)
    }
}

/// Answers with a content, or the range of it that the header `Range` names.
async fn sent(
    client: &Client,
    (found, place): (FileBody, OwnedSemaphorePermit),
    about: String,
    headers: &HeaderMap,
) -> Result<Response> {
    let size = found.size();
    let asked = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let (status, range) = match asked.and_then(|asked| asked_range(asked, size)) {
        None => (StatusCode::OK, 0..size),
        Some(Some(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(None) => {
            let headers = [(header::CONTENT_RANGE, format!("bytes */{size}"))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, headers).into_response());
        }
    };
    let length = [(header::CONTENT_LENGTH, (range.end - range.start).to_string())];
    let part = format!("bytes {}-{}/{size}", range.start, range.end.saturating_sub(1));
    // The first block tells whether the file is there.
    let body = match next_block(client.files().reader(found, range)?, place).await? {
        None => Body::empty(),
        Some((first, rest)) => {
            Body::from_stream(stream::iter([Ok(first)]).chain(blocks(about, rest)))
        }
    };
    let own = [(header::ACCEPT_RANGES, "bytes")];
    Ok(if status == StatusCode::PARTIAL_CONTENT {
        (status, own, length, [(header::CONTENT_RANGE, part)], body).into_response()
    } else {
        (status, own, length, body).into_response()
    })
}

type Sending = (ContentReader, OwnedSemaphorePermit);

/// Reads a block on a thread for what may be slow.
async fn next_block(
    mut reader: ContentReader,
    place: OwnedSemaphorePermit,
) -> Result<Option<(Bytes, Sending)>, ClientError> {
    let read = move || (reader.next_block(BLOCK_BYTES), reader);
    let done = tokio::task::spawn_blocking(read).await;
    let (block, reader) =
        done.map_err(|error| ClientError::File(ArtifactError::Source(io::Error::other(error))))?;
    Ok(block.map_err(ClientError::File)?.map(|block| (Bytes::from(block), (reader, place))))
}

/// The blocks after the first. An error ends the connection, so that nobody takes a part for the whole.
fn blocks(
    about: String,
    rest: Sending,
) -> impl futures_util::Stream<Item = Result<Bytes, ClientError>> {
    stream::unfold(Some((about, rest)), |state| async move {
        let (about, (reader, place)) = state?;
        match next_block(reader, place).await {
            Ok(next) => next.map(|(block, rest)| (Ok(block), Some((about, rest)))),
            Err(error) => {
                warn!("cannot send {about} to its end: {error}");
                Some((Err(error), None))
            }
        }
    })
}

/// Reads the header `Range`: `None` if it names no single range of bytes and the whole is the answer, `Some(None)` if
/// the file has no byte of it.
#[expect(
    clippy::option_option,
    reason = "no range, and a range without a byte, have other answers"
)]
fn asked_range(text: &str, size: u64) -> Option<Option<Range<u64>>> {
    let (first, last) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let (first, last) = (first.trim(), last.trim());
    let range = match (number(first), number(last)) {
        (Some(first), None) if last.is_empty() => first..size,
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(size),
        (None, Some(count)) if first.is_empty() => size.saturating_sub(count)..size,
        _ => return None,
    };
    Some((range.start < range.end).then_some(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_is_one_of_bytes_and_any_other_is_ignored() {
        for (text, expected) in [
            ("bytes=0-0", Some(Some(0..1))),
            ("bytes=2-5", Some(Some(2..6))),
            ("bytes=2-", Some(Some(2..10))),
            ("bytes=-3", Some(Some(7..10))),
            ("bytes=-30", Some(Some(0..10))),
            ("bytes=8-99999999999999999999999", Some(Some(8..10))),
            ("bytes=10-", Some(None)),
            ("bytes=-0", Some(None)),
            ("bytes=5-2", None),
            ("bytes=0-1,3-4", None),
            ("bytes=-", None),
            ("bytes=+1-2", None),
            ("lines=1-2", None),
        ] {
            assert_eq!(asked_range(text, 10), expected, "{text}");
        }
        assert_eq!(asked_range("bytes=0-", 0), Some(None), "an empty file has no byte");
    }
}
