//! A snapshot of the namespace.

use std::time::Instant;

use crate::cli::Global;
use crate::client::Client;
use crate::error::Error;
use crate::proto::target::ScriptType;
use crate::view::{HealthRules, LatestJobs, NamespaceHealth, Snapshot};

/// The running jobs and the failures that are read, the newest of each.
pub(super) const JOBS_MAX: usize = 200;

/// The seconds over which rates are smoothed.
const SMOOTHED_S: f64 = 5.0;

#[derive(Clone)]
pub(super) struct SnapshotSource {
    pub(super) client: Client,
    address: String,
    rules: HealthRules,
    /// The names of variables whose values are masked.
    pub(super) redact: Vec<String>,
}

impl SnapshotSource {
    pub(super) fn of(global: &Global) -> Result<Self, Error> {
        let config = global.config()?;
        Ok(Self {
            client: global.client()?,
            address: config.redis.redacted_url(),
            rules: HealthRules::from(config),
            redact: config.log.redact.clone(),
        })
    }
}

#[derive(Debug, Clone)]
pub(super) struct ScreenData {
    pub(super) snapshot: Snapshot,
    pub(super) latest: LatestJobs,
    pub(super) health: NamespaceHealth,
    /// None in the first snapshot.
    pub(super) rates: Option<Rates>,
    counted: Counted,
}

/// The jobs per second since the snapshot before that were submitted, finished and failed.
pub(super) type Rates = [f64; 3];

/// The counts of all types since ever: jobs that were submitted, finished and failed.
#[derive(Debug, Clone, Copy)]
struct Counted {
    at: Instant,
    jobs: [u64; 3],
}

impl ScreenData {
    /// Reads it. The rates come from the snapshot before.
    pub(super) async fn read(
        SnapshotSource { client, address, rules, .. }: &SnapshotSource,
        before: Option<&Self>,
    ) -> Result<Self, Error> {
        let snapshot = Snapshot::read(client, address.clone()).await?;
        let types: Vec<ScriptType> =
            snapshot.types.iter().map(|of| of.script_type.clone()).collect();
        let counted = Counted::read(client, &types).await?;
        Ok(Self {
            latest: LatestJobs::read(client, JOBS_MAX).await?,
            health: NamespaceHealth::of(&snapshot, rules),
            rates: before.map(|before| {
                let (now, seconds) = counted.since(&before.counted);
                smoothed(now, before.rates, seconds)
            }),
            counted,
            snapshot,
        })
    }
}

/// Mixes rates with those before: older rates count for less.
fn smoothed(now: Rates, before: Option<Rates>, seconds: f64) -> Rates {
    let Some(before) = before else { return now };
    let share = 1.0 - (-seconds / SMOOTHED_S).exp();
    std::array::from_fn(|of| before[of] + share * (now[of] - before[of]))
}

impl Counted {
    async fn read(client: &Client, types: &[ScriptType]) -> Result<Self, Error> {
        let counters = client.stats().counters_of(types).await?;
        let sum = |name: &str| counters.iter().filter_map(|of| of.get(name)).sum();
        Ok(Self { at: Instant::now(), jobs: ["submitted", "finished", "failed"].map(sum) })
    }

    /// Returns the rates since then, and the seconds.
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
    fn since(&self, before: &Self) -> (Rates, f64) {
        let seconds = self.at.duration_since(before.at).as_secs_f64().max(0.001);
        let jobs = |of: usize| self.jobs[of].saturating_sub(before.jobs[of]);
        (std::array::from_fn(|of| jobs(of) as f64 / seconds), seconds)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::proto::job::JobStatus;
    use crate::store::JobSummary;
    use crate::view::snapshot::tests::healthy_snapshot;

    pub(in super::super) fn job(
        id: &str,
        status: JobStatus,
        fields: &[(&'static str, &str)],
    ) -> JobSummary {
        let fields: BTreeMap<_, _> =
            fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        JobSummary { id: id.parse().expect("legal"), status, fields }
    }

    /// One queue, no actor in the list, one running job and two failures.
    pub(in super::super) fn screen_data() -> ScreenData {
        let long = "7f9c2ba4-e88f-4cc3-a4b0-55d1c0e2a9f7";
        let running = [
            ("script_type", "osis"),
            ("started_at", "2026-01-31T13:00:00.000Z"),
            ("progress", "0.5"),
            ("progress_text", "half\u{1b}[2J"),
            ("actor", "osis:default:1"),
        ];
        let at = "2026-01-31T13:00:12.000Z".parse().expect("a time");
        let mut snapshot = Snapshot { at, ..healthy_snapshot() };
        snapshot.queues[0].1 = 0;
        ScreenData {
            health: NamespaceHealth::of(&snapshot, &HealthRules::default()),
            snapshot,
            latest: LatestJobs {
                running: vec![job(long, JobStatus::Started, &running)],
                failed: vec![
                    job("late", JobStatus::Error, &[("error", "no such file\nat line 3")]),
                    job("early", JobStatus::Error, &[("error", "timed out")]),
                ],
                prerequisites: Vec::new(),
            },
            rates: Some([12.0, 11.5, 0.25]),
            counted: Counted { at: Instant::now(), jobs: [0; 3] },
        }
    }

    #[test]
    fn rates_are_smoothed_over_some_seconds() {
        let first = smoothed([9.0; 3], None, 1.0);
        assert_eq!(format!("{first:?}"), "[9.0, 9.0, 9.0]", "the first are as measured");
        let [soon, ..] = smoothed([10.0; 3], Some([0.0; 3]), 1.0);
        let [later, ..] = smoothed([10.0; 3], Some([0.0; 3]), 60.0);
        assert!(soon > 1.0 && soon < 3.0 && later > 9.9, "{soon} {later}");
    }

    #[test]
    fn rates_are_those_between_two_snapshots() {
        let at = Instant::now();
        let before = Counted { at, jobs: [10, 9, 4] };
        let after = Counted { at: at + Duration::from_secs(2), jobs: [30, 10, 0] };
        assert_eq!(format!("{:?}", after.since(&before).0), "[10.0, 0.5, 0.0]");
    }
}
