//! The verdict of `hero status --check`, printed as monitoring plugins print theirs:
//! `STATE - text | figures`, the figures as `name=value;warning;critical;min;max`.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::time::brief;
use super::start::start_of;
use crate::client::Overview;
use crate::config::{CheckConfig, format_duration};
use crate::error::{Error, Exit};
use crate::proto::text::counted;
use crate::store::RedisState;

/// The state of a check, with the exit code of monitoring plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(in crate::cli) enum CheckState {
    Ok = 0,
    Warning = 1,
    Critical = 2,
    Unknown = 3,
}

impl CheckState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }
}

impl From<CheckState> for ExitCode {
    fn from(state: CheckState) -> Self {
        Self::from(state as u8)
    }
}

/// A reason for a state other than OK.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct CheckReason {
    pub(in crate::cli) state: CheckState,
    pub(in crate::cli) text: String,
    /// The remedy.
    pub(in crate::cli) remedy: String,
}

/// The verdict with its reasons, the worst first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CheckVerdict {
    pub(super) state: CheckState,
    reasons: Vec<CheckReason>,
    /// One line for an OK.
    summary: String,
    figures: String,
}

impl CheckVerdict {
    /// Compares the state with the thresholds.
    pub(super) fn of(overview: &Overview, thresholds: &CheckConfig) -> Self {
        let mut judge = Judge { reasons: Vec::new() };
        judge.supervisors(overview, thresholds);
        for (shard, redis) in overview.servers() {
            let name = shard.map_or("redis".to_owned(), |shard| format!("redis of shard {shard}"));
            judge.redis(&name, redis, thresholds);
        }
        judge.queues(overview, thresholds);
        let totals = Totals::of(overview);
        let last_hour = [
            (
                "failed job",
                totals.failed,
                thresholds.failed_warning,
                thresholds.failed_critical,
                "see why: hero job errors",
            ),
            (
                "dead letter",
                totals.dead,
                thresholds.dead_warning,
                thresholds.dead_critical,
                "see why: hero dead list; then: hero dead retry ID, or: hero dead delete ID",
            ),
        ];
        for (what, number, warning, critical, remedy) in last_hour {
            let ended = counted(number, what, &format!("{what}s"));
            judge.over(number, warning, critical, remedy, |from| {
                format!("{ended} in the last hour (threshold {from})")
            });
        }
        // The order of reasons of one state is that of the questions.
        judge.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.state));
        let state = judge.reasons.first().map_or(CheckState::Ok, |reason| reason.state);
        let (summary, figures) = (totals.summary(overview), totals.figures(overview, thresholds));
        Self { state, reasons: judge.reasons, summary, figures }
    }

    /// The verdict if the state cannot be read: critical if Redis does not answer.
    pub(super) fn without_redis(error: &Error) -> Self {
        let state = match error.exit {
            Exit::Unavailable => CheckState::Critical,
            _ => CheckState::Unknown,
        };
        let reasons =
            vec![CheckReason { state, text: error.message.clone(), remedy: String::new() }];
        Self { state, reasons, summary: String::new(), figures: String::new() }
    }

    /// The line for monitoring, and a line for every further reason.
    pub(super) fn text(&self) -> String {
        // The figures begin after the first `|`.
        let plain = |text: &str| text.replace('|', "/").replace('\n', "; ");
        let first = self.reasons.first().map_or(&self.summary, |reason| &reason.text);
        let mut text = format!("{} - {}", self.state.as_str(), plain(first));
        if self.reasons.len() > 1 {
            let _ = write!(text, " (and {} more)", self.reasons.len() - 1);
        }
        if !self.figures.is_empty() {
            text.push_str(" | ");
            text.push_str(&self.figures);
        }
        text.push('\n');
        for CheckReason { state, text: reason, .. } in self.reasons.iter().skip(1) {
            let _ = writeln!(text, "{} - {}", state.as_str(), plain(reason));
        }
        text
    }

    /// The reasons, the worst first.
    pub(super) fn into_reasons(self) -> Vec<CheckReason> {
        self.reasons
    }

    pub(super) fn document(&self) -> Value {
        let state = |state: CheckState| state.as_str().to_lowercase();
        let reasons: Vec<Value> = self
            .reasons
            .iter()
            .map(|of| json!({ "state": state(of.state), "reason": of.text }))
            .collect();
        json!({ "state": state(self.state), "reasons": reasons })
    }
}

const LOOK_AT_REDIS: &str = "see the log of redis, and whether its disk is full";

/// Collects the reasons for a state other than OK.
struct Judge {
    reasons: Vec<CheckReason>,
}

impl Judge {
    fn add(&mut self, state: CheckState, text: impl Into<String>, remedy: impl Into<String>) {
        self.reasons.push(CheckReason { state, text: text.into(), remedy: remedy.into() });
    }

    /// Compares a number with two thresholds, of which 0 is off. `said` gets the one that it reaches.
    fn over(
        &mut self,
        number: u64,
        warning: u64,
        critical: u64,
        remedy: &str,
        said: impl Fn(u64) -> String,
    ) {
        let reached = |threshold| threshold > 0 && number >= threshold;
        if reached(critical) {
            self.add(CheckState::Critical, said(critical), remedy);
        } else if reached(warning) {
            self.add(CheckState::Warning, said(warning), remedy);
        }
    }

    fn supervisors(&mut self, overview: &Overview, thresholds: &CheckConfig) {
        let (live, least) = (overview.supervisors.len() as u64, thresholds.supervisors_min);
        if live < least {
            let live = counted(live, "live supervisor", "live supervisors");
            let reason = format!("{live} (threshold {least})");
            let remedy = format!(
                "nothing recovers jobs or fires schedules without one; run on one machine or more: {}",
                start_of("supervisor")
            );
            self.add(CheckState::Critical, reason, remedy);
        }
        for of in overview.supervisors.iter().filter(|of| of.redis != "ok") {
            let reason = format!("supervisor {} on {}: {}", of.unit, of.hostname, of.redis);
            let remedy = format!("see its log on {}: journalctl -u hero@{}", of.hostname, of.unit);
            self.add(CheckState::Warning, reason, remedy);
        }
    }

    fn redis(&mut self, name: &str, redis: &RedisState, thresholds: &CheckConfig) {
        if redis.role.as_deref() == Some("slave") {
            let remedy = "let redis.url name the primary";
            let reason = format!("{name} is a replica, and refuses writes");
            self.add(CheckState::Critical, reason, remedy);
        }
        if redis.append_failed {
            let reason = format!("{name} cannot write its append-only file");
            self.add(CheckState::Critical, reason, LOOK_AT_REDIS);
        }
        if redis.save_failed {
            let reason = format!("{name} cannot write its snapshot");
            self.add(CheckState::Warning, reason, LOOK_AT_REDIS);
        }
        if thresholds.durable && !redis.append_failed && redis.is_durable() == Some(false) {
            let remedy = redis.dangers().join("; ");
            self.add(CheckState::Warning, format!("{name} keeps {}", redis.keeps()), remedy);
        }
        if let Some(used) = percent(redis.memory_used_bytes, redis.memory_max_bytes) {
            let (warning, critical) = (thresholds.memory_warning, thresholds.memory_critical);
            let remedy = "give it more memory (maxmemory), or keep ended jobs for a shorter time \
                          (job.retention)";
            self.over(used, warning, critical, remedy, |from| {
                format!("{name} uses {used} % of its maxmemory (threshold {from} %)")
            });
        }
    }

    fn queues(&mut self, overview: &Overview, thresholds: &CheckConfig) {
        for (state, actors) in &overview.queues {
            let (queue, depth) = (&state.queue, state.depth);
            let jobs = counted(depth, "job", "jobs");
            let more = "start more actors for it, or raise `tasks` of a unit";
            self.over(depth, thresholds.depth_warning, thresholds.depth_critical, more, |from| {
                format!("queue {queue} has {jobs} (threshold {from})")
            });
            if state.paused {
                continue;
            }
            if depth > 0 && *actors == 0 {
                let reason = format!("queue {queue} has {jobs} and no live actor");
                let remedy = format!("start one: {}", start_of(&queue.target.first_unit()));
                self.add(CheckState::Warning, reason, remedy);
            }
            let wait = state.oldest_wait.unwrap_or_default();
            let (warning, critical) = (thresholds.wait_warning, thresholds.wait_critical);
            self.over(millis(wait), millis(warning), millis(critical), more, |from| {
                let (wait, from) = (brief(wait), format_duration(Duration::from_millis(from)));
                format!("the first job of queue {queue} waits for {wait} (threshold {from})")
            });
        }
    }
}

/// The sums of all queues and types.
struct Totals {
    actors: u64,
    depth: u64,
    deepest: u64,
    held: u64,
    due: u64,
    failed: u64,
    dead: u64,
    /// Of the queues that are not paused.
    oldest_wait: Duration,
}

impl Totals {
    fn of(overview: &Overview) -> Self {
        let depths = || overview.queues.iter().map(|(state, _)| state.depth);
        let open = overview.queues.iter().filter(|(state, _)| !state.paused);
        let hours = || overview.types.iter().filter_map(|of| of.hour);
        Self {
            actors: overview.actors.values().map(|count| count.live).sum(),
            depth: depths().sum(),
            deepest: depths().max().unwrap_or_default(),
            held: overview.queues.iter().map(|(state, _)| state.held).sum(),
            due: overview.types.iter().map(|of| of.due).sum(),
            failed: hours().map(|hour| hour.failed).sum(),
            dead: hours().map(|hour| hour.dead).sum(),
            oldest_wait: open.filter_map(|(state, _)| state.oldest_wait).max().unwrap_or_default(),
        }
    }

    fn summary(&self, overview: &Overview) -> String {
        let supervisors = overview.supervisors.len();
        let Self { actors, depth, held, .. } = self;
        format!("supervisors: {supervisors}, actors: {actors}, waiting jobs: {depth}, held: {held}")
    }

    fn figures(&self, overview: &Overview, thresholds: &CheckConfig) -> String {
        // A figure alerts above its threshold, a threshold of `[check]` from its value on.
        let above = |threshold: u64| threshold.checked_sub(1).map(|below| below.to_string());
        let off = |value: u64| (value > 0).then(|| value.to_string());
        let seconds = |wait: Duration| off(wait.as_secs());
        let redis = &overview.redis;
        let of_memory = |percent| off(redis.memory_max_bytes / 100 * percent);
        let figure = |name: &str, value: String, warning: Option<String>, critical| {
            let (warning, critical): (_, Option<String>) = (warning.unwrap_or_default(), critical);
            format!("{name}={value};{warning};{};0", critical.unwrap_or_default())
        };
        let least = (thresholds.supervisors_min > 0).then(|| {
            let least = thresholds.supervisors_min;
            format!("{least}:")
        });
        let mut figures = vec![
            figure("supervisors", overview.supervisors.len().to_string(), None, least),
            figure("actors", self.actors.to_string(), None, None),
            figure("jobs", self.depth.to_string(), None, None),
            figure(
                "deepest",
                self.deepest.to_string(),
                above(thresholds.depth_warning),
                above(thresholds.depth_critical),
            ),
            figure(
                "wait",
                format!("{:.3}s", self.oldest_wait.as_secs_f64()),
                seconds(thresholds.wait_warning),
                seconds(thresholds.wait_critical),
            ),
            figure("held", self.held.to_string(), None, None),
            figure("due", self.due.to_string(), None, None),
            figure(
                "failed",
                self.failed.to_string(),
                above(thresholds.failed_warning),
                above(thresholds.failed_critical),
            ),
            figure(
                "dead",
                self.dead.to_string(),
                above(thresholds.dead_warning),
                above(thresholds.dead_critical),
            ),
        ];
        let memory = figure(
            "memory",
            format!("{}B", redis.memory_used_bytes),
            of_memory(thresholds.memory_warning),
            of_memory(thresholds.memory_critical),
        );
        figures.push(match redis.memory_max_bytes {
            0 => memory,
            most => format!("{memory};{most}"),
        });
        figures.join(" ")
    }
}

fn percent(part: u64, whole: u64) -> Option<u64> {
    part.saturating_mul(100).checked_div(whole)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::overview::tests::overview;

    /// A change of a healthy state.
    type Change<'a> = &'a dyn Fn(&mut Overview);

    fn verdict(change: impl Fn(&mut Overview)) -> CheckVerdict {
        let mut overview = overview();
        change(&mut overview);
        CheckVerdict::of(&overview, &CheckConfig::default())
    }

    #[test]
    fn healthy_state_is_one_line_with_its_figures() {
        let verdict = verdict(|_| {});
        assert_eq!(verdict.state, CheckState::Ok);
        assert_eq!(
            verdict.text(),
            "OK - supervisors: 1, actors: 2, waiting jobs: 3, held: 0 | supervisors=1;;1:;0 \
             actors=2;;;0 jobs=3;;;0 deepest=3;;;0 wait=2.000s;300;1800;0 held=0;;;0 due=1;;;0 \
             failed=0;;;0 dead=0;0;;0 memory=3145728B;83886080;99614720;0;104857600\n"
        );
    }

    #[test]
    fn every_threshold_decides_the_state_and_is_named() {
        use CheckState::{Critical, Warning};
        let hour = |failed, dead| crate::store::LastHour {
            finished: 0,
            failed,
            dead,
            since: Duration::from_hours(1),
        };
        let cases: [(Change<'_>, CheckState, &str); 10] = [
            (&|of| of.supervisors.clear(), Critical, "0 live supervisors (threshold 1)"),
            (
                &|of| of.supervisors[0].redis = "failing".to_owned(),
                Warning,
                "supervisor supervisor on one: failing",
            ),
            (&|of| of.queues[0].1 = 0, Warning, "queue type:osis has 3 jobs and no live actor"),
            (
                &|of| of.queues[0].0.oldest_wait = Some(Duration::from_mins(5)),
                Warning,
                "the first job of queue type:osis waits for 5m00s (threshold 5m)",
            ),
            (
                &|of| of.queues[0].0.oldest_wait = Some(Duration::from_hours(1)),
                Critical,
                "the first job of queue type:osis waits for 1h00m (threshold 30m)",
            ),
            (
                &|of| of.types[0].hour = Some(hour(9, 1)),
                Warning,
                "1 dead letter in the last hour (threshold 1)",
            ),
            (
                &|of| of.redis.appends = Some(false),
                Warning,
                "redis keeps snapshots at most (appendonly no)",
            ),
            (
                &|of| of.redis.memory_used_bytes = 96 << 20,
                Critical,
                "redis uses 96 % of its maxmemory (threshold 95 %)",
            ),
            (
                &|of| of.redis.role = Some("slave".to_owned()),
                Critical,
                "redis is a replica, and refuses writes",
            ),
            (
                &|of| of.redis.append_failed = true,
                Critical,
                "redis cannot write its append-only file",
            ),
        ];
        for (change, state, reason) in cases {
            let found = verdict(change);
            assert_eq!((found.state, found.reasons[0].text.as_str()), (state, reason));
            assert_eq!(found.reasons.len(), 1, "{found:?}");
        }
        let paused = verdict(|of| {
            of.queues[0].0.paused = true;
            of.queues[0].0.oldest_wait = Some(Duration::from_hours(1));
            of.queues[0].1 = 0;
        });
        assert_eq!(paused.state, CheckState::Ok);
    }

    #[test]
    fn worst_reason_comes_first_and_the_others_have_lines_of_their_own() {
        let verdict = verdict(|of| {
            of.queues[0].1 = 0;
            of.supervisors.clear();
        });
        let text = verdict.text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("CRITICAL - 0 live supervisors (threshold 1) (and 1 more) | ")
        );
        assert_eq!(lines[1..], ["WARNING - queue type:osis has 3 jobs and no live actor"]);
        assert_eq!(verdict.document()["reasons"][1]["state"], "warning");
    }

    #[test]
    fn redis_that_does_not_answer_is_critical_and_a_refusal_is_unknown() {
        let verdict = |exit| CheckVerdict::without_redis(&Error::new(exit, "no | answer")).text();
        assert_eq!(verdict(Exit::Unavailable), "CRITICAL - no / answer\n");
        assert_eq!(verdict(Exit::NotPermitted), "UNKNOWN - no / answer\n");
    }
}
