//! The rules of the house, read off the sources: who may import whom, what has one place only, and
//! the form of files. Every message says which rule broke, where, and why the rule is there.

use std::fs;
use std::path::Path;

/// The modules from the left to the right: each imports only from those left of it.
const ORDER: [&[&str]; 9] = [
    &["error", "failpoint", "test_support"],
    &["proto"],
    &["config"],
    &["store", "engine"],
    &["client"],
    &["actor", "supervisor", "rpc", "web", "amqp"],
    &["daemon"],
    &["cli"],
    &["main", "lib"],
];
const LINES_MAX: usize = 400;
const MAIN_LINES_MAX: usize = 40;

/// Something that may stand in one place only.
struct Reserved {
    /// Any of these in the code breaks the rule elsewhere.
    marks: &'static [&'static str],
    /// Where paths begin that may have it.
    places: &'static [&'static str],
    rule: &'static str,
}

const RESERVED: [Reserved; 6] = [
    Reserved {
        marks: &["unsafe_code", "unsafe {", "unsafe fn", "unsafe impl"],
        places: &["src/engine/process/sandbox/confine/"],
        rule: "only engine/process/sandbox/confine has `unsafe`, for the calls that safe Rust has \
               no way to make; each block argues why it is sound",
    },
    Reserved {
        marks: &["redis::"],
        places: &["src/store/"],
        rule: "only store names the redis crate, so that every command, error and reconnection is \
               in one place",
    },
    Reserved {
        marks: &["Command::new", "std::process::Command", "tokio::process"],
        places: &["src/engine/process/"],
        rule: "only engine/process starts processes, in groups that it can end whole",
    },
    Reserved {
        marks: &["SIGTERM", "SIGINT", "SIGHUP", "SIGKILL", "Signal::", "SignalKind", "::signal::"],
        places: &["src/daemon/", "src/engine/process/"],
        rule: "only daemon takes signals (and engine/process sends them to its children): there \
               is one way out, in order",
    },
    Reserved {
        marks: &[
            "q:work:",
            "q:ctl:",
            "q:reply:",
            "q:dead:",
            "meta:job",
            "meta:queue",
            "meta:actor",
            "meta:boot",
            "meta:type",
            "meta:osis",
            "\"job:",
            "'job:",
            ":job:{",
        ],
        places: &["src/proto/keys.rs", "src/proto/keys/"],
        rule: "only proto/keys.rs spells keys; Lua has them as its constants. A key that is \
               spelled twice is one day spelled differently",
    },
    Reserved {
        marks: &["\"KEYS\"", "'KEYS'", "\"SCAN\"", "'SCAN'"],
        places: &[],
        rule: "nothing walks through the whole database: it stands still for KEYS, and every list \
               has its index",
    },
];

/// Left in a file, each of these is work that somebody forgot.
const UNFINISHED: [&str; 4] =
    [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!("), "#[ignore"];
/// A folder that only the machine has on which something was written.
const FOREIGN_PATH: &str = concat!("/wo", "rk/");

/// Everything that is wrong with a file.
fn faults(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.contains(FOREIGN_PATH) {
        let at = line_of(text, FOREIGN_PATH);
        faults.push(format!(
            "{path}:{at}: names a path of somebody's machine ({FOREIGN_PATH}…): it means nothing \
             to whoever reads the project"
        ));
    }
    let extension = Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or_default();
    match extension {
        "rs" => rust_faults(path, text, &mut faults),
        "lua" => lua_faults(path, text, &mut faults),
        _ => {}
    }
    faults
}

fn rust_faults(path: &str, text: &str, faults: &mut Vec<String>) {
    if !text.starts_with("//! ") {
        faults.push(format!("{path}:1: opens without `//!`: a file says what it is for"));
    }
    for mark in UNFINISHED {
        if !path.ends_with("tests/tidy.rs") && text.contains(mark) {
            let at = line_of(text, mark);
            faults.push(format!("{path}:{at}: has `{mark}`: finish it, or take it away"));
        }
    }
    let code = code_of(text);
    if code.len() > LINES_MAX && !is_test(path) {
        let lines = code.len();
        faults.push(format!(
            "{path}: has {lines} lines without its tests, {LINES_MAX} at the most: it is two files"
        ));
    }
    if path == "src/main.rs" && text.lines().count() >= MAIN_LINES_MAX {
        faults.push(format!(
            "{path}: has {MAIN_LINES_MAX} lines or more: everything is in the library, where \
             tests reach it"
        ));
    }
    if path.starts_with("src/") && !is_test(path) {
        reserved_faults(path, &code, faults);
        import_faults(path, &code, faults);
    }
}

fn lua_faults(path: &str, text: &str, faults: &mut Vec<String>) {
    let header: Vec<&str> = text.lines().take_while(|line| line.starts_with("--")).collect();
    let header = header.join("\n");
    let shared =
        ["/common.lua", "/limits.lua", "/legacy.lua"].iter().any(|end| path.ends_with(end));
    let whole = header.contains("ARGV: ") && header.contains("returns ");
    if header.is_empty() || !shared && !whole {
        faults.push(format!(
            "{path}:1: its header names no ARGV or no returns: whoever calls a script reads no \
             more of it than that"
        ));
    }
    let code: Vec<(usize, &str)> = numbered(text)
        .map(|(number, line)| (number, line.split("--").next().unwrap_or_default()))
        .collect();
    reserved_faults(path, &code, faults);
}

fn reserved_faults(path: &str, code: &[(usize, &str)], faults: &mut Vec<String>) {
    for Reserved { marks, places, rule } in RESERVED {
        if places.iter().any(|place| path.starts_with(place)) {
            continue;
        }
        for (number, line) in code {
            if let Some(mark) = marks.iter().find(|mark| line.contains(**mark)) {
                faults.push(format!("{path}:{number}: has `{mark}`: {rule}"));
            }
        }
    }
}

fn import_faults(path: &str, code: &[(usize, &str)], faults: &mut Vec<String>) {
    let own = module_of(path);
    let Some(own_rank) = rank(own) else {
        faults.push(format!("{path}: the module `{own}` has no place in the order: give it one"));
        return;
    };
    for (number, line) in code {
        for other in imported(line) {
            // What has no rank is an item of the crate's root, not a module.
            let Some(other_rank) = rank(other).filter(|_| other != own) else { continue };
            if other_rank == own_rank {
                faults.push(format!(
                    "{path}:{number}: `{own}` imports `{other}`: these two never import each \
                     other, they meet in what is left of both or where both are used"
                ));
            } else if other_rank > own_rank && own != "lib" {
                faults.push(format!(
                    "{path}:{number}: `{own}` imports `{other}`: a module imports only from its \
                     left, or no part of the house can be understood without the rest"
                ));
            }
        }
        let whole = identifiers(line).any(|word| word == "Config");
        if whole && ["actor", "supervisor", "engine", "store"].contains(&own) {
            faults.push(format!(
                "{path}:{number}: `{own}` names the whole `Config`: it gets its slice, so that \
                 one sees what it depends on"
            ));
        }
    }
}

fn rank(module: &str) -> Option<usize> {
    ORDER.iter().position(|modules| modules.contains(&module))
}

/// `src/actor/fetch/mod.rs` is of `actor`, `src/client.rs` of `client`.
fn module_of(path: &str) -> &str {
    let rest = path.strip_prefix("src/").unwrap_or(path);
    rest.split(['/', '.']).next().unwrap_or_default()
}

/// The modules that a line names after `crate::` or `hero::`.
fn imported(line: &str) -> Vec<&str> {
    let mut modules = Vec::new();
    for root in ["crate::", "hero::"] {
        for (at, _) in line.match_indices(root) {
            let rest = &line[at + root.len()..];
            match rest.strip_prefix('{') {
                Some(group) => {
                    let group = group.split('}').next().unwrap_or_default();
                    modules.extend(group.split(',').filter_map(|part| identifiers(part).next()));
                }
                None => modules.extend(identifiers(rest).next()),
            }
        }
    }
    modules
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The lines of a Rust file with their numbers, without comments and without its tests.
fn code_of(text: &str) -> Vec<(usize, &str)> {
    numbered(text)
        .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
        .map(|(number, line)| (number, if line.trim_start().starts_with("//") { "" } else { line }))
        .collect()
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

fn line_of(text: &str, mark: &str) -> usize {
    numbered(text).find(|(_, line)| line.contains(mark)).map_or(0, |(number, _)| number)
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Every text file of the project: its path from the root, and what it holds.
fn project_files() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the project can be read") {
            let path = entry.expect("a folder of the project can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_symlink() || ["target", ".git"].contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                let path = path.strip_prefix(root).expect("it lies below the root");
                files.push((path.to_string_lossy().into_owned(), text));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn the_project_keeps_the_rules_of_the_house() {
    let files = project_files();
    let of = |start: &str| files.iter().filter(|(path, _)| path.starts_with(start)).count();
    assert!(of("src/") > 50 && of("src/store/scripts/") > 10, "the files are looked for elsewhere");
    let faults: Vec<String> = files.iter().flat_map(|(path, text)| faults(path, text)).collect();
    assert!(faults.is_empty(), "{} rules broken:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_rule_can_be_broken() {
    let long = format!("//! x\n{}", "fn f() {}\n".repeat(LINES_MAX));
    let long_main = format!("//! x\n{}", "fn f() {}\n".repeat(MAIN_LINES_MAX));
    let foreign = format!("see {FOREIGN_PATH}notes");
    let unfinished = format!("//! x\nfn f() {{ {}) }}", UNFINISHED[0]);
    for (path, text, said) in [
        ("src/actor/a.rs", "fn f() {}", "opens without"),
        ("src/actor/a.rs", "//! x\nuse redis::cmd;", "only store names the redis crate"),
        ("src/cli/a.rs", "//! x\nCommand::new(\"ls\");", "only engine/process starts processes"),
        ("src/engine/process/a.rs", "//! x\n#![expect(unsafe_code)]", "has `unsafe`"),
        ("src/store/a.rs", "//! x\nfn f() { unsafe { g() } }", "has `unsafe`"),
        ("src/actor/a.rs", "//! x\nuse tokio::signal::unix;", "only daemon takes signals"),
        ("src/store/a.rs", "//! x\nlet k = \"hero:q:work:type:x\";", "only proto/keys.rs spells"),
        ("src/store/a.rs", "//! x\nlet k = format!(\"{ns}:job:{id}\");", "only proto/keys.rs"),
        ("src/store/scripts/a.lua", "-- x\n-- ARGV: 1\n-- returns 1\nGET('hero:q:ctl:x')", "keys"),
        ("src/store/a.rs", "//! x\ncmd(\"KEYS\")", "the whole database"),
        ("src/store/scripts/a.lua", "-- x\n-- ARGV: 1\nreturn 1", "its header names no ARGV"),
        ("src/store/a.rs", "//! x\nuse crate::engine::Engine;", "never import each other"),
        ("src/engine/a.rs", "//! x\nuse crate::{error, store};", "never import each other"),
        ("src/actor/a.rs", "//! x\nuse crate::supervisor;", "never import each other"),
        ("src/proto/a.rs", "//! x\nuse crate::store::Store;", "only from its left"),
        ("src/client.rs", "//! x\nuse crate::cli::Cli;", "only from its left"),
        ("src/actor/a.rs", "//! x\nuse crate::config::{Config, Unit};", "gets its slice"),
        ("src/attic/a.rs", "//! x\n", "no place in the order"),
        ("src/actor/a.rs", &long, "it is two files"),
        ("src/main.rs", &long_main, "everything is in the library"),
        ("src/actor/a.rs", &unfinished, "finish it"),
        ("tests/a.rs", "//! x\n#[ignore]", "finish it"),
        ("README.md", &foreign, "somebody's machine"),
    ] {
        let faults = faults(path, text).join("\n");
        assert!(faults.contains(said), "{path} `{text}` breaks no rule about: {said}\n{faults}");
        assert!(faults.contains(path), "the message does not name {path}: {faults}");
    }
}

#[test]
fn what_the_rules_allow_is_no_fault() {
    for (path, text) in [
        ("src/store/a.rs", "//! x\nuse redis::cmd;\nuse crate::proto::keys::Keys;"),
        ("src/actor/a.rs", "//! x\n// `hero:q:work:` is a key.\nuse crate::config::ActorConfig;"),
        ("src/actor/a.rs", "//! x\n#[cfg(test)]\nmod tests { const K: &str = \"q:work:\"; }"),
        ("src/cli/a.rs", "//! x\nnote(\"hero: gone\"); use crate::daemon::Interrupts;"),
        ("src/store/scripts/a.lua", "-- x\n--\n-- ARGV: 1 id\n-- returns 1\nreturn KEYS[1]"),
        ("src/main.rs", "//! x\nuse hero::cli::Cli;"),
    ] {
        assert_eq!(faults(path, text), [] as [&str; 0], "{path} `{text}`");
    }
}
