//! The rule that tests take keys from the crate: no string literal of theirs spells one.

use std::path::Path;

use regex::Regex;

use super::source::literals;

/// The places where literals spell keys: there the keys are the contract with programs that are
/// not ours, or the rules name what they look for.
const PLACES: [&str; 4] = ["tests/foreign", "tests/osis/", "tests/e2e/protocol.rs", "tests/tidy"];
/// A key in the default namespace, or a key without its namespace.
const KEY: &str = r"(?-u:\b)hero:[^\s:]|(?-u:\b)(q|meta):[a-z]";

/// Returns one fault for each place that may spell keys and spells none.
pub(super) fn unneeded_entries(files: &[(String, String)]) -> Vec<String> {
    let key = Regex::new(KEY).expect("a valid expression");
    let spells = |place: &str| {
        let of = files.iter().filter(|(path, _)| path.starts_with(place));
        of.flat_map(|(_, text)| literals(text)).any(|(_, literal)| key.is_match(literal))
    };
    let unneeded = PLACES.iter().filter(|place| !spells(place));
    unneeded.map(|place| super::unneeded(place, "no literal of a test spells a key")).collect()
}

/// Returns one fault for each literal that breaks the rule.
pub(crate) fn faults(files: &[(String, String)]) -> Vec<String> {
    let key = Regex::new(KEY).expect("a valid expression");
    let mut faults = Vec::new();
    for (path, text) in files {
        let is_rust = Path::new(path).extension().is_some_and(|extension| extension == "rs");
        let is_free = PLACES.iter().any(|place| path.starts_with(place));
        if !is_rust || !path.starts_with("tests/") || is_free {
            continue;
        }
        for (number, literal) in literals(text) {
            if key.is_match(literal) {
                faults.push(format!(
                    "{path}:{number}: {literal} spells a key: tests/support/keys.rs makes keys as \
                     the crate spells them. Two spellings of a key drift apart"
                ));
            }
        }
    }
    faults
}

#[test]
fn a_key_in_a_literal_of_a_test_is_a_fault() {
    for (path, text, is_fault) in [
        ("tests/store/a.rs", "redis.run(\"DEL hero:job:a\");", true),
        ("tests/store/a.rs", "redis.keys(\"hero:\");", true),
        ("tests/store/a.rs", "f(r#\"{\"reply_to\":\"hero:q:reply:a\"}\"#);", true),
        ("tests/store/a.rs", "format!(\"{namespace}:q:work:{queue}\");", true),
        ("tests/store/a.rs", "world.key(\"meta:boot:index\");", true),
        ("tests/store/a.rs", "// hero:job:a\nuse hero::store::Store;", false),
        ("tests/store/a.rs", "done.says(\"hero: invalid job: a\");", false),
        ("tests/foreign/a.rs", "redis.run(\"DEL hero:job:a\");", false),
        ("src/store/a.rs", "redis.run(\"DEL hero:job:a\");", false),
    ] {
        let said = faults(&[(path.to_owned(), text.to_owned())]);
        assert_eq!(said.len(), usize::from(is_fault), "{path} `{text}`: {said:?}");
        assert!(said.iter().all(|fault| fault.contains(path)), "{said:?}");
    }
}
