//! The keys of atomic batches that are being submitted.

use super::{JobId, Keys};

impl Keys {
    /// String, TTL: the number of jobs of an atomic batch that are staged so far. Followed by `:`
    /// and a job's id: that staged job.
    pub fn staged(&self, whole: &JobId) -> String {
        self.key(format_args!("meta:job:staged:{whole}"))
    }

    /// The keys of one staged job, and the list of all of a batch.
    pub fn staged_parts(&self, batch: &JobId, id: &JobId) -> [String; 5] {
        let batch = self.staged(batch);
        let job = format!("{batch}:{id}");
        let part = |name| format!("{job}:{name}");
        [part("pending"), part("dependents"), part("others"), format!("{batch}::jobs"), job]
    }

    /// String, TTL: the atomic batch that has reserved the id of a job.
    pub fn reserved(&self, id: &JobId) -> String {
        self.key(format_args!("meta:job:reserved:{id}"))
    }

    /// List: atomic batches that are being committed.
    pub fn committing(&self) -> String {
        self.key(format_args!("meta:job:committing"))
    }
}
