//! Calls that are larger than Redis takes. It closes the connection at them, and would at each repetition, so the
//! second time is an answer and no outage.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Arg, Cmd, Pipeline, RedisError, RedisFuture, Value};

use super::store_error::{has_closed_connection, is_oversized};

/// The smallest bound that Redis takes: of `proto-max-bulk-len`, and of `client-query-buffer-limit`.
pub(super) const BOUND_MIN_BYTES: usize = 1 << 20;
/// The time in which the same call has to fail again.
const REPEATED_WITHIN: Duration = Duration::from_mins(1);

/// A connection that notes the size of the command at which Redis closed it.
pub(super) struct MeasuredConnection {
    connection: MultiplexedConnection,
    closed_at_bytes: Arc<AtomicUsize>,
}

impl MeasuredConnection {
    pub(super) fn new(
        connection: MultiplexedConnection,
        closed_at_bytes: &Arc<AtomicUsize>,
    ) -> Self {
        Self { connection, closed_at_bytes: Arc::clone(closed_at_bytes) }
    }

    fn note<'c>(&self, commands: impl Iterator<Item = &'c Cmd>) {
        let bytes = commands.map(size_bytes).max().unwrap_or_default();
        self.closed_at_bytes.store(bytes, Ordering::Relaxed);
    }
}

impl ConnectionLike for MeasuredConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let answer = self.connection.req_packed_command(command).await;
            if has_closed(answer.as_ref().map(std::slice::from_ref)) {
                self.note(std::iter::once(command));
            }
            answer
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let answer = self.connection.req_packed_commands(pipeline, offset, count).await;
            if has_closed(answer.as_ref().map(Vec::as_slice)) {
                self.note(pipeline.cmd_iter());
            }
            answer
        })
    }

    fn get_db(&self) -> i64 {
        self.connection.get_db()
    }
}

/// Returns whether Redis closed the connection, or says that it does so as the call is too large.
fn has_closed(answer: Result<&[Value], &RedisError>) -> bool {
    let says_so = |value: &Value| match value {
        Value::ServerError(error) => is_oversized(&error.clone().into()),
        _ => false,
    };
    match answer {
        Ok(values) => values.iter().any(says_so),
        Err(error) => has_closed_connection(error) || is_oversized(error),
    }
}

fn size_bytes(command: &Cmd) -> usize {
    let size = |argument: Arg<&[u8]>| match argument {
        Arg::Simple(bytes) => bytes.len(),
        _ => 0,
    };
    command.args_iter().map(size).sum()
}

/// The latest large calls at which Redis closed the connection, though it served others.
#[derive(Clone, Default)]
pub(super) struct OversizedCalls(Arc<Mutex<Vec<ClosedAt>>>);

struct ClosedAt {
    doing: &'static str,
    bytes: usize,
    at: Instant,
}

impl OversizedCalls {
    /// Notes such a call. Returns whether the same call failed so shortly before.
    pub(super) fn note(&self, doing: &'static str, bytes: usize, now: Instant) -> bool {
        let mut calls = self.0.lock();
        calls.retain(|call| now.duration_since(call.at) < REPEATED_WITHIN);
        let before = calls.iter().position(|call| call.doing == doing && call.bytes == bytes);
        match before {
            Some(place) => drop(calls.remove(place)),
            None => calls.push(ClosedAt { doing, bytes, at: now }),
        }
        before.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_call_within_a_minute_is_a_repetition() {
        let (calls, now) = (OversizedCalls::default(), Instant::now());
        assert!(!calls.note("a", 1, now));
        assert!(!calls.note("b", 1, now));
        assert!(!calls.note("a", 2, now));
        assert!(calls.note("a", 1, now));
        assert!(!calls.note("a", 1, now), "both were the one error");
        assert!(!calls.note("a", 1, now + REPEATED_WITHIN));
    }

    #[test]
    fn refusal_of_a_large_argument_closes_the_connection_and_another_error_does_not() {
        let value = |text: &str| redis::parse_redis_value(text.as_bytes()).expect("a value");
        let refused = value("-ERR Protocol error: invalid bulk length\r\n");
        assert!(has_closed(Ok(&[value("+OK\r\n"), refused])));
        assert!(!has_closed(Ok(&[value("-ERR no such key\r\n")])));
    }

    #[test]
    fn size_of_a_command_is_that_of_all_its_arguments() {
        assert_eq!(size_bytes(redis::cmd("SET").arg("key").arg("1234")), 10);
    }
}
