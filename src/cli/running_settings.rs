//! Compares the settings of the files with those that the running units of this machine have.

use std::time::Duration;

use crate::client::{Client, host_name};
use crate::config::Config;
use crate::proto::message::SupervisorPresence;
use crate::store::PresenceOf;

/// Returns a sentence for each running unit of this machine, of this version, that has other settings than `config`.
pub(super) fn differences(
    config: &Config,
    actors: &[PresenceOf],
    supervisors: &[SupervisorPresence],
) -> Vec<String> {
    let (host, digest) = (host_name(), config.digest());
    let differs = |hostname: &str, version: &str, settings: &str| {
        // An older version, or one with other defaults, has another digest of the same settings.
        let is_comparable = hostname == host && version == env!("CARGO_PKG_VERSION");
        is_comparable && !settings.is_empty() && settings != digest
    };
    let actors = actors.iter().filter_map(|PresenceOf { actor, presence: of }| {
        let is_other = differs(&of.hostname, &of.version, &of.settings);
        is_other.then(|| (format!("actor {actor}"), of.pid))
    });
    let supervisors = supervisors.iter().filter_map(|of| {
        let is_other = differs(&of.hostname, &of.version, &of.settings);
        is_other.then(|| (format!("the supervisor {}", of.unit), of.pid))
    });
    let sentence = |(name, pid): (String, u32)| {
        format!(
            "{name} (pid {pid}) runs with other settings than these: reload its unit; what needs a restart is in its \
             journal"
        )
    };
    supervisors.chain(actors).map(sentence).collect()
}

/// Reads the running units and compares; none if Redis does not answer soon.
pub(super) async fn read(client: &Client, config: &Config) -> Vec<String> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let read = async { tokio::try_join!(client.list_actors(None), client.list_supervisors()) };
    let read = tokio::time::timeout(PATIENCE, read).await;
    let Ok(Ok((actors, supervisors))) = read else { return Vec::new() };
    differences(config, &actors, &supervisors)
}
