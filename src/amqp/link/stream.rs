//! The stream of a connection with its frames mended, below the client library and above TLS.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use async_rs::Tokio;
use async_rs::traits::Reactor;
use async_rs::util::RuntimeParts;
use futures_core::Stream;
use futures_io::{AsyncRead, AsyncWrite};
use lapin::AsyncTcpStream;

use super::mend::FrameMender;

/// The bytes that are read at once.
const PORTION: usize = 16 << 10;
/// Tokio, with streams whose frames are mended.
pub(super) type MendingRuntime = RuntimeParts<Tokio, MendingReactor>;

/// Returns the runtime of a connection.
pub(super) fn runtime() -> async_rs::Runtime<MendingRuntime> {
    let tokio = Tokio::current();
    async_rs::Runtime::new(RuntimeParts::new(tokio.clone(), MendingReactor(tokio)))
}

/// The reactor of Tokio, with other streams.
#[derive(Clone, Debug)]
pub(super) struct MendingReactor(Tokio);

/// A stream whose frames are mended.
pub(super) struct MendedStream {
    inner: AsyncTcpStream<<Tokio as Reactor>::TcpStream>,
    mender: FrameMender,
    /// Mended bytes, and how many of them were read.
    ready: Vec<u8>,
    read: usize,
}

impl MendedStream {
    pub(super) fn new(inner: AsyncTcpStream<<Tokio as Reactor>::TcpStream>) -> Self {
        Self { inner, mender: FrameMender::default(), ready: Vec::new(), read: 0 }
    }
}

impl AsyncRead for MendedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        while this.read == this.ready.len() {
            this.ready.clear();
            this.read = 0;
            let mut portion = [0; PORTION];
            let number = ready!(Pin::new(&mut this.inner).poll_read(context, &mut portion))?;
            if number == 0 {
                this.ready = this.mender.rest();
                if this.ready.is_empty() {
                    return Poll::Ready(Ok(0));
                }
            }
            this.mender.take(&portion[..number], &mut this.ready);
        }
        let left = &this.ready[this.read..];
        let number = left.len().min(buffer.len());
        buffer[..number].copy_from_slice(&left[..number]);
        this.read += number;
        Poll::Ready(Ok(number))
    }
}

impl AsyncWrite for MendedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, buffers)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(context)
    }
}

impl Reactor for MendingReactor {
    type TcpStream = MendedStream;
    type Sleep = <Tokio as Reactor>::Sleep;

    // No connection registers a socket of its own.
    fn register<H: Read + Write + Send + 'static>(
        &self,
        _: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        Err::<MendedStream, _>(io::ErrorKind::Unsupported.into())
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        self.0.sleep(duration)
    }

    fn interval(&self, duration: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.0.interval(duration)
    }

    fn tcp_connect_addr(
        &self,
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        let connecting = self.0.tcp_connect_addr(address);
        async move { Ok(MendedStream::new(AsyncTcpStream::Plain(connecting.await?))) }
    }
}
