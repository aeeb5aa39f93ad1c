//! The last hour, minute by minute, as pictures and rules need it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::client::{Client, ClientError, SampleDocument};

/// The jobs of about a minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minute {
    /// Its end.
    pub at: Option<Timestamp>,
    pub length: Duration,
    pub submitted: u64,
    pub finished: u64,
    /// Jobs that ended in `error`.
    pub failed: u64,
    /// Jobs that ran at its end.
    pub running: u64,
    /// A time that at least 95 of 100 attempts did not wait for longer than: an upper bound.
    pub wait_p95: Option<Duration>,
}

impl Minute {
    /// Reads the last hour, the oldest minute first.
    pub async fn read(client: &Client) -> Result<Arc<[Self]>, ClientError> {
        Ok(client.stats().samples().await?.samples.iter().map(Self::of).collect())
    }

    fn of(sample: &SampleDocument) -> Self {
        let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or_default();
        Self {
            at: sample.at.parse().ok(),
            length: seconds(sample.seconds),
            submitted: sample.all.submitted,
            finished: sample.all.finished,
            failed: sample.all.failed,
            running: sample.running,
            wait_p95: sample.all.wait.p95_s.map(seconds),
        }
    }
}
