//! Finds the master through sentinels. They are asked for every connection, so after a failover the
//! next connection leads to the new master.
//!
//! The `sentinel` module of the redis crate reports only the last error and names neither the sentinel
//! nor the master, and it does not retry with a password.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ConnectionInfo, ErrorKind, RedisConnectionInfo, RedisError};

use super::node::{self, Place};
use super::store_error::{CONNECTING, Result, StoreError, describe};
use crate::config::SentinelUrl;

const SENTINEL_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct Sentinels {
    url: SentinelUrl,
    /// The sentinel that answered last, which is asked first.
    first: AtomicUsize,
}

impl Sentinels {
    pub(super) fn new(url: SentinelUrl) -> Self {
        Self { url, first: AtomicUsize::new(0) }
    }

    /// Connects to the master with a login; the sentinels report its address. `address` is the address of the sentinels,
    /// for messages.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] with the error of each sentinel, or of the master that it named;
    /// [`StoreError::NotPermitted`] if the master denies access.
    pub(super) async fn connect(
        &self,
        address: &str,
        login: &ConnectionInfo,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection> {
        let number = self.url.sentinels.len();
        let first = self.first.load(Ordering::Relaxed);
        let mut problems = Vec::new();
        for place in (first..first + number).map(|place| place % number) {
            let (host, port) = &self.url.sentinels[place];
            let problem = match self.ask((host, *port), login).await {
                Ok(Some(named)) => match master(login, &named, config).await {
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
        Err(StoreError::unreachable(address, problems.join("; "), false))
    }

    async fn ask(
        &self,
        sentinel: (&str, u16),
        login: &ConnectionInfo,
    ) -> Result<Option<Place>, RedisError> {
        let without = login.clone().set_redis_settings(RedisConnectionInfo::default());
        match self.ask_as(sentinel, &without).await {
            // Most sentinels need no password; others mostly have the same one as the master.
            Err(error)
                if error.kind() == ErrorKind::AuthenticationFailed
                    || error.code() == Some("NOAUTH") =>
            {
                let settings = login.redis_settings().clone().set_db(0);
                self.ask_as(sentinel, &login.clone().set_redis_settings(settings)).await
            }
            answer => answer,
        }
    }

    async fn ask_as(
        &self,
        sentinel: (&str, u16),
        login: &ConnectionInfo,
    ) -> Result<Option<Place>, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(SENTINEL_TIMEOUT))
            .set_response_timeout(Some(SENTINEL_TIMEOUT));
        let mut connection = node::connect(login, sentinel, &config).await?;
        redis::cmd("SENTINEL")
            .arg("get-master-addr-by-name")
            .arg(&self.url.master)
            .query_async(&mut connection)
            .await
    }
}

/// Connects to the server that a sentinel named; `None` if it is no master: one of both may not know of a failover yet.
async fn master(
    login: &ConnectionInfo,
    (host, port): &Place,
    config: &AsyncConnectionConfig,
) -> Result<Option<MultiplexedConnection>, RedisError> {
    let mut connection = node::connect(login, (host, *port), config).await?;
    let role: Result<Vec<redis::Value>, RedisError> =
        redis::cmd("ROLE").query_async(&mut connection).await;
    let is_master = match role {
        Ok(role) => role.first() == Some(&redis::Value::BulkString(b"master".to_vec())),
        // The ACL may forbid ROLE; a replica then refuses the first write.
        Err(error) => error.code() == Some("NOPERM"),
    };
    Ok(is_master.then_some(connection))
}
