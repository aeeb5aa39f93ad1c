//! The environment of a child: the variables that any program needs, those of the script type and
//! those of the job. Nothing is inherited from the daemon.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::programs::SYSTEM_PATH;
use crate::engine::Script;

/// The default locale. It sets characters alone: everything else is the C locale, and loading that
/// by name would make each program open a dozen files.
pub(in crate::engine::process) const LOCALE: (&str, &str) = ("LC_CTYPE", "C.UTF-8");
/// Lets Python write each line at once, so that a log has what a script prints when it prints it. A job or its
/// type may set another value; the empty one lets Python gather lines.
pub(in crate::engine::process) const UNBUFFERED: (&str, &str) = ("PYTHONUNBUFFERED", "1");
/// The variables that replace [`LOCALE`] when a job or its type sets them.
const LOCALES_OF_ALL: [&str; 2] = ["LANG", "LC_ALL"];

/// The variable with the parameters of a job that has any, as JSON.
const PARAMS: &str = "HERO_PARAMS";

/// Returns the environment of a job: the variables that any program needs, then the job's own, then
/// its identity, which no job can override.
///
/// # Errors
/// A message that names the illegal variable.
pub(in crate::engine) fn environment(
    script: &Script<'_>,
    home: &Path,
) -> Result<Vec<(OsString, OsString)>, String> {
    environment_over(&BTreeMap::new(), script, home)
}

/// Does the same as [`environment`], with variables of the script type, which the job's override.
pub(super) fn environment_over(
    of_type: &BTreeMap<String, String>,
    script: &Script<'_>,
    home: &Path,
) -> Result<Vec<(OsString, OsString)>, String> {
    let mut env = basic_environment(home);
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
    let secrets = script.secrets.variables.iter();
    let secrets = secrets.map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own.chain(secrets).chain(identity) {
        check_variable(name, value)?;
        env.insert(name.into(), value.into());
    }
    env.remove(OsStr::new(PARAMS));
    if !script.params.is_empty() {
        env.insert(PARAMS.into(), serde_json::json!(script.params).to_string().into());
    }
    Ok(env.into_iter().collect())
}

/// Returns the names of the variables that every child of a job has.
pub fn variable_names() -> Vec<&'static str> {
    let identity = [
        "HERO_JOB_ID",
        "HERO_CALLER_ID",
        "HERO_CONTEXT_ID",
        "HERO_OUTPUT_DIR",
        "HERO_FD",
        "HERO_RUN_ID",
    ];
    ["PATH", "SHELL", "HOME", "TMPDIR", LOCALE.0].into_iter().chain(identity).collect()
}

/// Returns the variables that any program needs. Without `SHELL`, a shell would look its user up in
/// the system's user database.
pub(in crate::engine::process) fn basic_environment(home: &Path) -> BTreeMap<OsString, OsString> {
    BTreeMap::from([
        ("PATH".into(), SYSTEM_PATH.into()),
        ("SHELL".into(), "/bin/sh".into()),
        ("HOME".into(), home.into()),
        ("TMPDIR".into(), home.into()),
        (LOCALE.0.into(), LOCALE.1.into()),
    ])
}

/// Rejects a variable that `execve` cannot pass.
///
/// # Errors
/// A message that names the variable.
pub(in crate::engine) fn check_variable(name: &str, value: &str) -> Result<(), String> {
    let shown = name.escape_debug();
    if name.is_empty() {
        return Err("environment variable with an empty name".to_owned());
    }
    if name.contains(['=', '\0']) {
        return Err(format!("environment variable `{shown}`: the name contains `=` or a NUL"));
    }
    if value.contains('\0') {
        return Err(format!("environment variable `{shown}`: the value contains a NUL"));
    }
    Ok(())
}
