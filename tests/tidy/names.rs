//! The rule that a type has its name for itself: no two structs, enums or traits are called alike.

use std::collections::BTreeMap;

use regex::Regex;

use super::source::{code_of, is_source, numbered};

/// Returns one fault for each name that is declared more than once.
pub(crate) fn faults(files: &[(String, String)]) -> Vec<String> {
    let declaration = r"^\s*(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:struct|enum|trait) (\w+)";
    let declaration = Regex::new(declaration).expect("a valid expression");
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in files {
        if !is_source(path) {
            continue;
        }
        for (number, line) in numbered(&code_of(text)) {
            if let Some(name) = declaration.captures(line) {
                places.entry(name[1].to_owned()).or_default().push(format!("{path}:{number}"));
            }
        }
    }
    places
        .into_iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(name, places)| {
            let places = places.join(", ");
            format!("`{name}` is declared more than once: {places}: one name is one thing")
        })
        .collect()
}

#[test]
fn a_name_that_is_declared_twice_is_a_fault() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let files = [
        file("src/a.rs", "struct Twin;\nfn f() { let a: Twin; }"),
        file("src/b.rs", "pub(crate) enum Twin { A }\n#[cfg(test)]\nmod tests { struct Own; }"),
        file("src/c.rs", "pub(in crate::a) trait Own {}\n// struct Twin;"),
    ];
    let said = faults(&files);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("`Twin`") && said[0].contains("src/a.rs:1, src/b.rs:1"), "{said:?}");
}
