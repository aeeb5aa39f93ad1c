//! One connection that is opened when it is needed, and again after it was lost.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use lapin::AsyncTcpStream;
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{Channel, Connection, ConnectionProperties, ErrorKind};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;

use super::error::LinkError;
use super::stream::{self, RepairedStream};
use crate::config::AmqpConfig;
use crate::http::client_tls;

/// The longest wait for a connection, and for an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The time between heartbeats, in seconds.
const HEARTBEAT_S: u16 = 10;

/// The end of a connection or a channel, as RabbitMQ says it.
const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;
const RESOURCE_LOCKED: u16 = 405;
const PRECONDITION_FAILED: u16 = 406;
const NOT_ALLOWED: u16 = 530;

/// The address of RabbitMQ, and the login.
pub(super) struct BrokerAddress {
    uri: AMQPUri,
    /// The TLS with the configured authority; without one, the machine's are read for each connection.
    tls: Option<Arc<ClientConfig>>,
    pub(super) address: String,
    pub(super) vhost: String,
}

impl BrokerAddress {
    /// Reads the secrets of a configuration.
    pub(super) fn of(config: &AmqpConfig) -> Result<Self, LinkError> {
        let settings = |reason: String| LinkError::Settings(reason);
        let mut uri: AMQPUri = config
            .url
            .expose()
            .parse()
            .map_err(|_| settings(format!("amqp.url {} cannot be read", config.url)))?;
        uri.vhost = config.url.vhost();
        uri.query.heartbeat = Some(HEARTBEAT_S);
        if let Some(password) = config.password().map_err(|error| settings(error.to_string()))? {
            password.expose().clone_into(&mut uri.authority.userinfo.password);
        }
        let files = config.tls().map_err(|error| settings(error.to_string()))?;
        let authorities = files.and_then(|files| files.authorities);
        let tls = authorities.map(|pem| client_tls(Some(&pem)).map(Arc::new)).transpose();
        let tls =
            tls.map_err(|reason| settings(format!("cannot use amqp.tls_ca_file: {reason}")))?;
        let (address, vhost) = (config.url.redacted(), config.url.vhost());
        Ok(Self { uri, tls, address, vhost })
    }

    pub(super) fn login(&self) -> (&str, &str) {
        let login = &self.uri.authority.userinfo;
        (&login.username, &login.password)
    }

    async fn open(&self) -> io::Result<RepairedStream> {
        let (host, port) = (&self.uri.authority.host, self.uri.authority.port);
        let tls = match (&self.uri.scheme, &self.tls) {
            (AMQPScheme::AMQP, _) => None,
            (AMQPScheme::AMQPS, Some(tls)) => Some(Arc::clone(tls)),
            (AMQPScheme::AMQPS, None) => {
                let read = tokio::task::spawn_blocking(|| client_tls(None)).await?;
                Some(Arc::new(read.map_err(io::Error::other)?))
            }
        };
        RepairedStream::open(host, port, tls).await
    }

    /// Waits for the answer of RabbitMQ to a call.
    pub(super) async fn call<T>(
        &self,
        doing: &str,
        future: impl Future<Output = lapin::Result<T>>,
    ) -> Result<T, LinkError> {
        let answered = timeout(PATIENCE, future).await;
        answered.map_err(|_| self.too_slow(doing))?.map_err(|error| self.error(doing, &error))
    }

    /// Returns an error of the library as a sentence.
    pub(super) fn error(&self, doing: &str, error: &lapin::Error) -> LinkError {
        let (address, doing) = (self.address.clone(), doing.to_owned());
        if let ErrorKind::ProtocolError(protocol) = error.kind() {
            let reason = protocol.get_message().to_string();
            return match protocol.get_id() {
                ACCESS_REFUSED => LinkError::NotPermitted { address, doing, reason },
                NOT_ALLOWED => LinkError::NoVhost { address, vhost: self.vhost.clone(), reason },
                PRECONDITION_FAILED => LinkError::OtherArguments { doing, reason },
                RESOURCE_LOCKED => LinkError::Locked { doing, reason },
                NOT_FOUND => LinkError::Missing { doing, reason },
                _ => LinkError::Ended { doing, reason },
            };
        }
        let reason = match error.kind() {
            ErrorKind::IOError(error) | ErrorKind::RuntimeShutdownError(error) => {
                format!("cannot be reached: {error}")
            }
            ErrorKind::MissingHeartbeatError => "does not answer its heartbeat".to_owned(),
            _ => format!("closed the connection: {error}"),
        };
        LinkError::Unreachable { address, reason }
    }

    pub(super) fn too_slow(&self, doing: &str) -> LinkError {
        let reason = format!("does not answer: {doing}");
        LinkError::Unreachable { address: self.address.clone(), reason }
    }
}

pub(super) struct Wire {
    pub(super) way: Arc<BrokerAddress>,
    /// Its name in RabbitMQ.
    name: String,
    current: Mutex<Option<Connection>>,
}

impl Wire {
    pub(super) fn new(way: Arc<BrokerAddress>, name: String) -> Self {
        Self { way, name, current: Mutex::default() }
    }

    /// Opens a channel, and the connection if there is none.
    pub(super) async fn channel(&self) -> Result<Channel, LinkError> {
        let mut current = self.current.lock().await;
        let usable = current.take().filter(|connection| connection.status().connected());
        // It stays if the caller gives up meanwhile: others publish through it.
        let connection = current.insert(match usable {
            Some(connection) => connection,
            None => self.connect().await?,
        });
        let opened = self.way.call("opening a channel", connection.create_channel()).await;
        if opened.is_err() {
            *current = None;
        }
        opened
    }

    /// Returns true if RabbitMQ has asked this connection to publish nothing.
    pub(super) async fn is_blocked(&self) -> bool {
        self.current.lock().await.as_ref().is_some_and(|connection| connection.status().blocked())
    }

    async fn connect(&self) -> Result<Connection, LinkError> {
        let properties =
            ConnectionProperties::default().with_connection_name(self.name.clone().into());
        let way = Arc::clone(&self.way);
        let connect = async move |_, _| Ok(AsyncTcpStream::Plain(way.open().await?));
        let uri = self.way.uri.clone();
        let connecting = Connection::connector(uri, stream::runtime(), connect, properties);
        self.way.call("the login", connecting).await
    }

    pub(super) async fn close(&self) {
        if let Some(connection) = self.current.lock().await.take() {
            let closing = connection.close(200, "bye".into());
            // A connection that is lost anyway needs no goodbye.
            let _ = timeout(Duration::from_secs(1), closing).await;
        }
    }
}
