//! The tokens of the API: one hash of records, by the SHA-256 of the token.

use super::text::StoredText;
use super::{Result, TokenStore};
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

/// The answer to a second secret of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRotated {
    Yes,
    NoSuchToken,
    /// A secret that was replaced before is valid.
    OldIsValid,
}

impl TokenStore<'_> {
    /// Adds a token. `hash` is its SHA-256 in hexadecimal.
    pub async fn add(self, hash: &str, record: &TokenRecord) -> Result<TokenAdded> {
        let json = serde_json::to_string(record).unwrap_or_default();
        let arguments = (hash, record.name.as_str(), json, TOKENS_MAX);
        let added: i64 = self
            .store
            .run_script("adding a token", &self.store.scripts.add_token, arguments)
            .await?;
        Ok(match added {
            1 => TokenAdded::Yes,
            0 => TokenAdded::NameInUse,
            _ => TokenAdded::Full,
        })
    }

    /// Adds a second secret of a token, with the rights of the first. `hash` is its SHA-256 in hexadecimal.
    pub async fn rotate(
        self,
        hash: &str,
        name: &TokenName,
        (created_at, created_by): (&str, &str),
        expires_s: Option<i64>,
    ) -> Result<TokenRotated> {
        let expires_s = expires_s.map(|end| end.to_string()).unwrap_or_default();
        let arguments = (hash, name.as_str(), created_at, created_by, expires_s);
        let rotated: i64 = self
            .store
            .run_script("rotating a token", &self.store.scripts.rotate_token, arguments)
            .await?;
        Ok(match rotated {
            1 => TokenRotated::Yes,
            0 => TokenRotated::NoSuchToken,
            _ => TokenRotated::OldIsValid,
        })
    }

    /// Removes a token with all its secrets, or only the one that another has replaced. Returns false if there was none.
    pub async fn remove(self, name: &TokenName, only_replaced: bool) -> Result<bool> {
        let only = if only_replaced { "1" } else { "" };
        let arguments = (name.as_str(), only);
        self.store.run_script("revoking a token", &self.store.scripts.remove_token, arguments).await
    }

    /// Returns the record of the token with this SHA-256.
    pub async fn get(self, hash: &str) -> Result<Option<TokenRecord>> {
        let record: Option<StoredText> = self
            .store
            .link
            .command("looking at a token", "HGET", (self.store.keys.tokens(), hash))
            .await?;
        Ok(record.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Returns all tokens in the order of their names, also those that have expired.
    pub async fn list(self) -> Result<Vec<TokenRecord>> {
        let records: Vec<StoredText> =
            self.store.link.command("listing tokens", "HVALS", self.store.keys.tokens()).await?;
        let mut records: Vec<TokenRecord> =
            records.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
        records.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(records)
    }
}
