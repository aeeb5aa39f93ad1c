//! `hero check`: validates the configuration, and says which script types can run on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::check_memory::UnitsMemory;
use super::check_shards::{ShardsCheck, redis_document, state_of, state_soon};
use super::job_notes::unknown_notifications;
use super::{Global, output, running_settings};
use crate::artifacts::ContentFolder;
use crate::client::Client;
use crate::config::{
    Config, ConfigError, CronEntry, Crontab, DEFAULT_FILE, EngineKind, FileReader, ScriptFile,
    ScriptFiles, SecretFiles, TypeConfig, Unit,
};
use crate::daemon::ProcessSandbox;
use crate::engine::{self, Backends};
use crate::error::{Error, Exit};
use crate::proto::shard::Shard;
use crate::proto::target::ScriptType;
use crate::proto::text::counted;
use crate::sandbox::{Sandbox, Support};
use crate::store::RedisState;
use crate::supervisor::template_faults;

/// Validate the configuration, and say what can run on this machine
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hero check\n  hero --config new.toml check osis-default-1\n  hero check --redis\n  hero check --show\n  hero check --user hero\n\n\
                        Exit codes: 71 the scripts of UNIT cannot run here, 78 the configuration is wrong, with file, line \
                        and column; with \
                        --redis 69 Redis does not answer, 77 it refuses the login. Without \
                        --redis these two are warnings."
)]
pub(super) struct Check {
    /// Describe this unit too, and fail if its scripts cannot run here
    unit: Option<String>,
    /// Say what Redis is and keeps; fail if it does not answer, refuses the login, or is not durable though
    /// the configuration requires it, or if a key has the wrong type
    #[arg(long)]
    redis: bool,
    /// Print the values in force, as a file
    #[arg(long)]
    show: bool,
    /// Fail if this user may not read the files of the configuration; by default `hero`, if root
    /// checks /etc/hero/hero.toml
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

impl Check {
    pub(super) fn run(&self, global: &Global) -> Result<(), Error> {
        let config = global.config()?;
        check_access(config, global, self.user.as_deref())?;
        let unit = self.unit.as_deref().map(|name| Ok::<_, Error>((name, config.unit(name)?)));
        let unit = unit.transpose()?;
        let (crontab, scripts) = of_folders(config)?;
        let home = || state_of(config, &config.redis.of_shard(Shard::HOME));
        let redis = self.redis.then(home).transpose()?;
        let reader = reader(global, self.user.as_deref())?;
        let secrets = SecretFiles::of(config, reader.as_ref());
        let shards = ShardsCheck::of(config, self.redis)?;
        let silence = if self.redis { silence(config)? } else { None };
        let mut warnings = warnings(config, redis.as_ref(), &secrets)?;
        warnings.extend(cron_notes(config, &crontab));
        warnings.extend(silence.clone());
        warnings.extend(running(config, global)?);
        if let Some(shards) = &shards {
            warnings.extend(shards.warnings()?);
        }
        let memory = UnitsMemory::of(config, unit.as_ref());
        if global.json {
            let mut document = document(config, unit.as_ref())?;
            if let Some((_, unit)) = &unit {
                document["unit"]["sandbox"] = json!(own_sandbox(config, global, unit)?);
            }
            memory.add_to(&mut document);
            document["warnings"] = json!(warnings);
            if let Some(state) = &redis {
                document["redis"] = redis_document(state);
            }
            if let Some(shards) = &shards {
                document["shards"] = shards.document();
            }
            document["secrets"] = json!(secrets.names);
            document["cron"] = crontab.entries.iter().map(|entry| json!(entry.name)).collect();
            document["scripts"] = scripts.scripts.iter().map(|script| json!(script.name)).collect();
            output::json(&document)?;
            return verdict(config, unit);
        }
        output::notes(&warnings);
        if self.show {
            output::text(&format!("{}\n", config.to_toml()?))?;
        }
        let mut lines = lines_of(config, &crontab, &secrets);
        let script = |of: &ScriptFile| format!("script {}: {}", of.name, of.definition.script_type);
        lines.extend(scripts.scripts.iter().map(script));
        lines.extend(unit.iter().flat_map(|(name, unit)| what_it_is(name, unit)));
        lines.extend(memory.lines());
        if let Some((name, unit)) = &unit
            && let Some(said) = own_sandbox(config, global, unit)?
        {
            lines.push(format!("unit {name}: its process is sandboxed: it {said}"));
        }
        lines.extend(redis.iter().flat_map(lines_of_redis));
        if self.redis && silence.is_none() {
            lines.push("redis: tells at once of jobs that programs push".to_owned());
        }
        lines.extend(shards.iter().flat_map(ShardsCheck::lines));
        // The values alone are a file.
        for line in &lines {
            if self.show { output::note(line) } else { output::line(line)? }
        }
        verdict(config, unit)
    }
}

fn of_folders(config: &Config) -> Result<(Crontab, ScriptFiles), Error> {
    let (crontab, scripts) = (config.crontab(), config.script_files());
    let problems = crontab.problems.iter().chain(&scripts.problems);
    let problems = problems.map(ToString::to_string).chain(template_faults(&config.notify));
    let problems: Vec<String> = problems.collect();
    if problems.is_empty() {
        return Ok((crontab, scripts));
    }
    Err(Error::new(Exit::Config, problems.join("\n")))
}

/// Returns what periodic jobs name that the configuration does not have.
pub(super) fn cron_notes(config: &Config, crontab: &Crontab) -> Vec<String> {
    let of_entry = |entry: &CronEntry| -> Vec<String> {
        let (named, jobs) = (entry.notifications(), entry.jobs(Timestamp::UNIX_EPOCH));
        let types: BTreeSet<&ScriptType> =
            jobs.iter().filter_map(|job| job.spec.script_type.as_ref()).collect();
        let of_types = types.into_iter().filter_map(|name| Some((name, config.types.get(name)?)));
        let unsigned = of_types.filter(|(_, of)| of.requires_signature()).map(|(name, _)| {
            format!(
                "jobs of {name} must be signed, and periodic jobs cannot be: each ends in error; let a timer of \
                 systemd call hero submit --sign"
            )
        });
        let notes = unknown_notifications(&named, config).chain(unsigned);
        notes.map(|note| format!("cron {}: {note}", entry.name)).collect()
    };
    crontab.entries.iter().flat_map(of_entry).collect()
}

/// Returns the lines about script types, periodic jobs and secrets.
fn lines_of(config: &Config, crontab: &Crontab, secrets: &SecretFiles) -> Vec<String> {
    let mut lines = vec!["configuration: valid".to_owned()];
    let types = availability(config);
    lines.extend(types.iter().map(|(of, unavailable)| said(of, unavailable.as_deref())));
    let sandboxes = sandboxes(config);
    lines.extend(sandboxes.iter().map(|(of, sandbox)| format!("{of}: sandbox: {sandbox}")));
    let entries = crontab.entries.iter();
    lines.extend(entries.map(|entry| format!("cron {}: {}", entry.name, entry.schedule)));
    if !secrets.names.is_empty() {
        lines.push(format!("secrets: {}", secrets.names.join(", ")));
    }
    lines
}

fn lines_of_redis(state: &RedisState) -> Vec<String> {
    let mut lines = vec!["redis: answers, and no key has the wrong type".to_owned()];
    lines.extend(state.facts().iter().map(|fact| format!("redis: {fact}")));
    lines.push(format!("redis: keeps {}", state.keeps()));
    lines
}

/// Rejects files that the user of the daemon may not read.
pub(super) fn check_access(
    config: &Config,
    global: &Global,
    user: Option<&str>,
) -> Result<(), Error> {
    let Some(reader) = reader(global, user)? else { return Ok(()) };
    let obstacles = config.unreadable_by(&reader, global.file());
    if obstacles.is_empty() {
        return Ok(());
    }
    Err(Error::new(Exit::Config, obstacles.join("\n")))
}

fn warnings(
    config: &Config,
    redis: Option<&RedisState>,
    secrets: &SecretFiles,
) -> Result<Vec<String>, Error> {
    let mut warnings = match redis {
        Some(state) => state.dangers(),
        None => redis_warnings(config)?,
    };
    let artifacts = config.job.artifacts.clone().map(ContentFolder::new);
    warnings.extend(artifacts.as_ref().and_then(ContentFolder::problem));
    warnings.extend(secrets.problems.iter().cloned());
    Ok(warnings)
}

/// Returns the running units of this machine that have other settings. What only they may read is no reason to fail.
fn running(config: &Config, global: &Global) -> Result<Vec<String>, Error> {
    let Ok(client) = Client::open(config) else { return Ok(Vec::new()) };
    super::block_on(running_settings::read(&client, global, None))
}

/// Returns why Redis does not tell this login of jobs that programs push, and what follows.
fn silence(config: &Config) -> Result<Option<String>, Error> {
    let client = Client::with(&config.redis.of_shard(Shard::HOME), config.job.clone())?;
    let reason =
        super::block_on(async { Ok(client.system().receives_push_notifications().await?) })?;
    Ok(reason.map(|reason| {
        format!(
            "redis does not tell this login of jobs that programs push ({reason}): a daemon with this login looks \
             at their lists every 200 ms; allow CLIENT TRACKING"
        )
    }))
}

/// Returns the user of the daemons, if it is not the one who calls.
pub(super) fn reader(global: &Global, user: Option<&str>) -> Result<Option<FileReader>, Error> {
    let is_default = global.file().is_none_or(|file| file == Path::new(DEFAULT_FILE));
    Ok(match user {
        Some(name) => Some(FileReader::of(name).ok_or_else(|| {
            Error::new(Exit::NotFound, format!("cannot check as user {name}: no such user"))
        })?),
        // Of a machine without the package, nobody is to read the file.
        None if is_default && nix::unistd::geteuid().is_root() => FileReader::of("hero"),
        None => None,
    })
}

/// The exit code. As in the daemon, a unit whose scripts cannot run is an error.
fn verdict(config: &Config, unit: Option<(&str, Unit)>) -> Result<(), Error> {
    let Some((_, Unit::Actors(actors))) = unit else { return Ok(()) };
    for (script_type, unavailable) in availability(config) {
        if unavailable.is_some() && actors.iter().any(|actor| actor.id.script_type == script_type) {
            return Err(Error::new(Exit::Machine, said(&script_type, unavailable.as_deref())));
        }
    }
    Ok(())
}

/// The remaining rights of a sandboxed unit process; `None` if it is not sandboxed.
fn own_sandbox(config: &Config, global: &Global, unit: &Unit) -> Result<Option<String>, Error> {
    if Support::of_this_kernel().landlock == 0 {
        return Ok(None);
    }
    let sandbox = ProcessSandbox::of(config, global.file(), unit)
        .map_err(|error| Error::new(Exit::Config, error.to_string()))?;
    Ok(sandbox.map(|sandbox| sandbox.summary()))
}

/// Warnings about Redis: it may lose jobs, does not answer or refuses the login, or this user may not
/// read its secrets. During a reload a unit may not read its own credentials again, so the latter is
/// no error.
fn redis_warnings(config: &Config) -> Result<Vec<String>, Error> {
    let secrets = [config.redis.password().err(), config.redis.tls().err()];
    if let Some(error) = secrets.into_iter().flatten().find(ConfigError::is_for_others) {
        return Ok(vec![format!("{error}; the user of the daemon may be allowed to read it")]);
    }
    Ok(match state_soon(config, &config.redis.of_shard(Shard::HOME))? {
        Ok(state) => state.dangers(),
        Err(why) => vec![why],
    })
}

/// Every configured type, with the reason if its scripts cannot run on this machine.
pub(super) fn availability(config: &Config) -> Vec<(ScriptType, Option<String>)> {
    let (backends, job, sal) = (Backends::default(), &config.job, &config.sal);
    let of_type = |(name, of_type): (&ScriptType, &TypeConfig)| {
        let engine = engine::build(name.clone(), of_type, job, sal, &backends);
        (name.clone(), engine.unavailable())
    };
    config.types.iter().map(of_type).collect()
}

/// The types that start processes, with what this kernel enforces of their sandbox.
fn sandboxes(config: &Config) -> BTreeMap<ScriptType, String> {
    let types = config.types.iter();
    types
        .filter_map(|(name, of_type)| {
            let sandbox = match of_type.engine {
                EngineKind::Osis | EngineKind::HeroScript => return None,
                EngineKind::Sal => Sandbox::of_sal(&config.sal),
                EngineKind::Command => Sandbox::of_type(&of_type.sandbox),
            };
            Some((name.clone(), sandbox.summary()))
        })
        .collect()
}

pub(super) fn said(script_type: &ScriptType, unavailable: Option<&str>) -> String {
    match unavailable {
        None => format!("{script_type}: available"),
        Some(reason) => format!("{script_type}: not available: {reason}"),
    }
}

fn what_it_is(name: &str, unit: &Unit) -> Vec<String> {
    match unit {
        Unit::Supervisor => vec![format!("unit {name}: the supervisor")],
        Unit::Broker(None) => vec![format!("unit {name}: a broker")],
        Unit::Broker(Some(node)) => {
            vec![format!("unit {name}: the brokers of the node {}", node.as_str())]
        }
        Unit::Actors(actors) => actors
            .iter()
            .map(|actor| {
                let jobs = counted(actor.tasks as u64, "job", "jobs");
                format!("unit {name}: actor {}, {jobs} at once", actor.id)
            })
            .collect(),
    }
}

fn document(config: &Config, unit: Option<&(&str, Unit)>) -> Result<Value, Error> {
    let in_force = config.to_table()?;
    let sandboxes = sandboxes(config);
    let types: Map<String, Value> = availability(config)
        .into_iter()
        .map(|(name, unavailable)| {
            let available = unavailable.is_none();
            let sandbox = sandboxes.get(&name);
            let fact = json!({ "available": available, "reason": unavailable, "sandbox": sandbox });
            (name.to_string(), fact)
        })
        .collect();
    let unit = unit.map(|(name, unit)| match unit {
        Unit::Supervisor => json!({ "name": name, "role": "supervisor" }),
        Unit::Broker(node) => json!({ "name": name, "role": "broker", "node": node }),
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
    fn missing_interpreter_is_reported_with_its_name() {
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
    fn sandbox_is_described_for_every_type_with_processes() {
        let text = "[type.open]\nengine = \"command\"\ncommand = [\"x\", \"{script}\"]\n\
                    sandbox.enabled = false\n";
        let config = Config::from_toml("hero.toml".as_ref(), text).expect("legal");
        let sandboxes = sandboxes(&config);
        let of = |name: &str| sandboxes.get(&name.parse().expect("legal")).map(String::as_str);
        assert_eq!(
            (of("open"), of("sal"), of("osis")),
            (Some("no sandbox"), Some("no sandbox"), None)
        );
        let level = crate::sandbox::Support::of_this_kernel().level();
        assert!(of("python").is_some_and(|said| said.starts_with(level.as_str())), "{sandboxes:?}");
    }

    #[test]
    fn unit_is_described_in_one_line_per_actor() {
        let unit = Config::default().unit("osis-default-1").expect("an actor");
        assert_eq!(
            what_it_is("osis-default-1", &unit),
            ["unit osis-default-1: actor osis:default:1, 4 jobs at once"]
        );
    }
}
