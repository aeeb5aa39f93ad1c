//! The keys of large outputs.

use super::Keys;
use crate::proto::job::{BootId, JobId};

impl Keys {
    /// String, TTL: the output of a finished job, if it is too large for the hash.
    pub fn output(&self, id: &JobId) -> String {
        self.key(format_args!("meta:job:output:{id}"))
    }

    /// String, a minute: an output that an attempt of a job leaves, until its end is recorded. The time of
    /// the claim names the attempt. No id has a colon.
    pub fn staged_output(&self, id: &JobId, boot: &BootId, claimed_at: u64) -> String {
        self.key(format_args!("meta:job:output:{id}:{boot}:{claimed_at}"))
    }

    /// List, a minute: the reply with a staged output.
    pub fn staged_reply(&self, id: &JobId, boot: &BootId, claimed_at: u64) -> String {
        self.key(format_args!("meta:job:output:{id}:{boot}:{claimed_at}:reply"))
    }
}
