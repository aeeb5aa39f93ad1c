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
    let actors = actors.iter().map(|PresenceOf { actor, presence: of }| {
        (format!("actor {actor}"), of.pid, [&of.hostname, &of.version, &of.settings])
    });
    let supervisors = supervisors.iter().map(|of| {
        (format!("the supervisor {}", of.unit), of.pid, [&of.hostname, &of.version, &of.settings])
    });
    let sentence = |(name, pid, [hostname, version, settings]): (String, u32, [&String; 3])| {
        // An older version, or one with other defaults, has another digest of the same settings.
        let is_comparable = *hostname == host && version == env!("CARGO_PKG_VERSION");
        let is_other = is_comparable && !settings.is_empty() && *settings != digest;
        is_other.then(|| format!(
            "{name} (pid {pid}) runs with other settings than these: reload its unit; what needs a restart is in its \
             journal"
        ))
    };
    supervisors.chain(actors).filter_map(sentence).collect()
}

/// Reads the running units and compares; none if Redis does not answer soon.
pub(super) async fn read(client: &Client, config: &Config) -> Vec<String> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let read =
        async { tokio::try_join!(client.actors().list(None), client.system().supervisors()) };
    let read = tokio::time::timeout(PATIENCE, read).await;
    let Ok(Ok((actors, supervisors))) = read else { return Vec::new() };
    differences(config, &actors, &supervisors)
}
