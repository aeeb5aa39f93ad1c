//! Finds `uv`, the installer of packages.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::engine::process::prepare::programs::{find_in, own_path};

/// The folders below the home of the daemon's user where installers put it.
const OF_USER: [&str; 2] = [".local/bin", ".cargo/bin"];
/// The folder of the versions of Python, each with programs of its own, that a shim selects from.
const VERSIONS: &str = ".pyenv/versions";

/// Returns the program: from `path`, by default the `PATH` of this process, or else from where a user installs it. A shim is passed over: it
/// reads settings that no sandbox opens.
pub(in crate::process::prepare) fn find_uv(path: Option<&OsStr>) -> Option<PathBuf> {
    let own = own_path();
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    find(path.unwrap_or(&own), home.as_deref())
}

fn find(path: &OsStr, home: Option<&Path>) -> Option<PathBuf> {
    let of_user = home.iter().flat_map(|home| OF_USER.map(|folder| home.join(folder)));
    let versions = home.and_then(|home| fs::read_dir(home.join(VERSIONS)).ok());
    let mut versions: Vec<PathBuf> = versions
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    versions.sort_unstable();
    let folders = std::env::split_paths(path).chain(of_user).chain(versions.into_iter().rev());
    folders
        .filter_map(|folder| find_in("uv", folder.as_os_str()))
        .filter_map(|file| file.canonicalize().ok())
        .find(|file| is_uv(file))
}

/// Returns true for a program that is neither a script nor a stand-in for another program.
fn is_uv(file: &Path) -> bool {
    let mut start = [0_u8; 4];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"\x7fELF" && file.file_name() == Some(OsStr::new("uv"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn program(file: &Path, text: &[u8]) {
        fs::create_dir_all(file.parent().expect("a folder")).expect("created");
        fs::write(file, text).expect("written");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("executable");
    }

    #[test]
    fn uv_is_found_behind_shims_and_where_its_user_installed_it() {
        let world = tempfile::tempdir().expect("a folder");
        let at = |name: &str| world.path().join(name);
        let (shims, linked) = (at("shims"), at("linked"));
        let path = std::env::join_paths([&shims, &linked]).expect("a path");
        let found = || find(&path, Some(world.path()));
        program(&shims.join("uv"), b"#!/bin/sh\nexec pyenv exec uv\n");
        program(&at("manager"), b"\x7fELF...");
        fs::create_dir(&linked).expect("created");
        symlink(at("manager"), linked.join("uv")).expect("linked");
        assert_eq!(found(), None);
        let elf = b"\x7fELF...";
        for place in
            [".pyenv/versions/3.11.7/bin/uv", ".pyenv/versions/3.12.1/bin/uv", ".local/bin/uv"]
        {
            program(&at(place), elf);
            assert_eq!(found(), at(place).canonicalize().ok());
        }
        program(&at("own/uv"), elf);
        fs::remove_file(linked.join("uv")).expect("removed");
        symlink(at("own/uv"), linked.join("uv")).expect("linked");
        assert_eq!(found(), at("own/uv").canonicalize().ok());
    }
}
