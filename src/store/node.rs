//! One of several servers that have the login and the TLS settings in common: a sentinel, the master that
//! it names, a node of a cluster.

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisConnectionInfo,
    RedisError,
};

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
