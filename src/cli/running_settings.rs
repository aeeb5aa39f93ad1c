//! Compares the settings of the files with those that the running units of this machine have.

use std::path::Path;
use std::time::Duration;

use super::Global;
use super::time::{local_second, local_second_text, local_zone};
use crate::client::{Client, host_name};
use crate::config::{Config, DEFAULT_FILE, changed_at};
use crate::error::Error;
use crate::proto::message::SupervisorPresence;
use crate::proto::target::ScriptType;
use crate::store::PresenceOf;

/// Returns a sentence for each running unit of this machine, of this version, that has other settings than the configuration.
pub(super) fn differences(
    (config, file): (&Config, Option<&Path>),
    actors: &[PresenceOf],
    supervisors: &[SupervisorPresence],
) -> Vec<String> {
    let (host, digest, zone) = (host_name(), config.digest(), local_zone());
    let changed = changed_at(file.unwrap_or(Path::new(DEFAULT_FILE)));
    let changed = changed.map(|at| format!(", this one is of {}", local_second(at, &zone)));
    let changed = changed.unwrap_or_default();
    let actors = actors.iter().map(|PresenceOf { actor, presence: of }| {
        (
            format!("actor {actor}"),
            of.pid,
            [&of.hostname, &of.version, &of.settings, &of.settings_at],
        )
    });
    let supervisors = supervisors.iter().map(|of| {
        let told = [&of.hostname, &of.version, &of.settings, &of.settings_at];
        (format!("the supervisor {}", of.unit), of.pid, told)
    });
    let sentence = |(name, pid, told): (String, u32, [&String; 4])| {
        let [hostname, version, settings, at] = told;
        // An older version, or one with other defaults, has another digest of the same settings.
        let is_comparable = *hostname == host && version == env!("CARGO_PKG_VERSION");
        let is_other = is_comparable && !settings.is_empty() && *settings != digest;
        let at = local_second_text(at, &zone);
        is_other.then(|| {
            format!(
                "{name} (pid {pid}) runs with other settings than these: it has a configuration of {at}{changed}; reload \
                 its unit; what needs a restart is in its journal"
            )
        })
    };
    supervisors.chain(actors).filter_map(sentence).collect()
}

/// Reads the running units and compares, of actors the ones of a script type or all; none if Redis does not answer soon.
pub(super) async fn read(
    client: &Client,
    global: &Global,
    of: Option<&ScriptType>,
) -> Result<Vec<String>, Error> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let read = async { tokio::try_join!(client.actors().list(of), client.system().supervisors()) };
    let read = tokio::time::timeout(PATIENCE, read).await;
    let Ok(Ok((actors, supervisors))) = read else { return Ok(Vec::new()) };
    Ok(differences((global.config()?, global.file()), &actors, &supervisors))
}
