//! Redis, and what it says of actors, supervisors, queues and jobs.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::super::status::{self, CheckReason, CheckState, start_of};
use super::super::time::brief;
use super::finding::{DoctorFinding, FindingArea, FindingState};
use crate::client::{Client, ClientError, Overview};
use crate::config::Config;
use crate::proto::text::counted;
use crate::store::{PresenceOf, RedisState};

const REDIS: FindingArea = FindingArea::Redis;
const JOBS: FindingArea = FindingArea::Jobs;
/// A clock that differs by more is a warning.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(2);
/// A round trip that takes longer is a warning.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(20);
/// Round trips, of which the shortest counts.
const ROUND_TRIPS: usize = 5;
/// The oldest Redis that Hero works with.
const OLDEST_REDIS: (u32, u32) = (6, 2);
/// The most paused queues that are told one by one.
const PAUSED_LISTED_MAX: usize = 3;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Asks Redis.
pub(super) async fn findings(config: &Config) -> Vec<DoctorFinding> {
    let address = config.redis.redacted_url();
    let client = match Client::open(config) {
        Ok(client) => client,
        Err(error) => return vec![unreachable(&error, &address)],
    };
    match looked(&client, config, &address).await {
        Ok(findings) => findings,
        Err(error) => vec![unreachable(&error, &address)],
    }
}

fn unreachable(error: &ClientError, address: &str) -> DoctorFinding {
    let remedy = format!(
        "see that redis runs and listens on {address}: systemctl status redis-server\n\
         another address, user or password: [redis] of hero.toml(5)"
    );
    DoctorFinding::error(REDIS, error.to_string(), &remedy)
}

async fn looked(
    client: &Client,
    config: &Config,
    address: &str,
) -> Result<Vec<DoctorFinding>, ClientError> {
    let mut findings = clock(client, address).await?;
    let overview = Overview::read(client, address.to_owned()).await?;
    findings.extend(redis(&overview.redis));
    for wrong in client.wrong_types().await? {
        let remedy = "another program uses this key: give Hero a namespace of its own (redis.namespace), or \
                      rename that key";
        findings.push(DoctorFinding::error(REDIS, wrong, remedy));
    }
    // The state of Redis is told above, with its version and what it keeps.
    findings.extend(
        status::problems(&overview, &config.check)
            .into_iter()
            .filter(|of| !["redis keeps", "redis cannot"].iter().any(|it| of.text.starts_with(it)))
            .map(of_reason),
    );
    findings.extend(of_versions(&overview, &client.list_actors(None).await?));
    findings.extend(of_queues(&overview));
    if findings.iter().all(|of| of.area != JOBS) {
        let (supervisors, live) = (overview.supervisors.len() as u64, sum(&overview, |of| of.live));
        let text = format!(
            "{} and {} are live, and no queue waits too long",
            counted(supervisors, "supervisor", "supervisors"),
            counted(live, "actor", "actors"),
        );
        findings.push(DoctorFinding::ok(JOBS, text));
    }
    Ok(findings)
}

fn of_reason(reason: CheckReason) -> DoctorFinding {
    let state = match reason.state {
        CheckState::Critical | CheckState::Unknown => FindingState::Error,
        CheckState::Ok | CheckState::Warning => FindingState::Warning,
    };
    let area = if reason.text.starts_with("redis") { REDIS } else { JOBS };
    DoctorFinding { area, state, text: reason.text, remedy: reason.remedy }
}

fn sum(overview: &Overview, of: impl Fn(&crate::client::ActorCount) -> u64) -> u64 {
    overview.actors.values().map(of).sum()
}

/// Measures a round trip, and compares the clocks.
async fn clock(client: &Client, address: &str) -> Result<Vec<DoctorFinding>, ClientError> {
    client.ping().await?;
    let mut best: Option<(Duration, Duration)> = None;
    for _ in 0..ROUND_TRIPS {
        let (sent, began) = (Timestamp::now(), Instant::now());
        let theirs = client.now().await?;
        let took = began.elapsed();
        // Their answer is of the middle of the round trip.
        let ours = sent.checked_add(took / 2).unwrap_or(sent);
        let difference = theirs.duration_since(ours).unsigned_abs();
        if best.is_none_or(|(least, _)| took < least) {
            best = Some((took, difference));
        }
    }
    let (took, difference) = best.unwrap_or_default();
    let milliseconds = took.as_secs_f64() * 1000.0;
    let answers = format!("{address} answers within {milliseconds:.1} ms");
    let mut findings = vec![if took > ROUND_TRIP_MAX {
        let remedy =
            "jobs start later by some round trips: bring actors and redis closer to each other";
        DoctorFinding::warning(REDIS, answers, remedy)
    } else {
        DoctorFinding::ok(REDIS, answers)
    }];
    if difference > CLOCK_DIFFERENCE_MAX {
        let text =
            format!("the clocks of this machine and of redis differ by {}", brief(difference));
        let remedy = "jobs are due by redis's clock: set both by NTP, see timedatectl status";
        findings.push(DoctorFinding::warning(REDIS, text, remedy));
    }
    Ok(findings)
}

/// Its version, and what it keeps.
fn redis(state: &RedisState) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let Some(version) = &state.version else {
        let text = "redis does not tell its version and settings: its user may not call INFO";
        return vec![DoctorFinding::note(REDIS, text)];
    };
    let mut parts = version.split('.').map_while(|part| part.parse::<u32>().ok());
    let known = parts.next().zip(parts.next());
    if known.is_some_and(|of| of < OLDEST_REDIS) {
        let (major, minor) = OLDEST_REDIS;
        let text = format!("redis is version {version}; hero needs {major}.{minor} or later");
        findings.push(DoctorFinding::error(REDIS, text, "upgrade it"));
    }
    let dangers = state.dangers();
    if dangers.is_empty() {
        findings
            .push(DoctorFinding::ok(REDIS, format!("version {version}, keeps {}", state.keeps())));
    }
    for danger in dangers {
        let (text, remedy) = match danger.split_once("; ") {
            Some((text, remedy)) => (text.to_owned(), remedy.to_owned()),
            None => (danger, String::new()),
        };
        findings.push(DoctorFinding::warning(REDIS, text, &remedy));
    }
    findings
}

/// Daemons of other versions than this program's.
fn of_versions(overview: &Overview, actors: &[PresenceOf]) -> Vec<DoctorFinding> {
    let supervisors =
        overview.supervisors.iter().map(|of| (of.version.as_str(), of.unit.clone(), &of.hostname));
    let actors = actors
        .iter()
        .map(|of| (of.presence.version.as_str(), of.actor.unit(), &of.presence.hostname));
    let others: Vec<String> = supervisors
        .chain(actors)
        .filter(|(version, ..)| !version.is_empty() && *version != VERSION)
        .map(|(version, unit, host)| format!("{unit} on {host}: {version}"))
        .collect();
    let Some(first) = others.first() else { return Vec::new() };
    let number = counted(others.len() as u64, "daemon has", "daemons have");
    let text = format!("{number} another version than this program's {VERSION}: {first}");
    vec![DoctorFinding::warning(
        JOBS,
        text,
        "upgrade the package there; units restart by themselves then",
    )]
}

/// Paused queues, due jobs that nobody dispatches, overloaded actors.
fn of_queues(overview: &Overview) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let paused: Vec<_> = overview.queues.iter().filter(|(state, _)| state.paused).collect();
    if paused.len() > PAUSED_LISTED_MAX {
        let all = if paused.len() == overview.queues.len() { "all " } else { "" };
        let waiting: u64 = paused.iter().map(|(state, _)| state.depth).sum();
        let jobs = counted(waiting, "job waits", "jobs wait");
        let text = format!("{all}{} queues are paused; {jobs} in them", paused.len());
        let remedy = "resume them: hero queue resume --all; see which: hero queue list";
        findings.push(DoctorFinding::warning(JOBS, text, remedy));
    }
    for (state, _) in paused.iter().filter(|_| paused.len() <= PAUSED_LISTED_MAX) {
        let jobs = counted(state.depth, "job waits", "jobs wait");
        let remedy = format!("resume it: hero queue resume {}", state.queue);
        let text = format!("queue {} is paused; {jobs} in it", state.queue);
        findings.push(DoctorFinding::warning(JOBS, text, &remedy));
    }
    let due: u64 = overview.types.iter().map(|of| of.due).sum();
    if due > 0 && overview.supervisors.is_empty() {
        let jobs = counted(due, "scheduled job is", "scheduled jobs are");
        let remedy = format!("a supervisor dispatches them: {}", start_of("supervisor"));
        findings.push(DoctorFinding::error(
            JOBS,
            format!("{jobs} due and not dispatched"),
            &remedy,
        ));
    }
    let holding = sum(overview, |of| of.holding);
    if holding > 0 {
        let actors = counted(holding, "actor claims", "actors claim");
        let text = format!("{actors} no jobs, as their machine is overloaded or full");
        findings.push(DoctorFinding::warning(JOBS, text, "see which and why: hero actor list"));
    }
    let dead: u64 = overview.types.iter().map(|of| of.dead).sum();
    if dead > 0 {
        let text = format!("{} kept", counted(dead, "dead letter is", "dead letters are"));
        findings.push(DoctorFinding::note(JOBS, text + "; see them with hero dead list"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::overview::tests::overview;

    #[test]
    fn old_redis_is_an_error_and_one_that_forgets_a_warning_with_commands() {
        let of = |version: &str, appends| RedisState {
            version: Some(version.to_owned()),
            eviction_policy: Some("noeviction".to_owned()),
            appends: Some(appends),
            ..RedisState::default()
        };
        assert_eq!(redis(&of("7.0.15", true))[0].state, FindingState::Ok);
        assert_eq!(redis(&of("10.1.0", true))[0].state, FindingState::Ok);
        assert_eq!(redis(&of("6.0.16", true))[0].state, FindingState::Error);
        let forgets = redis(&of("7.0.15", false));
        assert_eq!(forgets[0].state, FindingState::Warning);
        assert!(forgets[0].remedy.contains("CONFIG SET appendonly yes"), "{forgets:?}");
    }

    #[test]
    fn paused_queues_due_jobs_and_dead_letters_are_found() {
        let mut state = overview();
        assert_eq!(of_queues(&state), []);
        state.queues[0].0.paused = true;
        state.supervisors.clear();
        state.types[0].dead = 2;
        let found = of_queues(&state);
        let texts: Vec<&str> = found.iter().map(|of| of.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "queue type:osis is paused; 3 jobs wait in it",
                "1 scheduled job is due and not dispatched",
                "2 dead letters are kept; see them with hero dead list",
            ]
        );
    }

    #[test]
    fn many_paused_queues_are_one_warning() {
        let mut state = overview();
        state.queues[0].0.paused = true;
        let one = state.queues[0].clone();
        state.queues = vec![one; 51];
        let found = of_queues(&state);
        let paused: Vec<_> = found.iter().filter(|of| of.text.contains("paused")).collect();
        assert_eq!(paused.len(), 1, "{found:?}");
        assert_eq!(paused[0].text, "all 51 queues are paused; 153 jobs wait in them");
        assert!(paused[0].remedy.contains("hero queue resume --all"), "{found:?}");
    }

    #[test]
    fn daemon_of_another_version_is_named() {
        let mut state = overview();
        VERSION.clone_into(&mut state.supervisors[0].version);
        assert_eq!(of_versions(&state, &[]), []);
        "0.0.9".clone_into(&mut state.supervisors[0].version);
        let found = of_versions(&state, &[]);
        assert!(
            found[0].text.contains("1 daemon has")
                && found[0].text.contains("supervisor on one: 0.0.9")
        );
    }
}
