//! Finds the master through sentinels. They are asked for every connection, so after a failover the
//! next connection leads to the new master.
//!
//! The `sentinel` module of the redis crate reports only the last error and names neither the sentinel
//! nor the master, and it does not retry with a password.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ConnectionInfo, ErrorKind, RedisConnectionInfo, RedisError};

use super::node;
use super::store_error::{CONNECTING, StoreError, describe};
use crate::config::SentinelUrl;

const SENTINEL_TIMEOUT: Duration = Duration::from_secs(1);

/// The sentinels of one master.
pub(super) struct Sentinels {
    url: SentinelUrl,
    /// The login to the master; the sentinels report its address.
    master: ConnectionInfo,
    /// The sentinel that answered last, which is asked first.
    first: AtomicUsize,
}

impl Sentinels {
    /// The sentinels of a URL. `master` has the login.
    pub(super) fn new(url: SentinelUrl, master: ConnectionInfo) -> Self {
        Self { url, master, first: AtomicUsize::new(0) }
    }

    /// The login to the master.
    pub(super) fn login(&self) -> &ConnectionInfo {
        &self.master
    }

    /// The same sentinels, with another login to the master.
    pub(super) fn with_login(&self, master: ConnectionInfo) -> Self {
        Self::new(self.url.clone(), master)
    }

    /// Connects to the master. `address` is the address of the sentinels, for messages.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] with the error of each sentinel, or of the master that it named;
    /// [`StoreError::NotPermitted`] if the master denies access.
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

    /// Asks one sentinel for the address of the master.
    async fn ask(&self, sentinel: (&str, u16)) -> Result<Option<(String, u16)>, RedisError> {
        let without = RedisConnectionInfo::default();
        match self.ask_as(sentinel, without).await {
            // Most sentinels need no password; others mostly have the same one as the master.
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
        let mut connection = node::connect(&info, (host, port), &config).await?;
        redis::cmd("SENTINEL")
            .arg("get-master-addr-by-name")
            .arg(&self.url.master)
            .query_async(&mut connection)
            .await
    }

    /// Connects to the server that a sentinel named; `None` if it is no master, as after a failover
    /// the sentinel or the server may not know yet.
    async fn master(
        &self,
        (host, port): &(String, u16),
        config: &AsyncConnectionConfig,
    ) -> Result<Option<MultiplexedConnection>, RedisError> {
        let mut connection = node::connect(&self.master, (host, *port), config).await?;
        let role: Result<Vec<redis::Value>, RedisError> =
            redis::cmd("ROLE").query_async(&mut connection).await;
        let is_master = match role {
            Ok(role) => role.first() == Some(&redis::Value::BulkString(b"master".to_vec())),
            // The ACL may forbid ROLE; a replica then refuses the first write.
            Err(error) => error.code() == Some("NOPERM"),
        };
        Ok(is_master.then_some(connection))
    }
}
