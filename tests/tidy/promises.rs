//! The rule that each promise of docs/security.md, and each reference to jobs in docs/internals/keys.md, names tests, and that
//! these tests exist.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;

use super::source::numbered;

/// The pages, each with its smallest number of promises; with fewer, it is not read as it is written.
const PAGES: [(&str, usize); 2] = [("docs/security.md", 25), ("docs/internals/keys.md", 14)];

/// Returns the names of all tests in Rust, and the texts of all claims of the booted system.
fn known(files: &[(String, String)]) -> BTreeSet<&str> {
    let test = Regex::new(r"#\[(?:tokio::)?test[^\]]*\]\s+(?:#\[[^\]]*\]\s+)*(?:async )?fn (\w+)")
        .expect("a valid expression");
    let claim = Regex::new(r#"(?m)^\s*claim "([^"]+)""#).expect("a valid expression");
    let is_rust = |path: &str| Path::new(path).extension().is_some_and(|of| of == "rs");
    let of = |path: &str| if is_rust(path) { Some(&test) } else { None };
    let of = |path: &str| of(path).or(path.starts_with("tests/system/").then_some(&claim));
    let found = files.iter().filter_map(|(path, text)| Some((of(path)?, text)));
    let names = found.flat_map(|(names, text)| names.captures_iter(text));
    names.map(|found| found.get(1).expect("a name").as_str()).collect()
}

/// Returns the tests that a cell of a table names: names of functions in backticks, claims in quotes.
fn named(cell: &str) -> Vec<&str> {
    let name = Regex::new(r#"`(\w+)`|"([^"]+)""#).expect("a valid expression");
    let found = name.captures_iter(cell);
    found.filter_map(|found| Some(found.get(1).or(found.get(2))?.as_str())).collect()
}

/// Returns the cells of the last column of the tables that end with a column `test`, with their lines.
fn promises(page: &str) -> Vec<(usize, &str)> {
    let (mut cells, mut is_of_tests) = (Vec::new(), false);
    for (number, line) in numbered(page) {
        let Some(row) = line.strip_prefix('|').and_then(|row| row.trim_end().strip_suffix('|'))
        else {
            is_of_tests = false;
            continue;
        };
        let last = row.rsplit('|').next().unwrap_or_default().trim();
        if last == "test" {
            is_of_tests = true;
        } else if is_of_tests && !last.starts_with("---") {
            cells.push((number, last));
        }
    }
    cells
}

/// Returns one fault for each promise without a test, and for each test that does not exist.
pub(super) fn faults(files: &[(String, String)]) -> Vec<String> {
    let known = known(files);
    PAGES.into_iter().flat_map(|page| of_page(page, &known, files)).collect()
}

fn of_page(
    (path, promises_min): (&str, usize),
    known: &BTreeSet<&str>,
    files: &[(String, String)],
) -> Vec<String> {
    let page = files.iter().find(|(of, _)| of == path).map_or("", |(_, text)| text);
    let (promises, mut faults) = (promises(page), Vec::new());
    if promises.len() < promises_min {
        faults.push(format!("{path}: has {} promises with tests", promises.len()));
    }
    for (number, cell) in promises {
        let tests = named(cell);
        if tests.is_empty() {
            faults.push(format!("{path}:{number}: names no test: nothing holds this promise"));
        }
        let missing = tests.into_iter().filter(|name| !known.contains(name));
        faults.extend(
            missing.map(|name| {
                format!("{path}:{number}: names the test `{name}`, which does not exist")
            }),
        );
    }
    faults
}

#[test]
fn promise_without_a_test_or_with_one_that_is_gone_is_a_fault() {
    let page = "| promise | test |\n|---|---|\n| a | `is_there` |\n| b | \"it holds\" |\n| c | |\n\
                | d | `is_gone`, \"is gone too\" |\n\n| e | f |\n|---|---|\n| g | `no_test` |\n";
    let files = [
        (PAGES[0].0, page),
        ("tests/a.rs", "#[test]\nfn is_there() {}\nfn is_gone() {}"),
        ("tests/system/claims/a.sh", "claim \"it holds\" holds"),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let faults = faults(&files).join("\n");
    for said in [":5: names no test", "`is_gone`", "`is gone too`"] {
        assert!(faults.contains(said), "{said}: {faults}");
    }
    for silent in ["is_there", "it holds", "no_test"] {
        assert!(!faults.contains(silent), "{silent}: {faults}");
    }
}
