//! The rule that each file and folder that a page for developers names exists.

use regex::Regex;

use super::source::numbered;

/// Pages for developers, by their start.
const PAGES: [&str; 3] = ["CONTRIBUTING.md", "ARCHITECTURE.md", "docs/internals/"];
/// A path in backticks. Words in capitals are placeholders, as `src/cli/NAME.rs`.
const PLACE: &str = r"`((?:[A-Za-z0-9_.*-]+/)+(?:[A-Za-z0-9_.*-]+)?|[a-z_]+\.(?:rs|lua|yml))`";
/// Paths of the running system.
const ELSEWHERE: [&str; 1] = ["hero-jobs-"];

/// Returns the expression of the paths of files that a place may be, or lie in.
fn expression(place: &str) -> Regex {
    let placeholder = Regex::new(r"\b[A-Z]{2,}\b|\\\*").expect("a valid expression");
    let escaped = regex::escape(place.trim_end_matches('/'));
    let pattern = placeholder.replace_all(&escaped, "[^/]+");
    Regex::new(&format!("(^|/){pattern}(/|$)")).expect("a valid expression")
}

/// Returns the places that pages for developers name, each with its page and line.
fn named_places(files: &[(String, String)]) -> Vec<(&str, usize, String)> {
    let place = Regex::new(PLACE).expect("a valid expression");
    let is_page = |path: &str| PAGES.iter().any(|page| path.starts_with(page));
    let mut named = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| is_page(path)) {
        for (number, line) in numbered(text) {
            let found = place.captures_iter(line);
            named.extend(found.map(|found| (path.as_str(), number, found[1].to_owned())));
        }
    }
    named
}

/// Returns one fault for each start of paths that lie elsewhere, and that no page names.
pub(super) fn unneeded_entries(files: &[(String, String)]) -> Vec<String> {
    let named = named_places(files);
    let is_needed = |start: &str| named.iter().any(|(.., place)| place.starts_with(start));
    let unneeded = ELSEWHERE.iter().filter(|start| !is_needed(start));
    unneeded.map(|start| super::unneeded(start, "each place that a page names exists")).collect()
}

/// Returns one fault for each place that does not exist.
pub(super) fn faults(files: &[(String, String)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, number, named) in named_places(files) {
        let is_elsewhere = ELSEWHERE.iter().any(|start| named.starts_with(start));
        let expression = expression(&named);
        // A folder of pictures has no text.
        let exists = files.iter().any(|(file, _)| expression.is_match(file))
            || super::root().join(&named).is_dir();
        if !is_elsewhere && !exists {
            faults.push(format!("{path}:{number}: names `{named}`, which does not exist"));
        }
    }
    faults
}

#[test]
fn place_that_does_not_exist_is_a_fault() {
    let page = "`src/cli/NAME.rs` `cli/` `look.lua` `docs/*.md` `hero-jobs-1/`\n\
                `src/gone.rs` `gone/` `gone.lua` `src/web/NAME.rs`\n";
    let files = [
        ("CONTRIBUTING.md", page),
        ("src/cli/top.rs", ""),
        ("src/store/scripts/look.lua", ""),
        ("docs/jobs.md", "`src/none.rs`"),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let faults = faults(&files);
    assert_eq!(faults.len(), 4, "{faults:?}");
    assert!(faults.iter().all(|fault| fault.starts_with("CONTRIBUTING.md:2: ")), "{faults:?}");
}
