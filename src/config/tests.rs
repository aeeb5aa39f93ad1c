//! Tests of loading, checking and printing a configuration.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use toml::value::Value;

use super::*;

mod files;
mod generated;
mod rows;

const SHIPPED: &str = include_str!("../../etc/hero.toml");

fn read(text: &str) -> Result<Config, ConfigError> {
    Config::from_toml(Path::new("/etc/hero/hero.toml"), text)
}

fn refusal(text: &str) -> String {
    read(text).expect_err(text).to_string()
}

/// Returns the shipped file with every setting in force: `#key` loses its `#`, text (`# text`)
/// does not.
fn shipped_in_force() -> String {
    SHIPPED
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase()) => rest,
            _ => line,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the examples of the shipped file, which its text indents.
fn shipped_examples() -> String {
    SHIPPED.lines().filter_map(|line| line.strip_prefix("#     ")).collect::<Vec<_>>().join("\n")
}

/// Returns the path of every key, without the names that an operator chooses.
fn key_paths(text: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let table: toml::Table = toml::from_str(text).expect("TOML");
    collect_key_paths(&Value::Table(table), "", &mut paths);
    paths
}

fn collect_key_paths(value: &Value, path: &str, paths: &mut BTreeSet<String>) {
    if let Value::Table(table) = value {
        for (key, value) in table {
            let path = match path {
                "" => key.clone(),
                "limit" | "type" | "unit" => format!("{path}.*"),
                _ => format!("{path}.{key}"),
            };
            collect_key_paths(value, &path, paths);
        }
        return;
    }
    paths.insert(path.to_owned());
    for entry in value.as_array().into_iter().flatten() {
        collect_key_paths(entry, path, paths);
    }
}

#[test]
fn an_empty_file_is_the_defaults() {
    assert_eq!(read(""), Ok(Config::default()));
}

#[test]
fn the_shipped_file_is_the_defaults_commented_out_and_in_force() {
    assert_eq!(read(SHIPPED), Ok(Config::default()));
    let in_force = shipped_in_force();
    assert_ne!(in_force, SHIPPED);
    assert_eq!(read(&in_force), Ok(Config::default()));
}

#[test]
fn the_shipped_file_has_every_key_and_its_examples_are_legal() {
    let examples = read(&shipped_examples()).expect("the examples are legal");
    let every_key = key_paths(&examples.to_toml().expect("writable"));
    let mut documented = key_paths(&shipped_in_force());
    documented.extend(key_paths(&shipped_examples()));
    // The keys of notifications and webhooks are explained in the page; the file has examples.
    let has_row = |key: &&String| key.starts_with("notify.") || key.starts_with("hook.");
    let missing: Vec<_> = every_key.difference(&documented).filter(|key| !has_row(key)).collect();
    assert!(missing.is_empty(), "not in etc/hero.toml: {missing:?}");
    for key in [
        "unit.*.role",
        "unit.*.tasks",
        "unit.*.actors.group",
        "unit.*.actors.tasks",
        "limit.*.per",
        "limit.*.type",
        "limit.*.group",
        "limit.*.caller",
        "limit.*.key",
        "limit.*.running",
        "limit.*.rate",
    ] {
        assert!(every_key.contains(key), "{key} is not in the examples");
    }
    assert!(matches!(examples.unit("mixed"), Ok(Unit::Actors(actors)) if actors.len() == 2));
    assert_eq!(examples.unit("second"), Ok(Unit::Supervisor));
}

#[test]
fn shards_that_cannot_be_are_rejected_with_their_place() {
    let long = format!("[redis]\nnamespace = \"{}\"\nshards = 2", "n".repeat(63));
    for (text, message) in [
        ("[redis]\nshards = 0", "2:10: redis.shards must be from 1 to 256, not 0"),
        ("[redis]\nshards = 257", "2:10: redis.shards must be from 1 to 256, not 257"),
        (long.as_str(), "2:13: redis.namespace is too long: shard 1 adds its number to it"),
        (
            "[redis]\nshards = 3\nshard_urls = [\"redis://b\"]",
            "3:14: redis.shard_urls must have one url for each shard but the first, which is at \
             redis.url: 2, as redis.shards is 3",
        ),
        (
            "[redis]\nshard_urls = [\"redis://b\"]",
            "2:14: redis.shard_urls must have one url for each shard but the first, which is at \
             redis.url: 0, as redis.shards is 1",
        ),
        ("redis.serve = [0, 1]", "1:15: redis.serve has 1, but the shards are 0 to 0"),
        ("[redis]\nshards = 2\nserve = [2]", "3:9: redis.serve has 2, but the shards are 0 to 1"),
    ] {
        assert_eq!(refusal(text), format!("/etc/hero/hero.toml:{message}"), "{text}");
    }
    let url = refusal("[redis]\nshards = 2\nshard_urls = [\"http://u:hunter2@b\"]");
    assert!(url.starts_with("/etc/hero/hero.toml:3:14: redis.shard_urls "), "{url}");
    assert!(!url.contains("hunter2"), "{url}");
}

#[test]
fn unknown_keys_are_rejected_with_the_nearest_known() {
    for (text, message) in [
        ("[actor]\ntasksy = 4", "2:1: unknown key `tasksy` in [actor]; did you mean `tasks`?"),
        ("[actr]", "1:2: unknown key `actr`; did you mean `actor`?"),
        ("actor.leese = 1", "1:7: unknown key `leese` in [actor]; did you mean `lease`?"),
        (
            "[type.osis.limits]\n  dept = 1",
            "2:3: unknown key `dept` in [type.osis.limits]; did you mean `depth`?",
        ),
        (
            "[unit.a]\nactors = [{ tipe = \"osis\", instance = 1 }]",
            "2:13: unknown key `tipe` in [unit.a.actors[0]]; did you mean `type`?",
        ),
        (
            "[actor]\nzzz = 4",
            "2:1: unknown key `zzz` in [actor]; known are `tasks`, `heartbeat`, `lease`, \
             `drain_timeout`, `fair_every`, `load_max`, `memory_min`, `sandbox`, `labels`",
        ),
        (
            "[type.Bash]\nengine = \"command\"",
            "1:7: type.Bash: script type `Bash` is not legal: a lower-case letter, then at most \
             31 of a-z, 0-9 and _",
        ),
    ] {
        assert_eq!(refusal(text), format!("/etc/hero/hero.toml:{message}"), "{text}");
    }
}

#[test]
fn wrong_values_are_rejected_with_the_expected_form_and_their_place() {
    let duration = "expected a duration with its unit, such as \"15s\"";
    let size = "expected a size with its unit, such as \"1MiB\"";
    for (text, message) in [
        ("[actor]\nlease = 15", format!("2:9: actor.lease: {duration}")),
        ("[actor]\nlease = \"15\"", format!("2:9: actor.lease: {duration}")),
        ("[actor]\nlease = true", format!("2:9: actor.lease: {duration}")),
        ("[job]\nscript_size_max = 9.5", format!("2:19: job.script_size_max: {size}")),
        (
            "[actor]\nlease = \"15 sec\"",
            "2:9: actor.lease: expected a duration in ms, s, m, h or d, such as \"15s\"; did you mean s?"
                .to_owned(),
        ),
        (
            "[job]\ntimeout = \"99999999999999999999d\"",
            "2:11: job.timeout: expected a duration, but the number is too large".to_owned(),
        ),
        (
            "[actor]\ntasks = \"4\"",
            "2:9: actor.tasks: expected a whole number, 0 or more".to_owned(),
        ),
        ("[actor]\ntasks = -4", "2:9: actor.tasks: expected a whole number, 0 or more".to_owned()),
        (
            "[actor]\ntasks = 99999999999999999999",
            "2:9: actor.tasks: expected a whole number, but the number is too large".to_owned(),
        ),
        (
            "[job]\nretries = 99999999999",
            "2:11: job.retries: expected a whole number, but the number is too large".to_owned(),
        ),
        ("actor = 4", "1:9: actor: expected a table".to_owned()),
        ("[redis]\nurl = 6379", "2:7: redis.url: expected a string".to_owned()),
        ("[redis]\nusername = 1", "2:12: redis.username: expected a string".to_owned()),
        (
            "[type.osis]\nengine = \"oasis\"",
            "2:10: type.osis.engine: expected one of `osis`, `sal`, `heroscript`, `command`"
                .to_owned(),
        ),
        ("[type.osis]\nengine = 1", "2:10: type.osis.engine: expected a string".to_owned()),
        (
            "[type.python]\ncommand = \"python {script}\"",
            "2:11: type.python.command: expected an array, such as [\"…\"]".to_owned(),
        ),
        ("type = []", "1:8: type: expected a table".to_owned()),
        ("[unit]\na = 1", "2:5: unit.a: expected a table".to_owned()),
        ("redis = [\"redis://x\"]", "1:9: redis: expected a table".to_owned()),
        ("[secrets]\nallow.db = [\"python\"]", "2:12: secrets.allow.db: expected a table".to_owned()),
        ("[limit]\na = []", "2:5: limit.a: expected a table".to_owned()),
        ("[type]\nx = [\"command\"]", "2:5: type.x: expected a table".to_owned()),
        ("[job]\nretries = 1\nretries = 2", "3:1: duplicate key `retries`".to_owned()),
        (
            "[actor]\nlease = 15s",
            "2:9: expected a value; text is written in quotes, such as \"text\"".to_owned(),
        ),
        ("[actor]\ntasks = 04", "2:9: unexpected leading zero".to_owned()),
    ] {
        assert_eq!(refusal(text), format!("/etc/hero/hero.toml:{message}"), "{text}");
    }
}

#[test]
fn a_file_that_is_not_toml_is_rejected_with_line_and_column() {
    let message = refusal("[actor]\n# ä\ntasks = \n");
    assert!(message.starts_with("/etc/hero/hero.toml:3:"), "{message}");
    assert!(!message.contains('\n'), "{message}");
}

#[test]
fn columns_count_characters() {
    assert!(refusal("[unit.\"ä\"]\nactors = [{ type = \"ä\", instance = 1}]").contains(":2:20: "));
    let message = refusal("job = { log_dir = \"/ä\", x = 1 }");
    assert!(message.contains(":1:25: unknown key `x`"), "{message}");
}

#[test]
fn no_message_repeats_a_misplaced_secret() {
    let secret = "redis://:hunter2@host";
    for text in [
        format!("redis = \"{secret}\""),
        format!("[redis]\nurl = [\"{secret}\"]"),
        format!("[redis]\nurl = \"s{secret}\""),
        format!("[redis]\nurl = \"redis+sentinel:{secret}\""),
        format!("[redis]\nurl = \"{secret}"),
        format!("[redis]\nnamespace = \"{secret}\""),
        format!("[redis]\npassword_file = \"{secret}\""),
        format!("[redis]\nurll = \"{secret}\""),
        format!("[actor]\ntasks = \"{secret}\"\nlease = 1"),
        format!("[actor]\nlease = \"{secret}\""),
        format!("[supervisor]\nmigration = \"{secret}\""),
    ] {
        let error = read(&text).expect_err(&text);
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn a_known_type_keeps_the_keys_that_a_file_leaves_out() {
    let config = read(
        "[type.python]\ncommand = [\"/opt/python\", \"-I\", \"{script}\"]\n\
         [type.osis.limits]\ndepth = 64\n\
         [type.bash]\ncommand = [\"bash\", \"{script}\"]\n\
         [type.awk]\nengine = \"command\"\ncommand = [\"awk\", \"-f\", \"{script}\"]\n\
         [type.safe]\nengine = \"osis\"\n\
         [type.v]\nengine = \"sal\"\n",
    )
    .expect("legal");
    let of = |name: &str| config.types[&name.parse().expect("a type")].clone();
    assert_eq!(of("python").engine, EngineKind::Command);
    assert_eq!(of("python").command, ["/opt/python", "-I", "{script}"]);
    assert_eq!(of("python").extension, ".py");
    assert_eq!(of("osis").limits, RhaiLimits { depth: 64, ..RhaiLimits::default() });
    assert_eq!(of("sal").limits, RhaiLimits::default());
    assert_eq!((of("bash").extension, of("awk").extension), (".sh".to_owned(), String::new()));
    assert_eq!(of("safe").engine, EngineKind::Osis);
    assert_eq!((of("v").engine, of("v").command), (EngineKind::Sal, Vec::<String>::new()));
}

#[test]
fn keys_of_another_engine_are_rejected() {
    let command = "is for engine = \"command\" only";
    for (text, message) in [
        ("[type.osis]\ncommand = [\"x\"]", format!("2:11: type.osis.command {command}")),
        ("[type.sal]\nextension = \".x\"", format!("2:13: type.sal.extension {command}")),
        (
            "[type.python.limits]\ndepth = 1",
            "1:1: type.python.limits is for engine = \"osis\", \"sal\" and \"heroscript\" only"
                .to_owned(),
        ),
        (
            "[type.ksh]\ncommand = [\"ksh\", \"{script}\"]",
            "1:1: type.ksh needs an engine: \"osis\", \"sal\", \"heroscript\" or \"command\""
                .to_owned(),
        ),
        (
            "\n[type.ksh]\nengine = \"command\"",
            "2:1: type.ksh needs a command, such as [\"/bin/bash\", \"{script}\"]".to_owned(),
        ),
    ] {
        assert_eq!(refusal(text), format!("/etc/hero/hero.toml:{message}"), "{text}");
    }
}

#[test]
fn a_printed_configuration_reads_back() {
    for text in [String::new(), shipped_examples(), shipped_in_force()] {
        let config = read(&text).expect("legal");
        let printed = config.to_toml().expect("writable");
        assert_eq!(read(&printed), Ok(config), "{printed}");
    }
}

#[test]
fn a_printed_configuration_has_no_password() {
    let config = read("[redis]\nurl = \"redis://me:hunter2@host/1\"").expect("legal");
    let printed = config.to_toml().expect("writable");
    assert!(printed.contains("redis://me:***@host/1"), "{printed}");
    assert!(!format!("{printed} {config:?}").contains("hunter2"));
    assert_eq!(config.redis.url.expose(), "redis://me:hunter2@host/1");
}
