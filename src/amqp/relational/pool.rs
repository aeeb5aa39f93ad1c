//! The connections to MariaDB. At most a number of them is open; an operation that finds none free
//! waits. A connection whose state is in doubt is closed, never used again.
//!
//! The pool of sqlx would try a refused connection again until the time of the message is over, and the
//! answer would say that it timed out, not why.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::config::{ConfigError, RelationalAddress, RelationalConfig};

/// A connection that was unused for longer is pinged before it is used.
const PINGED_AFTER: Duration = Duration::from_secs(1);
/// The SQL mode of each connection: a value that does not fit is an error, never cut.
const SQL_MODE: &str = "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

pub(super) struct SqlPool {
    options: MySqlConnectOptions,
    /// The statement that a new connection begins with.
    session: String,
    places: Semaphore,
    unused: Mutex<Vec<Unused>>,
}

struct Unused {
    connection: MySqlConnection,
    since: Instant,
}

/// A connection for one operation. Dropping it closes the connection.
pub(super) struct Lease<'a> {
    pool: &'a SqlPool,
    pub(super) connection: MySqlConnection,
    _place: SemaphorePermit<'a>,
}

impl SqlPool {
    /// Creates the pool of a legal configuration. Nothing is connected yet.
    pub(super) fn new(config: &RelationalConfig) -> Result<Self, ConfigError> {
        let mut options =
            MySqlConnectOptions::new().ssl_mode(MySqlSslMode::Disabled).disable_statement_logging();
        if let Ok(server) = config.url.server() {
            options = options.username(&server.user).database(&server.database);
            options = match &server.address {
                RelationalAddress::Tcp(host, port) => options.host(host).port(*port),
                RelationalAddress::Unix(path) => options.socket(path),
            };
            if server.tls {
                options = options.ssl_mode(MySqlSslMode::VerifyIdentity);
            }
        }
        if let Some(file) = &config.tls_ca_file {
            options = options.ssl_ca(file);
        }
        if let Some(password) = config.password()? {
            options = options.password(password.expose());
        }
        // The server ends a statement whose operation has timed out.
        let (whole, part) = (config.timeout.as_secs(), config.timeout.subsec_millis());
        let session = format!(
            "SET SESSION sql_mode = '{SQL_MODE}', max_statement_time = {whole}.{part:03}, \
             innodb_lock_wait_timeout = {}",
            whole.max(1)
        );
        let places = Semaphore::new(config.connections);
        Ok(Self { options, session, places, unused: Mutex::new(Vec::new()) })
    }

    /// Returns a connection as soon as one is free.
    pub(super) async fn lease(&self) -> Result<Lease<'_>, sqlx::Error> {
        let place = self.places.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let connection = self.connection().await?;
        Ok(Lease { pool: self, connection, _place: place })
    }

    async fn connection(&self) -> Result<MySqlConnection, sqlx::Error> {
        loop {
            let unused = self.unused.lock().pop();
            let Some(Unused { mut connection, since }) = unused else { break };
            // The server may have restarted meanwhile.
            if since.elapsed() < PINGED_AFTER || connection.ping().await.is_ok() {
                return Ok(connection);
            }
        }
        let mut connection = self.options.connect().await?;
        connection.execute(AssertSqlSafe(self.session.as_str())).await?;
        Ok(connection)
    }
}

impl Lease<'_> {
    /// Keeps the connection for the next operation.
    pub(super) fn give_back(self) {
        let unused = Unused { connection: self.connection, since: Instant::now() };
        self.pool.unused.lock().push(unused);
    }
}
