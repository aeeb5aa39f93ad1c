//! The login by a token or a signature: a wrong one is logged, and its client waits longer each time.

use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};
use tracing::{info, warn};

use super::caller::Caller;
use super::login_throttle::LoginThrottle;
use super::nonce::{LOGIN_LIFETIME, Logins};
use super::rpc_error::{RpcError, code};

/// Returns the caller of a token, if it is valid; an error if that cannot be told now.
pub type TokenCheck = Arc<dyn Fn(String) -> CheckedToken + Send + Sync>;

/// The caller of a token; `None` if it is not known, expired or revoked.
pub type CheckedToken = Pin<Box<dyn Future<Output = Result<Option<Arc<Caller>>, RpcError>> + Send>>;

tokio::task_local! {
    /// The client whose request is being answered.
    pub(super) static PEER: Arc<str>;
}

/// Returns the address of the client whose request is being answered, or its user over the socket.
pub(super) fn peer() -> String {
    PEER.try_with(ToString::to_string).unwrap_or_else(|_| "an unknown client".to_owned())
}

/// Checks tokens.
pub struct TokenLogin {
    check: TokenCheck,
    logins: Logins,
    guesses: LoginThrottle,
}

impl TokenLogin {
    pub(super) fn new(check: TokenCheck, logins: Logins) -> Self {
        Self { check, logins, guesses: LoginThrottle::default() }
    }

    /// Returns the caller of a token, for the client whose request is being answered.
    ///
    /// # Errors
    /// [`RpcError`] if the token cannot be checked now; that is no failed login.
    pub async fn check(&self, token: &str) -> Result<Option<Arc<Caller>>, RpcError> {
        let peer = PEER.try_with(Arc::clone).unwrap_or_else(|_| "an unknown client".into());
        self.check_from(token, &peer).await
    }

    pub(super) async fn check_from(
        &self,
        token: &str,
        peer: &str,
    ) -> Result<Option<Arc<Caller>>, RpcError> {
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
    pub(crate) async fn holder(&self, token: &str) -> Result<Option<Arc<Caller>>, RpcError> {
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
    ) -> Option<Result<Value, RpcError>> {
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
