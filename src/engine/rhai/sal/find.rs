//! Finds files and folders by name.

use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

use ::rhai::{Array, ImmutableString};
use regex::Regex;

use super::context::{CallResult, SalJob, path_text};
use crate::engine::rhai::functions::Functions;

pub(super) fn register(functions: &mut Functions<'_>) {
    functions.act_with(
        "find_file",
        ["folder", "name"],
        "Returns the path of the first file below a folder whose name matches; `*` matches any text, \
         `?` one character. No match is an error.",
        r#"
mkdir("project/src");
file_write("project/src/main.rs", "");
find_file("project", "main.*")
// → project/src/main.rs"#,
        |job, folder, name: ImmutableString| first(&name, &find(job, folder, &name, FileType::is_file)?),
    );
    functions.act_with(
        "find_files",
        ["folder", "name"],
        "Returns the sorted paths of all files below a folder whose names match. Links are not \
         followed.",
        r#"
mkdir("logs/old");
file_write("logs/a.log", "");
file_write("logs/old/b.log", "");
find_files("logs", "*.log")
// → ["logs/a.log","logs/old/b.log"]"#,
        |job, folder, name: ImmutableString| find_all(job, folder, &name, FileType::is_file),
    );
    functions.act_with(
        "find_dir",
        ["folder", "name"],
        "Returns the path of the one folder in another whose name matches; if there is none, of the one \
         anywhere below. No match or several are an error.",
        r#"
mkdir("project/src/engine");
find_dir("project", "eng*")
// → project/src/engine"#,
        |job, folder, name: ImmutableString| find_folder(job, folder, &name),
    );
    functions.act_with(
        "find_dirs",
        ["folder", "name"],
        "Returns the sorted paths of all folders below another whose names match.",
        r#"
mkdir("sites/one"); mkdir("sites/two");
find_dirs("sites", "*")
// → ["sites/one","sites/two"]"#,
        |job, folder, name: ImmutableString| find_all(job, folder, &name, FileType::is_dir),
    );
}

/// Returns the form of names that match a pattern; `*` matches any text, `?` one character.
pub(super) fn names_like(pattern: &str) -> CallResult<Regex> {
    let form = regex::escape(pattern).replace(r"\*", ".*").replace(r"\?", ".");
    Regex::new(&format!("(?s)^{form}$")).map_err(|_| "the pattern is too long".into())
}

pub(super) fn sorted_entries(folder: &Path) -> CallResult<Vec<PathBuf>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        entries.push(entry?.path());
    }
    entries.sort();
    Ok(entries)
}

fn find_folder(job: SalJob<'_>, folder: &str, name: &str) -> CallResult<String> {
    let mut found = find(job, folder, name, FileType::is_dir)?;
    let is_direct = |path: &PathBuf| path.parent() == Some(Path::new(folder));
    if found.iter().any(is_direct) {
        found.retain(is_direct);
    }
    if found.len() > 1 {
        return Err(format!("{} entries match `{name}`", found.len()).into());
    }
    first(name, &found)
}

fn first(name: &str, found: &[PathBuf]) -> CallResult<String> {
    let first = found.first().map(|path| path_text(path));
    Ok(first.ok_or_else(|| format!("nothing matches `{name}`"))?)
}

type KindTest = fn(&FileType) -> bool;

fn find_all(job: SalJob<'_>, folder: &str, name: &str, of: KindTest) -> CallResult<Array> {
    Ok(find(job, folder, name, of)?.iter().map(|path| path_text(path).into()).collect())
}

/// Returns sorted paths that start with the script's own text. A folder without read permission is skipped.
fn find(job: SalJob<'_>, folder: &str, name: &str, of: KindTest) -> CallResult<Vec<PathBuf>> {
    let (top, names) = (job.to_read(folder)?, names_like(name)?);
    let mut folders = vec![top.clone()];
    fs::read_dir(&top)?;
    let mut found = Vec::new();
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for entry in entries.flatten() {
            job.check_stop()?;
            let Ok(entry_kind) = entry.file_type() else { continue };
            let path = entry.path();
            if of(&entry_kind) && names.is_match(&entry.file_name().to_string_lossy()) {
                job.check_count(found.len() + 1, "match")?;
                let below = path.strip_prefix(&top).unwrap_or(&path);
                found.push(Path::new(folder).join(below));
            }
            if entry_kind.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        names_like(pattern).expect("legal").is_match(name)
    }

    #[test]
    fn wildcards_match_as_in_a_shell() {
        for (pattern, name) in [
            ("*", ""),
            ("*.log", "a.log"),
            ("a?c", "aéc"),
            ("*a*b", "xaxab"),
            ("", ""),
            ("**", "x"),
            ("*", "a\nb"),
            ("a.[b]", "a.[b]"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("*.log", "a.logs"), ("?", ""), ("", "a"), ("a*b*c", "abdx")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        assert!(!matches(&"*a".repeat(50), &"a".repeat(49)));
    }
}
