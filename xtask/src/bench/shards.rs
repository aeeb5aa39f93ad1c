//! Small jobs, as many on each shard; xtask/bench-shards.sh measures what they cost Redis.

use std::time::Duration;

use hero::config::RedisConfig;
use hero::proto::job::{Job, JobId};
use hero::store::{Shards, Submitted};

use super::{BULK, Done};

/// The time that they are kept after their end.
const RETENTION: Duration = Duration::from_hours(1);

/// Submits small jobs, as many on each shard.
pub(super) async fn fill(config: &RedisConfig, jobs: usize) -> Done {
    let shards = Shards::open(config, Ok)?;
    let each = jobs / shards.all().len();
    for store in shards.all() {
        for first in (0..each).step_by(BULK) {
            let job = |number: usize| {
                let mut job = Job::new(store.shard().id(&JobId::random()), number.to_string());
                job.spec.script_type = Some("osis".parse()?);
                Ok(job)
            };
            let batch = (first..each.min(first + BULK)).map(job).collect::<Done<Vec<Job>>>()?;
            for submitted in store.submit(&batch, true, RETENTION).await? {
                if !matches!(submitted, Submitted::Accepted(_)) {
                    return Err(format!("a job is not accepted: {submitted:?}").into());
                }
            }
        }
    }
    Ok(())
}
