//! Which Redis is the master now, as sentinels say. They are asked anew for every connection, so a
//! connection that was lost to a failover is followed by one to the new master.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisConnectionInfo,
    RedisError,
};

use super::error::{CONNECTING, StoreError, describe};
use crate::config::SentinelUrl;

/// How long one sentinel may take to answer before the next one is asked.
const SENTINEL_TIMEOUT: Duration = Duration::from_secs(1);

/// The sentinels of one master.
pub(super) struct Sentinels {
    url: SentinelUrl,
    /// How to log in to the master; its address is replaced by what the sentinels say.
    master: ConnectionInfo,
    /// The one that answered last, which is asked first.
    first: AtomicUsize,
}

impl Sentinels {
    /// Those of a URL. `master` says how to log in.
    pub(super) fn new(url: SentinelUrl, master: ConnectionInfo) -> Self {
        Self { url, master, first: AtomicUsize::new(0) }
    }

    /// A connection to the master. `address` is that of the sentinels, for messages.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] with what each sentinel, or the master that it named, had to
    /// say; [`StoreError::NotPermitted`] if the master refuses us.
    pub(super) async fn connect(
        &self,
        address: &str,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, StoreError> {
        let number = self.url.sentinels.len();
        let first = self.first.load(Ordering::Relaxed);
        let mut problems = Vec::new();
        for place in (first..first + number).map(|place| place % number) {
            let (host, port) = &self.url.sentinels[place];
            let problem = match self.ask((host, *port)).await {
                Ok(Some(named)) => match self.master(&named, config).await {
                    Ok(Some(connection)) => {
                        self.first.store(place, Ordering::Relaxed);
                        return Ok(connection);
                    }
                    Ok(None) => format!("{}:{} is no master", named.0, named.1),
                    Err(error) => match StoreError::new(address, CONNECTING, &error) {
                        refused @ StoreError::NotPermitted { .. } => return Err(refused),
                        _ => format!("master {}:{}: {}", named.0, named.1, describe(&error)),
                    },
                },
                Ok(None) => format!("it knows no master {}", self.url.master),
                Err(error) => describe(&error),
            };
            problems.push(format!("sentinel {host}:{port}: {problem}"));
        }
        let (address, reason) = (address.to_owned(), problems.join("; "));
        Err(StoreError::Unreachable { address, reason, sent: false })
    }

    /// Where the master is, by one sentinel.
    async fn ask(&self, sentinel: (&str, u16)) -> Result<Option<(String, u16)>, RedisError> {
        let without = RedisConnectionInfo::default();
        match self.ask_as(sentinel, without).await {
            // Most sentinels want no password; those that do mostly want the same one.
            Err(error)
                if error.kind() == ErrorKind::AuthenticationFailed
                    || error.code() == Some("NOAUTH") =>
            {
                self.ask_as(sentinel, self.master.redis_settings().clone().set_db(0)).await
            }
            answer => answer,
        }
    }

    async fn ask_as(
        &self,
        (host, port): (&str, u16),
        login: RedisConnectionInfo,
    ) -> Result<Option<(String, u16)>, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(SENTINEL_TIMEOUT))
            .set_response_timeout(Some(SENTINEL_TIMEOUT));
        let info = self.master.clone().set_redis_settings(login);
        let info = info.set_addr(self.place(host, port));
        let mut connection =
            Client::open(info)?.get_multiplexed_async_connection_with_config(&config).await?;
        redis::cmd("SENTINEL")
            .arg("get-master-addr-by-name")
            .arg(&self.url.master)
            .query_async(&mut connection)
            .await
    }

    /// Where a server listens that is spoken to as the master is: through TLS or not.
    fn place(&self, host: &str, port: u16) -> ConnectionAddr {
        let host = host.to_owned();
        match self.master.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host, port),
        }
    }

    /// A connection to what a sentinel named; `None` if it is no master: a sentinel may not yet
    /// know, and a server that comes back may not yet have been told.
    async fn master(
        &self,
        (host, port): &(String, u16),
        config: &AsyncConnectionConfig,
    ) -> Result<Option<MultiplexedConnection>, RedisError> {
        let info = self.master.clone().set_addr(self.place(host, *port));
        let mut connection =
            Client::open(info)?.get_multiplexed_async_connection_with_config(config).await?;
        let role: Result<Vec<redis::Value>, RedisError> =
            redis::cmd("ROLE").query_async(&mut connection).await;
        let is_master = match role {
            Ok(role) => role.first() == Some(&redis::Value::BulkString(b"master".to_vec())),
            // The ACL may forbid to ask; a replica then says so at the first write.
            Err(error) => error.code() == Some("NOPERM"),
        };
        Ok(is_master.then_some(connection))
    }
}
