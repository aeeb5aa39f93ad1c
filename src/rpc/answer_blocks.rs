//! Bodies of answers in blocks, so that what compresses or sends a large one lets others have their turn between two.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

/// The largest part of a body that is compressed in one piece.
const BLOCK_BYTES: usize = 64 << 10;

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
