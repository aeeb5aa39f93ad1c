//! Notes on scripts of node that fail as a package is missing.

use std::path::Path;

use super::python_module::ModuleFolders;
use crate::proto::text::{escape, shown};

const LINES_MAX: usize = 40;
const NAME_BYTES_MAX: usize = 214;
/// The variable with the folders in which `require` searches for packages.
const MODULES: &str = "NODE_PATH";

/// Returns the note about the package that a failed script missed. It names no package to install: on an index, anybody may have
/// taken the name of another's own module.
pub(in crate::process) fn missing_package(
    stderr: &str,
    folders: &ModuleFolders<'_>,
) -> Option<String> {
    let mut lines = stderr.lines().rev().take(LINES_MAX);
    let (name, is_import) = lines.find_map(package_of)?;
    let (of, name) = (folders.script_type, shown(name));
    let has = |folder: &Path| folder.is_absolute() && folder.join(&name).exists();
    let Some(folder) = folders.of_variable(MODULES).into_iter().find(|folder| has(folder)) else {
        return Some(format!(
            "note: node finds no package {name}; env = {{ {MODULES} = \"FOLDER/node_modules\" }} of [type.{of}], and `read` of its \
             sandbox, name a folder with packages"
        ));
    };
    Some(if is_import {
        format!(
            "note: import does not use {MODULES}; createRequire(import.meta.url)(\"{name}\") of node:module finds it"
        )
    } else {
        let read = super::with_path("read", folders.read, &folder);
        let folder = escape(&folder.to_string_lossy());
        format!(
            "note: {name} is in {folder}, which the sandbox hides; [type.{of}.sandbox] {read} would allow it"
        )
    })
}

/// Returns the package that a line says is missing, and whether it was imported. A path is none.
fn package_of(line: &str) -> Option<(&str, bool)> {
    let required = line.strip_prefix("Error: Cannot find module '").map(|rest| (rest, false));
    let imported = "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '";
    let (rest, is_import) =
        required.or_else(|| line.strip_prefix(imported).map(|rest| (rest, true)))?;
    let (name, _) = rest.split_once('\'')?;
    let parts = if name.starts_with('@') { 2 } else { 1 };
    let end = name.match_indices('/').nth(parts - 1).map_or(name.len(), |(at, _)| at);
    let package = &name[..end];
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "@/._-".contains(c);
    let is_package = !package.is_empty()
        && !package.starts_with(['.', '/'])
        && package.len() <= NAME_BYTES_MAX
        && package.chars().all(is_legal)
        && !package.split('/').any(|part| part == "..");
    is_package.then_some((package, is_import))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_package_is_reported_with_the_folders_that_node_reads() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("@own/shout")).expect("a folder");
        let env = [(MODULES.into(), folder.path().as_os_str().to_owned())];
        let script_type = "node".parse().expect("legal");
        let note = |line: &str| {
            let folders = ModuleFolders { env: &env, script_type: &script_type, read: &[] };
            missing_package(&format!("node:internal\n{line}\n    at x\n"), &folders)
        };
        let other = note("Error: Cannot find module 'lodash/fp'").expect("a note");
        assert!(other.contains("no package lodash; env = { NODE_PATH"), "{other}");
        let hidden = note("Error: Cannot find module '@own/shout'").expect("a note");
        let read = format!("read = [\"{}\"] would allow it", folder.path().display());
        assert!(hidden.contains(&read), "{hidden}");
        let import =
            note("Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@own/shout' imported from /x")
                .expect("a note");
        assert!(import.contains("createRequire(import.meta.url)(\"@own/shout\")"), "{import}");
        for none in ["Error: Cannot find module './x'", "Error: Cannot find module '/x'", "x"] {
            assert_eq!(note(none), None, "{none}");
        }
    }
}
