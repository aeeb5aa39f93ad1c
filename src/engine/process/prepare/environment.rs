//! The environment of a child: what any program needs, the script type's and the job's, nothing of the daemon's.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::OnceLock;

use nix::unistd::{User, geteuid};

use super::programs::SYSTEM_PATH;
use super::source::illegal;
use crate::engine::{Failure, Script};
use crate::proto::job::TraceParent;
use crate::proto::text::shown;

/// The default locale. It sets characters alone: everything else is the C locale, and loading that
/// by name would make each program open a dozen files.
pub(in crate::process) const LOCALE: (&str, &str) = ("LC_CTYPE", "C.UTF-8");
/// Lets Python write each line at once, so that a log has a script's output at once. A job or its
/// type may set another value; the empty one lets Python gather lines.
pub(in crate::process) const UNBUFFERED: (&str, &str) = ("PYTHONUNBUFFERED", "1");
/// The variables that replace [`LOCALE`] when a job or its type sets them.
const LOCALES_OF_ALL: [&str; 2] = ["LANG", "LC_ALL"];

/// The variable with the folders where Python searches modules, after the script's folder.
pub(in crate::process) const MODULES: &str = "PYTHONPATH";

const PARAMS: &str = "HERO_PARAMS";

const EVENT: &str = "HERO_EVENT";

/// The variables of a child.
pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// Returns the environment of a job: the variables that any program needs, the script type's, the job's own, then its
/// identity, which no job can override. The error names the illegal variable.
pub(crate) fn environment(
    of_type: &BTreeMap<String, String>,
    script: &Script<'_>,
    home: &Path,
) -> Result<Environment, String> {
    let mut env = basic_environment(home);
    let own = of_type.iter().chain(script.env);
    let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
    if own.clone().any(|(name, _)| LOCALES_OF_ALL.contains(&name)) {
        env.remove(OsStr::new(LOCALE.0));
    }
    let (attempt, left) = (script.attempt.to_string(), script.attempts_left.to_string());
    let identity = [
        ("HERO_JOB_ID", script.job_id),
        ("HERO_CALLER_ID", script.caller_id),
        ("HERO_CONTEXT_ID", script.context_id),
        ("HERO_ATTEMPT", &attempt),
        ("HERO_ATTEMPTS_LEFT", &left),
    ];
    let secrets = script.secrets.variables.iter();
    let secrets = secrets.map(|(name, value)| (name.as_str(), value.as_str()));
    let trace = script.traceparent.map(|trace| trace.to_string());
    let trace = trace.iter().map(|trace| (TraceParent::VARIABLE, trace.as_str()));
    for (name, value) in own.chain(secrets).chain(identity).chain(trace) {
        check_variable(name, value)?;
        env.insert(name.into(), value.into());
    }
    env.remove(OsStr::new(PARAMS));
    if !script.params.is_empty() {
        env.insert(PARAMS.into(), serde_json::json!(script.params).to_string().into());
    }
    env.remove(OsStr::new(EVENT));
    if let Some(event) = script.event {
        check_variable(EVENT, event)?;
        env.insert(EVENT.into(), event.into());
    }
    Ok(env)
}

/// Returns the names of the variables that every child of a job has.
pub fn variable_names() -> Vec<&'static str> {
    vec![
        "PATH",
        "SHELL",
        "USER",
        "LOGNAME",
        "HOME",
        "TMPDIR",
        LOCALE.0,
        MODULES,
        "HERO_JOB_ID",
        "HERO_CALLER_ID",
        "HERO_CONTEXT_ID",
        "HERO_ATTEMPT",
        "HERO_ATTEMPTS_LEFT",
        "HERO_OUTPUT_DIR",
        "HERO_FD",
        "HERO_FD_IN",
        "HERO_RUN_ID",
    ]
}

/// Returns the variables that any program needs. Without `SHELL`, a shell would look its user up in a database.
pub(in crate::process) fn basic_environment(home: &Path) -> Environment {
    let user = user();
    BTreeMap::from([
        ("PATH".into(), SYSTEM_PATH.into()),
        ("SHELL".into(), "/bin/sh".into()),
        ("USER".into(), user.into()),
        ("LOGNAME".into(), user.into()),
        ("HOME".into(), home.into()),
        ("TMPDIR".into(), home.into()),
        (LOCALE.0.into(), LOCALE.1.into()),
    ])
}

/// Adds the variables that the first line of a script sets. Fails if one is illegal, or has a name that only Hero sets.
pub(super) fn take_variables(
    env: &mut Environment,
    variables: Vec<(String, String)>,
) -> Result<(), Failure> {
    for (name, value) in variables {
        check_variable(&name, &value).map_err(Failure::script)?;
        if name.starts_with("HERO_") {
            let reason = format!("its first line sets {}, which only Hero sets", shown(&name));
            return Err(illegal(&reason));
        }
        env.insert(name.into(), value.into());
    }
    Ok(())
}

fn user() -> &'static str {
    static USER: OnceLock<String> = OnceLock::new();
    USER.get_or_init(|| {
        let uid = geteuid();
        let user = User::from_uid(uid).ok().flatten();
        user.map_or_else(|| uid.to_string(), |user| user.name)
    })
}

/// Rejects a variable that `execve` cannot pass, with its name.
pub(crate) fn check_variable(name: &str, value: &str) -> Result<(), String> {
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
