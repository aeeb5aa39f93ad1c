//! The type of a script: the named one, or by the extension of its file, or by the interpreter in its first line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use hero_error::{Error, Exit};

use super::interpreter::runs_with;
use super::types::TypeConfig;
use crate::proto::target::{IllegalName, ScriptType};
use crate::proto::text::shown;

/// The configured script types.
pub type ScriptTypes = BTreeMap<ScriptType, TypeConfig>;

/// Returns the named type, or the type of the file's extension, or the one that runs the interpreter in its first line.
///
/// # Errors
/// [`Exit::Usage`] if neither is given, [`Exit::Data`] if it is illegal or not configured, the error of [`unreadable`].
pub fn type_of_script(
    named: Option<&str>,
    file: Option<&Path>,
    types: &ScriptTypes,
) -> Result<ScriptType, Error> {
    let script_type: ScriptType = match named {
        Some(name) => {
            name.parse().map_err(|error: IllegalName| Error::new(Exit::Data, error.to_string()))?
        }
        None => type_by_file(file, types)?,
    };
    check_configured(&script_type, types)?;
    Ok(script_type)
}

fn type_by_file(file: Option<&Path>, types: &ScriptTypes) -> Result<ScriptType, Error> {
    let usage = |what: String| {
        let message =
            format!("cannot find the script type: {what}; use --type with one of {}", names(types));
        Error::new(Exit::Usage, message)
    };
    let Some(path) = file else {
        return Err(usage("the script is not a file".to_owned()));
    };
    let extension = path.extension().map(|ext| format!(".{}", ext.to_string_lossy()));
    let by_extension = extension.as_deref().map(|extension| {
        let found = types_of(extension, types);
        // Other systems write `.PY`.
        let lower = || types_of(&extension.to_ascii_lowercase(), types);
        if found.is_empty() { lower() } else { found }
    });
    match (by_extension.as_deref().unwrap_or_default(), &extension) {
        ([one], _) => return Ok(one.clone()),
        (several @ [_, ..], Some(extension)) => {
            let several = joined(several);
            return Err(usage(format!("the extension {extension} belongs to {several}")));
        }
        _ => {}
    }
    let line = first_line(path)?;
    match (types_that_run(&line, types).as_slice(), extension) {
        ([one], _) => Ok(one.clone()),
        ([], _) if line.starts_with("#!") => {
            Err(usage(format!("no script type runs {}", shown(&line))))
        }
        ([], Some(extension)) => {
            Err(usage(format!("no script type has the extension {extension}")))
        }
        ([], None) => {
            let path = path.display();
            Err(usage(format!("{path} has no extension, and no interpreter in its first line")))
        }
        (several, _) => {
            Err(usage(format!("its first line {} fits {}", shown(&line), joined(several))))
        }
    }
}

/// Returns the error of a file that cannot be read.
pub fn unreadable(path: &Path, error: &io::Error) -> Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => Error::new(Exit::NotFound, format!("no such file: {path}")),
        io::ErrorKind::PermissionDenied => {
            Error::new(Exit::NotPermitted, format!("cannot read {path}: permission denied"))
        }
        _ => Error::new(Exit::Data, format!("cannot read {path}: {error}")),
    }
}

/// Returns the first line of a file, as far as an interpreter may stand in it.
fn first_line(path: &Path) -> Result<String, Error> {
    const LENGTH_MAX: u64 = 4096;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LENGTH_MAX).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(path, &error))?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}');
    Ok(text.lines().next().unwrap_or_default().trim_end().to_owned())
}

/// The types whose command is the interpreter that the first line of a script names. A type that comes with Hero wins
/// over others.
fn types_that_run(line: &str, types: &ScriptTypes) -> Vec<ScriptType> {
    let found = types.iter().filter(|(_, of_type)| runs_with(line, &of_type.command));
    let found: Vec<ScriptType> = found.map(|(name, _)| name.clone()).collect();
    let own = |name: &&ScriptType| ["bash", "python", "node"].contains(&name.as_str());
    match found.iter().find(own) {
        Some(own) => vec![own.clone()],
        None => found,
    }
}

fn joined(types: &[ScriptType]) -> String {
    types.iter().map(ScriptType::as_str).collect::<Vec<_>>().join(" and ")
}

pub fn check_configured(script_type: &ScriptType, types: &ScriptTypes) -> Result<(), Error> {
    if types.contains_key(script_type) {
        return Ok(());
    }
    let names = names(types);
    let message =
        format!("the script type `{script_type}` is not configured; configured types: {names}");
    Err(Error::new(Exit::Data, message))
}

/// The types with this extension. A well-known type wins over others with the same extension.
fn types_of(extension: &str, types: &ScriptTypes) -> Vec<ScriptType> {
    let well_known = match extension {
        ".rhai" => Some("osis"),
        ".py" => Some("python"),
        ".v" | ".vsh" => Some("v"),
        _ => None,
    };
    if let Some(known) = well_known.and_then(|name| name.parse().ok()) {
        return vec![known];
    }
    let has = |of_type: &TypeConfig| {
        let mut further = of_type.more_extensions.iter();
        of_type.extension == extension || further.any(|other| other == extension)
    };
    let of_extension = types.iter().filter(|(_, of_type)| has(of_type));
    of_extension.map(|(name, _)| name.clone()).collect()
}

/// Returns the names of all types.
pub(super) fn names(types: &ScriptTypes) -> String {
    types.keys().map(ScriptType::as_str).collect::<Vec<_>>().join(", ")
}
