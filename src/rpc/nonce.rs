//! Logins by a signature: a caller asks for a nonce, signs it with its key, and gets a token for some time.
//!
//! The key is one of secp256k1, and the signature is ECDSA over the SHA-256 of the nonce's text. Keys and
//! signatures are hexadecimal: a key is compressed or not, a signature has 64 bytes, `r` and `s`.
//!
//! A nonce says itself when it was given and carries a MAC over that and the key. So nothing is stored for those who ask for
//! one, who may be strangers; a nonce is stored once its key has signed it, so that it logs in once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k256::ecdsa::signature::Verifier;
use k256::ecdsa::{Signature, VerifyingKey};
use parking_lot::Mutex;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use super::caller::Caller;
use super::expiring_cache::ExpiringCache;
use super::rpc_error::{Result, RpcError, code};
use crate::proto::text::hexadecimal;
use crate::proto::units::millis;

/// The time to sign a nonce.
const NONCE_LIFETIME: Duration = Duration::from_mins(1);
/// The lifetime of the token of a login.
pub const LOGIN_LIFETIME: Duration = Duration::from_hours(1);
const RANDOM_BYTES: usize = 32;
/// The bytes of a nonce before its MAC: random ones, then the milliseconds from the start of the process.
const NONCE_BYTES: usize = RANDOM_BYTES + size_of::<u64>();

/// The keys that may log in, and the logins of late.
pub struct Logins {
    keys: Mutex<CallersByKey>,
    /// Signs the nonces.
    mac: hmac::Key,
    began: Instant,
    /// The nonces that have logged in.
    used: ExpiringCache<()>,
    /// The keys that have logged in, by their tokens.
    tokens: ExpiringCache<String>,
}

/// The callers, by the compressed key in hexadecimal.
type CallersByKey = BTreeMap<String, Arc<Caller>>;

fn by_key(keys: impl IntoIterator<Item = (String, Caller)>) -> Result<CallersByKey, String> {
    let read = |(key, caller): (String, Caller)| {
        let read = key_of(&key).ok_or_else(|| {
            format!("{key} of {} is not a hexadecimal secp256k1 public key", caller.name)
        })?;
        Ok((name_of(&read), Arc::new(caller)))
    };
    keys.into_iter().map(read).collect()
}

impl Logins {
    /// Creates it with the callers of each key in hexadecimal.
    ///
    /// # Errors
    /// A sentence with the first key that is none.
    pub fn new(keys: impl IntoIterator<Item = (String, Caller)>) -> Result<Self, String> {
        let keys = Mutex::new(by_key(keys)?);
        let (used, tokens) =
            (ExpiringCache::new(NONCE_LIFETIME), ExpiringCache::new(LOGIN_LIFETIME));
        let mac = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| "the system gives no random bytes".to_owned())?;
        Ok(Self { keys, mac, began: Instant::now(), used, tokens })
    }

    /// Takes other callers. The logins of keys that are not among them end at once.
    ///
    /// # Errors
    /// A sentence with the first key that is none; nothing has changed.
    pub fn set_keys(&self, keys: impl IntoIterator<Item = (String, Caller)>) -> Result<(), String> {
        *self.keys.lock() = by_key(keys)?;
        Ok(())
    }

    /// Returns a nonce for the owner of a key to sign. It tells nobody whether the key is known.
    ///
    /// # Errors
    /// [`RpcError`] if the key is none.
    pub fn nonce(&self, key: &str) -> Result<String> {
        let key = key_of(key).ok_or_else(|| {
            let message = "not a hexadecimal secp256k1 public key";
            RpcError::new(code::INVALID_PARAMS, message)
        })?;
        let mut nonce = random()?.to_vec();
        nonce.extend(self.age_ms().to_be_bytes());
        nonce.extend(hmac::sign(&self.mac, &of_key(&nonce, &key)).as_ref());
        Ok(hexadecimal(&nonce))
    }

    /// The milliseconds from the start of the process.
    fn age_ms(&self) -> u64 {
        millis(self.began.elapsed())
    }

    /// Returns whether a nonce was given to a key within the lifetime of a nonce.
    fn is_given_to(&self, key: &VerifyingKey, nonce: &str) -> bool {
        let Some(bytes) = bytes_of(nonce) else { return false };
        let Some((given, mac)) = bytes.split_at_checked(NONCE_BYTES) else { return false };
        let at_ms = given[RANDOM_BYTES..].iter().fold(0, |ms, byte| ms << 8 | u64::from(*byte));
        hmac::verify(&self.mac, &of_key(given, key), mac).is_ok()
            && Duration::from_millis(self.age_ms().saturating_sub(at_ms)) < NONCE_LIFETIME
    }

    /// Logs in the owner of a key, who has signed a nonce. Returns a token for some time. A nonce logs in once.
    ///
    /// # Errors
    /// [`RpcError`] if the key did not make the signature, the nonce was not given to it or is old,
    /// or the key may not log in.
    pub fn log_in(&self, key: &str, nonce: &str, signature: &str) -> Result<String> {
        let refused = || {
            let message = "the login is refused: the key is not known, its signature is wrong, or the \
                           nonce is older than a minute; ask for another nonce";
            RpcError::new(code::UNAUTHENTICATED, message)
        };
        let key = key_of(key).ok_or_else(refused)?;
        let is_given = self.is_given_to(&key, nonce);
        let bytes = bytes_of(signature).ok_or_else(refused)?;
        let signature = Signature::from_slice(&bytes).map_err(|_| refused())?;
        // Programs sign with either of the two values of `s`, and the verification takes the low one alone.
        let is_signed = key.verify(nonce.as_bytes(), &signature.normalize_s()).is_ok();
        let name = name_of(&key);
        if !(is_given && is_signed && self.keys.lock().contains_key(&name)) {
            return Err(refused());
        }
        // Hexadecimal digits are read in capitals too, and after `0x`.
        let used = bytes_of(nonce).map(|bytes| hexadecimal(&bytes)).ok_or_else(refused)?;
        if self.used.get(&used).is_some() {
            return Err(refused());
        }
        refuse_unless(self.used.keep(used, ()))?;
        let token = format!("login_{}", hexadecimal(&random()?));
        refuse_unless(self.tokens.keep(token.clone(), name))?;
        Ok(token)
    }

    /// Returns the caller of the token of a login, while it holds.
    pub fn check(&self, token: &str) -> Option<Arc<Caller>> {
        let key = self.tokens.get(token)?;
        self.keys.lock().get(&key).cloned()
    }
}

/// Refuses a login for which there is no room.
fn refuse_unless(has_room: bool) -> Result<()> {
    if has_room {
        return Ok(());
    }
    let message = "too many logins have begun; try again in a minute";
    Err(RpcError::new(code::INTERNAL, message))
}

/// Returns what the MAC of a nonce is made of.
fn of_key(nonce: &[u8], key: &VerifyingKey) -> Vec<u8> {
    [nonce, name_of(key).as_bytes()].concat()
}

fn random() -> Result<[u8; RANDOM_BYTES]> {
    let mut bytes = [0; RANDOM_BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| RpcError::new(code::INTERNAL, "the system gives no random bytes"))?;
    Ok(bytes)
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

    fn caller() -> Caller {
        Caller { name: "ann".to_owned(), scopes: Scopes::all(), bounds: Bounds::default() }
    }

    fn logins(of: &SigningKey) -> Logins {
        Logins::new([(public(of), caller())]).expect("a key")
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
    fn signature_with_a_high_s_is_accepted() {
        let ann = key(1);
        let logins = logins(&ann);
        let nonce = logins.nonce(&public(&ann)).expect("a nonce");
        let signature: Signature = ann.sign(nonce.as_bytes());
        let (r, s) = signature.split_scalars();
        let high = Signature::from_scalars(r.to_bytes(), (-*s).to_bytes()).expect("legal");
        assert_ne!(high, high.normalize_s());
        logins.log_in(&public(&ann), &nonce, &hexadecimal(&high.to_bytes())).expect("a token");
    }

    #[test]
    fn login_of_a_key_that_is_removed_ends() {
        let (ann, eve) = (key(1), key(2));
        let logins = logins(&ann);
        let nonce = logins.nonce(&public(&ann)).expect("a nonce");
        let token = logins.log_in(&public(&ann), &nonce, &sign(&ann, &nonce)).expect("a token");
        assert!(logins.set_keys([("zz".to_owned(), caller())]).is_err());
        assert!(logins.check(&token).is_some(), "a wrong key changes nothing");
        logins.set_keys([(public(&eve), caller())]).expect("a key");
        assert!(logins.check(&token).is_none());
        let nonce = logins.nonce(&public(&ann)).expect("a nonce");
        logins.log_in(&public(&ann), &nonce, &sign(&ann, &nonce)).expect_err("refused");
    }

    #[test]
    fn nonce_is_good_for_one_login_of_its_key() {
        let (ann, eve) = (key(1), key(2));
        let logins = logins(&ann);
        let refused = |key: &SigningKey, nonce: &str, signature: &str| {
            let error = logins.log_in(&public(key), nonce, signature).expect_err("refused");
            assert_eq!(error.code, code::UNAUTHENTICATED);
        };
        let nonce = logins.nonce(&public(&ann)).expect("a nonce");
        refused(&ann, &nonce, &sign(&eve, &nonce));
        logins.log_in(&public(&ann), &nonce, &sign(&ann, &nonce)).expect("a token");
        refused(&ann, &nonce, &sign(&ann, &nonce));
        // The same bytes, written in another way.
        for nonce in [nonce.to_uppercase(), format!("0x{nonce}")] {
            refused(&ann, &nonce, &sign(&ann, &nonce));
        }

        let unknown = logins.nonce(&public(&eve)).expect("a nonce, as for a known key");
        refused(&eve, &unknown, &sign(&eve, &unknown));
        let of_eve = logins.nonce(&public(&eve)).expect("a nonce");
        refused(&ann, &of_eve, &sign(&ann, &of_eve));
        refused(&ann, "never given", &sign(&ann, "never given"));
        refused(&ann, &nonce, "00");
        refused(&ann, &nonce, "zz");
    }

    #[test]
    fn strangers_who_ask_for_nonces_keep_no_key_out() {
        let (ann, eve) = (key(1), key(2));
        let logins = logins(&ann);
        for _ in 0..3000 {
            logins.nonce(&public(&eve)).expect("a nonce");
        }
        let nonce = logins.nonce(&public(&ann)).expect("a nonce");
        logins.log_in(&public(&ann), &nonce, &sign(&ann, &nonce)).expect("a token");
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
