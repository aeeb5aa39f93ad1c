//! Redis, and what it says of actors, supervisors, queues and jobs.

use std::path::Path;
use std::time::{Duration, Instant};

use super::super::author::open_client;
use super::super::{Global, running_settings};
use super::units::{RunningUnit, hung};
use super::{DoctorFinding, FindingArea};
use crate::client::{Client, ClientError};
use crate::config::Config;
use crate::proto::text::counted;
use crate::proto::units::brief;
use crate::store::StoreError;
use crate::view::{HealthRules, NamespaceHealth, Snapshot};

const REDIS: FindingArea = FindingArea::Redis;
const JOBS: FindingArea = FindingArea::Jobs;
const BROKERS: FindingArea = FindingArea::Brokers;
const ROUND_TRIP_MAX: Duration = Duration::from_millis(20);
/// Round trips; the shortest counts.
const ROUND_TRIPS: usize = 5;

pub(super) async fn findings(
    config: &Config,
    global: &Global,
    units: &[RunningUnit],
) -> Vec<DoctorFinding> {
    let (address, files) = (config.redis.redacted_url(), (config, global.file()));
    let looked = async { looked(&open_client(config)?, files, units, &address).await };
    looked.await.unwrap_or_else(|error| vec![unreachable(&error, &address)])
}

fn unreachable(error: &ClientError, address: &str) -> DoctorFinding {
    if let ClientError::Store(error) = error
        && error.is_login_refused()
    {
        let remedy = if error.lacks_password() {
            "Redis wants a password, and this command has none. Units read the credential redis-password, which is \
             /etc/credstore/redis-password: be root, or name a file of yours as redis.password_file\n\
             the configuration of another login: HERO_CONFIG=/etc/hero/NAME.toml hero doctor"
        } else {
            "compare redis.username, and the password in redis.password_file or the credential redis-password, with \
             the users of Redis: redis-cli ACL LIST\n\
             a new password: see \"Rotating the password of Redis\" in docs/operations.md"
        };
        return DoctorFinding::error(REDIS, error.to_string(), remedy);
    }
    if let ClientError::Store(StoreError::NotServing { .. }) = error {
        let remedy = "redis runs and answers; its log and `redis-cli INFO` tell more, and hero goes on by itself once it serves";
        return DoctorFinding::error(REDIS, error.to_string(), remedy);
    }
    let remedy = format!(
        "see that redis runs and listens on {address}: systemctl status redis-server\n\
         another address, user or password: [redis] of hero.toml(5)"
    );
    DoctorFinding::error(REDIS, error.to_string(), &remedy)
}

async fn looked(
    client: &Client,
    (config, file): (&Config, Option<&Path>),
    units: &[RunningUnit],
    address: &str,
) -> Result<Vec<DoctorFinding>, ClientError> {
    let answers = round_trip(client, address).await?;
    let snapshot = Snapshot::read(client, address.to_owned()).await?;
    let health = NamespaceHealth::of(&snapshot, &HealthRules::from(config));
    let mut findings = vec![answers];
    findings.extend(health.problems.into_iter().map(DoctorFinding::from));
    let others =
        running_settings::differences((config, file), &snapshot.actors, &snapshot.supervisors);
    let remedy =
        "systemctl reload 'hero@*'; a unit that needs a restart names the settings in its journal";
    findings.extend(others.iter().map(|text| DoctorFinding::warning(JOBS, text, remedy)));
    let hung = hung(&snapshot, units);
    for unit in &hung {
        for finding in &mut findings {
            unit.correct_remedy(finding);
        }
    }
    findings.extend(hung.into_iter().map(DoctorFinding::from));
    let has = |findings: &[DoctorFinding], area| {
        findings.iter().skip(1).any(|of| of.area == area && of.is_problem())
    };
    if let Some(version) = snapshot.redis.version.as_ref().filter(|_| !has(&findings, REDIS)) {
        let text = format!("version {version}, keeps {}", snapshot.redis.keeps());
        findings.insert(1, DoctorFinding::ok(REDIS, text));
    }
    // While writes are refused, nobody can renew its presence.
    if !has(&findings, JOBS) && !snapshot.refuses_writes() {
        let live: u64 = snapshot.actor_counts.values().map(|of| of.live).sum();
        let text = format!(
            "{} and {} are live, and no queue waits too long",
            counted(snapshot.supervisors.len() as u64, "supervisor", "supervisors"),
            counted(live, "actor", "actors"),
        );
        findings.push(DoctorFinding::ok(JOBS, text));
    }
    if !snapshot.brokers.is_empty() && !has(&findings, BROKERS) {
        let live = counted(snapshot.live_brokers().count() as u64, "broker is", "brokers are");
        let text = format!("{live} live, and every dispatcher consumes");
        findings.push(DoctorFinding::ok(BROKERS, text));
    }
    Ok(findings)
}

/// Measures a round trip. PING would be refused by a Redis that cannot write to its disk, and answers otherwise.
async fn round_trip(client: &Client, address: &str) -> Result<DoctorFinding, ClientError> {
    client.system().answers().await?;
    let mut best = Duration::MAX;
    for _ in 0..ROUND_TRIPS {
        let began = Instant::now();
        client.system().answers().await?;
        best = best.min(began.elapsed());
    }
    let answers = format!("{address} answers within {}", brief(best));
    Ok(if best > ROUND_TRIP_MAX {
        let remedy =
            "jobs start later by some round trips: bring actors and redis closer to each other";
        DoctorFinding::warning(REDIS, answers, remedy)
    } else {
        DoctorFinding::ok(REDIS, answers)
    })
}
