//! Metrics of a namespace for Prometheus and its like, made from what Redis holds.

mod brokers;
mod crons;
mod text;

pub use text::Format;

use std::collections::BTreeMap;

use crate::client::{Client, ClientError};
use crate::config::MetricsConfig;
use crate::proto::target::ScriptType;
use crate::proto::times::TimeHistogram;
use crate::store::{QueueState, RedisState, TypeState};
use crate::view::{HealthRules, HealthState, NamespaceHealth, ProblemKind, Snapshot};
use text::{Exposition, Kind};

/// The counters of a type that are metrics of their own.
const COUNTERS: [(&str, &str, &str); 12] = [
    ("submitted", "hero_jobs_submitted", "Jobs that were submitted."),
    ("started", "hero_attempts_started", "Attempts that were started."),
    ("finished", "hero_jobs_finished", "Jobs that finished."),
    ("cancelled", "hero_jobs_cancelled", "Jobs that were stopped."),
    ("replaced", "hero_jobs_replaced", "Jobs that a later one with their unique key replaced."),
    ("retried", "hero_jobs_retried", "Attempts that failed and are followed by another."),
    ("postponed", "hero_jobs_postponed", "Times that a script asked to be run again later."),
    ("dead", "hero_jobs_dead", "Jobs that became dead letters."),
    (
        "recovered",
        "hero_jobs_recovered",
        "Jobs that were taken back from an actor that died or lost its lease.",
    ),
    ("skipped", "hero_claims_skipped", "Ids in queues that were no job to start."),
    ("held", "hero_jobs_held_back", "Times that a limit held a job."),
    (
        "long_waits",
        "hero_long_waits",
        "Times that the first job of a queue began to wait for long.",
    ),
];
/// The reasons of failed jobs, as counters name them after `failed_`.
const REASONS: [&str; 5] = ["script", "timeout", "expired", "invalid", "discarded"];
/// The services whose dropped spans are counted.
const SERVICES: [&str; 3] = ["hero-actor", "hero-broker", "hero-supervisor"];
/// The counter of older versions: there stopped jobs counted as failed.
const STOPPED: &str = "failed_stopped";

/// The state that is written as metrics.
pub struct Metrics {
    snapshot: Snapshot,
    health: NamespaceHealth,
    counters: BTreeMap<ScriptType, BTreeMap<String, u64>>,
    /// The number of attempts to deliver each notification, by their end, by `NAME STATE`.
    notifications: BTreeMap<String, u64>,
    /// The number of spans that no receiver got, by service.
    dropped_spans: BTreeMap<String, u64>,
}

impl Metrics {
    /// Reads the state of the namespace. `address` is the address of Redis, without a password. A type of the
    /// configuration has series before its first job: Prometheus sees a counter grow only if it
    /// has seen it before.
    pub async fn read(
        client: &Client,
        address: String,
        rules: &HealthRules,
    ) -> Result<Self, ClientError> {
        let mut metrics = Self::of(Snapshot::read(client, address).await?, rules);
        let states = &mut metrics.snapshot.types;
        let used = |of: &ScriptType| states.iter().any(|state| state.script_type == *of);
        let unused: Vec<ScriptType> = rules.types.keys().filter(|of| !used(of)).cloned().collect();
        states.extend(unused.into_iter().map(TypeState::unused));
        states.sort_by(|one, other| one.script_type.cmp(&other.script_type));
        let types: Vec<ScriptType> = states.iter().map(|of| of.script_type.clone()).collect();
        let counters = client.stats().counters_of(&types).await?;
        metrics.counters = types.into_iter().zip(counters).collect();
        // An access list of an older version does not permit the key.
        metrics.notifications = client.notifications().counts().await.unwrap_or_default();
        // Nor would a key of a wrong type be a reason to report nothing else.
        metrics.dropped_spans = client.system().dropped_spans().await.unwrap_or_default();
        Ok(metrics)
    }

    /// Judges a snapshot: each queue for itself, as an alert knows a problem again by its labels.
    fn of(snapshot: Snapshot, rules: &HealthRules) -> Self {
        Self {
            health: NamespaceHealth::of_parts(&snapshot, rules),
            snapshot,
            counters: BTreeMap::new(),
            notifications: BTreeMap::new(),
            dropped_spans: BTreeMap::new(),
        }
    }

    /// Writes them. The bounds of the configuration keep the number of samples small.
    pub fn text(&self, format: Format, bounds: &MetricsConfig) -> String {
        let mut text = Exposition::new(format);
        let types: Vec<&TypeState> = self.snapshot.types.iter().take(bounds.types_max).collect();
        self.service(&mut text);
        self.problems(&mut text, bounds.queues_max);
        self.actors(&mut text, bounds.types_max);
        self.queues(&mut text, bounds.queues_max);
        jobs(&mut text, &types);
        self.counters(&mut text, &types);
        self.times(&mut text, &types);
        self.notifications(&mut text, bounds.queues_max);
        self.spans(&mut text);
        crons::write(&mut text, &self.snapshot, bounds.queues_max);
        brokers::write(&mut text, &self.snapshot, bounds.queues_max);
        text.finish()
    }

    fn service(&self, text: &mut Exposition) {
        text.metric("hero_build_info", Kind::Gauge, "The version of Hero; always 1.");
        text.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        let supervisors = self.snapshot.supervisors.len() as u64;
        gauge(text, "hero_supervisors", "Live supervisors.", supervisors);
        let servers = self.snapshot.servers();
        let mut of_redis = |name, help, value: fn(&RedisState) -> Option<u64>| {
            let values = servers.iter().filter_map(|(shard, redis)| Some((*shard, value(redis)?)));
            for (number, (shard, value)) in values.enumerate() {
                if number == 0 {
                    text.metric(name, Kind::Gauge, help);
                }
                // Further servers are known by their first shard.
                let shard = shard.map(|shard| shard.to_string());
                let labels: Vec<_> = shard.iter().map(|shard| ("shard", shard.as_str())).collect();
                text.sample(&labels, float(value));
            }
        };
        let used = |redis: &RedisState| Some(redis.memory_used_bytes);
        let most = |redis: &RedisState| Some(redis.memory_max_bytes);
        let durable = |redis: &RedisState| redis.is_durable().map(u64::from);
        of_redis("hero_redis_memory_bytes", "Memory that Redis uses.", used);
        let help = "The maxmemory of Redis; 0 without a limit.";
        of_redis("hero_redis_memory_max_bytes", help, most);
        of_redis(
            "hero_redis_durable",
            "1 if Redis keeps accepted jobs when it is killed.",
            durable,
        );
    }

    /// The state of the namespace, and its problems. A kind of problem displaces no other one.
    fn problems(&self, text: &mut Exposition, problems_max: usize) {
        let state = match self.health.state {
            HealthState::Ok => 0,
            HealthState::Warning => 1,
            HealthState::Critical => 2,
        };
        let help = "0 if nothing is wrong, 1 with a warning, 2 if something is critical.";
        gauge(text, "hero_health", help, state);
        let help = "1 for each problem. Of each kind, a bound leaves the worst.";
        text.metric("hero_problems", Kind::Gauge, help);
        let mut told: BTreeMap<ProblemKind, usize> = BTreeMap::new();
        for problem in &self.health.problems {
            let of_kind = told.entry(problem.kind).or_default();
            *of_kind += 1;
            if *of_kind > problems_max {
                continue;
            }
            let (kind, subject) = (problem.kind.word(), problem.subject.to_string());
            let labels = [
                ("kind", kind.as_str()),
                ("severity", problem.severity.as_str()),
                ("subject", subject.as_str()),
            ];
            text.sample(&labels, 1.0);
        }
    }

    fn actors(&self, text: &mut Exposition, types_max: usize) {
        let actors = || self.snapshot.actor_counts.iter().take(types_max);
        text.metric("hero_actors", Kind::Gauge, "Live actors by state.");
        for (script_type, count) in actors() {
            let states = [
                ("ready", count.ready - count.holding),
                ("holding", count.holding),
                ("draining", count.draining),
            ];
            for (state, number) in states {
                text.sample(&[("type", script_type.as_str()), ("state", state)], float(number));
            }
        }
        let tasks = actors().map(|(of, count)| (of.as_str(), float(count.tasks as u64)));
        text.family(("hero_tasks", Kind::Gauge, "Tasks of the live actors."), "type", tasks);
        let busy = actors().map(|(of, count)| (of.as_str(), float(count.running as u64)));
        text.family(("hero_tasks_busy", Kind::Gauge, "Tasks that run a job."), "type", busy);
    }

    /// The longest queues one by one, and the others together.
    fn queues(&self, text: &mut Exposition, queues_max: usize) {
        let mut queues: Vec<&(QueueState, u64)> = self.snapshot.queues.iter().collect();
        queues.sort_by_key(|(state, _)| std::cmp::Reverse(state.depth + state.held));
        let (shown, others) = queues.split_at(queues.len().min(queues_max));
        let names: Vec<String> = shown.iter().map(|(state, _)| state.queue.to_string()).collect();
        let rest = |of: fn(&QueueState) -> f64, join: fn(f64, f64) -> f64| {
            others.iter().map(|(state, _)| of(state)).reduce(join)
        };
        let mut each = |name, help, of: fn(&QueueState) -> f64, join: fn(f64, f64) -> f64| {
            let shown = names.iter().zip(shown).map(|(name, (state, _))| (&**name, of(state)));
            let rest = rest(of, join).map(|rest| ("others", rest));
            text.family((name, Kind::Gauge, help), "queue", shown.chain(rest));
        };
        let sum = |a, b| a + b;
        each("hero_queue_jobs", "Jobs in a queue.", |state| float(state.depth), sum);
        each("hero_queue_held_jobs", "Jobs that limits hold.", |state| float(state.held), sum);
        let wait = |state: &QueueState| state.oldest_wait.map_or(0.0, |wait| wait.as_secs_f64());
        let help = "How long the first job that can be claimed has waited.";
        each("hero_queue_wait_seconds", help, wait, f64::max);
        let paused = |state: &QueueState| f64::from(u8::from(state.paused));
        each("hero_queue_paused", "1 if the queue is paused.", paused, sum);
        let actors = names.iter().zip(shown).map(|(name, (_, actors))| (&**name, float(*actors)));
        let help = "Ready actors that claim from a queue.";
        text.family(("hero_queue_actors", Kind::Gauge, help), "queue", actors);
    }

    fn counters(&self, text: &mut Exposition, types: &[&TypeState]) {
        for (counter, name, help) in COUNTERS {
            let value = |of: &ScriptType| float(self.counter(of, counter));
            let values = types.iter().map(|of| (of.script_type.as_str(), value(&of.script_type)));
            text.family((name, Kind::Counter, help), "type", values);
        }
        text.metric("hero_jobs_failed", Kind::Counter, "Jobs that failed, by reason.");
        for TypeState { script_type, .. } in types {
            let failed = self.counter(script_type, "failed");
            let mut rest = failed.saturating_sub(self.counter(script_type, STOPPED));
            for reason in REASONS {
                let number = self.counter(script_type, &format!("failed_{reason}"));
                rest = rest.saturating_sub(number);
                let labels = [("type", script_type.as_str()), ("reason", reason)];
                text.sample(&labels, float(number));
            }
            // A failed prerequisite, crashes of actors, an actor of another program.
            text.sample(&[("type", script_type.as_str()), ("reason", "other")], float(rest));
        }
    }

    fn times(&self, text: &mut Exposition, types: &[&TypeState]) {
        for histogram in TimeHistogram::ALL {
            let (name, help) = match histogram {
                TimeHistogram::Wait => {
                    ("hero_job_wait_seconds", "From the dispatch of an attempt to its start.")
                }
                TimeHistogram::Run => {
                    ("hero_job_run_seconds", "From the start of an attempt to its end.")
                }
            };
            text.metric(name, Kind::Histogram, help);
            for TypeState { script_type, .. } in types {
                let times = histogram.read(|counter| self.counter(script_type, counter));
                let own = ("type", script_type.as_str());
                for (bound, _, number) in times.buckets {
                    text.part("_bucket", &[own, ("le", bound)], float(number));
                }
                text.part("_bucket", &[own, ("le", "+Inf")], float(times.number));
                text.part("_sum", &[own], times.sum.as_secs_f64());
                text.part("_count", &[own], float(times.number));
            }
        }
    }

    /// Writes how often each notification was delivered or failed.
    fn notifications(&self, text: &mut Exposition, most: usize) {
        let help = "Attempts to deliver messages of a notification, by their end.";
        text.metric("hero_notifications", Kind::Counter, help);
        for (name, number) in self.notifications.iter().take(most) {
            let (name, state) = name.split_once(' ').unwrap_or((name, ""));
            text.sample(&[("notification", name), ("state", state)], float(*number));
        }
    }

    fn spans(&self, text: &mut Exposition) {
        let help = "Spans of traces that no receiver got, by service.";
        let number = |service| self.dropped_spans.get(service).copied().unwrap_or_default();
        let dropped = SERVICES.into_iter().map(|service| (service, float(number(service))));
        text.family(("hero_trace_spans_dropped", Kind::Counter, help), "service", dropped);
    }

    fn counter(&self, script_type: &ScriptType, name: &str) -> u64 {
        let counters = self.counters.get(script_type);
        counters.and_then(|counters| counters.get(name)).copied().unwrap_or_default()
    }
}

fn jobs(text: &mut Exposition, types: &[&TypeState]) {
    let mut each = |name, help, of: fn(&TypeState) -> u64| {
        let values = types.iter().map(|state| (state.script_type.as_str(), float(of(state))));
        text.family((name, Kind::Gauge, help), "type", values);
    };
    each("hero_jobs_waiting_for_prerequisites", "Jobs that wait for others.", |of| of.waiting);
    each("hero_jobs_scheduled", "Jobs that wait for their time.", |of| of.scheduled);
    each("hero_jobs_due", "Scheduled jobs whose time has come.", |of| of.due);
    each("hero_jobs_waiting", "Scheduled jobs whose scripts wait.", |of| of.waits);
    each("hero_dead_letters", "Jobs in the list of dead letters.", |of| of.dead);
}

fn gauge(text: &mut Exposition, name: &'static str, help: &str, value: u64) {
    text.metric(name, Kind::Gauge, help);
    text.sample(&[], float(value));
}

#[expect(clippy::cast_precision_loss, reason = "metrics are floats; no number comes near 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::LastHour;
    use crate::view::snapshot::tests::healthy_snapshot;

    /// The metrics of queues that nobody serves and whose first jobs wait for long, beside a dead letter.
    fn metrics_of(queues: usize, queues_max: usize) -> String {
        let mut snapshot = healthy_snapshot();
        let (mut state, _) = snapshot.queues[0].clone();
        state.oldest_wait = Some(Duration::from_mins(6));
        snapshot.queues = vec![(state, 0); queues];
        for (place, (state, _)) in snapshot.queues.iter_mut().enumerate() {
            state.queue = format!("type:osis:group:g{place}").parse().expect("legal");
        }
        let since = Duration::from_hours(1);
        snapshot.types[0].hour = Some(LastHour { finished: 0, failed: 0, dead: 1, since });
        snapshot.types[0].dead = 1;
        let bounds = MetricsConfig { queues_max, ..MetricsConfig::default() };
        Metrics::of(snapshot, &HealthRules::default()).text(Format::Classic, &bounds)
    }

    #[test]
    fn same_problem_of_many_queues_has_a_series_for_each() {
        let text = metrics_of(5, 100);
        for kind in ["queue_wait", "queue_without_actor"] {
            for place in 0..5 {
                let sample = format!(
                    "hero_problems{{kind=\"{kind}\",severity=\"warning\",subject=\"queue type:osis:group:g{place}\"}} 1\n"
                );
                assert!(text.contains(&sample), "{sample} in {text}");
            }
        }
        assert!(!text.contains("subject=\"queues\""), "{text}");
    }

    #[test]
    fn problems_beyond_the_bound_displace_no_other_kind() {
        let text = metrics_of(5, 2);
        let of_kind = |kind: &str| text.matches(&format!("hero_problems{{kind=\"{kind}\"")).count();
        assert_eq!(["queue_wait", "queue_without_actor", "dead_letters"].map(of_kind), [2, 2, 1]);
    }
}
