//! The signature of a job, and the public half of the key that made it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use ring::signature::{ED25519, UnparsedPublicKey};

use crate::proto::target::{IllegalName, is_word, name};
use crate::proto::text::shown;
use crate::proto::word_table::as_text;

name!(
    KeyName,
    "name of a key",
    "a letter or digit, then at most 63 of A-Z, a-z, 0-9, _, - and .",
    |name| is_word(name, 64, b"_-.") && name[0].is_ascii_alphanumeric()
);

const SIGNATURE_BYTES: usize = 64;
const PUBLIC_BYTES: usize = 32;
const TEXT_BYTES_MAX: usize = 256;
/// The SHA-256 of the files of a job: `input:NAME`, and `stdin`, in hexadecimal digits.
pub type FileDigests = BTreeMap<String, String>;

/// The public half of a key, in Base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; PUBLIC_BYTES]);
as_text!(PublicKey);

impl PublicKey {
    pub const FORM: &'static str =
        "the 32 bytes of an Ed25519 public key in Base64, as `hero key new` prints it";

    /// Returns true if the owner of the key has signed a text.
    pub(super) fn verifies(&self, text: &str, signature: &JobSignature) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        key.verify(text.as_bytes(), &signature.bytes).is_ok()
    }

    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl FromStr for PublicKey {
    type Err = IllegalName;

    fn from_str(text: &str) -> Result<Self, IllegalName> {
        let bytes = (text.len() <= TEXT_BYTES_MAX).then(|| BASE64.decode(text).ok()).flatten();
        let key = bytes.and_then(|bytes| Self::of_bytes(&bytes));
        key.ok_or_else(|| IllegalName::new("public key", text, Self::FORM))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(self.0))
    }
}

/// The signature of a job: the key that made it, the time until which it holds, and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSignature {
    pub key: KeyName,
    /// The job is not started after this time.
    pub not_after: Timestamp,
    bytes: [u8; SIGNATURE_BYTES],
}

impl JobSignature {
    pub const FORM: &'static str = "KEY TIME SIGNATURE: the name of a key, a time such as 2026-12-24T18:00:00Z and 64 bytes in Base64";

    pub(super) fn new(key: KeyName, not_after: Timestamp, bytes: &[u8]) -> Option<Self> {
        Some(Self { key, not_after, bytes: bytes.try_into().ok()? })
    }

    /// Returns it for people: its key and its time.
    pub fn told(&self) -> String {
        format!("by {} until {}", self.key, self.not_after)
    }

    fn read(text: &str) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut words = text.split(' ');
        let (key, time, bytes) = (words.next()?, words.next()?, words.next()?);
        let not_after: Timestamp = time.parse().ok()?;
        // One spelling: the time is signed as it is written.
        let is_plain = words.next().is_none() && not_after.to_string() == time;
        let bytes = BASE64.decode(bytes).ok().filter(|_| is_plain)?;
        Self::new(key.parse().ok()?, not_after, &bytes)
    }
}

impl FromStr for JobSignature {
    type Err = IllegalName;

    fn from_str(text: &str) -> Result<Self, IllegalName> {
        Self::read(text).ok_or_else(|| IllegalName::new("signature", &shown(text), Self::FORM))
    }
}

impl fmt::Display for JobSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.key, self.not_after, BASE64.encode(self.bytes))
    }
}
