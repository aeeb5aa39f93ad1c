//! The rules of the project, checked on its sources: which module imports which, what may stand in
//! one place only, the form of files. Each message names the place, the rule and its reason.
#![allow(clippy::expect_used, reason = "a test that cannot go on has failed, and says where")]

mod circles;
mod empty_answers;
mod functions;
mod keys;
mod messages;
mod names;
mod places;
mod promises;
mod rights;
mod shipped;
mod source;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use source::{identifiers, is_test, lines_outside_tests, numbered};

/// The modules in their order: each imports only from those before it, and none of its own row.
const ORDER: [&[&str]; 16] = [
    &["error", "failpoint", "test_support"],
    &["proto"],
    &["config"],
    &["store", "sandbox", "artifacts"],
    &["engine"],
    &["client"],
    &["view"],
    &["metrics"],
    &["http"],
    &["trace"],
    &["actor", "supervisor", "amqp"],
    &["rpc"],
    &["web"],
    &["daemon"],
    &["cli"],
    &["main", "lib"],
];
/// Modules that never import each other although one stands before the other.
const APART: [&str; 2] = ["store", "engine"];
const LINES_MAX: usize = 400;
const MAIN_LINES_MAX: usize = 40;
const UNSAFE_BLOCKS_MAX: usize = 12;

/// Code that is allowed in some places only.
struct Reserved {
    /// The code, as any of these strings.
    marks: &'static [&'static str],
    /// The paths that may have it, by their start.
    places: &'static [&'static str],
    rule: &'static str,
}

/// The only file with `unsafe`.
const UNSAFE_PLACE: &str = "src/sandbox/confine.rs";

const RESERVED: [Reserved; 7] = [
    Reserved {
        marks: &["unsafe_code", "unsafe {", "unsafe fn", "unsafe impl"],
        places: &[UNSAFE_PLACE],
        rule: "`unsafe` is only in src/sandbox/confine.rs, for system calls that safe Rust cannot \
               make; each block states why it is sound",
    },
    Reserved {
        marks: &["asm!"],
        places: &[],
        rule: "no assembly: the code is the same on every processor",
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
        rule: "only engine/process starts processes, in groups that it can kill as one",
    },
    Reserved {
        marks: &["SIGTERM", "SIGINT", "SIGHUP", "SIGKILL", "Signal::", "SignalKind", "::signal::"],
        places: &["src/daemon/", "src/engine/process/", "src/sandbox/"],
        rule: "only daemon handles signals (engine/process and sandbox send them to children): \
               there is one ordered shutdown",
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
        rule: "only proto/keys.rs spells keys; Lua has them as constants. Two spellings of a key \
               drift apart",
    },
    Reserved {
        marks: &["\"KEYS\"", "'KEYS'", "\"SCAN\"", "'SCAN'"],
        places: &["src/store/scripts/find_unindexed.lua"],
        rule: "nothing scans the database: KEYS blocks Redis, and every list has an index. Only \
               the search for jobs in no queue uses SCAN, in bounded steps",
    },
];

/// Marks of unfinished work.
const UNFINISHED: [&str; 4] =
    [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!("), "#[ignore"];
/// A path that exists only on the machine of an author.
const FOREIGN_PATH: &str = concat!("/wo", "rk/");

/// Returns the faults of one file.
fn faults(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.contains(FOREIGN_PATH) {
        let at = line_of(text, FOREIGN_PATH);
        faults.push(format!(
            "{path}:{at}: names a path of its author's machine ({FOREIGN_PATH}…): it exists \
             nowhere else"
        ));
    }
    if has_extension(path, "rs") {
        rust_faults(path, text, &mut faults);
    } else if has_extension(path, "lua") {
        lua_faults(path, text, &mut faults);
    }
    faults
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|of| of == extension)
}

fn rust_faults(path: &str, text: &str, faults: &mut Vec<String>) {
    if !text.starts_with("//! ") {
        faults.push(format!("{path}:1: opens without `//!`: a file says what it is for"));
    }
    for mark in UNFINISHED {
        if !path.starts_with("tests/tidy") && text.contains(mark) {
            let at = line_of(text, mark);
            faults.push(format!("{path}:{at}: has `{mark}`: finish it or remove it"));
        }
    }
    let code = code_lines(path, text);
    if code.len() > LINES_MAX && !is_test(path) {
        let lines = code.len();
        faults.push(format!(
            "{path}: has {lines} lines without its tests; the limit is {LINES_MAX}: it is two files"
        ));
    }
    if path == "src/main.rs" && text.lines().count() >= MAIN_LINES_MAX {
        faults.push(format!(
            "{path}: has {MAIN_LINES_MAX} lines or more: the code is in the library, where tests \
             reach it"
        ));
    }
    if path == UNSAFE_PLACE {
        let blocks = code.iter().filter(|(_, line)| line.contains("unsafe {")).count();
        if blocks > UNSAFE_BLOCKS_MAX {
            faults.push(format!(
                "{path}: has {blocks} unsafe blocks; the limit is {UNSAFE_BLOCKS_MAX}: each is to \
                 be argued and reviewed"
            ));
        }
    }
    if path.starts_with("src/") && !is_test(path) {
        reserved_faults(path, &code, faults);
        import_faults(path, &code, faults);
    }
}

/// Returns the numbered lines of code that the rules read.
fn code_lines<'a>(path: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    if has_extension(path, "lua") {
        let lines = numbered(text);
        return lines.map(|(at, line)| (at, line.split("--").next().unwrap_or_default())).collect();
    }
    lines_outside_tests(text)
}

fn lua_faults(path: &str, text: &str, faults: &mut Vec<String>) {
    let header: Vec<&str> = text.lines().take_while(|line| line.starts_with("--")).collect();
    let header = header.join("\n");
    let shared = path.contains("/scripts/shared/");
    let complete = header.contains("ARGV: ") && header.contains("returns ");
    if header.is_empty() || !shared && !complete {
        faults.push(format!(
            "{path}:1: its header names no ARGV or no returns: the header is all that the author \
             of a call reads"
        ));
    }
    reserved_faults(path, &code_lines(path, text), faults);
}

fn reserved_faults(path: &str, code: &[(usize, &str)], faults: &mut Vec<String>) {
    for Reserved { marks, places, rule } in RESERVED {
        if places.iter().any(|place| path.starts_with(place)) {
            continue;
        }
        for (number, line) in code {
            if let Some(mark) = marks.iter().find(|mark| has_mark(line, mark)) {
                faults.push(format!("{path}:{number}: has `{mark}`: {rule}"));
            }
        }
    }
}

/// Returns one fault for each module of the order that does not exist, and for each place that may have reserved code
/// and has none.
fn unneeded_entries(files: &[(String, String)]) -> Vec<String> {
    let exists = |module: &str| files.iter().any(|(path, _)| module_of(path) == module);
    let gone = ORDER.iter().copied().flatten().filter(|module| !exists(module));
    let mut faults: Vec<String> =
        gone.map(|module| format!("tests/tidy: the order has `{module}`, which is gone")).collect();
    for Reserved { marks, places, rule } in RESERVED {
        let needs_it = |(path, text): &(String, String)| {
            let mut code = code_lines(path, text).into_iter();
            code.any(|(_, line)| marks.iter().any(|mark| has_mark(line, mark)))
        };
        for place in places {
            if !files.iter().filter(|(path, _)| path.starts_with(place)).any(needs_it) {
                faults.push(unneeded(place, rule));
            }
        }
    }
    faults
}

/// Returns the fault of an entry in a list of exemptions that nothing needs.
fn unneeded(place: &str, rule: &str) -> String {
    format!("tests/tidy: exempts {place} without need: take it off the list of the rule: {rule}")
}

/// Looks for a mark that is not the end of a longer name.
fn has_mark(line: &str, mark: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(mark)
        .any(|(at, _)| !mark.starts_with(is_word) || !line[..at].ends_with(is_word))
}

fn import_faults(path: &str, code: &[(usize, &str)], faults: &mut Vec<String>) {
    let own = module_of(path);
    let Some(own_rank) = rank(own) else {
        faults.push(format!("{path}: the module `{own}` has no place in the order: give it one"));
        return;
    };
    for (number, line) in code {
        for other in imported(line) {
            // Items of the crate's root have no rank.
            let Some(other_rank) = rank(other).filter(|_| other != own) else { continue };
            if other_rank == own_rank || [own, other].iter().all(|name| APART.contains(name)) {
                faults.push(format!(
                    "{path}:{number}: `{own}` imports `{other}`: these two never import each \
                     other; they meet where both are used"
                ));
            } else if other_rank > own_rank && own != "lib" {
                faults.push(format!(
                    "{path}:{number}: `{own}` imports `{other}`: a module imports only from its \
                     left, so that each can be understood without the rest"
                ));
            }
        }
        let names_config = identifiers(line).any(|word| word == "Config");
        if names_config && ["actor", "supervisor", "engine", "store"].contains(&own) {
            faults.push(format!(
                "{path}:{number}: `{own}` names the whole `Config`: it gets its part of it, which \
                 shows the settings that it depends on"
            ));
        }
    }
}

fn rank(module: &str) -> Option<usize> {
    ORDER.iter().position(|modules| modules.contains(&module))
}

/// Returns the top module: `actor` for `src/actor/fetch.rs`, `client` for `src/client/client.rs`.
fn module_of(path: &str) -> &str {
    let rest = path.strip_prefix("src/").unwrap_or(path);
    rest.split(['/', '.']).next().unwrap_or_default()
}

/// Returns the modules that a line names after `crate::` or `hero::`.
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

fn line_of(text: &str, mark: &str) -> usize {
    numbered(text).find(|(_, line)| line.contains(mark)).map_or(0, |(number, _)| number)
}

/// Returns the folder of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("tests/tidy lies in it").into()
}

/// Returns the path and the text of every text file of the project.
fn project_files() -> Vec<(String, String)> {
    let root = root();
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
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
                let path = path.strip_prefix(&root).expect("it lies below the root");
                files.push((path.to_string_lossy().into_owned(), text));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn the_sources_keep_the_rules() {
    let files = project_files();
    let of = |start: &str| files.iter().filter(|(path, _)| path.starts_with(start)).count();
    assert!(of("src/") > 50 && of("src/store/scripts/") > 10, "the files are looked for elsewhere");
    let mut faults: Vec<String> =
        files.iter().flat_map(|(path, text)| faults(path, text)).collect();
    faults.extend(circles::faults(&files));
    faults.extend(empty_answers::faults(&files));
    faults.extend(functions::faults(&files));
    faults.extend(keys::faults(&files));
    faults.extend(messages::faults(&files));
    faults.extend(names::faults(&files));
    faults.extend(places::faults(&files));
    faults.extend(promises::faults(&files));
    faults.extend(rights::faults(&files));
    faults.extend(shipped::faults(&files));
    faults.extend(words::faults(&files));
    faults.extend(unneeded_entries(&files));
    faults.extend(keys::unneeded_entries(&files));
    faults.extend(places::unneeded_entries(&files));
    faults.extend(words::unneeded_entries(&files));
    assert!(faults.is_empty(), "{} rules broken:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_rule_can_be_broken() {
    let long = format!("//! x\n{}", "fn f() {}\n".repeat(LINES_MAX));
    let long_main = format!("//! x\n{}", "fn f() {}\n".repeat(MAIN_LINES_MAX));
    let foreign = format!("see {FOREIGN_PATH}notes");
    let unfinished = format!("//! x\nfn f() {{ {}) }}", UNFINISHED[0]);
    let many_unsafe = format!("//! x\n{}", "unsafe { f() }\n".repeat(UNSAFE_BLOCKS_MAX + 1));
    for (path, text, said) in [
        ("src/actor/a.rs", "fn f() {}", "opens without"),
        ("src/actor/a.rs", "//! x\nuse redis::cmd;", "only store names the redis crate"),
        (
            "src/actor/a.rs",
            "//! x\n#[cfg(test)]\nmod tests { fn f() {} }\nuse redis::cmd;",
            "only store names the redis crate",
        ),
        ("src/cli/a.rs", "//! x\nCommand::new(\"ls\");", "only engine/process starts"),
        ("src/engine/process/a.rs", "//! x\n#![expect(unsafe_code)]", "has `unsafe_code`"),
        ("src/store/a.rs", "//! x\nfn f() { unsafe { g() } }", "has `unsafe {`"),
        ("src/sandbox/a.rs", "//! x\nfn f() { core::arch::asm!(\"nop\") }", "no assembly"),
        (UNSAFE_PLACE, &many_unsafe, "13 unsafe blocks"),
        ("src/store/a.rs", "//! x\nuse crate::sandbox::Rules;", "never import each other"),
        ("src/actor/a.rs", "//! x\nuse tokio::signal::unix;", "only daemon handles signals"),
        ("src/store/a.rs", "//! x\nlet k = \"hero:q:work:type:x\";", "only proto/keys.rs spells"),
        ("src/store/a.rs", "//! x\nlet k = format!(\"{ns}:job:{id}\");", "only proto/keys.rs"),
        ("src/store/scripts/a.lua", "-- x\n-- ARGV: 1\n-- returns 1\nGET('hero:q:ctl:x')", "keys"),
        ("src/store/a.rs", "//! x\ncmd(\"KEYS\")", "nothing scans the database"),
        ("src/store/scripts/a.lua", "-- x\n-- ARGV: 1\nreturn 1", "its header names no ARGV"),
        ("src/store/a.rs", "//! x\nuse crate::engine::Engine;", "never import each other"),
        ("src/engine/a.rs", "//! x\nuse crate::{error, store};", "never import each other"),
        ("src/actor/a.rs", "//! x\nuse crate::supervisor;", "never import each other"),
        ("src/proto/a.rs", "//! x\nuse crate::store::Store;", "only from its left"),
        ("src/client/wait.rs", "//! x\nuse crate::cli::Cli;", "only from its left"),
        ("src/actor/a.rs", "//! x\nuse crate::config::{Config, Unit};", "gets its part"),
        ("src/attic/a.rs", "//! x\n", "no place in the order"),
        ("src/actor/a.rs", &long, "it is two files"),
        ("src/main.rs", &long_main, "the code is in the library"),
        ("src/actor/a.rs", &unfinished, "finish it"),
        ("tests/a.rs", "//! x\n#[ignore]", "finish it"),
        ("README.md", &foreign, "its author's machine"),
    ] {
        let faults = faults(path, text).join("\n");
        assert!(faults.contains(said), "{path} `{text}` breaks no rule about: {said}\n{faults}");
        assert!(faults.contains(path), "the message does not name {path}: {faults}");
    }
}

#[test]
fn exemption_that_nothing_needs_is_a_fault() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let files = [
        file("src/store/a.rs", "//! x\nuse redis::cmd;"),
        file("src/engine/process/a.rs", "//! x\n// Command::new"),
    ];
    let found = unneeded_entries(&files).join("\n");
    assert!(!found.contains("src/store/ ") && !found.contains("`store`"), "{found}");
    assert!(found.contains("src/engine/process/ ") && found.contains("`cli`"), "{found}");
    let free = [("tests/osis/a.rs", "ask(\"hero:job:a\")"), ("ARCHITECTURE.md", "`docs/`")];
    let free = free.map(|(path, text)| file(path, text));
    assert_eq!(keys::unneeded_entries(&free).len(), 3);
    assert_eq!(places::unneeded_entries(&free).len(), 1);
}

#[test]
fn allowed_code_is_no_fault() {
    for (path, text) in [
        ("src/store/a.rs", "//! x\nuse redis::cmd;\nuse crate::proto::keys::Keys;"),
        ("src/engine/a.rs", "//! x\nuse super::script_redis::Reply;"),
        ("src/actor/a.rs", "//! x\n// `hero:q:work:` is a key.\nuse crate::config::ActorConfig;"),
        ("src/actor/a.rs", "//! x\n#[cfg(test)]\nmod tests { const K: &str = \"q:work:\"; }"),
        ("src/cli/a.rs", "//! x\nnote(\"hero: gone\"); use crate::daemon::Interrupts;"),
        ("src/store/scripts/a.lua", "-- x\n--\n-- ARGV: 1 id\n-- returns 1\nreturn KEYS[1]"),
        ("src/main.rs", "//! x\nuse hero::cli::Cli;"),
    ] {
        assert_eq!(faults(path, text), [] as [&str; 0], "{path} `{text}`");
    }
}
