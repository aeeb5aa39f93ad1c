//! `hero check`: whether the configuration is right, what is in force, what can run here.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::{Global, output};
use crate::client::Client;
use crate::config::{Config, Unit};
use crate::engine::{self, Outside};
use crate::error::{Error, Exit};
use crate::proto::target::ScriptType;

/// Validate the configuration and print what is in force
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero check\n  hero --config new.toml check osis-default-1\n\n\
                        Exit code 78: the configuration is wrong; the message has file, line and \
                        column."
)]
pub(super) struct Check {
    /// Tell what this unit is, too
    unit: Option<String>,
}

impl Check {
    pub(super) fn run(&self, global: &Global) -> Result<ExitCode, Error> {
        let config = global.config()?;
        let unit = match &self.unit {
            Some(name) => Some((name.as_str(), config.unit(name)?)),
            None => None,
        };
        let text = config.to_toml()?;
        let client =
            Client::open(&config).map_err(|error| Error::new(Exit::Config, error.to_string()))?;
        let warnings: Vec<String> = eviction_danger(&client).into_iter().collect();
        if global.json {
            let mut document = document(&config, unit.as_ref())?;
            document["warnings"] = json!(warnings);
            output::json(&document)?;
            return verdict(&config, unit.as_ref().map(|(_, unit)| unit));
        }
        for warning in &warnings {
            output::note(&format!("hero: {warning}"));
        }
        output::text(&format!("{text}\n"))?;
        for (script_type, unavailable) in availability(&config) {
            output::line(&said(&script_type, unavailable.as_deref()))?;
        }
        for line in unit.iter().flat_map(|(name, unit)| what_it_is(name, unit)) {
            output::line(&line)?;
        }
        verdict(&config, unit.as_ref().map(|(_, unit)| unit))
    }
}

/// That of the daemon: it does not begin where the scripts of its unit cannot run.
fn verdict(config: &Config, unit: Option<&Unit>) -> Result<ExitCode, Error> {
    let Some(Unit::Actors(actors)) = unit else { return Ok(ExitCode::SUCCESS) };
    for (script_type, unavailable) in availability(config) {
        if unavailable.is_some() && actors.iter().any(|actor| actor.id.script_type == script_type) {
            return Err(Error::new(Exit::Unavailable, said(&script_type, unavailable.as_deref())));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What a Redis that answers at once says of itself. A check of the configuration needs none.
fn eviction_danger(client: &Client) -> Option<String> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let asked = async { tokio::time::timeout(PATIENCE, client.eviction_danger()).await };
    runtime.block_on(asked).ok()?.ok()?
}

/// Every configured type, and why its scripts cannot run on this machine, if they cannot.
pub(super) fn availability(config: &Config) -> Vec<(ScriptType, Option<String>)> {
    let types = config.types.iter();
    types
        .map(|(name, of_type)| {
            let engine =
                engine::build(name.clone(), of_type, &config.job, &config.sal, &Outside::default());
            (name.clone(), engine.unavailable())
        })
        .collect()
}

/// One line on a type.
pub(super) fn said(script_type: &ScriptType, unavailable: Option<&str>) -> String {
    match unavailable {
        None => format!("{script_type}: available"),
        Some(reason) => format!("{script_type}: not available: {reason}"),
    }
}

fn what_it_is(name: &str, unit: &Unit) -> Vec<String> {
    match unit {
        Unit::Supervisor => vec![format!("unit {name}: the supervisor")],
        Unit::Actors(actors) => actors
            .iter()
            .map(|actor| format!("unit {name}: actor {}, {} jobs at once", actor.id, actor.tasks))
            .collect(),
    }
}

fn document(config: &Config, unit: Option<&(&str, Unit)>) -> Result<Value, Error> {
    let in_force = serde_json::to_value(config).map_err(|error| {
        Error::new(Exit::Config, format!("writing the configuration as JSON: {error}"))
    })?;
    let types: Map<String, Value> = availability(config)
        .into_iter()
        .map(|(name, unavailable)| {
            let fact = json!({ "available": unavailable.is_none(), "reason": unavailable });
            (name.to_string(), fact)
        })
        .collect();
    let unit = unit.map(|(name, unit)| match unit {
        Unit::Supervisor => json!({ "name": name, "role": "supervisor" }),
        Unit::Actors(actors) => {
            let actors: Vec<Value> = actors
                .iter()
                .map(|actor| json!({ "actor": actor.id.to_string(), "tasks": actor.tasks }))
                .collect();
            json!({ "name": name, "role": "actor", "actors": actors })
        }
    });
    Ok(json!({ "config": in_force, "types": types, "unit": unit }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_interpreter_is_said_plainly() {
        let text = "[type.qq]\nengine = \"command\"\ncommand = [\"no-such-qq\", \"{script}\"]\n";
        let config = Config::from_toml("hero.toml".as_ref(), text).expect("legal");
        let lines: Vec<String> = availability(&config)
            .iter()
            .map(|(name, unavailable)| said(name, unavailable.as_deref()))
            .collect();
        assert!(lines.contains(&"osis: available".to_owned()), "{lines:?}");
        assert!(
            lines.contains(&"qq: not available: no no-such-qq in PATH".to_owned()),
            "{lines:?}"
        );
    }

    #[test]
    fn a_unit_is_told_in_one_line_per_actor() {
        let unit = Config::default().unit("osis-default-1").expect("an actor");
        assert_eq!(
            what_it_is("osis-default-1", &unit),
            ["unit osis-default-1: actor osis:default:1, 4 jobs at once"]
        );
    }
}
