//! One of several servers that have the login and the TLS settings in common: a sentinel, the master that
//! it names, a node of a cluster.
//! And the words of Redis before it closes a connection that it does not take: a client that writes first sees no more than a
//! broken pipe.

use std::io::Read;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisConnectionInfo,
    RedisError,
};

use super::store_error::{StoreError, TOO_MANY_CLIENTS};

pub(super) type Place = (String, u16);

/// Connects to the server at `place` with the login of another one, and with TLS if that has it.
pub(super) async fn connect(
    like: &ConnectionInfo,
    (host, port): (&str, u16),
    config: &AsyncConnectionConfig,
) -> Result<MultiplexedConnection, RedisError> {
    let host = host.to_owned();
    let address = match like.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(host, port),
    };
    open(like.clone().set_addr(address), config).await
}

/// Connects. A refused login is told in the words of Redis.
pub(super) async fn open(
    info: ConnectionInfo,
    config: &AsyncConnectionConfig,
) -> Result<MultiplexedConnection, RedisError> {
    let client = Client::open(info)?;
    match client.get_multiplexed_async_connection_with_config(config).await {
        Err(error) if error.kind() == ErrorKind::AuthenticationFailed => {
            Err(refusal(&client, config).await.unwrap_or(error))
        }
        connected => connected,
    }
}

/// Returns what Redis says to the login: the crate does not.
async fn refusal(client: &Client, config: &AsyncConnectionConfig) -> Option<RedisError> {
    let info = client.get_connection_info();
    let login = info.redis_settings();
    let without = info.clone().set_redis_settings(RedisConnectionInfo::default());
    let client = Client::open(without).ok()?;
    let mut connection = client.get_multiplexed_async_connection_with_config(config).await.ok()?;
    let mut command = redis::cmd("AUTH");
    command.arg(login.username()).arg(login.password());
    command.query_async::<redis::Value>(&mut connection).await.err()
}

/// The longest wait for its words. A Redis that takes a connection says nothing.
const PATIENCE: Duration = Duration::from_millis(300);
const BYTES_MAX: u64 = 256;

/// Returns the error with the reason that Redis gives, if it refuses connections; else the error as it is.
pub(super) async fn explained(
    error: StoreError,
    place: &ConnectionAddr,
    address: &str,
) -> StoreError {
    // The crate may take these words for the answer to its login.
    if !matches!(error, StoreError::Unreachable { .. }) && !error.is_login_refused() {
        return error;
    }
    let place = place.clone();
    let asked = tokio::task::spawn_blocking(move || words(&place));
    match tokio::time::timeout(2 * PATIENCE, asked).await {
        Ok(Ok(Some(said))) if said.contains(TOO_MANY_CLIENTS) => {
            StoreError::too_many_clients(address)
        }
        _ => error,
    }
}

fn words(place: &ConnectionAddr) -> Option<String> {
    match place {
        ConnectionAddr::Tcp(host, port) => {
            let mut addresses = (host.as_str(), *port).to_socket_addrs().ok()?;
            let stream = TcpStream::connect_timeout(&addresses.next()?, PATIENCE).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            read(stream)
        }
        ConnectionAddr::Unix(path) => {
            let stream = UnixStream::connect(path).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            read(stream)
        }
        _ => None,
    }
}

fn read(stream: impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    stream.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
