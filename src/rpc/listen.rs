//! The listener: sockets, connections and their bounds.

mod bind;
mod tls;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tracing::{debug, info, warn};

use super::guard::{Connection, log_disconnected};
use super::http::{self, Pages};
use super::peer::Users;
use super::places::{ConnectionPlace, Places};
use super::service::ApiService;
use super::socket::{UpgradedConnection, requested};
use crate::config::Listen;
use crate::proto::report::Shutdown;
use bind::{Bound, bind};
use tls::Tls;

/// The pause before a socket that could not be bound is tried again.
const BIND_AGAIN: Duration = Duration::from_secs(5);
/// The time for requests that run when the listener is shut down.
const GRACE: Duration = Duration::from_secs(2);
const HEADERS_MAX: usize = 100;
/// The largest head of a request, in bytes.
const HEAD_SIZE_MAX: usize = 64 << 10;

/// Serves the API, and the page for all other paths, until `shutdown` requests the end.
///
/// An address that cannot be bound is logged and tried again: a supervisor has its duties also without
/// the API.
pub async fn serve(service: ApiService, pages: Pages, mut shutdown: watch::Receiver<Shutdown>) {
    let settings = service.settings();
    let (places, mut ended) = Places::new(settings.connections_max);
    let server = Arc::new(HttpServer {
        router: http::routes(&service, pages),
        path: settings.path.clone(),
        users: Users::default(),
        places,
        tls: Tls::of(&settings),
        addresses: Addresses { file: settings.address_file.clone(), ..Addresses::default() },
        service,
        shutdown: shutdown.clone(),
    });
    let mut listeners = JoinSet::new();
    for address in settings.listen {
        listeners.spawn(Arc::clone(&server).listen(address));
    }
    requested(&mut shutdown).await;
    listeners.shutdown().await;
    server.addresses.remove_file();
    drop(server);
    if tokio::time::timeout(GRACE, ended.recv()).await.is_err() {
        debug!("connections of the API were closed before their requests ended");
    }
}

/// The parts that all connections share.
struct HttpServer {
    service: ApiService,
    router: Router,
    path: String,
    users: Users,
    places: Arc<Places>,
    tls: Tls,
    addresses: Addresses,
    shutdown: watch::Receiver<Shutdown>,
}

/// The addresses in use, in a file for programs that start the daemon.
#[derive(Default)]
struct Addresses {
    file: Option<PathBuf>,
    bound: parking_lot::Mutex<Vec<String>>,
}

impl Addresses {
    fn add(&self, address: String) {
        let mut bound = self.bound.lock();
        bound.push(address);
        let Some(file) = &self.file else { return };
        // Readers see the old file or the new one, never a part.
        let new = file.with_extension("new");
        let written = std::fs::write(&new, format!("{}\n", bound.join("\n")));
        if let Err(error) = written.and_then(|()| std::fs::rename(&new, file)) {
            warn!("cannot write api.address_file {}: {error}", file.display());
        }
    }

    fn remove_file(&self) {
        if let Some(file) = &self.file {
            let _ = std::fs::remove_file(file);
        }
    }
}

impl HttpServer {
    /// Binds one address and accepts its connections.
    async fn listen(self: Arc<Self>, address: Listen) {
        let mut is_reported = false;
        let bound = loop {
            let group = self.service.settings().group;
            match bind(&address, group).await {
                Ok(bound) => break bound,
                Err(error) if is_reported => debug!("{error}"),
                Err(error) => {
                    warn!(
                        "{error}; trying again every {} s, the duties go on",
                        BIND_AGAIN.as_secs()
                    );
                    is_reported = true;
                }
            }
            tokio::time::sleep(BIND_AGAIN).await;
        };
        let scheme = if self.tls.is_on() { "https" } else { "http" };
        let shown = match &bound {
            Bound::Unix(..) => address.to_string(),
            Bound::Tcp(_, at) => format!("{scheme}://{at}{}", self.path),
        };
        if let Bound::Tcp(_, at) = &bound
            && !at.ip().is_loopback()
            && !self.tls.is_on()
        {
            warn!(
                "the API listens on {at} without TLS: tokens can be read on the way; set \
                 api.tls_cert_file, or listen on an address of this machine behind a proxy"
            );
        }
        info!("the API and the page are at {shown}");
        self.addresses.add(shown);
        match bound {
            Bound::Unix(listener, _socket) => self.accept_unix(listener).await,
            Bound::Tcp(listener, _) => self.accept_tcp(listener).await,
        }
    }

    async fn accept_unix(self: Arc<Self>, listener: UnixListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let Some(place) = self.places.local().await else { return };
                    tokio::spawn(Arc::clone(&self).unix(stream, place));
                }
                Err(error) => failed_to_accept(&error).await,
            }
        }
    }

    async fn accept_tcp(self: Arc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    let peer: Arc<str> = from.ip().to_canonical().to_string().into();
                    let place = self.places.unknown(&peer);
                    tokio::spawn(Arc::clone(&self).tcp(stream, (from, peer), place));
                }
                Err(error) => failed_to_accept(&error).await,
            }
        }
    }

    async fn unix(self: Arc<Self>, stream: UnixStream, place: Arc<ConnectionPlace>) {
        let settings = self.service.settings();
        let (name, caller) = self.users.caller_of(&stream, &settings).await;
        let connection = Connection { address: None, peer: name.into(), caller, is_secure: false };
        self.http(stream, connection, place, settings.client_timeout).await;
    }

    async fn tcp(
        self: Arc<Self>,
        stream: TcpStream,
        (from, peer): (SocketAddr, Arc<str>),
        place: Arc<ConnectionPlace>,
    ) {
        let within = self.service.settings().client_timeout;
        let _ = stream.set_nodelay(true);
        let address = from.ip().to_canonical();
        let is_secure = self.tls.is_on();
        let connection = Connection { address: Some(address), peer, caller: None, is_secure };
        if !is_secure {
            self.http(stream, connection, place, within).await;
        } else if let Some(acceptor) = self.tls.acceptor(&self.service.settings()) {
            let accepted = tokio::select! {
                accepted = tokio::time::timeout(within, acceptor.accept(stream)) => accepted,
                () = place.evicted() => return log_evicted(&connection.peer),
            };
            match accepted {
                Ok(Ok(stream)) => self.http(stream, connection, place, within).await,
                Ok(Err(error)) => debug!("no TLS with {}: {error}", connection.peer),
                Err(_) => debug!("no TLS with {} in time", connection.peer),
            }
        }
    }

    /// Serves the requests of one connection. It has its place until a WebSocket over it has ended too.
    async fn http<S>(
        &self,
        stream: S,
        connection: Connection,
        place: Arc<ConnectionPlace>,
        within: Duration,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (router, path) = (self.router.clone(), self.path.clone());
        let kept =
            UpgradedConnection { place: Arc::clone(&place), shutdown: self.shutdown.clone() };
        let peer = Arc::clone(&connection.peer);
        let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
            let router = router.clone();
            let found = below(&path, request.uri());
            let (connection, kept) = (connection.clone(), kept.clone());
            async move {
                let Some(uri) = found else {
                    let mut response = Response::new(Body::from("not found\n"));
                    *response.status_mut() = StatusCode::NOT_FOUND;
                    return Ok::<_, Infallible>(response);
                };
                *request.uri_mut() = uri;
                request.extensions_mut().insert(connection);
                request.extensions_mut().insert(Arc::clone(&kept.place));
                request.extensions_mut().insert(kept);
                hyper::service::Service::call(&TowerToHyperService::new(router), request).await
            }
        });
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(within));
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(within)
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_SIZE_MAX)
            .serve_connection(TokioIo::new(Box::pin(stream)), service)
            .with_upgrades();
        let mut serving = std::pin::pin!(serving);
        let mut shutdown = self.shutdown.clone();
        let ended = tokio::select! {
            ended = &mut serving => ended,
            () = requested(&mut shutdown) => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
            () = place.evicted() => return log_evicted(&peer),
        };
        match ended {
            Err(error) if is_stalled(&error) => {
                log_disconnected(&peer, "it does not read its answer (api.client_timeout)");
            }
            Err(error) => debug!("the connection of {peer} ended: {error}"),
            Ok(()) => {}
        }
    }
}

fn log_evicted(peer: &str) {
    debug!(
        "closed a connection of {peer}, whose caller is not known, for another one (api.connections_max)"
    );
}

/// Returns a uri without the path prefix; `None` if it is not below it.
fn below(path: &str, uri: &Uri) -> Option<Uri> {
    let rest = uri.path_and_query().map_or("/", |all| all.as_str()).strip_prefix(path)?;
    match rest.as_bytes().first() {
        Some(b'/') => rest.parse().ok(),
        Some(b'?') | None => format!("/{rest}").parse().ok(),
        Some(_) => None,
    }
}

/// Returns true if a connection ended because its client does not read.
fn is_stalled(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error);
    let source = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
}

async fn failed_to_accept(error: &std::io::Error) {
    const PAUSE: Duration = Duration::from_millis(200);
    warn!("cannot accept a connection of the API: {error}");
    // For want of open files: others must end first.
    tokio::time::sleep(PAUSE).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_is_taken_off_and_other_paths_are_not_found() {
        let rest = |path: &str, uri: &str| {
            below(path, &uri.parse().expect(uri)).map(|uri| uri.to_string())
        };
        assert_eq!(rest("", "/rpc?x=1").as_deref(), Some("/rpc?x=1"));
        assert_eq!(rest("/hero", "/hero/jobs?x=1").as_deref(), Some("/jobs?x=1"));
        assert_eq!(rest("/hero", "/hero").as_deref(), Some("/"));
        assert_eq!(rest("/hero", "/hero?x=1").as_deref(), Some("/?x=1"));
        assert_eq!(rest("/hero", "/heroes"), None);
        assert_eq!(rest("/hero", "/"), None);
    }
}
