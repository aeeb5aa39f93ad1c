//! The rule that each link of a document leads somewhere where the package installs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

/// The documents of the package, in its tree.
const DOCS: &str = "usr/share/doc/hero";
/// Documents that debhelper installs beside the lists'.
const BESIDE: [&str; 1] = ["README.md"];

/// Lays the documents out below a folder as the lists of both packages say.
#[expect(
    clippy::disallowed_methods,
    reason = "the lists and the program of the package are what is tested"
)]
fn lay_out(root: &Path) {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = |name: &str| {
        fs::read_to_string(top.join("packaging/debian").join(name)).expect("a list of the package")
    };
    let lists = ["hero.install", "hero-doc.install"].map(list).concat();
    let lines = lists.lines().filter_map(|line| line.split_once(char::is_whitespace));
    let lines = lines.map(|(from, to)| (from.to_owned(), to.trim().to_owned()));
    let beside = BESIDE.iter().map(|name| ((*name).to_owned(), DOCS.to_owned()));
    for (from, to) in lines.chain(beside).filter(|(_, to)| to.starts_with(DOCS)) {
        let to = root.join(to);
        fs::create_dir_all(&to).expect("a folder");
        let copy = format!("cp -r {from} '{}'", to.display());
        let done = Command::new("sh").args(["-c", &copy]).current_dir(top).status();
        assert!(done.expect("a shell").success(), "{copy}");
    }
}

/// Returns the documents below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path());
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the lists and the program of the package are what is tested"
)]
fn links_of_installed_documents_lead_somewhere() {
    let root = tempfile::tempdir().expect("a folder");
    lay_out(root.path());
    let docs = root.path().join(DOCS);
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/installed-links");
    let done = Command::new(program).arg(root.path()).status();
    assert!(done.expect("perl").success());
    let link = Regex::new(r"\]\(([^()\s]+)\)").expect("a valid expression");
    let (mut number, mut broken) = (0, Vec::new());
    for page in pages(&docs) {
        let text = fs::read_to_string(&page).expect("text");
        for found in link.captures_iter(&text) {
            let target = found[1].split('#').next().unwrap_or_default();
            let is_elsewhere =
                target.is_empty() || target.contains("://") || target.starts_with('/');
            number += 1;
            if !is_elsewhere && !page.parent().expect("a folder").join(target).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(number > 100, "{number} links");
    assert!(broken.is_empty(), "{broken:#?}");
}
