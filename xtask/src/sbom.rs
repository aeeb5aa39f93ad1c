//! The list of the Rust libraries that are linked into the program (a software bill of materials), in
//! the JSON of CycloneDX 1.5. The same sources give the same bytes: it has no time and no random id.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::bench::Done;

pub(crate) fn write(file: &Path) -> Done {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    let metadata: Value =
        serde_json::from_str(&cargo(&root, &["metadata", "--locked", "--format-version", "1"])?)?;
    let tree = ["tree", "--locked", "--package", "hero", "--edges", "normal,no-proc-macro"];
    let tree = cargo(&root, &[&tree[..], &["--prefix", "depth", "--no-dedupe"]].concat())?;
    let document = document(&metadata, &lock, &tree).ok_or("cargo gave an unexpected answer")?;
    fs::write(file, serde_json::to_string_pretty(&document)? + "\n")
        .map_err(|error| format!("cannot write {}: {error}", file.display()).into())
}

#[expect(clippy::disallowed_methods, reason = "cargo knows the libraries")]
fn cargo(root: &Path, args: &[&str]) -> Done<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let done = Command::new(cargo).args(args).current_dir(root).output()?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into());
    }
    Ok(String::from_utf8(done.stdout)?)
}

type Library = (String, String);

fn document(metadata: &Value, lock: &str, tree: &str) -> Option<Value> {
    let linked = linked(tree)?;
    let checksums = checksums(lock);
    let packages: BTreeMap<Library, &Value> = metadata["packages"]
        .as_array()?
        .iter()
        .filter_map(|package| Some(((text(package, "name")?, text(package, "version")?), package)))
        .collect();
    let hero = linked.keys().find(|(name, _)| name == "hero")?.clone();
    let mut components = Vec::new();
    for library in linked.keys().filter(|library| **library != hero) {
        let package = packages.get(library)?;
        let licence = text(package, "license").unwrap_or_else(|| "see its licence file".to_owned());
        // CycloneDX takes an expression of SPDX; a slash is its older spelling of OR.
        components.push(json!({
            "type": "library",
            "bom-ref": purl(library),
            "name": library.0,
            "version": library.1,
            "purl": purl(library),
            "licenses": [{ "expression": licence.replace('/', " OR ") }],
            "hashes": [{ "alg": "SHA-256", "content": checksums.get(library)? }],
        }));
    }
    let dependencies: Vec<Value> = linked
        .iter()
        .map(|(library, on)| {
            json!({ "ref": purl(library), "dependsOn": on.iter().map(purl).collect::<Vec<_>>() })
        })
        .collect();
    Some(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "bom-ref": purl(&hero), "name": hero.0, "version": hero.1,
            "purl": purl(&hero),
        } },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn text(of: &Value, name: &str) -> Option<String> {
    of[name].as_str().map(str::to_owned)
}

fn purl((name, version): &Library) -> String {
    format!("pkg:cargo/{name}@{version}")
}

/// Reads `cargo tree`, whose lines begin with their depth: each library, and those that it needs. The packages of
/// this project, which have a path, are its first one.
fn linked(tree: &str) -> Option<BTreeMap<Library, BTreeSet<Library>>> {
    let mut linked: BTreeMap<Library, BTreeSet<Library>> = BTreeMap::new();
    let mut path: Vec<Library> = Vec::new();
    let mut program = None;
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let digits = line.find(|c: char| !c.is_ascii_digit())?;
        let depth: usize = line[..digits].parse().ok()?;
        let mut words = line[digits..].split(' ');
        let name = words.next()?.to_owned();
        let mut library = (name, words.next()?.strip_prefix('v')?.to_owned());
        if words.next().is_some_and(|place| place.starts_with("(/")) {
            library = program.get_or_insert(library).clone();
        }
        path.truncate(depth);
        if let Some(above) = path.last().filter(|above| **above != library) {
            linked.entry(above.clone()).or_default().insert(library.clone());
        }
        linked.entry(library.clone()).or_default();
        path.push(library);
    }
    Some(linked)
}

fn checksums(lock: &str) -> BTreeMap<Library, String> {
    let value = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")))?;
        line.strip_suffix('"').map(str::to_owned)
    };
    let blocks = lock.split("[[package]]");
    blocks
        .filter_map(|block| {
            let library = (value(block, "name")?, value(block, "version")?);
            Some((library, value(block, "checksum")?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_linked_library_has_version_licence_and_checksum() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, two] = ["one", "two"].map(|name| {
            write(&folder.path().join(name)).expect("written");
            fs::read_to_string(folder.path().join(name)).expect("readable")
        });
        assert_eq!(one, two);
        let document: Value = serde_json::from_str(&one).expect("JSON");
        let names: Vec<&str> = document["components"]
            .as_array()
            .expect("components")
            .iter()
            .filter_map(|component| component["name"].as_str())
            .collect();
        for name in ["redis", "rhai", "tokio", "ring"] {
            assert!(names.contains(&name), "no {name}");
        }
        // Neither what only tests need, nor macros.
        for name in ["proptest", "serde_derive", "hero", "xtask"] {
            assert!(!names.contains(&name), "{name} is not linked");
        }
    }

    #[test]
    fn tree_gives_each_library_with_those_that_it_needs() {
        let tree = "0hero v0.1.0 (/x)\n1a v1.0.0\n2b v2.0.0\n1b v2.0.0\n";
        let linked = linked(tree).expect("a tree");
        let library = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        assert_eq!(linked[&library("hero", "0.1.0")].len(), 2);
        assert!(linked[&library("a", "1.0.0")].contains(&library("b", "2.0.0")));
        assert!(linked[&library("b", "2.0.0")].is_empty());
    }
}
