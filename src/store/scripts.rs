//! The server-side scripts. Each is a file of `scripts/`, run by its hash and loaded again when
//! Redis has forgotten it. Its header names the files of `scripts/shared/` that it needs; Redis
//! gets the constants of the keys, these files and the script, as they stand on disk.
//!
//! Lua makes the functions of a script in every call, and each variable of another file that a function
//! uses is searched for. So files that few calls need are named by a line `-- rarely: `. They stand in a
//! function of their own, and `rarely().NAME` makes theirs at its first use in a call. This halves the time
//! of a call that ends or claims one job, by `INFO commandstats`.

use std::collections::BTreeSet;
use std::iter;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use redis::Script;

use crate::proto::keys::Keys;

/// Begins the line of a header that names the shared files.
const NEEDS: &str = "-- needs: ";
/// Begins the line of a header that names the shared files that few calls need a function of.
const RARELY: &str = "-- rarely: ";
/// Begins the use of a function of such a file.
const RARE_USE: &str = "rarely().";
/// Begins the line before each file in the text that Redis gets.
const FILE: &str = "-- file: ";

/// The shared file that goes before every script of a namespace in braces.
const SLOT: &str = "slot";

/// A script that is put together when it is first run.
pub(super) struct LuaScript {
    name: &'static str,
    body: &'static str,
    constants: Arc<str>,
    /// Its namespace is in braces, as for a cluster.
    has_slot: bool,
    script: OnceLock<Script>,
}

macro_rules! scripts {
    ($($name:ident)*) => {
        pub(super) struct Scripts {
            $(pub(super) $name: LuaScript,)*
        }

        impl Scripts {
            pub(super) fn new(keys: &Keys) -> Self {
                let constants: Arc<str> = keys.lua().into();
                Self {
                    $($name: LuaScript {
                        name: stringify!($name),
                        body: include_str!(concat!("scripts/", stringify!($name), ".lua")),
                        constants: Arc::clone(&constants),
                        has_slot: keys.namespace().is_hash_tag(),
                        script: OnceLock::new(),
                    },)*
                }
            }

            fn all(&self) -> impl Iterator<Item = &LuaScript> {
                [$(&self.$name),*].into_iter()
            }
        }
    };
}

scripts! {
    add_token adopt amqp_answered amqp_appear amqp_attach amqp_shutdown amqp_take appear asked_output audit backfill backup_job call claim close_batch commit confirm cron_missed cron_overdue cron_ran cron_state define_cron delete disappear
    dispatch_due drop_graph edit edit_graph enable_cron expire_jobs fall_back fan_out find_late find_unindexed finish fire heartbeat keep_awaited keep_files keep_sample keep_state
    inputs join_batch long_waits look next_call notify_done notify_plan notify_problems notify_take objects_index objects_read objects_undeclared note_actors note_awaited note_machines objects_write open_graph output_piece pause
    progress publish_script purge push_replies read_at_once recover_boots recover_foreign recover_legacy recover_orphans recover_pops remove_token rotate_token replace
    report_wrong_types requeue restore_graph restore_job restore_key restore_log restore_notify restore_objects restore_place retry
    sample settle shorten_waits stage stage_files stage_others start stop submit submit_children supervise take_tasks tell tend_limits
    unadopted unused_contents wake
}

macro_rules! shared {
    ($($name:ident)*) => {
        /// The shared files: name and text.
        const SHARED: &[(&str, &str)] = &[
            $((stringify!($name), include_str!(concat!("scripts/shared/", stringify!($name), ".lua"))),)*
        ];
    };
}

shared! {
    adopt_legacy adopt_place amqp attempts awaited begin_wait caller claim_limits claim_windows contents control counters cron cron_counted cron_end decide_batch dependents ending ends
    events expiring fair foreign_actors foreign_end foreign_start graph_end graph_start illegal index job later_owner leave leftovers legacy limits names
    notes notify other_copies owner pauses prerequisites pushed_again queue queue_front reserved rhailib rights routing slot sort_ends stop_graph stop_job
    submit_jobs sweep time type_times unindexed unique
    waiting waits wake wanted where windows wrong_type
}

/// A script as Redis gets it, for a person.
pub struct LuaSource {
    pub name: &'static str,
    /// The first sentence of its header.
    pub about: String,
    /// The text; a comment line names each file at its start.
    pub text: String,
}

/// Returns every script as Redis gets it.
pub fn lua_sources(keys: &Keys) -> Vec<LuaSource> {
    let source = |script: &LuaScript| {
        let (name, about, text) = (script.name, script.about(), script.text());
        LuaSource { name, about, text }
    };
    Scripts::new(keys).all().map(source).collect()
}

impl Scripts {
    /// Replaces line numbers in an error of a script by file and line.
    pub(super) fn with_files(&self, error: &str) -> String {
        match self.all().find(|script| error.contains(script.get_hash())) {
            Some(script) => script.with_files(error),
            None => error.to_owned(),
        }
    }
}

impl Deref for LuaScript {
    type Target = Script;

    fn deref(&self) -> &Script {
        self.script.get_or_init(|| Script::new(&self.text()))
    }
}

impl LuaScript {
    fn about(&self) -> String {
        let lines = self.body.lines().map_while(|line| line.strip_prefix("-- "));
        let header = lines.collect::<Vec<_>>().join(" ");
        header.split_once(". ").map_or(header.as_str(), |(first, _)| first).to_owned()
    }

    fn text(&self) -> String {
        let mut needed = Vec::new();
        needed.extend(SHARED.iter().filter(|(name, _)| self.has_slot && *name == SLOT));
        add_needs(self.body, &mut needed);
        let rare = rare_files(self.body, &needed);
        let (needed, rare) = (texts(&needed), texts(&rare));
        let body = format!("{FILE}{}.lua\n{}", self.name, self.body);
        let (keys, flags): (Vec<&str>, Vec<&str>) =
            self.constants.split_inclusive('\n').partition(|line| line.contains(" = '"));
        let used = |lines: &[&str], text: &str| used_constants(&lines.concat(), text);
        let (often, all) = ([&*needed, &body].concat(), [&*needed, &rare, &body].concat());
        let (keys_of_body, often) = with_values(&keys, &often);
        let (needed, body) =
            often.split_at(often.rfind(&format!("{FILE}{}.lua", self.name)).unwrap_or_default());
        let constants = [keys_of_body, used(&flags, &all)].concat();
        let (declared, rare) = if all.contains(RARE_USE) {
            let keys = used(&keys, &rare);
            ("local rarely\n", rare_function(&keys, &rare, rare_names(&all)))
        } else {
            ("", String::new())
        };
        format!("{FILE}proto/keys.rs\n{constants}{declared}{needed}{rare}{body}")
    }

    /// Replaces each `user_script:LINE` in an error by file and line.
    pub(super) fn with_files(&self, error: &str) -> String {
        let text = self.text();
        let mut parts = error.split("user_script:");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            let line = part[..part.len() - rest.len()].parse().unwrap_or_default();
            out.push_str(&place(&text, line));
            out.push_str(rest);
        }
        out
    }
}

/// The function that makes the functions of rarely needed files, and returns those that are used. It has the
/// constants again, so that Lua need not search for them in calls without it.
fn rare_function<'a>(constants: &str, files: &str, used: impl Iterator<Item = &'a str>) -> String {
    let used = used.map(|name| format!("{name} = {name}")).collect::<Vec<_>>().join(", ");
    format!(
        "{FILE}rarely needed files\ndo\nlocal made\nfunction rarely()\nif made then return made end\n\
         {constants}{files}made = {{ {used} }}\nreturn made\nend\nend\n"
    )
}

/// Puts the values of keys that a text names once or twice where it names them. Returns the others that it names, and
/// the text: Lua allows no more than 200 names.
fn with_values(keys: &[&str], text: &str) -> (String, String) {
    let (mut others, mut text) = (String::new(), text.to_owned());
    for line in keys {
        let Some((name, value)) =
            line.trim_end().strip_prefix("local ").and_then(|key| key.split_once(" = "))
        else {
            continue;
        };
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_word = |at: &usize| {
            !text[..*at].ends_with(is_of_name) && !text[at + name.len()..].starts_with(is_of_name)
        };
        let places: Vec<usize> =
            text.match_indices(name).map(|(at, _)| at).filter(is_word).collect();
        if places.len() > 2 {
            others.push_str(line);
            continue;
        }
        for at in places.into_iter().rev() {
            text.replace_range(at..at + name.len(), value);
        }
    }
    (others, text)
}

/// The constants that a text uses: Lua allows no more than 200 names. Their names begin with a capital.
fn used_constants(constants: &str, text: &str) -> String {
    let words = text.as_bytes().split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    let names: BTreeSet<&[u8]> =
        words.filter(|word| word.first().is_some_and(u8::is_ascii_uppercase)).collect();
    let is_used =
        |line: &&str| line.split(' ').nth(1).is_none_or(|name| names.contains(name.as_bytes()));
    constants.split_inclusive('\n').filter(is_used).collect()
}

/// The shared files that a text needs, each after those that it needs itself.
fn add_needs(text: &str, needed: &mut Vec<(&'static str, &'static str)>) {
    for name in needs(text) {
        let known = SHARED.iter().find(|(shared, _)| *shared == name);
        let Some(file) = known.filter(|file| !needed.contains(file)) else { continue };
        add_needs(file.1, needed);
        needed.push(*file);
    }
}

fn needs(text: &str) -> impl Iterator<Item = &str> {
    names_behind(NEEDS, text)
}

fn names_behind<'a>(mark: &str, text: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
    text.lines().find_map(|line| line.strip_prefix(mark)).unwrap_or_default().split_whitespace()
}

/// The files that a text and those that it needs rarely need, each after those that it needs itself.
fn rare_files(
    body: &str,
    needed: &[(&'static str, &'static str)],
) -> Vec<(&'static str, &'static str)> {
    let mut all = needed.to_vec();
    let mut texts: Vec<&str> = vec![body];
    texts.extend(needed.iter().map(|(_, text)| *text));
    while let Some(text) = texts.pop() {
        let before = all.len();
        for name in names_behind(RARELY, text) {
            add_needs(&format!("{NEEDS}{name}"), &mut all);
        }
        texts.extend(all[before..].iter().map(|(_, text)| *text));
    }
    all.split_off(needed.len())
}

/// The names that a text uses of rarely needed files, each once.
fn rare_names(text: &str) -> impl Iterator<Item = &str> {
    let name = |rest: &'_ str| rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names =
        text.split(RARE_USE).skip(1).map(move |rest| &rest[..name(rest).unwrap_or(rest.len())]);
    names.collect::<BTreeSet<_>>().into_iter()
}

/// The text of files, a comment line before each.
fn texts(files: &[(&'static str, &'static str)]) -> String {
    files.iter().flat_map(|(name, text)| [FILE, "shared/", name, ".lua\n", text]).collect()
}

/// The file and line of a line of a text that Redis got.
fn place(text: &str, line: usize) -> String {
    let files = iter::zip(1.., text.lines()).take(line);
    let files = files.filter_map(|(at, text)| Some((at, text.strip_prefix(FILE)?)));
    match files.last() {
        Some((at, file)) => format!("{file}:{}", line - at),
        None => format!("line {line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names in a text, without strings and comments; each with the character before and after it.
    fn words(text: &str) -> Vec<(char, &str, char)> {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (mut words, mut before, mut rest) = (Vec::new(), ' ', text);
        while let Some(c) = rest.chars().next() {
            let length = if rest.starts_with("--") {
                rest.find('\n').unwrap_or(rest.len())
            } else if c == '\'' || c == '"' {
                rest[1..].find(c).map_or(rest.len(), |end| end + 2)
            } else if is_of_name(c) {
                rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())
            } else {
                c.len_utf8()
            };
            let (word, after) = rest.split_at(length);
            rest = after;
            if is_of_name(c) {
                words.push((before, word, rest.chars().next().unwrap_or(' ')));
            }
            before = c;
        }
        words
    }

    /// The names of a declaration, the parameters of a function among them.
    fn declared(line: &str) -> Vec<&str> {
        let Some(at) = ["local function ", "function ", "local "]
            .iter()
            .find_map(|mark| Some(line.find(mark)? + mark.len()))
        else {
            return Vec::new();
        };
        let names = line[at..].split('=').next().unwrap_or_default();
        names.split(['(', ',', ')']).map(str::trim).collect()
    }

    /// The names that a shared file, or the constants, declare for others.
    fn provided(text: &str) -> BTreeSet<&str> {
        text.lines().filter(|line| line.starts_with("local ")).flat_map(declared).collect()
    }

    fn all_files() -> Vec<(String, &'static str)> {
        let scripts = Scripts::new(&Keys::default());
        let own = scripts.all().map(|script| (format!("{}.lua", script.name), script.body));
        let shared = SHARED.iter().map(|(name, text)| (format!("shared/{name}.lua"), *text));
        own.chain(shared).collect()
    }

    fn shared(name: &str) -> &'static str {
        SHARED.iter().find(|(shared, _)| *shared == name).expect(name).1
    }

    #[test]
    fn every_file_of_the_folder_is_in_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts");
        let listed: BTreeSet<String> = all_files().into_iter().map(|(file, _)| file).collect();
        let names = |folder: String, prefix: &str| -> Vec<String> {
            let files = std::fs::read_dir(folder).unwrap();
            let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            let scripts = names.filter(|name| name.strip_suffix(".lua").is_some());
            scripts.map(|name| format!("{prefix}{name}")).collect()
        };
        let mut found = names(folder.to_owned(), "");
        found.extend(names(format!("{folder}/shared"), "shared/"));
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), listed);
    }

    #[test]
    fn every_function_and_constant_of_a_script_comes_from_a_file_that_it_needs() {
        let constants = Keys::default().lua();
        let builtin = ["if", "and", "or", "not", "in", "return", "function", "while", "until"];
        let library =
            ["tonumber", "tostring", "type", "pairs", "ipairs", "unpack", "pcall", "error", "next"];
        for (file, text) in all_files() {
            let mut known: BTreeSet<&str> = provided(&constants);
            known.extend(builtin.iter().chain(&library).chain(&["KEYS", "ARGV"]));
            known.extend(text.lines().flat_map(declared));
            known.extend(needs(text).flat_map(|name| provided(shared(name))));
            known.extend(names_behind(RARELY, text).next().map(|_| "rarely"));
            for (before, word, after) in words(text) {
                let is_constant = word.len() > 1
                    && word.starts_with(|c: char| c.is_ascii_uppercase())
                    && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
                if before != '.' && (after == '(' || is_constant) {
                    assert!(known.contains(word), "{file} names {word}, which no need provides");
                }
            }
        }
    }

    #[test]
    fn every_script_stays_well_below_the_local_variables_that_lua_allows() {
        let locals = |text: &str| -> usize {
            let lines = text.lines().filter(|line| line.starts_with("local "));
            let names = |line: &str| line.split('=').next().unwrap_or_default().split(',').count();
            lines.map(|line| if line.contains("function ") { 1 } else { names(line) }).sum()
        };
        let mut too_many = Vec::new();
        for source in lua_sources(&Keys::default()) {
            let (often, rest) =
                source.text.split_once("function rarely()").unwrap_or((&source.text, ""));
            let (rare, body) = rest.split_once("made = {").unwrap_or_default();
            // Loops and the names in them count while they run.
            assert_eq!(source.text.contains(RARE_USE), !rest.is_empty(), "{}", source.name);
            for names in [locals(often) + locals(body), locals(rare)] {
                if names > 185 {
                    too_many.push(format!("{} has {names} of 200 local variables", source.name));
                }
            }
        }
        assert_eq!(too_many, [""; 0]);
    }

    #[test]
    fn function_of_a_rarely_needed_file_is_made_at_its_first_use() {
        for (file, text) in all_files() {
            let files: Vec<&str> = names_behind(RARELY, text).collect();
            let used: BTreeSet<&str> = rare_names(text).collect();
            let makes: BTreeSet<&str> =
                files.iter().flat_map(|name| provided(shared(name))).collect();
            assert!(used.is_subset(&makes), "{file} uses {used:?} of {files:?}");
            for name in files {
                let is_used = provided(shared(name)).iter().any(|name| used.contains(name));
                assert!(is_used, "{file} rarely needs {name}, but uses nothing of it");
            }
        }
        let sources = lua_sources(&Keys::default());
        let claim = sources.iter().find(|source| source.name == "claim").expect("listed");
        let place = |text: &str| claim.text.find(text).expect(text);
        let function = place("function rarely()")..place("made = {");
        assert!(function.contains(&place("-- file: shared/claim_limits.lua")));
        assert!(!function.contains(&place("-- file: shared/index.lua")));
        assert!(
            claim.text[function.end..]
                .starts_with("made = { claim_under_limits = claim_under_limits, ")
        );
    }

    #[test]
    fn every_need_of_a_script_is_used_and_comes_first() {
        for (file, text) in all_files() {
            let used: BTreeSet<&str> = words(text).into_iter().map(|(_, word, _)| word).collect();
            for need in needs(text) {
                let is_used = provided(shared(need)).iter().any(|name| used.contains(name));
                assert!(is_used, "{file} needs {need}, but uses nothing of it");
            }
            let mut needed = Vec::new();
            add_needs(text, &mut needed);
            let distinct: BTreeSet<&str> = needed.iter().map(|(name, _)| *name).collect();
            assert_eq!(distinct.len(), needed.len(), "{file}: {distinct:?}");
        }
    }

    #[test]
    fn files_stand_in_the_text_once_each_after_their_needs() {
        let sources = lua_sources(&Keys::default());
        let settle = sources.iter().find(|source| source.name == "settle").expect("listed");
        let files: Vec<&str> =
            settle.text.lines().filter_map(|line| line.strip_prefix(FILE)).collect();
        assert_eq!(files.first(), Some(&"proto/keys.rs"));
        assert_eq!(files.last(), Some(&"settle.lua"));
        let place = |name: &str| files.iter().position(|file| *file == name).expect("needed");
        assert!(place("shared/time.lua") < place("shared/index.lua"));
        assert_eq!(files.iter().collect::<BTreeSet<_>>().len(), files.len());
        assert!(settle.text.contains(shared("dependents")), "not as it stands on disk");
        assert!(settle.about.starts_with("Makes "), "{}", settle.about);
    }

    #[test]
    fn wrong_types_are_handled_from_the_first_function_of_a_script_on() {
        let handler = format!("{FILE}shared/wrong_type.lua");
        for source in lua_sources(&Keys::default()) {
            let files: Vec<&str> =
                source.text.lines().filter(|line| line.starts_with(FILE)).collect();
            let place = files.iter().position(|file| *file == handler);
            assert!(place.is_none_or(|place| place == 1), "{}: {files:?}", source.name);
        }
    }

    #[test]
    fn line_of_an_error_becomes_file_and_line() {
        let scripts = Scripts::new(&Keys::default());
        let text = scripts.settle.text();
        let line = 1 + text.lines().position(|line| line.starts_with("local now_us")).unwrap();
        let in_file = 1 + shared("time").lines().position(|l| l.contains("now_us")).unwrap();
        let error =
            format!("WRONGTYPE x script: {}, on @user_script:{line}.", scripts.settle.get_hash());
        let shown = scripts.with_files(&error);
        assert!(shown.ends_with(&format!("on @shared/time.lua:{in_file}.")), "{shown}");
        assert_eq!(scripts.with_files("user_script:1: of another"), "user_script:1: of another");
        assert_eq!(place("", 3), "line 3");
    }
}
