//! The stream of a connection with its frames mended, below the client library and above TLS.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use async_rs::Tokio;
use async_rs::traits::Reactor;
use async_rs::util::RuntimeParts;
use futures_core::Stream;
use futures_io::{AsyncRead, AsyncWrite};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::frame_repair::FrameRepair;

/// The bytes that are read at once.
const PORTION: usize = 16 << 10;
/// Tokio, with streams whose frames are repaired.
pub(super) type RepairingRuntime = RuntimeParts<Tokio, RepairingReactor>;

/// Returns the runtime of a connection.
pub(super) fn runtime() -> async_rs::Runtime<RepairingRuntime> {
    let tokio = Tokio::current();
    async_rs::Runtime::new(RuntimeParts::new(tokio.clone(), RepairingReactor(tokio)))
}

/// The reactor of Tokio, with other streams.
#[derive(Clone, Debug)]
pub(super) struct RepairingReactor(Tokio);

/// A connection over TCP, or TLS over one.
trait Transport: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}

impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Transport for T {}

/// A stream whose frames are repaired.
pub(super) struct RepairedStream {
    inner: Box<dyn Transport>,
    mender: FrameRepair,
    /// Mended bytes, and how many of them were read.
    ready: Vec<u8>,
    read: usize,
}

impl RepairedStream {
    fn new(inner: impl Transport + 'static) -> Self {
        let inner = Box::new(inner);
        Self { inner, mender: FrameRepair::default(), ready: Vec::new(), read: 0 }
    }

    /// Connects to a server, with TLS if there is one.
    pub(super) async fn open(
        host: &str,
        port: u16,
        tls: Option<Arc<ClientConfig>>,
    ) -> io::Result<Self> {
        let host = host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = tls else { return Ok(Self::new(stream)) };
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Self::new(TlsConnector::from(tls).connect(name, stream).await?))
    }
}

impl AsyncRead for RepairedStream {
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
            let mut portion = ReadBuf::new(&mut portion);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut portion))?;
            if portion.filled().is_empty() {
                this.ready = this.mender.rest();
                if this.ready.is_empty() {
                    return Poll::Ready(Ok(0));
                }
            }
            this.mender.take(portion.filled(), &mut this.ready);
        }
        let left = &this.ready[this.read..];
        let number = left.len().min(buffer.len());
        buffer[..number].copy_from_slice(&left[..number]);
        this.read += number;
        Poll::Ready(Ok(number))
    }
}

impl AsyncWrite for RepairedStream {
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
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl Reactor for RepairingReactor {
    type TcpStream = RepairedStream;
    type Sleep = <Tokio as Reactor>::Sleep;

    // No connection registers a socket of its own.
    fn register<H: Read + Write + Send + 'static>(
        &self,
        _: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        Err::<RepairedStream, _>(io::ErrorKind::Unsupported.into())
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
        let connecting = TcpStream::connect(address);
        async move { Ok(RepairedStream::new(connecting.await?)) }
    }
}
