//! One of several servers that have the login and the TLS settings in common: a sentinel, the master that
//! it names, a node of a cluster.

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, RedisError};

/// Host and port.
pub(super) type Place = (String, u16);

/// Connects to the server at `place` as `like` describes another one: with its login, and with TLS if
/// that has it.
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
    let info = like.clone().set_addr(address);
    Client::open(info)?.get_multiplexed_async_connection_with_config(config).await
}
