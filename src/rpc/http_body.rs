//! Bodies of requests: JSON, within a size and a time. And bodies of answers in blocks, so that what compresses or sends a large one
//! lets others have their turn between two.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use super::caller_work::{BoundedWork, PATIENCE};
use super::json::Sender;
use super::rpc_error::{Result, RpcError, code};
use super::service::ApiService;

/// The largest body that counts as none of the large ones of its caller, and the largest JSON of a caller who is not known yet: it
/// can only log in.
const SMALL_BYTES: usize = 256 << 10;
/// The name of callers who are not known, in a sentence.
const STRANGER: &str = "a caller without a token";
/// The largest part of a body that is compressed in one piece.
const BLOCK_BYTES: usize = 64 << 10;

/// Reads the body of a request, which must be JSON.
pub(super) async fn read_json(service: &ApiService, request: Request) -> Result<Bytes> {
    if !is_json(request.headers()) {
        let message = "the content type must be application/json: send the header `Content-Type: application/json`";
        return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let known = request.extensions().get::<Sender>().map_or(Ok(()), |of| of.known().map(drop));
    let size_max = if known.is_ok() { usize::MAX } else { SMALL_BYTES };
    match body(service, request, size_max).await {
        Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            Err(known.err().unwrap_or(error))
        }
        read => read,
    }
}

pub(super) async fn read_body(service: &ApiService, request: Request) -> Result<Bytes> {
    body(service, request, usize::MAX).await
}

fn refused(status: StatusCode, message: impl Into<String>) -> RpcError {
    RpcError::new(code::INVALID_REQUEST, message).over_http(status)
}

/// Returns true if a page of another origin cannot send this without being asked for.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = text.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    ["application/json", "application/json-rpc"]
        .iter()
        .any(|known| essence.eq_ignore_ascii_case(known))
}

/// Reads a body of at most so many bytes, and of at most `api.body_size_max`.
async fn body(service: &ApiService, request: Request, size_max: usize) -> Result<Bytes> {
    let settings = service.settings();
    let size_max = usize::try_from(settings.body_size_max).unwrap_or(usize::MAX).min(size_max);
    let within = settings.client_timeout;
    let told = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let told = told.and_then(|text| text.parse::<usize>().ok());
    let too_large = || {
        let message =
            format!("the body is larger than the limit of {size_max} bytes (api.body_size_max)");
        refused(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if told.is_some_and(|told| told > size_max) {
        return Err(too_large());
    }
    let caller = request.extensions().get::<Sender>().and_then(|of| of.caller.clone());
    let caller = caller.as_ref().map_or(STRANGER, |of| &of.name);
    let is_small = told.unwrap_or(size_max) <= SMALL_BYTES;
    let begun = service.table.work.begin(caller, BoundedWork::Body, PATIENCE);
    let _place = if is_small { None } else { Some(begun.await?) };
    let read = axum::body::to_bytes(request.into_body(), size_max);
    match tokio::time::timeout(within, read).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) => {
            use std::error::Error as _;
            let is_size = error.source().is_some_and(|e| e.to_string().contains("length limit"));
            if is_size {
                return Err(too_large());
            }
            Err(refused(StatusCode::BAD_REQUEST, format!("cannot read the body: {error}")))
        }
        Err(_) => {
            let message = format!("the body did not arrive within {within:?} (api.client_timeout)");
            Err(refused(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

/// Lets a response come in blocks.
pub(super) async fn in_blocks(response: Response) -> Response {
    response.map(|inner| Body::new(AnswerBlocks { inner, rest: Bytes::new(), turn: None }))
}

struct AnswerBlocks {
    inner: Body,
    /// The rest of the last frame.
    rest: Bytes,
    /// The turn of the others before the next block.
    turn: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl hyper::body::Body for AnswerBlocks {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if let Some(turn) = &mut this.turn {
            ready!(turn.as_mut().poll(context));
            this.turn = None;
        }
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.inner).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                ended => return Poll::Ready(ended),
            }
        }
        let block = this.rest.split_to(this.rest.len().min(BLOCK_BYTES));
        if !this.rest.is_empty() {
            // Unlike a task that wakes itself, this lets the runtime look for new connections.
            this.turn = Some(Box::pin(tokio::task::yield_now()));
        }
        Poll::Ready(Some(Ok(Frame::data(block))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, rest) = (self.inner.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body_util::BodyExt;
    use hyper::body::Body as _;

    use super::*;

    #[tokio::test]
    async fn large_body_comes_in_blocks_with_its_size_and_others_have_their_turn() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let mut body = in_blocks(Response::new(Body::from(bytes.clone()))).await.into_body();
        assert_eq!(body.size_hint().exact(), Some(200_000));
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&turns);
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let mut read = Vec::new();
        let mut frames = 0;
        while let Some(frame) = body.frame().await {
            let data = frame.expect("read").into_data().expect("data");
            assert!(data.len() <= BLOCK_BYTES);
            (frames, read) = (frames + 1, [read, data.to_vec()].concat());
        }
        assert!(read == bytes);
        assert_eq!(frames, 4);
        other.abort();
        let turns = turns.load(Ordering::Relaxed);
        assert!(turns >= 3, "another task ran {turns} times");
    }
}
