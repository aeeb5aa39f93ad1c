//! The tokens of the API: made, listed, revoked and checked.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use super::{ClientError, Result, TokenClient};
use crate::error::{Error, Exit};
use crate::proto::access::{Bounds, Scopes, TokenName, TokenRecord};
use crate::proto::text::hexadecimal;
use crate::store::{TokenAdded, TokenRotated};

/// The beginning of each token: people and scanners for secrets know it by this.
const PREFIX: &str = "hero_";
const RANDOM_BYTES: usize = 32;

#[derive(Debug, Clone)]
pub struct NewToken {
    pub name: TokenName,
    pub scopes: Scopes,
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
    fn random() -> Result<Self, Error> {
        let mut bytes = [0; RANDOM_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| {
            let message = "cannot make a token: the system gives no random bytes";
            Error::new(Exit::Unavailable, message)
        })?;
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

/// Returns the second in which a lifetime that begins now ends.
fn end_of(lifetime: Option<Duration>, now: Timestamp) -> Option<i64> {
    let lifetime_s = lifetime.map(|time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
    lifetime_s.map(|time| now.as_second().saturating_add(time))
}

fn no_token(name: &TokenName) -> Error {
    let message = format!("there is no token {name}; hero token list shows all");
    Error::new(Exit::NotFound, message)
}

impl TokenClient<'_> {
    /// Creates a token and returns it. It is shown this once: only its SHA-256 is kept.
    ///
    /// # Errors
    /// [`Exit::Data`] if another token has the name, or there are too many; the code of [`ClientError::Store`].
    pub async fn create(self, new: NewToken) -> Result<Token, Error> {
        let token = Token::random()?;
        let now = self.client.system().now().await?;
        let record = TokenRecord {
            name: new.name,
            scopes: new.scopes,
            bounds: new.bounds,
            created_at: format!("{now:.3}"),
            created_by: new.created_by,
            expires_s: end_of(new.lifetime, now),
            replaced: false,
        };
        let added = self.client.store.tokens().add(&hash(token.reveal()), &record).await;
        let name = record.name;
        let refused = match added.map_err(ClientError::from)? {
            TokenAdded::Yes => {
                self.client.audit().note("token.new", &name).await;
                return Ok(token);
            }
            TokenAdded::NameInUse => {
                format!("there is a token {name} already: revoke it, or choose another name")
            }
            TokenAdded::Full => {
                "cannot add a token: there are as many as there may be; revoke some first"
                    .to_owned()
            }
        };
        Err(Error::new(Exit::Data, refused))
    }

    pub async fn list(self) -> Result<Vec<TokenRecord>> {
        Ok(self.client.store.tokens().list().await?)
    }

    /// Makes another secret of a token, with its rights: both are valid until the old one is dropped. `lifetime` is the
    /// time of the new one; by default it ends as the old one does.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if no token has the name; [`Exit::Data`] if an older secret is still valid; the code of
    /// [`ClientError::Store`].
    pub async fn rotate(
        self,
        name: &TokenName,
        lifetime: Option<Duration>,
        created_by: &str,
    ) -> Result<Token, Error> {
        let (token, now) = (Token::random()?, self.client.system().now().await?);
        let created = format!("{now:.3}");
        let (hash, created) = (hash(token.reveal()), (created.as_str(), created_by));
        let rotated =
            self.client.store.tokens().rotate(&hash, name, created, end_of(lifetime, now)).await;
        match rotated.map_err(ClientError::from)? {
            TokenRotated::Yes => {}
            TokenRotated::NoSuchToken => return Err(no_token(name)),
            TokenRotated::OldIsValid => {
                let message = format!(
                    "the token {name} has two secrets already: hero token rotate {name} --drop-old ends the old one"
                );
                return Err(Error::new(Exit::Data, message));
            }
        }
        self.client.audit().note("token.rotate", name).await;
        Ok(token)
    }

    /// Drops the secret of a token that another one has replaced.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if there is none; the code of [`ClientError::Store`].
    pub async fn drop_old(self, name: &TokenName) -> Result<(), Error> {
        if !self.client.store.tokens().remove(name, true).await.map_err(ClientError::from)? {
            let message = format!("the token {name} has no old secret");
            return Err(Error::new(Exit::NotFound, message));
        }
        self.client.audit().note("token.drop_old", name).await;
        Ok(())
    }

    /// Revokes a token: it is refused from now on, by every supervisor within seconds.
    ///
    /// # Errors
    /// [`Exit::NotFound`] if no token has the name; the code of [`ClientError::Store`].
    pub async fn revoke(self, name: &TokenName) -> Result<(), Error> {
        if !self.client.store.tokens().remove(name, false).await.map_err(ClientError::from)? {
            return Err(no_token(name));
        }
        self.client.audit().note("token.revoke", name).await;
        Ok(())
    }

    /// Returns the record of a token, unless it is unknown, revoked or expired.
    pub async fn check(self, token: &str) -> Result<Option<TokenRecord>> {
        let is_token = token.len() == PREFIX.len() + 2 * RANDOM_BYTES && token.starts_with(PREFIX);
        if !is_token {
            return Ok(None);
        }
        let Some(record) = self.client.store.tokens().get(&hash(token)).await? else {
            return Ok(None);
        };
        let now_s = self.client.store.now().await?.as_second();
        Ok(Some(record).filter(|record| !record.has_expired(now_s)))
    }
}
