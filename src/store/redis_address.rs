//! The address of Redis in the settings, and how it is found: directly, through sentinels, or through the
//! nodes of a cluster.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo,
    IntoConnectionInfo, ProtocolVersion, RedisError, TlsCertificates,
};

use super::cluster::Cluster;
use super::node;
use super::node::explained;
use super::sentinel::Sentinels;
use super::store_error::{CONNECTING, Result, StoreError};
use crate::config::{ClusterUrl, Password, RedisConfig, SentinelUrl, TlsFiles};
use crate::proto::keys::Keys;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of an answer. A blocking command adds its own.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The silence before the kernel asks whether the host still answers.
const SILENCE: Duration = Duration::from_secs(5);
/// The time between two such questions.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// The connection is lost after this number of questions without an answer.
const QUESTIONS: u32 = 3;
/// The time that sent bytes may stay unconfirmed.
const UNCONFIRMED: Duration = Duration::from_secs(10);

pub(super) struct RedisAddress {
    place: ServerPlace,
    /// The login and the TLS settings, and the address in the URL.
    login: ConnectionInfo,
    /// For messages: no password in it.
    pub(super) address: Arc<str>,
    /// True if the login uses Redis's default user.
    pub(super) is_default_user: bool,
    /// The content of its files. A later reading may differ.
    pub(super) files: LoginFiles,
}

#[derive(PartialEq, Eq)]
pub(super) struct LoginFiles {
    password: Option<Password>,
    tls: Option<TlsFiles>,
}

/// The means by which the server is found.
enum ServerPlace {
    /// At the address in the URL.
    Fixed,
    /// At the address that the sentinels name.
    Named(Sentinels),
    /// The node that has the slot of the namespace.
    Owner(Cluster),
}

/// The servers of a URL that does not name Redis itself.
enum Guides {
    Sentinels(SentinelUrl),
    Cluster(ClusterUrl),
}

impl RedisAddress {
    /// Reads the settings and the files that they name; connects to nothing yet.
    pub(super) fn read(config: &RedisConfig) -> Result<Self> {
        let password = config.password().map_err(|e| StoreError::Settings(e.to_string()))?;
        Self::with_password(config, password)
    }

    /// Reads the settings with this password, or with the password of the URL alone.
    pub(super) fn with_password(config: &RedisConfig, password: Option<Password>) -> Result<Self> {
        let address: Arc<str> = config.redacted_url().into();
        let unusable = |error: RedisError| StoreError::Settings(format!("{address}: {error}"));
        let (guides, mut info) = said(config)?;
        // A restricted user may not say which library it uses: Redis would note each attempt.
        let mut login = info.redis_settings().clone().set_skip_set_lib_name();
        if let Some(username) = &config.username {
            login = login.set_username(username.as_str());
        }
        if let Some(password) = &password {
            login = login.set_password(password.expose());
        }
        // Without a password there is no login.
        let is_default_user =
            login.password().is_none() || login.username().is_none_or(|name| name == "default");
        info = info.set_redis_settings(login).set_tcp_settings(tcp_settings());
        let tls = config.tls().map_err(|e| StoreError::Settings(e.to_string()))?;
        let client = match &tls {
            Some(files) => Client::build_with_tls(info, certificates(files.clone())),
            None => Client::open(info),
        };
        let client = client.map_err(unusable)?;
        let login = client.get_connection_info().clone();
        let place = match guides {
            Some(Guides::Sentinels(url)) => ServerPlace::Named(Sentinels::new(url)),
            Some(Guides::Cluster(url)) => {
                let probe = Keys::new(config.namespace.clone()).probe();
                ServerPlace::Owner(Cluster::new(url, probe))
            }
            None => ServerPlace::Fixed,
        };
        let files = LoginFiles { password, tls };
        Ok(Self { place, login, address: Arc::clone(&address), is_default_user, files })
    }

    pub(super) async fn connect(&self, blocks: bool) -> Result<MultiplexedConnection> {
        let response_timeout = (!blocks).then_some(RESPONSE_TIMEOUT);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(response_timeout);
        self.connect_as(&self.login, &config).await
    }

    async fn connect_as(
        &self,
        login: &ConnectionInfo,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection> {
        match &self.place {
            ServerPlace::Fixed => {
                let connected = match node::open(login.clone(), config).await {
                    // The crate has checked a login.
                    Ok(connection) if login.redis_settings().password().is_some() => Ok(connection),
                    Ok(connection) => self.checked(connection).await,
                    Err(error) => Err(StoreError::new(&self.address, CONNECTING, &error)),
                };
                match connected {
                    Err(error) => Err(explained(error, login.addr(), &self.address).await),
                    connected => connected,
                }
            }
            ServerPlace::Named(sentinels) => sentinels.connect(&self.address, login, config).await,
            ServerPlace::Owner(cluster) => cluster.connect(&self.address, login, config).await,
        }
    }

    /// Asks for an answer over a connection without a login. Redis closes it at a long command, mostly before its error
    /// can be read, and one that stands still or refuses connections has taken it too.
    async fn checked(
        &self,
        mut connection: MultiplexedConnection,
    ) -> Result<MultiplexedConnection> {
        let ping = redis::cmd("PING");
        let asked = ping.query_async::<redis::Value>(&mut connection);
        let error = match tokio::time::timeout(RESPONSE_TIMEOUT, asked).await {
            Ok(Ok(_)) => return Ok(connection),
            Ok(Err(error)) => StoreError::new(&self.address, CONNECTING, &error),
            Err(_) => StoreError::silent(&self.address, false),
        };
        match error {
            StoreError::Unreachable { .. } => Err(error),
            StoreError::NotPermitted { ref reason, .. } if !reason.contains("NOPERM") => Err(error),
            // The next command has the answer.
            _ => Ok(connection),
        }
    }

    /// Connects in the version of the protocol where Redis sends messages by itself. `take` gets them.
    pub(super) async fn connect_for_pushes(
        &self,
        take: impl AsyncPushSender,
    ) -> Result<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT))
            .set_push_sender(take);
        let settings = self.login.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let login = self.login.clone().set_redis_settings(settings);
        self.connect_as(&login, &config).await
    }

    pub(super) fn cluster(&self) -> Option<&Cluster> {
        match &self.place {
            ServerPlace::Owner(cluster) => Some(cluster),
            ServerPlace::Fixed | ServerPlace::Named(_) => None,
        }
    }
}

/// The settings by which the kernel notices within a dozen seconds that the other host has vanished.
fn tcp_settings() -> TcpSettings {
    let keepalive =
        TcpKeepalive::new().with_time(SILENCE).with_interval(ASK_AGAIN).with_retries(QUESTIONS);
    TcpSettings::default().set_nodelay(true).set_keepalive(keepalive).set_user_timeout(UNCONFIRMED)
}

/// Parses the URL: the sentinels or nodes, if any, and the address and login.
fn said(config: &RedisConfig) -> Result<(Option<Guides>, ConnectionInfo)> {
    let address = config.redacted_url();
    let wrong = |reason: String| StoreError::Settings(format!("{address}: {reason}"));
    config
        .check_slot()
        .map_err(|reason| StoreError::Settings(format!("redis.namespace {reason}")))?;
    let sentinels = config.url.sentinels().map_err(wrong)?;
    let cluster = config.url.cluster().map_err(wrong)?;
    // A unix socket has two spellings; the crate knows one.
    let url = match (&sentinels, &cluster, config.url.expose().strip_prefix("redis+unix:")) {
        (Some(url), _, _) => url.login.expose().to_owned(),
        (None, Some(url), _) => url.login.expose().to_owned(),
        (None, None, Some(rest)) => format!("unix:{rest}"),
        (None, None, None) => config.url.expose().to_owned(),
    };
    let unusable = |error: RedisError| StoreError::Settings(format!("{address}: {error}"));
    let info = url.as_str().into_connection_info().map_err(unusable)?;
    Ok((sentinels.map(Guides::Sentinels).or(cluster.map(Guides::Cluster)), info))
}

/// The transport to Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Socket,
    Tcp {
        port: u16,
        /// True if its host has to be looked up.
        is_name: bool,
    },
    /// TCP, to an address that sentinels or nodes of a cluster name.
    Named,
}

impl Reach {
    /// The transport of these settings. Connects to nothing and reads no secret.
    pub fn of(config: &RedisConfig) -> Result<Self> {
        let (guides, info) = said(config)?;
        if guides.is_some() {
            return Ok(Self::Named);
        }
        let (host, port) = match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                (host, *port)
            }
            _ => return Ok(Self::Socket),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok(Self::Tcp { port, is_name: host.parse::<IpAddr>().is_err() })
    }
}

fn certificates(files: TlsFiles) -> TlsCertificates {
    let client_tls = files
        .certificate
        .zip(files.key)
        .map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
    TlsCertificates { client_tls, root_cert: files.authorities }
}
