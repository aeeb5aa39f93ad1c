//! Connections to Redis: made when first needed, made again when lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::streams::{StreamId, StreamReadReply};
use redis::{FromRedisValue, RedisError, ToRedisArgs, Value};
use tokio::sync::Mutex;
use tokio::time::error::Elapsed;

use super::backoff::{Backoff, millis};
use super::oversized_calls::{BOUND_MIN_BYTES, MeasuredConnection, OversizedCalls};
use super::redis_address::RESPONSE_TIMEOUT;
use super::server::{Connected, Server};
use super::store_error::{
    CONNECTING, Result, StoreError, has_closed_connection, has_not_run, is_connection_useless,
    is_oversized,
};
use super::text::HashFields;

/// The time that a call to a cluster is repeated until the slot is found.
const SLOT_TIMEOUT: Duration = Duration::from_secs(5);
/// A Redis that answers within this time after a lost connection was not away.
const SERVES_SOON: Duration = Duration::from_secs(1);

/// The connection for all commands that do not block. Clones share it.
#[derive(Clone)]
pub(super) struct SharedConnection {
    pub(super) server: Server,
    current: Arc<Mutex<Current>>,
    oversized: OversizedCalls,
}

#[derive(Default)]
struct Current {
    connection: Option<Connected>,
    /// Counts connections, so that a late error of an old one does not drop its successor.
    generation: u64,
}

impl SharedConnection {
    pub(super) fn new(server: Server) -> Self {
        Self { server, current: Arc::default(), oversized: OversizedCalls::default() }
    }

    async fn get(&self) -> Result<(MultiplexedConnection, u64)> {
        let mut current = self.current.lock().await;
        if let Some(Connected { connection, way }) = &current.connection
            && *way == self.server.number()
        {
            return Ok((connection.clone(), current.generation));
        }
        let connected = self.server.connect(false).await?;
        current.generation += 1;
        let connection = connected.connection.clone();
        current.connection = Some(connected);
        Ok((connection, current.generation))
    }

    pub(super) async fn query<T: FromRedisValue>(
        &self,
        doing: &'static str,
        command: &redis::Cmd,
    ) -> Result<T> {
        self.patiently(
            doing,
            |mut connection| async move { command.query_async(&mut connection).await },
        )
        .await
    }

    /// Runs a command for each item, in one round trip. An answer that is an error, or not of this type, is none.
    pub(super) async fn each<'c, I, A: ToRedisArgs, T: FromRedisValue>(
        &self,
        doing: &'static str,
        items: impl IntoIterator<Item = I>,
        command: impl Fn(I) -> (&'c str, A),
    ) -> Result<Vec<Option<T>>> {
        let mut pipeline = redis::pipe();
        for (name, arguments) in items.into_iter().map(command) {
            pipeline.cmd(name).arg(arguments);
        }
        if pipeline.is_empty() {
            return Ok(Vec::new());
        }
        let answers: Vec<Value> = self.pipeline(doing, pipeline.ignore_errors()).await?;
        Ok(answers.into_iter().map(|answer| redis::from_redis_value(answer).ok()).collect())
    }

    /// Runs a command with these arguments, as [`SharedConnection::query`].
    pub(super) async fn command<T: FromRedisValue>(
        &self,
        doing: &'static str,
        name: &str,
        arguments: impl ToRedisArgs,
    ) -> Result<T> {
        self.query(doing, redis::cmd(name).arg(arguments)).await
    }

    pub(super) async fn fields(
        &self,
        doing: &'static str,
        key: String,
        names: &'static [&'static str],
    ) -> Result<HashFields> {
        Ok(HashFields::of(names, self.command(doing, "HMGET", (key, names)).await?))
    }

    /// Runs several commands in one round trip. In a cluster all of them are answered by a node that
    /// has all keys, or none is answered; what a pipeline that is no transaction wrote may be written
    /// again.
    pub(super) async fn pipeline<T: FromRedisValue>(
        &self,
        doing: &'static str,
        pipeline: &redis::Pipeline,
    ) -> Result<T> {
        self.patiently(doing, |mut connection| async move {
            let result = match self.server.way().cluster() {
                Some(cluster) => probed(pipeline, &cluster.probe, &mut connection).await,
                None => pipeline.query_async(&mut connection).await,
            };
            result.map_err(first_of)
        })
        .await
    }

    /// Runs a script by its hash, and loads it if Redis has forgotten it.
    pub(super) async fn invoke<T: FromRedisValue>(
        &self,
        doing: &'static str,
        script: &redis::ScriptInvocation<'_>,
    ) -> Result<T> {
        self.patiently(
            doing,
            |mut connection| async move { script.invoke_async(&mut connection).await },
        )
        .await
    }

    /// Asks over the connection. In a cluster it asks again while no node serves the slot, as then nothing ran.
    async fn patiently<T, A>(
        &self,
        doing: &'static str,
        ask: impl Fn(MeasuredConnection) -> A,
    ) -> Result<T>
    where
        A: Future<Output = Result<T, RedisError>>,
    {
        let until = self.server.way().cluster().map(|_| Instant::now() + SLOT_TIMEOUT);
        let (mut backoff, closed_at_bytes) = (Backoff::default(), Arc::default());
        loop {
            let (connection, generation) = self.get().await?;
            let result = ask(MeasuredConnection::new(connection, &closed_at_bytes)).await;
            self.drop_useless(generation, &result).await;
            let has_not_run = result.as_ref().is_err_and(has_not_run);
            if !has_not_run || until.is_none_or(|until| Instant::now() >= until) {
                let error = match result {
                    Ok(answer) => return Ok(answer),
                    Err(error) => error,
                };
                return Err(match closed_at_bytes.load(Ordering::Relaxed) {
                    bytes @ BOUND_MIN_BYTES.. => self.closed_at(doing, &error, bytes).await,
                    _ if has_closed_connection(&error) => self.closed(doing, &error).await,
                    _ => StoreError::new(&self.server.address(), doing, &error),
                });
            }
            tokio::time::sleep(backoff.failed()).await;
        }
    }

    /// Returns the error of a call whose connection was closed: a new one may say why.
    async fn closed(&self, doing: &'static str, error: &RedisError) -> StoreError {
        let said = StoreError::new(&self.server.address(), doing, error);
        let again = tokio::time::timeout(SERVES_SOON, self.get()).await;
        match again.map(|connected| connected.map(|_| ())) {
            Ok(Err(cause)) => said.explained_by(cause),
            _ => said,
        }
    }

    /// Returns the error of a large call at which Redis closed the connection: the call may be too large for it.
    async fn closed_at(&self, doing: &'static str, error: &RedisError, bytes: usize) -> StoreError {
        let address = self.server.address();
        let serves = tokio::time::timeout(SERVES_SOON, async {
            let (mut connection, _) = self.get().await.ok()?;
            redis::cmd("PING").query_async::<Value>(&mut connection).await.ok()
        });
        let serves = serves.await.ok().flatten().is_some();
        if is_oversized(error) || serves && self.oversized.note(doing, bytes, Instant::now()) {
            return StoreError::oversized(&address, doing, bytes);
        }
        let said = StoreError::new(&address, doing, error);
        if serves { said.of_large_call(bytes) } else { said }
    }

    async fn drop_useless<T>(&self, generation: u64, result: &Result<T, RedisError>) {
        if result.as_ref().is_err_and(is_connection_useless) {
            let mut current = self.current.lock().await;
            if current.generation == generation {
                current.connection = None;
            }
        }
    }
}

/// Runs a pipeline with a look at a key that never exists after it. The owner of a slot that is being
/// moved has keys that are not there any more, and so would tell half of the truth.
async fn probed<T: FromRedisValue>(
    pipeline: &redis::Pipeline,
    probe: &str,
    connection: &mut MeasuredConnection,
) -> Result<T, RedisError> {
    let mut pipeline = pipeline.clone();
    pipeline.cmd("EXISTS").arg(probe);
    let mut answers: Vec<Value> = pipeline.query_async(connection).await?;
    if let Some(probed) = answers.pop() {
        probed.extract_error()?;
    }
    Ok(redis::from_redis_value(Value::Array(answers))?)
}

/// Returns the first error of a pipeline, which says what is wrong.
fn first_of(error: RedisError) -> RedisError {
    match error.clone().into_server_errors() {
        Some(errors) if !errors.is_empty() => errors[0].1.clone().into(),
        _ => error,
    }
}

/// A connection for commands that block. It is not shared; a caller that abandons a call drops it.
pub struct Blocking {
    server: Server,
    connection: Option<Connected>,
    waker: Waker,
}

/// The id of a blocking connection in Redis, as of its latest reconnection.
#[derive(Debug, Clone, Default)]
pub struct Waker(Arc<AtomicI64>);

impl Waker {
    /// `None` before the first connection.
    pub(super) fn client_id(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|id| *id > 0)
    }
}

impl Blocking {
    pub(super) fn new(server: Server) -> Self {
        Self { server, connection: None, waker: Waker::default() }
    }

    /// The handle that wakes a command blocking on this connection: see [`JobStore::wake`](super::JobStore::wake).
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    async fn get(&mut self) -> Result<&mut MultiplexedConnection> {
        let now = self.server.number();
        let connected = match self.connection.take().filter(|one| one.way == now) {
            Some(connected) => connected,
            None => self.connect().await?,
        };
        Ok(&mut self.connection.insert(connected).connection)
    }

    async fn connect(&self) -> Result<Connected> {
        let mut connected = self.server.connect(true).await?;
        let mut command = redis::cmd("CLIENT");
        let asked = command.arg("ID").query_async(&mut connected.connection);
        let id = match tokio::time::timeout(RESPONSE_TIMEOUT, asked).await {
            Ok(answer) => answer
                .map_err(|error| StoreError::new(&self.server.address(), CONNECTING, &error))?,
            Err(_) => return Err(StoreError::silent(&self.server.address(), false)),
        };
        self.waker.0.store(id, Ordering::Relaxed);
        Ok(connected)
    }

    /// Runs a script, loaded again if Redis has forgotten it. Later calls are on the same connection until one fails.
    pub(super) async fn invoke<T: FromRedisValue>(
        &mut self,
        doing: &'static str,
        script: &redis::ScriptInvocation<'_>,
    ) -> Result<T> {
        let connection = self.get().await?;
        let answer =
            tokio::time::timeout(RESPONSE_TIMEOUT, async { script.invoke_async(connection).await });
        let answer = answer.await;
        self.checked(doing, answer)
    }

    /// Runs a command that may block for `timeout`. A server that is silent for much longer counts as lost.
    pub(super) async fn query<T: FromRedisValue>(
        &mut self,
        doing: &'static str,
        command: &redis::Cmd,
        timeout: Duration,
    ) -> Result<T> {
        let connection = self.get().await?;
        let answer = tokio::time::timeout(timeout + RESPONSE_TIMEOUT, async {
            command.query_async(connection).await
        });
        let answer = answer.await;
        self.checked(doing, answer)
    }

    /// Waits for entries of a stream behind a place.
    pub(super) async fn follow(
        &mut self,
        doing: &'static str,
        stream: String,
        after: &str,
        timeout: Duration,
    ) -> Result<Vec<StreamId>> {
        const ENTRIES_PER_READ: usize = 1000;
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(ENTRIES_PER_READ).arg("BLOCK").arg(millis(timeout));
        command.arg("STREAMS").arg(stream).arg(after);
        let reply: Option<StreamReadReply> = self.query(doing, &command, timeout).await?;
        Ok(reply.into_iter().flat_map(|reply| reply.keys).flat_map(|key| key.ids).collect())
    }

    /// Converts an error, and drops the connection if it is lost.
    fn checked<T>(
        &mut self,
        doing: &'static str,
        answer: Result<Result<T, RedisError>, Elapsed>,
    ) -> Result<T> {
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                if is_connection_useless(&error) {
                    self.connection = None;
                }
                Err(StoreError::new(&self.server.address(), doing, &error))
            }
            Err(_) => {
                self.connection = None;
                Err(StoreError::silent(&self.server.address(), true))
            }
        }
    }
}
