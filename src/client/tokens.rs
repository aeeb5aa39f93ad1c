//! The tokens of the API: made, listed, revoked and checked.

use std::fmt;
use std::time::Duration;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use super::Client;
use crate::error::{Error, Exit};
use crate::proto::access::{Bounds, Scopes, TokenName, TokenRecord};
use crate::proto::text::hexadecimal;
use crate::store::{StoreError, TokenAdded};

/// The beginning of each token: people and scanners for secrets know it by this.
const PREFIX: &str = "hero_";
/// The random bytes of a token.
const RANDOM_BYTES: usize = 32;

/// The reason why an operation on tokens failed.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Redis cannot be reached, refuses, or gives an unexpected answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another token has the name.
    #[error("there is a token {0} already: revoke it, or choose another name")]
    NameInUse(TokenName),
    /// There are as many tokens as there may be.
    #[error("cannot add a token: there are as many as there may be; revoke some first")]
    TooMany,
    /// No token has the name.
    #[error("there is no token {0}; hero token list shows all")]
    NoSuchToken(TokenName),
    /// The system gives no random bytes.
    #[error("cannot make a token: the system gives no random bytes")]
    NoRandomBytes,
}

impl From<TokenError> for Error {
    fn from(error: TokenError) -> Self {
        let exit = match &error {
            TokenError::Store(StoreError::NotPermitted { .. }) => Exit::NotPermitted,
            TokenError::Store(_) | TokenError::NoRandomBytes => Exit::Unavailable,
            TokenError::NameInUse(_) | TokenError::TooMany => Exit::Data,
            TokenError::NoSuchToken(_) => Exit::NotFound,
        };
        Self::new(exit, error.to_string())
    }
}

/// The settings of a new token.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Its name.
    pub name: TokenName,
    /// Its rights.
    pub scopes: Scopes,
    /// The bounds of its jobs.
    pub bounds: Bounds,
    /// It is refused after this time.
    pub lifetime: Option<Duration>,
    /// Its creator, for the list.
    pub created_by: String,
}

/// A secret that a caller shows: `hero_` and 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Creates a random one.
    ///
    /// # Errors
    /// The system gives no random bytes.
    fn random() -> Result<Self, TokenError> {
        let mut bytes = [0; RANDOM_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| TokenError::NoRandomBytes)?;
        Ok(Self(format!("{PREFIX}{}", hexadecimal(&bytes))))
    }

    /// Returns it in full.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hero_…")
    }
}

/// Returns the SHA-256 of a token in hexadecimal, as it is kept.
fn hash(token: &str) -> String {
    hexadecimal(digest(&SHA256, token.as_bytes()).as_ref())
}

impl Client {
    /// Creates a token and returns it. It is shown this once: only its SHA-256 is kept.
    ///
    /// # Errors
    /// [`TokenError::NameInUse`], [`TokenError::TooMany`], [`TokenError::Store`].
    pub async fn create_token(&self, new: NewToken) -> Result<Token, TokenError> {
        let token = Token::random()?;
        let now = self.store.now().await?;
        let lifetime_s = new.lifetime.map(|time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
        let record = TokenRecord {
            name: new.name,
            scopes: new.scopes,
            bounds: new.bounds,
            created_at: format!("{now:.3}"),
            created_by: new.created_by,
            expires_s: lifetime_s.map(|time| now.as_second().saturating_add(time)),
        };
        match self.store.add_token(&hash(token.reveal()), &record).await? {
            TokenAdded::Yes => {
                self.note("token.new", &record.name).await;
                Ok(token)
            }
            TokenAdded::NameInUse => Err(TokenError::NameInUse(record.name)),
            TokenAdded::Full => Err(TokenError::TooMany),
        }
    }

    /// Lists the tokens, by name.
    ///
    /// # Errors
    /// [`TokenError::Store`].
    pub async fn list_tokens(&self) -> Result<Vec<TokenRecord>, TokenError> {
        Ok(self.store.tokens().await?)
    }

    /// Revokes a token: it is refused from now on, by every supervisor within seconds.
    ///
    /// # Errors
    /// [`TokenError::NoSuchToken`], [`TokenError::Store`].
    pub async fn revoke_token(&self, name: &TokenName) -> Result<(), TokenError> {
        if self.store.remove_token(name).await? {
            self.note("token.revoke", name).await;
            Ok(())
        } else {
            Err(TokenError::NoSuchToken(name.clone()))
        }
    }

    /// Returns the record of a token, unless it is unknown, revoked or expired.
    ///
    /// # Errors
    /// [`TokenError::Store`].
    pub async fn check_token(&self, token: &str) -> Result<Option<TokenRecord>, TokenError> {
        let is_token = token.len() == PREFIX.len() + 2 * RANDOM_BYTES && token.starts_with(PREFIX);
        if !is_token {
            return Ok(None);
        }
        let Some(record) = self.store.token(&hash(token)).await? else { return Ok(None) };
        let now_s = self.store.now().await?.as_second();
        Ok(Some(record).filter(|record| !record.has_expired(now_s)))
    }
}
