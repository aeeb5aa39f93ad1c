//! Looks programs up in `PATH`, and the folder of the compiler V.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::config::TypeConfig;
use crate::engine::Failure;

pub(super) const BINARY: &str = "{binary}";
/// The `PATH` of every child, and the one searched if this process has none.
pub const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Lets `v -o PROGRAM SCRIPT.vsh` compile the script; without it V runs the script instead.
pub(super) const V_ONLY_COMPILES: (&str, &str) = ("VNORUN", "1");
pub(super) const V_RAN_INSTEAD: &str =
    "; a V of before 2024 runs .vsh scripts instead: install a newer V";

/// Returns the executable file of `program`: the file itself if the name has a slash, else the first one in `PATH`.
pub fn find_program(program: &str) -> Option<PathBuf> {
    find_in(program, &own_path())
}

/// Returns the `PATH` of this process.
pub(super) fn own_path() -> OsString {
    let path = std::env::var_os("PATH").filter(|path| !path.is_empty());
    path.unwrap_or_else(|| SYSTEM_PATH.into())
}

/// Does the same as [`find_program`] in `path`. Relative folders, which depend on the working directory, are ignored.
pub fn find_in(program: &str, path: &OsStr) -> Option<PathBuf> {
    if program.is_empty() || program.contains('\0') {
        return None;
    }
    if program.contains('/') {
        let file = PathBuf::from(program);
        return is_executable(&file).then_some(file);
    }
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
}

/// Returns the file of a configured program. A path that does not exist is looked up in `PATH` by its file name.
pub(super) fn resolve(program: &str) -> Result<PathBuf, String> {
    if let Some(file) = find_program(program) {
        return Ok(file);
    }
    if Path::new(program).exists() {
        return Err(format!("{program} is not executable"));
    }
    let name = Path::new(program).file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or(program);
    find_program(name).ok_or_else(|| {
        let path = if name == program { String::new() } else { format!("no file {program}, and ") };
        format!("{path}no {name} in PATH")
    })
}

/// Finds the program of a `command` type: its compiler if it has one. The error is why its scripts cannot run here.
pub fn program_of(config: &TypeConfig) -> Result<PathBuf, String> {
    let command = match config.command.first() {
        Some(first) if first.contains(BINARY) => &config.compile,
        _ => &config.command,
    };
    match command.first() {
        Some(program) if !program.is_empty() => resolve(program),
        _ => Err("no command is configured".to_owned()),
    }
}

/// Returns the path, the size and the time of the file of a program: what it makes depends on them.
pub(super) fn version_of(program: &Path) -> Result<String, Failure> {
    let data = program.metadata().map_err(|error| cannot_read(program, &error))?;
    Ok(format!("{} {} {}", program.display(), data.size(), data.mtime()))
}

pub(super) fn cannot_read(program: &Path, error: &std::io::Error) -> Failure {
    Failure::of_machine(format!("cannot read {}", program.display()), error)
}

/// Returns the folder of V with its library: the folder of its real file; `v symlink` links to it
/// from `PATH`. `None` for any other program.
pub(super) fn folder_of_v(program: &Path) -> Option<PathBuf> {
    let real = program.canonicalize().ok()?;
    let folder = real.parent()?;
    folder.join("vlib/builtin").is_dir().then(|| folder.to_owned())
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_and_a_path_is_checked() {
        let path = OsStr::new(SYSTEM_PATH);
        assert!(find_in("sh", path).is_some_and(|file| file.ends_with("sh")));
        assert_eq!(find_in("/bin/sh", path), Some("/bin/sh".into()));
        for missing in ["", "no-such-program", "/etc/passwd", "/bin", "/no/such", "a\0b"] {
            assert_eq!(find_in(missing, path), None, "{missing:?}");
        }
    }

    #[test]
    fn relative_folders_are_never_searched() {
        assert_eq!(find_in("sh", OsStr::new(".:bin:")), None);
    }
}
