//! Checks the tokens of callers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::warn;

use super::caller::Caller;
use super::rpc_error::{RpcError, code};
use crate::client::{Client, TokenError};
use crate::proto::access::TokenRecord;

/// The time within which a token is not asked for again. A revoked one is refused after it.
const KEPT_FOR: Duration = Duration::from_secs(5);
/// The tokens that are kept at most.
const KEPT_MAX: usize = 1000;

/// The callers of the tokens that were checked of late.
pub struct Tokens {
    client: Client,
    kept: Mutex<HashMap<String, (Instant, Arc<Caller>)>>,
}

impl Tokens {
    /// Creates it.
    pub fn new(client: Client) -> Self {
        Self { client, kept: Mutex::new(HashMap::new()) }
    }

    /// Returns the caller of a token; `None` if it is unknown, expired or revoked.
    ///
    /// # Errors
    /// [`RpcError`] if Redis cannot be asked.
    pub async fn check(&self, token: &str) -> Result<Option<Arc<Caller>>, RpcError> {
        if let Some(caller) = self.kept(token) {
            return Ok(Some(caller));
        }
        let record = self.client.check_token(token).await.map_err(|error| {
            warn!("cannot check a token: {error}");
            unchecked(&error)
        })?;
        let caller = record.map(|record| Arc::new(Caller::from(record)));
        if let Some(caller) = &caller {
            self.keep(token, caller);
        }
        Ok(caller)
    }

    fn kept(&self, token: &str) -> Option<Arc<Caller>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, caller) = kept.get(token)?;
        (since.elapsed() < KEPT_FOR).then(|| Arc::clone(caller))
    }

    fn keep(&self, token: &str, caller: &Arc<Caller>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.retain(|_, (since, _)| since.elapsed() < KEPT_FOR);
        }
        if kept.len() < KEPT_MAX {
            kept.insert(token.to_owned(), (Instant::now(), Arc::clone(caller)));
        }
    }
}

fn unchecked(error: &TokenError) -> RpcError {
    let message = format!("cannot check the token: {error}; try again");
    let retryable = matches!(error, TokenError::Store(error) if error.is_transient());
    RpcError::new(code::INTERNAL, message).with("retryable", retryable)
}

impl From<TokenRecord> for Caller {
    fn from(record: TokenRecord) -> Self {
        Self { name: record.name.to_string(), scopes: record.scopes, bounds: record.bounds }
    }
}
