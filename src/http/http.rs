//! Requests to a URL over HTTP, with TLS for `https`. Redirects are not followed: they could lead to an address inside.

mod tls;

pub use hyper::{Method, StatusCode};
pub use tls::client_tls;

use hero_config as config;
use hero_proto as proto;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls::CertificateError;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::config::format_duration;
use crate::proto::text::{shown, text_of};

/// The bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// The longest time that the rest of an accepted answer takes; then its connection is closed.
const REST_MAX: Duration = Duration::from_secs(1);
/// The headers that a post has unless its caller gives others.
const DEFAULTS: [(&str, &str); 2] = [
    ("content-type", "application/json"),
    ("user-agent", concat!("hero/", env!("CARGO_PKG_VERSION"))),
];

/// The names and values of headers.
type Headers = [(String, String)];

/// Posts to one URL. It keeps its connection for the next post, as long as the server does.
pub struct HttpPoster {
    uri: Uri,
    host: String,
    port: u16,
    /// The socket of a server on this machine, in place of host and port.
    socket: Option<PathBuf>,
    within: Duration,
    /// The file of authorities, in place of the machine's.
    authorities: Option<PathBuf>,
    tls: Option<TlsConnector>,
    kept: Option<OpenConnection>,
}

/// An open connection. It is closed when this is dropped.
struct OpenConnection {
    sender: SendRequest<Full<Bytes>>,
    _task: JoinSet<()>,
}

/// A post that was not accepted.
#[derive(Debug)]
pub struct PostError {
    reason: String,
    /// True if nobody whom this machine trusts has signed the certificate of the server.
    pub is_of_unknown_authority: bool,
    /// True if the server refused this request for good: another attempt would end alike.
    pub is_permanent: bool,
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl From<String> for PostError {
    fn from(reason: String) -> Self {
        Self { reason, is_of_unknown_authority: false, is_permanent: false }
    }
}

impl HttpPoster {
    /// Returns what posts to a URL. Each post may take `within`.
    ///
    /// # Errors
    /// The URL is invalid, or has no host.
    pub fn new(url: &str, within: Duration) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|_| "the url is invalid".to_owned())?;
        let host = uri.host().ok_or("the url has no host")?.trim_matches(['[', ']']).to_owned();
        let is_tls = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let (socket, authorities, tls, kept) = (None, None, None, None);
        Ok(Self { uri, host, port, socket, within, authorities, tls, kept })
    }

    /// Connects to a Unix socket of this machine in place of the host.
    #[must_use]
    pub fn through(self, socket: Option<PathBuf>) -> Self {
        Self { socket, ..self }
    }

    /// Trusts the authorities of a file in place of the machine's.
    #[must_use]
    pub fn trusting(self, authorities: Option<PathBuf>) -> Self {
        Self { authorities, ..self }
    }

    /// Posts a body. Returns the answer if its status is 2xx; without what could not be read of it.
    ///
    /// # Errors
    /// [`PostError`]: no connection, no answer in time, or another status.
    pub async fn post(&mut self, headers: &Headers, body: Bytes) -> Result<Bytes, PostError> {
        let within = self.within;
        let sent = timeout(within, self.send(headers, body)).await;
        sent.unwrap_or_else(|_| Err(format!("no answer within {}", format_duration(within)).into()))
    }

    /// Sends one request to a path of the server, on a connection of its own, and returns the answer with any status once
    /// its head is there. Only the connection has to be made within the time of a post: an answer may be waited for.
    ///
    /// # Errors
    /// [`PostError`]: no connection.
    pub async fn exchange(
        &mut self,
        verb: Method,
        path: &str,
        headers: &Headers,
        body: Bytes,
    ) -> Result<HttpAnswer, PostError> {
        let mut request = self.request(headers, body)?;
        *request.method_mut() = verb;
        *request.uri_mut() = path.parse().map_err(|_| format!("the path {path} is invalid"))?;
        let within = self.within;
        let connected = timeout(within, self.connect()).await;
        let late = |_| format!("no connection within {}", format_duration(within));
        let mut connection = connected.map_err(late)??;
        let answer = connection.sender.send_request(request).await.map_err(|error| lost(&error))?;
        Ok(HttpAnswer {
            status: answer.status(),
            body: answer.into_body(),
            _connection: connection,
        })
    }

    async fn send(&mut self, headers: &Headers, body: Bytes) -> Result<Bytes, PostError> {
        let request = self.request(headers, body)?;
        if let Some(mut kept) = self.kept.take()
            && let Ok(answer) = kept.sender.send_request(request.clone()).await
        {
            return self.read(answer, kept).await;
        }
        // The server may have closed the connection since the post before.
        let mut new = self.connect().await?;
        let answer = new.sender.send_request(request).await.map_err(|error| lost(&error))?;
        self.read(answer, new).await
    }

    fn request(&self, headers: &Headers, body: Bytes) -> Result<Request<Full<Bytes>>, String> {
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let host = self.uri.authority().map_or("", |authority| authority.as_str());
        let host = host.rsplit('@').next().unwrap_or_default();
        let mut request = Request::post(path).header("host", host);
        for (name, value) in DEFAULTS {
            if !headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)) {
                request = request.header(name, value);
            }
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.body(Full::new(body)).map_err(|error| error.to_string())
    }

    async fn connect(&mut self) -> Result<OpenConnection, PostError> {
        if let Some(socket) = &self.socket {
            let unreachable =
                |error| format!("cannot connect to the socket {}: {error}", socket.display());
            return open(UnixStream::connect(socket).await.map_err(unreachable)?).await;
        }
        let (host, port) = (&self.host, self.port);
        let unreachable =
            |error: std::io::Error| format!("cannot connect to {host} port {port}: {error}");
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(unreachable)?;
        if self.uri.scheme_str() != Some("https") {
            return open(stream).await;
        }
        let connector = match self.tls.take() {
            Some(connector) => connector,
            None => connector(self.authorities.clone()).await?,
        };
        let name =
            ServerName::try_from(host.clone()).map_err(|_| format!("{host} is no host name"))?;
        let stream = connector.connect(name, stream).await;
        let refused = |error: std::io::Error| PostError {
            is_of_unknown_authority: is_of_unknown_authority(&error),
            is_permanent: false,
            reason: format!("TLS with {host} failed: {error}"),
        };
        let open = open(stream.map_err(refused)?).await;
        // After a failure the authorities are read again: they may have changed.
        self.tls = Some(connector).filter(|_| open.is_ok());
        open
    }

    /// Reads the status and the start of the answer.
    async fn read(
        &mut self,
        answer: Response<Incoming>,
        connection: OpenConnection,
    ) -> Result<Bytes, PostError> {
        let status = answer.status();
        let body = answer.into_body();
        let is_short = body.size_hint().upper().is_some_and(|upper| upper <= ANSWER_BYTES_MAX);
        let body =
            Limited::new(body, usize::try_from(ANSWER_BYTES_MAX).unwrap_or(usize::MAX)).collect();
        if status.is_success() {
            let rest = if is_short { timeout(REST_MAX, body).await.ok() } else { None };
            let Some(Ok(rest)) = rest else { return Ok(Bytes::new()) };
            self.kept = Some(connection);
            return Ok(rest.to_bytes());
        }
        let text = body.await.map(|body| shown(&text_of(&body.to_bytes()))).unwrap_or_default();
        let hint = if status.is_redirection() { "; redirects are not followed" } else { "" };
        let reason = format!("the answer is {status}{hint} {text}").trim_end().to_owned();
        Err(PostError { is_permanent: is_permanent(status), ..reason.into() })
    }
}

/// An answer whose body is still to read.
pub struct HttpAnswer {
    pub status: StatusCode,
    body: Incoming,
    _connection: OpenConnection,
}

impl HttpAnswer {
    /// Returns the next part of the body; `None` at its end.
    ///
    /// # Errors
    /// [`PostError`]: the connection failed.
    pub async fn part(&mut self) -> Result<Option<Bytes>, PostError> {
        loop {
            match self.body.frame().await.transpose().map_err(|error| lost(&error))? {
                None => return Ok(None),
                Some(frame) => match frame.into_data() {
                    Ok(part) => return Ok(Some(part)),
                    Err(_trailers) => {}
                },
            }
        }
    }

    /// Returns the whole body.
    ///
    /// # Errors
    /// [`PostError`]: the connection failed, or the body has more bytes than `most`.
    pub async fn whole(mut self, most: usize) -> Result<Vec<u8>, PostError> {
        let mut all = Vec::new();
        while let Some(part) = self.part().await? {
            if all.len() + part.len() > most {
                return Err(format!("the answer has more than {most} bytes").into());
            }
            all.extend_from_slice(&part);
        }
        Ok(all)
    }
}

/// Returns whether a status refuses the request itself, not its sender, its time or its rate.
fn is_permanent(status: StatusCode) -> bool {
    const PASSES: [u16; 8] = [401, 403, 407, 408, 409, 423, 425, 429];
    status.is_client_error() && !PASSES.contains(&status.as_u16())
}

/// Opens a connection over a stream.
async fn open(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<OpenConnection, PostError> {
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(|error| lost(&error))?;
    let mut task = JoinSet::new();
    task.spawn(async move { drop(connection.await) });
    Ok(OpenConnection { sender, _task: task })
}

fn lost(error: &hyper::Error) -> PostError {
    format!("the connection failed: {error}").into()
}

fn is_of_unknown_authority(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)))
}

/// Returns the TLS of posts: by the authorities of a file, else by the machine's.
async fn connector(authorities: Option<PathBuf>) -> Result<TlsConnector, String> {
    let read = tokio::task::spawn_blocking(move || {
        let mut config = if let Some(file) = authorities {
            let wrong = |reason: String| format!("cannot read {}: {reason}", file.display());
            let pem = std::fs::read(&file).map_err(|error| wrong(error.to_string()))?;
            client_tls(Some(&pem)).map_err(wrong)?
        } else {
            client_tls(None)?
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    });
    read.await.map_err(|error| error.to_string())?
}
