//! The keys of atomic batches that are being submitted.

use super::{JobId, Keys, spell};

spell! {
    /// String, TTL: the number of jobs of an atomic batch that are staged so far. Followed by `:`
    /// and a job's id: that staged job.
    staged(whole: &JobId) = "meta:job:staged:{whole}";

    /// String, TTL: the atomic batch that has reserved the id of a job.
    reserved(id: &JobId) = "meta:job:reserved:{id}";

    /// List: atomic batches that are being committed.
    committing() = "meta:job:committing";
}

impl Keys {
    /// The keys of one staged job, and the list of all of a batch.
    pub fn staged_parts(&self, batch: &JobId, id: &JobId) -> [String; 5] {
        let batch = self.staged(batch);
        let job = format!("{batch}:{id}");
        let part = |name| format!("{job}:{name}");
        [part("pending"), part("dependents"), part("others"), format!("{batch}::jobs"), job]
    }
}
