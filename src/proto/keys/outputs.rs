//! The keys of large outputs, and of files.

use super::spell;
use crate::proto::job::{BootId, JobId};

spell! {
    /// String, TTL: the output of a finished job, if it is too large for the hash.
    output(id: &JobId) = "meta:job:output:{id}";

    /// String, a minute: an output that an attempt of a job leaves, until its end is recorded. The time of
    /// the claim names the attempt. No id has a colon.
    staged_output(id: &JobId, boot: &BootId, claimed_at: u64) = "meta:job:output:{id}:{boot}:{claimed_at}";

    /// List, a minute: the reply with a staged output.
    staged_reply(id: &JobId, boot: &BootId, claimed_at: u64) = "meta:job:output:{id}:{boot}:{claimed_at}:reply";

    /// Hash, TTL: the files of a job.
    files(id: &JobId) = "meta:job:files:{id}";

    /// Sorted set: the contents in the folder of `[artifacts]` with the jobs that name them, `HASH:ID`. No
    /// job has this id.
    contents() = "meta:job:files:#contents";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::keys::Keys;

    #[test]
    fn outputs_are_staged_under_names_that_no_job_has() {
        let keys = Keys::default();
        let id: JobId = "job-1".parse().expect("legal");
        let boot: BootId = "b7e151628aed4a6abf7158809cf4f3c7".parse().expect("legal");
        let (own, staged) = (keys.output(&id), keys.staged_output(&id, &boot, 7));
        assert_eq!(own, "hero:meta:job:output:job-1");
        assert_eq!(staged, "hero:meta:job:output:job-1:b7e151628aed4a6abf7158809cf4f3c7:7");
        assert_eq!(keys.staged_reply(&id, &boot, 7), format!("{staged}:reply"));
        assert!(keys.lua().contains("local OUTPUT = 'hero:meta:job:output:'\n"));
        assert!("job-1:x".parse::<JobId>().is_err());
    }
}
