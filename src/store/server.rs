//! The Redis of a namespace, whose address and login may change while the program runs: by a reload, or as the
//! password in a file changed and Redis refuses the old one.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use tokio::sync::watch;

use super::redis_address::RedisAddress;
use super::store_error::{Result, StoreError};
use crate::config::{Password, RedisConfig};

/// The Redis of a namespace. Clones share its address and login.
#[derive(Clone)]
pub(super) struct Server(Arc<ServerState>);

struct ServerState {
    now: Mutex<CurrentAddress>,
    /// Since when Redis refuses the login.
    refused: watch::Sender<Option<Instant>>,
}

struct CurrentAddress {
    way: Arc<RedisAddress>,
    /// The settings to read again; `None` if the login was given.
    config: Option<Arc<RedisConfig>>,
    /// Counts the ways: a connection of an earlier one is replaced.
    number: u64,
}

/// A connection, and the number of the way that it took.
pub(super) struct Connected {
    pub(super) connection: MultiplexedConnection,
    pub(super) way: u64,
}

impl Server {
    /// Reads the settings; connects to nothing yet.
    pub(super) fn new(config: &RedisConfig) -> Result<Self> {
        Ok(Self::of(RedisAddress::read(config)?, Some(Arc::new(config.clone()))))
    }

    /// Reads the settings with this password, or with the password of the URL alone.
    pub(super) fn with_password(config: &RedisConfig, password: Option<Password>) -> Result<Self> {
        Ok(Self::of(RedisAddress::with_password(config, password)?, None))
    }

    fn of(way: RedisAddress, config: Option<Arc<RedisConfig>>) -> Self {
        let now = Mutex::new(CurrentAddress { way: Arc::new(way), config, number: 0 });
        Self(Arc::new(ServerState { now, refused: watch::Sender::new(None) }))
    }

    pub(super) fn way(&self) -> Arc<RedisAddress> {
        Arc::clone(&self.0.now.lock().way)
    }

    /// The number of the way: it changes with the address or the login.
    pub(super) fn number(&self) -> u64 {
        self.0.now.lock().number
    }

    /// The address, for messages: no password in it.
    pub(super) fn address(&self) -> Arc<str> {
        Arc::clone(&self.0.now.lock().way.address)
    }

    /// Since when Redis refuses the login, now and later.
    pub(super) fn refused(&self) -> watch::Receiver<Option<Instant>> {
        self.0.refused.subscribe()
    }

    /// Takes other settings, or reads the files again that the same settings name. Connections of the earlier ones
    /// are replaced with their next call.
    ///
    /// # Errors
    /// [`StoreError::Settings`] if they cannot be used: nothing changes then.
    pub(super) fn change(&self, config: &RedisConfig) -> Result<()> {
        let way = RedisAddress::read(config)?;
        let mut now = self.0.now.lock();
        let is_same = now.config.as_deref() == Some(config) && way.files == now.way.files;
        if !is_same {
            *now = CurrentAddress {
                way: Arc::new(way),
                config: Some(Arc::new(config.clone())),
                number: now.number + 1,
            };
        }
        Ok(())
    }

    /// Connects. If Redis refuses the login, reads it again, and tries once more where it has changed.
    pub(super) async fn connect(&self, blocks: bool) -> Result<Connected> {
        let (way, number) = self.way_and_number();
        let connected = match way.connect(blocks).await {
            Err(refused) if refused.is_login_refused() => match self.read_again(number).await {
                Ok(true) => {
                    let (way, way_number) = self.way_and_number();
                    let connected = way.connect(blocks).await;
                    connected.map(|connection| Connected { connection, way: way_number })
                }
                Ok(false) => Err(refused),
                Err(unreadable) => Err(refused.because(&unreadable)),
            },
            connected => connected.map(|connection| Connected { connection, way: number }),
        };
        self.note(&connected);
        connected
    }

    /// Reads the login again. Returns whether it differs from the login of the way with this number.
    async fn read_again(&self, number: u64) -> Result<bool> {
        let Some(config) = self.0.now.lock().config.clone() else { return Ok(false) };
        let server = self.clone();
        // Files may be on a slow disk.
        let read = tokio::task::spawn_blocking(move || server.change(&config)).await;
        read.unwrap_or_else(|panic| Err(StoreError::Settings(panic.to_string())))?;
        Ok(self.number() != number)
    }

    fn note<T>(&self, connected: &Result<T>) {
        let is_refused = connected.as_ref().is_err_and(StoreError::is_login_refused);
        self.0.refused.send_if_modified(|since| {
            let before = *since;
            *since = is_refused.then(|| before.unwrap_or_else(Instant::now));
            *since != before
        });
    }

    fn way_and_number(&self) -> (Arc<RedisAddress>, u64) {
        let now = self.0.now.lock();
        (Arc::clone(&now.way), now.number)
    }
}
