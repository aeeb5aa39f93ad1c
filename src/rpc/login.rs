//! The login by a token or a signature: a wrong one is logged, and its client waits longer each time.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::{info, warn};

use super::caller::Caller;
use super::expiring_cache::ExpiringCache;
use super::nonce::{LOGIN_LIFETIME, Logins};
use super::rpc_error::{Result, RpcError, code};
use crate::client::{Client, ClientError};
use crate::proto::access::TokenRecord;

/// Returns the caller of a token, if it is valid; an error if that cannot be told now.
pub type TokenCheck = Arc<dyn Fn(String) -> CheckedToken + Send + Sync>;

/// The caller of a token; `None` if it is not known, expired or revoked.
pub type CheckedToken = Pin<Box<dyn Future<Output = Result<Option<Arc<Caller>>>> + Send>>;

tokio::task_local! {
    /// The client whose request is being answered.
    pub(super) static PEER: Arc<str>;
}

/// Returns the address of the client whose request is being answered, or its user over the socket.
pub(super) fn peer() -> String {
    PEER.try_with(ToString::to_string).unwrap_or_else(|_| "an unknown client".to_owned())
}

pub struct TokenLogin {
    check: TokenCheck,
    logins: Arc<Logins>,
    guesses: LoginThrottle,
}

impl TokenLogin {
    pub(super) fn new(check: TokenCheck, logins: Arc<Logins>) -> Self {
        Self { check, logins, guesses: LoginThrottle::default() }
    }

    /// Returns the caller of a token, for the client whose request is being answered.
    ///
    /// # Errors
    /// [`RpcError`] if the token cannot be checked now; that is no failed login.
    pub async fn check(&self, token: &str) -> Result<Option<Arc<Caller>>> {
        self.check_from(token, &peer()).await
    }

    pub(super) async fn check_from(&self, token: &str, peer: &str) -> Result<Option<Arc<Caller>>> {
        let found = self.holder(token).await?;
        if found.is_some() {
            self.guesses.succeeded(peer);
        } else {
            warn!(peer, "refused a login from {peer}: the token is not known");
            self.guesses.failed(peer).await;
        }
        Ok(found)
    }

    /// Returns the caller of a token. An invalid token is no failed login.
    pub(crate) async fn holder(&self, token: &str) -> Result<Option<Arc<Caller>>> {
        match self.logins.check(token) {
            Some(caller) => Ok(Some(caller)),
            None => (self.check)(token.to_owned()).await,
        }
    }

    /// Calls a method of the login by a signature, which anyone may call; `None` for any other.
    pub(super) async fn call(
        &self,
        method: &str,
        params: &Value,
        peer: &str,
    ) -> Option<Result<Value>> {
        let text = |at: usize, name: &str| {
            let value = if params.is_array() { params.get(at) } else { params.get(name) };
            value.and_then(Value::as_str).ok_or_else(|| {
                let message =
                    format!("the parameters of {method} are wrong: {name} must be a text");
                RpcError::new(code::INVALID_PARAMS, message)
            })
        };
        match method {
            "fetch_nonce" => {
                Some(text(0, "pubkey").and_then(|key| self.logins.nonce(key).map(Value::String)))
            }
            "authenticate" => {
                let given = text(0, "pubkey")
                    .and_then(|key| Ok((key, text(1, "nonce")?, text(2, "signature")?)));
                let (key, nonce, signature) = match given {
                    Ok(given) => given,
                    Err(error) => return Some(Err(error)),
                };
                let token = self.logins.log_in(key, nonce, signature);
                if token.is_ok() {
                    info!(peer, "{peer} logged in by a signature");
                    self.guesses.succeeded(peer);
                } else {
                    warn!(peer, "refused a login by a signature from {peer}");
                    self.guesses.failed(peer).await;
                }
                let lifetime_s = LOGIN_LIFETIME.as_secs();
                Some(token.map(|token| json!({ "token": token, "lifetime_s": lifetime_s })))
            }
            _ => None,
        }
    }
}

/// The failed logins before a client must wait.
const FREE: u32 = 3;
/// The first wait; it doubles each time.
const WAIT: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(3);
/// Failed logins are forgotten after this time.
const MEMORY: Duration = Duration::from_mins(10);
const CLIENTS_MAX: usize = 4096;

/// The clients whose logins failed lately.
#[derive(Default)]
struct LoginThrottle(Mutex<HashMap<String, (u32, Instant)>>);

impl LoginThrottle {
    async fn failed(&self, peer: &str) {
        let wait = self.wait_after_failure(peer, Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    fn wait_after_failure(&self, peer: &str, now: Instant) -> Duration {
        let mut clients = self.0.lock();
        clients.retain(|_, (_, last)| now.duration_since(*last) < MEMORY);
        if clients.len() >= CLIENTS_MAX && !clients.contains_key(peer) {
            // A client with many addresses: those that it does not use now are forgotten first.
            let oldest = clients.iter().min_by_key(|(_, (_, last))| *last);
            if let Some(oldest) = oldest.map(|(peer, _)| peer.clone()) {
                clients.remove(&oldest);
            }
        }
        let (failures, last) = clients.entry(peer.to_owned()).or_insert((0, now));
        (*failures, *last) = (failures.saturating_add(1), now);
        match failures.checked_sub(FREE + 1) {
            None => Duration::ZERO,
            Some(doubled) => WAIT.saturating_mul(1 << doubled.min(10)).min(WAIT_MAX),
        }
    }

    /// Forgets the failed logins of a client.
    fn succeeded(&self, peer: &str) {
        let mut clients = self.0.lock();
        if !clients.is_empty() {
            clients.remove(peer);
        }
    }
}

/// The time within which a token is not asked for again. A revoked one is refused after it.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// The callers of the tokens that were checked of late.
pub struct Tokens {
    client: Client,
    kept: ExpiringCache<Arc<Caller>>,
}

impl Tokens {
    pub fn new(client: Client) -> Self {
        Self { client, kept: ExpiringCache::new(KEPT_FOR) }
    }

    /// Returns the caller of a token; `None` if it is unknown, expired or revoked.
    pub async fn check(&self, token: &str) -> Result<Option<Arc<Caller>>> {
        if let Some(caller) = self.kept.get(token) {
            return Ok(Some(caller));
        }
        let record = self.client.tokens().check(token).await.map_err(|error| {
            warn!("cannot check a token: {error}");
            let message = format!("cannot check the token: {error}; try again");
            let retryable = matches!(error, ClientError::Store(error) if error.is_transient());
            RpcError::new(code::INTERNAL, message).with("retryable", retryable)
        })?;
        let caller = record.map(|record| Arc::new(Caller::from(record)));
        if let Some(caller) = &caller {
            // Without room it is asked for again.
            let _ = self.kept.keep(token.to_owned(), Arc::clone(caller));
        }
        Ok(caller)
    }
}

impl From<TokenRecord> for Caller {
    fn from(record: TokenRecord) -> Self {
        Self { name: record.name.to_string(), scopes: record.scopes, bounds: record.bounds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_login_of_a_client_waits_longer() {
        let (guesses, now) = (LoginThrottle::default(), Instant::now());
        let wait = |peer: &str| guesses.wait_after_failure(peer, now).as_millis();
        let waits: Vec<u128> = (0..10).map(|_| wait("a")).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 400, 800, 1600, 3000, 3000]);
        assert_eq!(wait("b"), 0);
        guesses.succeeded("a");
        assert_eq!(guesses.wait_after_failure("a", now), Duration::ZERO);
    }

    #[test]
    fn clients_are_forgotten_and_bounded() {
        let (guesses, now) = (LoginThrottle::default(), Instant::now());
        for number in 0..CLIENTS_MAX + 10 {
            guesses.wait_after_failure(&number.to_string(), now);
        }
        assert_eq!(guesses.0.lock().len(), CLIENTS_MAX);
        guesses.wait_after_failure("late", now + MEMORY);
        assert_eq!(guesses.0.lock().len(), 1);
    }
}
