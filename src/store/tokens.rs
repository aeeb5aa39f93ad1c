//! The tokens of the API: one hash of records, by the SHA-256 of the token.

use super::text::StoredText;
use super::{Store, StoreError};
use crate::proto::access::{TokenName, TokenRecord};

/// The tokens that a namespace keeps, so that each may be read at once.
const TOKENS_MAX: usize = 1000;

/// The answer to a new token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenAdded {
    Yes,
    NameInUse,
    /// There are as many tokens as there may be.
    Full,
}

impl Store {
    /// Adds a token. `hash` is its SHA-256 in hexadecimal.
    pub async fn add_token(
        &self,
        hash: &str,
        record: &TokenRecord,
    ) -> Result<TokenAdded, StoreError> {
        let json = serde_json::to_string(record).unwrap_or_default();
        let arguments = (hash, record.name.as_str(), json, TOKENS_MAX);
        let added: i64 =
            self.run_script("adding a token", &self.scripts.add_token, arguments).await?;
        Ok(match added {
            1 => TokenAdded::Yes,
            0 => TokenAdded::NameInUse,
            _ => TokenAdded::Full,
        })
    }

    /// Removes a token. Returns false if there was none.
    pub async fn remove_token(&self, name: &TokenName) -> Result<bool, StoreError> {
        self.run_script("revoking a token", &self.scripts.remove_token, name.as_str()).await
    }

    /// Returns the record of the token with this SHA-256.
    pub async fn token(&self, hash: &str) -> Result<Option<TokenRecord>, StoreError> {
        let record: Option<StoredText> =
            self.link.command("looking at a token", "HGET", (self.keys.tokens(), hash)).await?;
        Ok(record.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Returns all tokens in the order of their names, also those that have expired.
    pub async fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        let records: Vec<StoredText> =
            self.link.command("listing tokens", "HVALS", self.keys.tokens()).await?;
        let mut records: Vec<TokenRecord> =
            records.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
        records.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(records)
    }
}
