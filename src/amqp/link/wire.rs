//! One connection that is opened when it is needed, and again after it was lost.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use lapin::AsyncTcpStream;
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{Channel, Connection, ConnectionProperties};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;

use super::error::{About, LinkError};
use super::stream::{self, RepairedStream};
use crate::config::AmqpConfig;
use crate::http::client_tls;

/// The longest wait for a connection, and for an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The time between heartbeats, in seconds.
const HEARTBEAT_S: u16 = 10;

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
        let about = self.about(doing);
        let answered = timeout(PATIENCE, future).await;
        answered.map_err(|_| about.too_slow())?.map_err(|error| about.error(&error))
    }

    pub(super) fn about<'a>(&'a self, doing: &'a str) -> About<'a> {
        About { address: &self.address, vhost: &self.vhost, doing }
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
