//! Scripts: their check without a run, and the documentation of their functions.

use std::collections::BTreeMap;

use regex::Regex;

use crate::config::{EngineKind, JobConfig, OsisConfig, RhaiLimits, SalConfig, TypeConfig};
use crate::engine::process::CommandEngine;
use crate::engine::rhai::{Finding, Group, RhaiEngine};
use crate::engine::{Backends, build_rhai};
use crate::error::{Error, Exit};
use crate::proto::target::ScriptType;

/// Checks a script without running it, and returns its mistakes. Blocks: the `check` command of a type is a process.
/// Fails with [`Exit::Data`] if the type is not configured, with [`Exit::Usage`] if it has no check.
pub fn check_script(
    types: &BTreeMap<ScriptType, TypeConfig>,
    (job, osis): (&JobConfig, &OsisConfig),
    script_type: &ScriptType,
    source: &str,
    extension: &str,
) -> Result<Vec<Finding>, Error> {
    let Some(of_type) = types.get(script_type) else {
        return Err(Error::new(
            Exit::Data,
            format!("the script type `{script_type}` is not configured"),
        ));
    };
    let backends = Backends { osis: osis.clone(), ..Backends::default() };
    let sal = SalConfig::default();
    match build_rhai(script_type.clone(), of_type, job, &sal, &backends) {
        Some(engine) if of_type.engine == EngineKind::Osis => {
            let other = sal_engine(&RhaiLimits::default())?;
            let functions = other.groups().iter().flat_map(|group| &group.functions);
            let elsewhere: Vec<(&str, &str)> =
                functions.map(|function| (function.name, "sal")).collect();
            Ok(engine.check(source, &elsewhere))
        }
        Some(engine) => Ok(engine.check(source, &[])),
        None => {
            if of_type.check.is_empty() {
                let message = format!(
                    "cannot check a {script_type} script: type.{script_type}.check is not configured"
                );
                return Err(Error::new(Exit::Usage, message));
            }
            let engine = CommandEngine::new(script_type.clone(), of_type, job);
            let found = engine.check(source, extension).map_err(|failure| {
                let message = format!("cannot check the script: {failure}");
                Error::new(Exit::Unavailable, message)
            })?;
            let finding = |message: String| Finding {
                file: None,
                line: named_line(&message),
                column: 0,
                message,
            };
            Ok(found.map(finding).into_iter().collect())
        }
    }
}

/// Returns the line that the message of a program names, as most do: `line 3`, or `script.js:3`; 0 if it names none.
fn named_line(message: &str) -> usize {
    let number = |form: &str| Regex::new(form).ok()?.captures(message)?[1].parse().ok();
    let of_file = || number(r"script\.[^:]*:([0-9]+)");
    number("line ([0-9]+)").or_else(of_file).unwrap_or_default()
}

pub fn osis_engine(limits: &RhaiLimits, osis: &OsisConfig) -> Result<RhaiEngine, Error> {
    let backends = Backends { osis: osis.clone(), ..Backends::default() };
    let engine = RhaiEngine::osis(named("osis")?, limits, &JobConfig::default());
    Ok(engine.with_backends(&backends))
}

pub fn sal_engine(limits: &RhaiLimits) -> Result<RhaiEngine, Error> {
    Ok(RhaiEngine::sal(named("sal")?, limits, &JobConfig::default(), &SalConfig::default()))
}

fn named(name: &str) -> Result<ScriptType, Error> {
    name.parse().map_err(|error| Error::new(Exit::Usage, format!("{error}")))
}

/// Returns the functions of `osis`, `sal` or both without duplicates. Fails with [`Exit::Usage`] for another type.
pub fn script_groups(script_type: Option<&str>) -> Result<Vec<Group>, Error> {
    let limits = RhaiLimits::default();
    match script_type {
        Some("osis") => Ok(osis_engine(&limits, &OsisConfig::default())?.groups().to_vec()),
        Some("sal") => Ok(sal_engine(&limits)?.groups().to_vec()),
        None => {
            let mut groups = sal_engine(&limits)?.groups().to_vec();
            let osis = osis_engine(&limits, &OsisConfig::default())?;
            let others =
                osis.groups().iter().filter(|own| groups.iter().all(|g| g.name != own.name));
            let others: Vec<Group> = others.cloned().collect();
            groups.extend(others);
            Ok(groups)
        }
        Some(_) => {
            let message =
                "only `osis` and `sal` have functions of their own; use -t osis or -t sal";
            Err(Error::new(Exit::Usage, message))
        }
    }
}
