//! The ids of jobs and boots, the keys of jobs, and the digests of contents.

use std::fmt;
use std::str::FromStr;

use crate::proto::target::{IllegalName, is_hexadecimal, is_word, name};
use crate::proto::word_table::{from_text, inline_schema};

name!(
    /// The id of a job: a UUID when Hero makes it, any short word when a submitter chooses it.
    JobId,
    "job id",
    "1 to 64 of A-Z, a-z, 0-9, _ and -",
    |name| is_word(name, 64, b"_-")
);

name!(
    /// The id of one life of an actor process, which owns the jobs that it claimed.
    BootId,
    "boot id",
    "1 to 64 of A-Z, a-z, 0-9 and -, a UUID when Hero makes it",
    |name| is_word(name, 64, b"-")
);

name!(
    /// A key that deduplicates: at most one job with it is not ended.
    UniqueKey,
    "unique key",
    "1 to 256 bytes without control characters",
    |name| (1..=256).contains(&name.len()) && !name.iter().any(u8::is_ascii_control)
);

name!(
    /// A key: limits count the jobs with the same key together.
    LimitKey,
    "limit key",
    "1 to 256 bytes without control characters",
    |name| (1..=256).contains(&name.len()) && !name.iter().any(u8::is_ascii_control)
);

name!(
    /// A key whose jobs are on the same shard.
    ShardKey,
    "shard key",
    "1 to 256 bytes without control characters",
    |name| (1..=256).contains(&name.len()) && !name.iter().any(u8::is_ascii_control)
);

name!(
    /// A name of a job for lists and searches. Several jobs may have the same.
    JobName,
    "job name",
    "1 to 256 bytes without control characters",
    |name| (1..=256).contains(&name.len()) && !name.iter().any(u8::is_ascii_control)
);

name!(ContentHash, "SHA-256", "64 of 0-9 and a-f", |name| is_hexadecimal(name, 64));

impl JobId {
    /// The length of the ids that Hero makes.
    pub const UUID_CHARS: usize = 36;
    /// The characters of such an id that lists show, more if several ids have the same.
    pub const SHORT_CHARS: usize = 8;

    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }

    /// Returns whether it is an id as Hero makes it, in full.
    pub fn is_uuid(text: &str) -> bool {
        text.len() == Self::UUID_CHARS && begins_uuid(text)
    }

    /// Returns it without the name of its shard.
    pub(super) fn behind_shard(&self) -> &str {
        let behind = self.0.strip_prefix('s').and_then(|rest| rest.split_once('-'));
        let behind = behind.filter(|(shard, _)| shard.bytes().all(|byte| byte.is_ascii_digit()));
        behind.map_or(&self.0, |(_, text)| text)
    }

    /// Returns whether it is an id as Hero makes it, also behind the name of a shard.
    pub fn is_of_hero(&self) -> bool {
        Self::is_uuid(self.behind_shard())
    }

    /// Returns whether it reads as an id that Hero makes, shortened as lists show it, also behind the name of a shard.
    pub fn is_like_short_uuid(&self) -> bool {
        self.behind_shard().len() >= Self::SHORT_CHARS && self.may_begin_uuid()
    }

    /// Returns whether an id that Hero makes may begin with it, also behind the name of a shard.
    pub fn may_begin_uuid(&self) -> bool {
        let text = self.behind_shard();
        text.len() < Self::UUID_CHARS && begins_uuid(text)
    }
}

/// A reference to a job: its id, the beginning of its id while that is unique, or `id:` and its id, which may be the beginning
/// of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobReference {
    /// The id, or its beginning.
    pub id: JobId,
    /// True if a job that has it as its id is the one.
    pub is_whole: bool,
}

impl JobReference {
    /// Stands before an id that is not taken for the beginning of another, or for a name.
    pub const ID_MARK: &str = "id:";
}

impl FromStr for JobReference {
    type Err = IllegalName;

    fn from_str(text: &str) -> Result<Self, IllegalName> {
        let whole = text.strip_prefix(Self::ID_MARK);
        Ok(Self { id: whole.unwrap_or(text).parse()?, is_whole: whole.is_some() })
    }
}

from_text!(JobReference);
inline_schema!(JobReference);

/// Returns whether a UUID may begin with a text.
fn begins_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(place, byte)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    })
}

impl BootId {
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_form_of_a_uuid_differs_from_other_ids() {
        let is_like = |id: &str| id.parse::<JobId>().expect("legal").is_like_short_uuid();
        let id = JobId::random();
        for length in JobId::SHORT_CHARS..JobId::UUID_CHARS {
            assert!(
                is_like(&id.as_str()[..length])
                    && is_like(&format!("s3-{}", &id.as_str()[..length]))
            );
        }
        for other in [
            id.as_str(),
            "7f9c2ba",
            "7f9c2ba4-1x",
            "7f9c2bag",
            "7F9C2BA4",
            "20261122417",
            "s3-order",
            "sx-7f9c2ba4",
        ] {
            assert!(!is_like(other), "{other}");
        }
    }
}
