//! Logins by a signature: a caller asks for a nonce, signs it with its key, and gets a token for some time.
//!
//! The key is one of secp256k1, and the signature is ECDSA over the SHA-256 of the nonce's text. Keys and
//! signatures are hexadecimal: a key is compressed or not, a signature has 64 bytes, `r` and `s`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k256::ecdsa::signature::Verifier;
use k256::ecdsa::{Signature, VerifyingKey};
use ring::rand::{SecureRandom, SystemRandom};

use super::caller::Caller;
use super::kept::KeptFor;
use super::rpc_error::{RpcError, code};
use crate::proto::text::hexadecimal;

/// The time to sign a nonce.
const NONCE_LIFETIME: Duration = Duration::from_mins(1);
/// The lifetime of the token of a login.
pub const LOGIN_LIFETIME: Duration = Duration::from_hours(1);
const RANDOM_BYTES: usize = 32;

/// The keys that may log in, and the logins of late.
pub struct Logins {
    /// The callers, by the compressed key in hexadecimal.
    keys: BTreeMap<String, Arc<Caller>>,
    /// The owner of each nonce.
    nonces: KeptFor<String>,
    tokens: KeptFor<Arc<Caller>>,
}

impl Logins {
    /// Creates it with the callers of each key in hexadecimal.
    ///
    /// # Errors
    /// A sentence with the first key that is none.
    pub fn new(keys: impl IntoIterator<Item = (String, Caller)>) -> Result<Self, String> {
        let mut by_key = BTreeMap::new();
        for (key, caller) in keys {
            let read = key_of(&key).ok_or_else(|| {
                format!("{key} of {} is not a hexadecimal secp256k1 public key", caller.name)
            })?;
            by_key.insert(name_of(&read), Arc::new(caller));
        }
        let (nonces, tokens) = (KeptFor::new(NONCE_LIFETIME), KeptFor::new(LOGIN_LIFETIME));
        Ok(Self { keys: by_key, nonces, tokens })
    }

    /// Returns a nonce for the owner of a key to sign. It tells nobody whether the key is known.
    ///
    /// # Errors
    /// [`RpcError`] if the key is none, or too many nonces are not signed yet.
    pub fn nonce(&self, key: &str) -> Result<String, RpcError> {
        let key = key_of(key).ok_or_else(|| {
            let message = "not a hexadecimal secp256k1 public key";
            RpcError::new(code::INVALID_PARAMS, message)
        })?;
        let nonce = random()?;
        refuse_unless(self.nonces.keep(nonce.clone(), name_of(&key)))?;
        Ok(nonce)
    }

    /// Logs in the owner of a key, who has signed a nonce. Returns a token for some time. A nonce is
    /// good for one attempt.
    ///
    /// # Errors
    /// [`RpcError`] if the key did not make the signature, the nonce was not given to it or is old,
    /// or the key may not log in.
    pub fn log_in(&self, key: &str, nonce: &str, signature: &str) -> Result<String, RpcError> {
        let refused = || {
            let message = "the login is refused: the key is not known, its signature is wrong, or the \
                           nonce is older than a minute; ask for another nonce";
            RpcError::new(code::UNAUTHENTICATED, message)
        };
        let key = key_of(key).ok_or_else(refused)?;
        let is_given = self.nonces.take(nonce).is_some_and(|owner| owner == name_of(&key));
        let bytes = bytes_of(signature).ok_or_else(refused)?;
        let signature = Signature::from_slice(&bytes).map_err(|_| refused())?;
        let is_signed = key.verify(nonce.as_bytes(), &signature).is_ok();
        let caller = self.keys.get(&name_of(&key)).filter(|_| is_given && is_signed);
        let caller = caller.ok_or_else(refused)?;
        let token = format!("login_{}", random()?);
        refuse_unless(self.tokens.keep(token.clone(), Arc::clone(caller)))?;
        Ok(token)
    }

    /// Returns the caller of the token of a login, while it holds.
    pub fn check(&self, token: &str) -> Option<Arc<Caller>> {
        self.tokens.get(token)
    }
}

/// Refuses a login for which there is no room.
fn refuse_unless(has_room: bool) -> Result<(), RpcError> {
    if has_room {
        return Ok(());
    }
    let message = "too many logins have begun; try again in a minute";
    Err(RpcError::new(code::INTERNAL, message))
}

fn random() -> Result<String, RpcError> {
    let mut bytes = [0; RANDOM_BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| RpcError::new(code::INTERNAL, "the system gives no random bytes"))?;
    Ok(hexadecimal(&bytes))
}

/// Returns the bytes of a hexadecimal text, with or without `0x`.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    if digits.len() > 200 || !digits.len().is_multiple_of(2) {
        return None;
    }
    let byte = |pair: &[u8]| {
        let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
        u8::try_from(high? * 16 + low?).ok()
    };
    digits.chunks_exact(2).map(byte).collect()
}

fn key_of(text: &str) -> Option<VerifyingKey> {
    VerifyingKey::from_sec1_bytes(&bytes_of(text)?).ok()
}

fn name_of(key: &VerifyingKey) -> String {
    hexadecimal(key.to_sec1_point(true).as_bytes())
}

#[cfg(test)]
mod tests {
    use k256::ecdsa::SigningKey;
    use k256::ecdsa::signature::Signer;

    use super::*;
    use crate::proto::access::{Bounds, Scopes};

    fn key(byte: u8) -> SigningKey {
        SigningKey::from_slice(&[byte; 32]).expect("a key")
    }

    fn public(key: &SigningKey) -> String {
        name_of(key.verifying_key())
    }

    fn sign(key: &SigningKey, text: &str) -> String {
        let signature: Signature = key.sign(text.as_bytes());
        hexadecimal(&signature.to_bytes())
    }

    fn logins(of: &SigningKey) -> Logins {
        let caller =
            Caller { name: "ann".to_owned(), scopes: Scopes::all(), bounds: Bounds::default() };
        Logins::new([(public(of), caller)]).expect("a key")
    }

    #[test]
    fn signed_nonce_gives_a_token_of_its_key() {
        let ann = key(1);
        let logins = logins(&ann);
        let nonce = logins.nonce(&public(&ann)).expect("a nonce");
        let token = logins.log_in(&public(&ann), &nonce, &sign(&ann, &nonce)).expect("a token");
        assert_eq!(logins.check(&token).expect("a caller").name, "ann");
        assert!(logins.check("login_").is_none());
    }

    #[test]
    fn nonce_is_good_for_one_attempt_of_its_key() {
        let (ann, eve) = (key(1), key(2));
        let logins = logins(&ann);
        let refused = |key: &SigningKey, nonce: &str, signature: &str| {
            let error = logins.log_in(&public(key), nonce, signature).expect_err("refused");
            assert_eq!(error.code, code::UNAUTHENTICATED);
        };
        let nonce = logins.nonce(&public(&ann)).expect("a nonce");
        refused(&ann, &nonce, &sign(&eve, &nonce));
        refused(&ann, &nonce, &sign(&ann, &nonce));

        let unknown = logins.nonce(&public(&eve)).expect("a nonce, as for a known key");
        refused(&eve, &unknown, &sign(&eve, &unknown));
        let of_eve = logins.nonce(&public(&eve)).expect("a nonce");
        refused(&ann, &of_eve, &sign(&ann, &of_eve));
        refused(&ann, "never given", &sign(&ann, "never given"));
        refused(&ann, &nonce, "00");
        refused(&ann, &nonce, "zz");
    }

    #[test]
    fn text_that_is_no_key_is_refused() {
        for text in ["", "0", "zz", "02", &"ff".repeat(33), &"00".repeat(5000)] {
            assert_eq!(
                logins(&key(1)).nonce(text).expect_err("refused").code,
                code::INVALID_PARAMS
            );
        }
    }
}
