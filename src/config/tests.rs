//! The configuration as a whole: from files to what is in force, and back.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;
use toml::value::Value;

use super::*;
use crate::proto::target::Group;

const SHIPPED: &str = include_str!("../../etc/hero.toml");

fn read(text: &str) -> Result<Config, ConfigError> {
    Config::from_toml(Path::new("/etc/hero/hero.toml"), text)
}

fn refusal(text: &str) -> String {
    read(text).expect_err(text).to_string()
}

/// A folder with a `hero.toml` and its drop-ins.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new(main: &str, drop_ins: &[(&str, &str)]) -> Self {
        let files = Self { folder: tempfile::tempdir().expect("a folder") };
        fs::write(files.main(), main).expect("written");
        fs::create_dir(files.drop_in("")).expect("made");
        for (name, text) in drop_ins {
            fs::write(files.drop_in(name), text).expect("written");
        }
        files
    }

    fn main(&self) -> PathBuf {
        self.folder.path().join("hero.toml")
    }

    fn drop_in(&self, name: &str) -> PathBuf {
        self.folder.path().join("hero.toml.d").join(name)
    }

    fn load(&self) -> Result<Config, ConfigError> {
        Config::load(Some(&self.main()))
    }

    fn refusal(&self) -> String {
        self.load().expect_err("refused").to_string()
    }
}

/// The shipped file with every setting in force: `#key` loses its `#`, prose (`# text`) does not.
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

/// The examples of the shipped file, which its prose indents.
fn shipped_examples() -> String {
    SHIPPED.lines().filter_map(|line| line.strip_prefix("#     ")).collect::<Vec<_>>().join("\n")
}

/// The path of every key, without the names that an operator chooses.
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
    let missing: Vec<_> = every_key.difference(&documented).collect();
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
        assert!(every_key.contains(key), "{key} is in none of the examples");
    }
    assert!(matches!(examples.unit("mixed"), Ok(Unit::Actors(actors)) if actors.len() == 2));
    assert_eq!(examples.unit("second"), Ok(Unit::Supervisor));
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_known() {
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
             `drain_timeout`, `fair_every`, `load_max`, `memory_min`, `sandbox`",
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
fn wrong_values_are_told_what_is_expected_where_they_stand() {
    let duration = "expected a duration with its unit, such as \"15s\"";
    let size = "expected a size with its unit, such as \"1MiB\"";
    for (text, message) in [
        ("[actor]\nlease = 15", format!("2:9: actor.lease: {duration}")),
        ("[actor]\nlease = \"15\"", format!("2:9: actor.lease: {duration}")),
        ("[actor]\nlease = true", format!("2:9: actor.lease: {duration}")),
        ("[job]\nscript_size_max = 9.5", format!("2:19: job.script_size_max: {size}")),
        (
            "[actor]\nlease = \"15 sec\"",
            "2:9: actor.lease: expected a duration in ms, s, m, h or d, such as \"15s\"".to_owned(),
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
        ("actor = 4", "1:9: actor: expected a table".to_owned()),
        ("[redis]\nurl = 6379", "2:7: redis.url: expected a string".to_owned()),
        ("[redis]\nusername = 1", "2:12: redis.username: expected a string".to_owned()),
        (
            "[type.osis]\nengine = \"oasis\"",
            "2:10: type.osis.engine: expected one of `osis`, `sal`, `command`".to_owned(),
        ),
        ("[type.osis]\nengine = 1", "2:10: type.osis.engine: expected a string".to_owned()),
        (
            "[type.python]\ncommand = \"python {script}\"",
            "2:11: type.python.command: expected an array, such as [\"…\"]".to_owned(),
        ),
        ("type = []", "1:8: type: expected a table".to_owned()),
        ("[unit]\na = 1", "2:5: unit.a: expected a table".to_owned()),
        ("[job]\nretries = 1\nretries = 2", "3:1: duplicate key".to_owned()),
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
fn a_file_that_is_no_toml_is_refused_with_line_and_column() {
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
fn no_message_repeats_a_secret_in_the_wrong_place() {
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
fn keys_that_mean_nothing_to_the_engine_are_refused() {
    let command = "means nothing here: it is for engine = \"command\"";
    for (text, message) in [
        ("[type.osis]\ncommand = [\"x\"]", format!("2:11: type.osis.command {command}")),
        ("[type.sal]\nextension = \".x\"", format!("2:13: type.sal.extension {command}")),
        (
            "[type.python.limits]\ndepth = 1",
            "1:1: type.python.limits means nothing here: it is for engine = \"osis\" and \"sal\""
                .to_owned(),
        ),
        (
            "[type.ksh]\ncommand = [\"ksh\", \"{script}\"]",
            "1:1: type.ksh needs an engine: \"osis\", \"sal\" or \"command\"".to_owned(),
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
fn drop_ins_override_key_by_key_in_the_order_of_their_names() {
    let files = Files::new(
        "[actor]\ntasks = 2\nlease = \"20s\"\n[type.python]\ncommand = [\"a\", \"b\", \"{script}\"]\n",
        &[
            ("20-b.toml", "actor.tasks = 5\n"),
            ("10-a.toml", "[actor]\ntasks = 3\nheartbeat = \"2s\"\n"),
            ("30-c.toml", "[type.python]\ncommand = [\"c\", \"{script}\"]\n"),
            ("40-d.toml.bak", "not read"),
            (".50-e.toml", "not read"),
        ],
    );
    let config = files.load().expect("legal");
    assert_eq!(config.actor.tasks, 5);
    assert_eq!(config.actor.heartbeat, Duration::from_secs(2));
    assert_eq!(config.actor.lease, Duration::from_secs(20));
    let python = &config.types[&"python".parse().expect("a type")];
    assert_eq!(python.command, ["c", "{script}"]);
}

#[test]
fn an_error_names_the_file_that_is_to_blame() {
    let files = Files::new("[actor]\ntasks = 2\n", &[("10.toml", "\n[actor]\ntask = 1\n")]);
    let place = format!("{}:3:1: ", files.drop_in("10.toml").display());
    let unknown = "unknown key `task` in [actor]; did you mean `tasks`?";
    assert_eq!(files.refusal(), format!("{place}{unknown}"));

    let files = Files::new("[actor]\nlease = \"9s\"\n", &[("10.toml", "actor.heartbeat = \"8s\"")]);
    let place = format!("{}:1:19: ", files.drop_in("10.toml").display());
    assert!(files.refusal().starts_with(&place), "{}", files.refusal());

    let files = Files::new("[actor]\nlease = \"9s\"\n", &[("10.toml", "[job]\nretries = 1\n")]);
    let place = format!("{}:2:9: actor.heartbeat ", files.main().display());
    assert!(files.refusal().starts_with(&place), "{}", files.refusal());
}

#[test]
fn a_type_may_be_spread_over_files() {
    let files = Files::new(
        "[type.bash]\nengine = \"command\"\n",
        &[("bash.toml", "[type.bash]\ncommand = [\"bash\", \"{script}\"]\n")],
    );
    assert!(files.load().is_ok());
}

#[test]
fn without_the_default_file_the_defaults_and_its_drop_ins_count() {
    let files = Files::new("", &[("10.toml", "actor.tasks = 7")]);
    fs::remove_file(files.main()).expect("removed");
    let config = Config::load_from(&files.main(), true).expect("legal");
    let actor = ActorConfig { tasks: 7, ..ActorConfig::default() };
    assert_eq!(config, Config { actor, ..Config::default() });

    fs::remove_dir_all(files.drop_in("")).expect("removed");
    assert_eq!(Config::load_from(&files.main(), true), Ok(Config::default()));
    assert!(Config::load_from(&files.main(), false).is_err());
}

#[test]
fn what_cannot_be_read_is_named() {
    let files = Files::new("", &[]);
    let missing = files.folder.path().join("none.toml");
    assert_eq!(
        Config::load(Some(&missing)).expect_err("missing").to_string(),
        format!("reading the configuration {}: no such file", missing.display())
    );
    assert_eq!(
        Config::load(Some(files.folder.path())).expect_err("a folder").to_string(),
        format!("reading the configuration {}: is a folder", files.folder.path().display())
    );
    fs::write(files.main(), " ".repeat((1 << 20) + 1)).expect("written");
    assert!(files.refusal().ends_with("hero.toml: larger than 1MiB"), "{}", files.refusal());
    fs::write(files.main(), b"[actor]\n# \xc3\xa4 \xff").expect("written");
    assert!(files.refusal().ends_with("hero.toml:2:5: not UTF-8 text"), "{}", files.refusal());
}

#[test]
fn what_is_printed_reads_back() {
    for text in [String::new(), shipped_examples(), shipped_in_force()] {
        let config = read(&text).expect("legal");
        let printed = config.to_toml().expect("writable");
        assert_eq!(read(&printed), Ok(config), "{printed}");
    }
}

#[test]
fn what_is_printed_holds_no_password() {
    let config = read("[redis]\nurl = \"redis://me:hunter2@host/1\"").expect("legal");
    let printed = config.to_toml().expect("writable");
    assert!(printed.contains("redis://me:***@host/1"), "{printed}");
    assert!(!format!("{printed} {config:?}").contains("hunter2"));
    assert_eq!(config.redis.url.expose(), "redis://me:hunter2@host/1");
}

/// Configurations that are legal by construction.
fn configs() -> impl Strategy<Value = Config> {
    let job = (1u64..100_000, 0u64..100_000, 0u32..=1000, 1u64..=512 << 20, "/[a-zä]{1,9}");
    let actor = (10u64..100_000, 1u64..1_000_000, 1usize..=1024, 0u64..86_400_000);
    let types = prop::collection::btree_map(
        "x[a-z0-9_]{0,9}",
        ("[a-z/\"\\\\ä]{1,9}", "(\\.[a-z]{1,5})?", any::<bool>(), 1usize..=512, 0u64..1 << 60),
        0..4,
    );
    let units = prop::collection::btree_map(
        "mixed[a-z.]{0,9}",
        (prop::option::of(1usize..=1024), prop::collection::btree_set(1u16.., 1..4)),
        0..4,
    );
    (job, actor, types, units).prop_map(|(job, actor, types, units)| {
        let mut config = Config::default();
        config.job.timeout = Duration::from_millis(job.0);
        config.job.timeout_max = Duration::from_millis(job.0 + job.1);
        config.job.retries = job.2;
        config.job.output_size_max = job.3;
        config.job.log_dir = job.4.into();
        config.actor.heartbeat = Duration::from_millis(actor.0);
        config.actor.lease = Duration::from_millis(2 * actor.0 + actor.1.max(10));
        config.actor.tasks = actor.2;
        config.actor.drain_timeout = Duration::from_millis(actor.3);
        for (name, (word, extension, is_command, depth, operations)) in types {
            let sandbox = SandboxConfig::default();
            let value = if is_command {
                let command = vec![word, "{script}".to_owned()];
                let limits = RhaiLimits::default();
                let options = CommandOptions::default();
                let sandbox = SandboxConfig { open_files: 16 + operations % 1000, ..sandbox };
                let engine = EngineKind::Command;
                TypeConfig { engine, command, extension, options, limits, sandbox }
            } else {
                let limits = RhaiLimits { operations, depth, ..RhaiLimits::default() };
                let (command, extension) = (Vec::new(), String::new());
                let (engine, options) = (EngineKind::Sal, CommandOptions::default());
                TypeConfig { engine, command, extension, options, limits, sandbox }
            };
            config.types.insert(name.parse().expect("a type"), value);
        }
        for (name, (tasks, instances)) in units {
            let actors = instances.into_iter().map(|number| UnitActor {
                script_type: "osis".parse().expect("a type"),
                group: Group::default(),
                instance: number.try_into().expect("an instance"),
                tasks,
            });
            let role = tasks.map(|_| Role::Actor);
            config.units.insert(name, UnitConfig { role, tasks, actors: actors.collect() });
        }
        config
    })
}

/// Text that is nearly a configuration, so that it gets past the parser.
fn nearly_toml() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "[redis]\n",
        "[actor]\n",
        "[job]\n",
        "[type.osis]\n",
        "[type.x]\n",
        "[type.osis.limits]\n",
        "[unit.a]\n",
        "[unit.osis-default-1]\n",
        "[[unit.b]]\n",
        "tasks",
        "lease",
        "heartbeat",
        "engine",
        "command",
        "actors",
        "type",
        "instance",
        "group",
        "role",
        "url",
        "limits",
        "depth",
        " = ",
        " = ",
        " = ",
        "\n",
        "\n",
        "[",
        "]",
        "{ ",
        " }",
        ", ",
        ".",
        "\"",
        "\"osis\"",
        "\"command\"",
        "\"{script}\"",
        "\"supervisor\"",
        "\"15s\"",
        "\"1MiB\"",
        "-1",
        "0",
        "1",
        "4",
        "99999999999999999999",
        "true",
        "1979-05-27",
        "nan",
        "ä",
        "\u{feff}",
        "\0",
        "'''",
        "\\",
    ]);
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn any_text_is_a_configuration_or_an_error_of_one_line(
        text in prop_oneof![".{0,200}", "(?s).{0,200}", nearly_toml()],
    ) {
        match read(&text) {
            Ok(config) => {
                let printed = config.to_toml().expect("writable");
                if !printed.contains("***") {
                    prop_assert_eq!(read(&printed), Ok(config));
                }
            }
            Err(error) => {
                let message = error.to_string();
                prop_assert!(message.starts_with("/etc/hero/hero.toml"), "{}", message);
                prop_assert!(!message.contains(char::is_control), "{}", message);
            }
        }
    }

    #[test]
    fn a_damaged_file_is_a_configuration_or_an_error(
        at in any::<prop::sample::Index>(),
        removed in 0usize..20,
        added in "(?s).{0,3}",
    ) {
        let mut characters: Vec<char> = shipped_in_force().chars().collect();
        let at = at.index(characters.len());
        let end = (at + removed).min(characters.len());
        characters.splice(at..end, added.chars());
        let text: String = characters.into_iter().collect();
        if let Err(error) = read(&text) {
            prop_assert!(error.to_string().starts_with("/etc/hero/hero.toml"));
        }
    }

    #[test]
    fn every_legal_configuration_reads_back_as_it_is_printed(config in configs()) {
        let printed = config.to_toml().expect("writable");
        prop_assert_eq!(read(&printed), Ok(config), "{}", printed);
    }
}
