//! Places in lists, as pages name their ends.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

use crate::proto::job::JobId;
use crate::proto::target::IllegalName;
use crate::proto::word_table::{from_text, inline_schema};

/// The end of a page: the score and the id of its last job. All places are in the order of lists: latest change first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub(super) score: i64,
    pub(super) id: JobId,
    /// The job is one that the reader may not see: its text is sealed.
    is_hidden: bool,
}

impl Cursor {
    pub(super) fn new(score: i64, id: JobId) -> Self {
        Self { score, id, is_hidden: false }
    }

    /// Hides the job from who gets the text of the place. This process alone reads such a text.
    pub(super) fn hidden(self, is_hidden: bool) -> Self {
        Self { is_hidden, ..self }
    }

    /// Returns what puts places into the order of lists.
    pub(super) fn order(&self) -> impl Ord + '_ {
        Reverse((self.score, &self.id))
    }

    /// Returns the time of the place; `None` for the place of a hidden job.
    pub fn time(&self) -> Option<Timestamp> {
        Timestamp::from_microsecond(self.score).ok().filter(|_| !self.is_hidden)
    }

    fn of_plain(text: &str) -> Option<Self> {
        let (score, id) = text.split_once('.')?;
        Some(Self::new(score.parse().ok()?, id.parse().ok()?))
    }
}

from_text!(Cursor);
inline_schema!(Cursor);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = format!("{}.{}", self.score, self.id);
        if self.is_hidden {
            f.write_str(&sealed(plain).unwrap_or_default())
        } else {
            f.write_str(&plain)
        }
    }
}

impl FromStr for Cursor {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        let hidden = || Self::of_plain(&opened(value)?).map(|place| place.hidden(true));
        Self::of_plain(value).or_else(hidden).ok_or_else(|| {
            let form = "what the page before named as its next";
            IllegalName { what: "cursor", value: value.to_owned(), form }
        })
    }
}

/// The key of this process, which nobody else knows.
static KEY: LazyLock<Option<LessSafeKey>> = LazyLock::new(|| {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok().map(LessSafeKey::new)
});

/// Returns a text that reports nothing without the key; `None` without random bytes.
fn sealed(text: String) -> Option<String> {
    // No two texts have the same.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut nonce = [0; NONCE_LEN];
    nonce[..8].copy_from_slice(&NUMBER.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    let mut bytes = text.into_bytes();
    let own = Nonce::assume_unique_for_key(nonce);
    KEY.as_ref()?.seal_in_place_append_tag(own, Aad::empty(), &mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &bytes].concat()))
}

fn opened(text: &str) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
    let (nonce, mut sealed) = (Nonce::assume_unique_for_key(*nonce), sealed.to_vec());
    let plain = KEY.as_ref()?.open_in_place(nonce, Aad::empty(), &mut sealed).ok()?;
    String::from_utf8(plain.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_as_it_is_written() {
        let id: JobId = "a-b_c".parse().expect("legal");
        let cursor = Cursor::new(1_700_000_000_000_000, id);
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for bad in ["", "1", "x.y", "finished.1.a", "1.a:b", "YWJjZGVmZ2hpamtsbW5vcA"] {
            assert!(bad.parse::<Cursor>().is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn cursor_of_a_hidden_job_tells_neither_its_id_nor_its_time() {
        let id: JobId = "hidden-job".parse().expect("legal");
        let cursor = Cursor::new(1_700_000_000_000_000, id).hidden(true);
        assert_eq!(cursor.time(), None);
        let (one, two) = (cursor.to_string(), cursor.to_string());
        assert_ne!(one, two);
        for plain in [&one, &format!("{:?}", URL_SAFE_NO_PAD.decode(&one))] {
            assert!(!plain.contains("hidden") && !plain.contains("17000"), "{plain}");
        }
        assert_eq!([one.parse(), two.parse()], [Ok(cursor.clone()), Ok(cursor)]);
    }
}
