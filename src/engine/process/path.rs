//! Where a program is: what a shell would find in `PATH`, without asking one.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The `PATH` of every child, and of lookups where this process has none.
pub const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The file that runs when `program` is called: itself if it has a slash, else the first
/// executable of that name in this process's `PATH`.
pub fn find_program(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").filter(|path| !path.is_empty());
    find_in(program, path.as_deref().unwrap_or(OsStr::new(SYSTEM_PATH)))
}

/// As [`find_program`], in the folders of `path`. Relative folders are passed over: they would
/// depend on where the daemon was started.
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
