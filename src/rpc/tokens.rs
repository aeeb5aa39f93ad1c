//! Checks the tokens of callers.

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::caller::Caller;
use super::expiring_cache::ExpiringCache;
use super::rpc_error::{Result, RpcError, code};
use crate::client::{Client, ClientError};
use crate::proto::access::TokenRecord;

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
        let record = self.client.check_token(token).await.map_err(|error| {
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
