//! The private key that signs jobs: Ed25519, in a file as other programs read and write it (PKCS #8, PEM).

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};

use super::bounds::InvalidJob;
use super::record::Job;
use super::signature::{FileDigests, JobSignature, KeyName, PublicKey};
use super::signed_job::signed_text;

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// The bytes before the 32 bytes of an Ed25519 key in PKCS #8, version 1.
const PKCS8: [u8; 16] = *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
const SEED_BYTES: usize = 32;

pub struct SigningKey {
    name: KeyName,
    pair: Ed25519KeyPair,
}

impl SigningKey {
    pub fn new_pem() -> Result<String, String> {
        let mut seed = [0; SEED_BYTES];
        SystemRandom::new()
            .fill(&mut seed)
            .map_err(|_| "the system gives no random bytes".to_owned())?;
        let text = BASE64.encode([&PKCS8[..], &seed].concat());
        Ok(format!("{BEGIN}\n{text}\n{END}\n"))
    }

    pub fn of_pem(name: KeyName, text: &str) -> Result<Self, String> {
        let wrong = || "it has no private key of Ed25519 in PEM: hero key new makes one".to_owned();
        let body = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END));
        let body: String = body.ok_or_else(wrong)?.0.split_whitespace().collect();
        let der = BASE64.decode(body).map_err(|_| wrong())?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| wrong())?;
        Ok(Self { name, pair })
    }

    pub fn name(&self) -> &KeyName {
        &self.name
    }

    /// Returns its public half.
    ///
    /// # Errors
    /// Never for a key of Ed25519.
    pub fn public(&self) -> Result<PublicKey, String> {
        let bytes = self.pair.public_key().as_ref();
        PublicKey::of_bytes(bytes).ok_or_else(|| "its public key has not 32 bytes".to_owned())
    }

    /// Signs a job with its files until a time, which counts in whole seconds.
    pub fn sign(
        &self,
        job: &Job,
        not_after: Timestamp,
        files: &FileDigests,
    ) -> Result<JobSignature, InvalidJob> {
        let missing = || InvalidJob::new("script_type", "is missing");
        let not_after = Timestamp::from_second(not_after.as_second()).unwrap_or(not_after);
        let text = signed_text(job, &self.name, not_after, files).ok_or_else(missing)?;
        let bytes = self.pair.sign(text.as_bytes());
        JobSignature::new(self.name.clone(), not_after, bytes.as_ref()).ok_or_else(missing)
    }
}
