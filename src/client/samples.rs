//! The last hour, minute by minute, from the samples that supervisors keep.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::documents::TypeStatsDocument;
use super::stats::{Counters, counted};
use super::{Client, ClientError};
use crate::store::CounterSample;

/// The last hour, minute by minute.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SamplesDocument {
    /// The minutes, the oldest first. A minute without a live supervisor is missing, and the next one is longer.
    pub samples: Vec<SampleDocument>,
}

/// About a minute: what happened in it, and the jobs at its end.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SampleDocument {
    /// Its end, in RFC 3339.
    pub at: String,
    /// Its length in seconds.
    pub seconds: f64,
    /// Jobs that stood in queues.
    pub queued: u64,
    /// Jobs that limits held.
    pub held: u64,
    /// Jobs that actors of Hero ran.
    pub running: u64,
    /// The counters of all sampled types together; `script_type` is empty.
    pub all: TypeStatsDocument,
    /// The counters of each type, of at most 32.
    pub types: Vec<TypeStatsDocument>,
}

impl SampleDocument {
    fn between(earlier: &CounterSample, later: &CounterSample) -> Self {
        let grown = later.grown_since(earlier);
        let mut all = Counters::new();
        for (name, number) in grown.values().flatten() {
            *all.entry(name.clone()).or_default() += number;
        }
        let types = grown.iter().map(|(of, counters)| document(of, counters)).collect();
        let time = |sample: &CounterSample| Timestamp::from_microsecond(sample.at_us).ok();
        let (from, to) = (time(earlier), time(later));
        let length = from.zip(to).map(|(from, to)| to.duration_since(from).as_secs_f64());
        Self {
            at: to.map(|at| format!("{at:.3}")).unwrap_or_default(),
            seconds: length.unwrap_or_default(),
            queued: later.queued,
            held: later.held,
            running: later.running,
            all: document("", &all),
            types,
        }
    }
}

fn document(script_type: &str, counters: &Counters) -> TypeStatsDocument {
    TypeStatsDocument { script_type: script_type.to_owned(), ..counted(counters) }
}

impl Client {
    /// Returns the last hour, minute by minute.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn samples(&self) -> Result<SamplesDocument, ClientError> {
        let samples = self.store.samples().await?;
        let pairs = samples.windows(2).map(|pair| SampleDocument::between(&pair[0], &pair[1]));
        Ok(SamplesDocument { samples: pairs.collect() })
    }
}
