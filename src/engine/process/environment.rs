//! The environment of a child: never the daemon's own, but what any program needs, and on top of it
//! what its type and its job say.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::path::SYSTEM_PATH;
use crate::engine::Script;

/// The locale of every child that does not say otherwise. It is set for characters alone: for all
/// else it is the C locale, and to load that by name takes a program a dozen files.
pub(super) const LOCALE: (&str, &str) = ("LC_CTYPE", "C.UTF-8");
/// What a job says in place of [`LOCALE`].
const LOCALES_OF_ALL: [&str; 2] = ["LANG", "LC_ALL"];

/// The whole environment of a job's child: what any program needs, then the job's own variables,
/// then who the job is, which no job may pretend.
///
/// # Errors
/// A message naming the variable that no environment can hold.
pub(in crate::engine) fn environment(
    script: &Script<'_>,
    home: &Path,
) -> Result<Vec<(OsString, OsString)>, String> {
    environment_over(&BTreeMap::new(), script, home)
}

/// The same, with variables that the job's own come over.
pub(super) fn environment_over(
    of_type: &BTreeMap<String, String>,
    script: &Script<'_>,
    home: &Path,
) -> Result<Vec<(OsString, OsString)>, String> {
    let mut env = of_any_program(home);
    let own = of_type.iter().chain(script.env);
    let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
    if own.clone().any(|(name, _)| LOCALES_OF_ALL.contains(&name)) {
        env.remove(OsStr::new(LOCALE.0));
    }
    let identity = [
        ("HERO_JOB_ID", script.job_id),
        ("HERO_CALLER_ID", script.caller_id),
        ("HERO_CONTEXT_ID", script.context_id),
    ];
    for (name, value) in own.chain(identity) {
        check_variable(name, value)?;
        env.insert(name.into(), value.into());
    }
    Ok(env.into_iter().collect())
}

/// What any program needs. A shell without `SHELL` looks its user up in the system's lists.
pub(super) fn of_any_program(home: &Path) -> BTreeMap<OsString, OsString> {
    BTreeMap::from([
        ("PATH".into(), SYSTEM_PATH.into()),
        ("SHELL".into(), "/bin/sh".into()),
        ("HOME".into(), home.into()),
        ("TMPDIR".into(), home.into()),
        (LOCALE.0.into(), LOCALE.1.into()),
    ])
}

/// Refuses what `execve` cannot carry.
///
/// # Errors
/// A message naming the variable.
pub(in crate::engine) fn check_variable(name: &str, value: &str) -> Result<(), String> {
    let shown = name.escape_debug();
    if name.is_empty() {
        return Err("environment variable with an empty name".to_owned());
    }
    if name.contains(['=', '\0']) {
        return Err(format!("environment variable `{shown}`: its name holds `=` or a NUL"));
    }
    if value.contains('\0') {
        return Err(format!("environment variable `{shown}`: its value holds a NUL"));
    }
    Ok(())
}
