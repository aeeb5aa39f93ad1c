//! A snapshot of the namespace.

use std::time::Instant;

use crate::client::Client;
use crate::error::Error;
use crate::proto::target::ScriptType;
use crate::view::{HealthRules, LatestJobs, NamespaceHealth, Snapshot};

/// The running jobs and the failures that are read, the newest of each.
pub(super) const JOBS_MAX: usize = 200;

/// The seconds over which rates are smoothed.
const SMOOTHED_S: f64 = 5.0;

/// A snapshot of the namespace.
#[derive(Debug, Clone)]
pub(super) struct ScreenData {
    pub(super) snapshot: Snapshot,
    pub(super) latest: LatestJobs,
    pub(super) health: NamespaceHealth,
    /// None in the first snapshot.
    pub(super) rates: Option<Rates>,
    counted: Counted,
}

/// Jobs per second since the snapshot before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rates {
    pub(super) submitted: f64,
    pub(super) finished: f64,
    pub(super) failed: f64,
}

/// The counts of all types since ever.
#[derive(Debug, Clone, Copy)]
struct Counted {
    at: Instant,
    submitted: u64,
    finished: u64,
    failed: u64,
}

impl ScreenData {
    /// Reads it. The rates come from the snapshot before.
    pub(super) async fn read(
        client: &Client,
        address: &str,
        rules: &HealthRules,
        before: Option<&Self>,
    ) -> Result<Self, Error> {
        let snapshot = Snapshot::read(client, address.to_owned()).await?;
        let types: Vec<ScriptType> =
            snapshot.types.iter().map(|of| of.script_type.clone()).collect();
        let counted = Counted::read(client, &types).await?;
        Ok(Self {
            latest: LatestJobs::read(client, JOBS_MAX).await?,
            health: NamespaceHealth::of(&snapshot, rules),
            rates: before.map(|before| {
                let seconds = counted.seconds_since(&before.counted);
                counted.since(&before.counted).smoothed(before.rates, seconds)
            }),
            counted,
            snapshot,
        })
    }
}

impl Rates {
    /// Mixes it with the rates before: older rates count for less.
    fn smoothed(self, before: Option<Self>, seconds: f64) -> Self {
        let Some(before) = before else { return self };
        let share = 1.0 - (-seconds / SMOOTHED_S).exp();
        let mix = |now: f64, then: f64| then + share * (now - then);
        Self {
            submitted: mix(self.submitted, before.submitted),
            finished: mix(self.finished, before.finished),
            failed: mix(self.failed, before.failed),
        }
    }
}

impl Counted {
    async fn read(client: &Client, types: &[ScriptType]) -> Result<Self, Error> {
        let counters = client.counters_of(types).await?;
        let sum = |name: &str| counters.iter().filter_map(|of| of.get(name)).sum();
        Ok(Self {
            at: Instant::now(),
            submitted: sum("submitted"),
            finished: sum("finished"),
            failed: sum("failed"),
        })
    }

    fn seconds_since(&self, before: &Self) -> f64 {
        self.at.duration_since(before.at).as_secs_f64().max(0.001)
    }

    fn since(&self, before: &Self) -> Rates {
        let seconds = self.seconds_since(before);
        #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        Rates {
            submitted: rate(self.submitted, before.submitted),
            finished: rate(self.finished, before.finished),
            failed: rate(self.failed, before.failed),
        }
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
            rates: Some(Rates { submitted: 12.0, finished: 11.5, failed: 0.25 }),
            counted: Counted { at: Instant::now(), submitted: 0, finished: 0, failed: 0 },
        }
    }

    #[test]
    fn rates_are_smoothed_over_some_seconds() {
        let of = |rate| Rates { submitted: rate, finished: rate, failed: rate };
        assert_eq!(of(9.0).smoothed(None, 1.0), of(9.0), "the first are as measured");
        let soon = of(10.0).smoothed(Some(of(0.0)), 1.0).finished;
        let later = of(10.0).smoothed(Some(of(0.0)), 60.0).finished;
        assert!(soon > 1.0 && soon < 3.0 && later > 9.9, "{soon} {later}");
    }

    #[test]
    fn rates_are_those_between_two_snapshots() {
        let at = Instant::now();
        let before = Counted { at, submitted: 10, finished: 9, failed: 4 };
        let after =
            Counted { at: at + Duration::from_secs(2), submitted: 30, finished: 10, failed: 0 };
        let rates = after.since(&before);
        assert_eq!(rates, Rates { submitted: 10.0, finished: 0.5, failed: 0.0 });
    }
}
