//! Files and their drop-ins, as they become one configuration.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

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
fn drop_ins_of_a_file_are_in_force_under_each_of_its_links_below_those_of_the_link() {
    let files = Files::new(
        "actor.tasks = 2\n",
        &[("10.toml", "[actor]\ntasks = 3\n[redis]\nusername = \"client\"\n")],
    );
    let link = files.folder.path().join("actor.toml");
    std::os::unix::fs::symlink("hero.toml", &link).expect("linked");
    let of_link = || Config::load(Some(&link)).expect("legal");
    assert_eq!(of_link(), files.load().expect("legal"));
    let own = files.folder.path().join("actor.toml.d");
    fs::create_dir(&own).expect("made");
    fs::write(own.join("redis.toml"), "redis.username = \"actor\"\n").expect("written");
    let config = of_link();
    assert_eq!((config.actor.tasks, config.redis.username.as_deref()), (3, Some("actor")));
    assert_eq!(files.load().expect("legal").redis.username.as_deref(), Some("client"));
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
        format!("cannot read the configuration {}: no such file", missing.display())
    );
    assert_eq!(
        Config::load(Some(files.folder.path())).expect_err("a folder").to_string(),
        format!("cannot read the configuration {}: is a folder", files.folder.path().display())
    );
    fs::write(files.main(), " ".repeat((1 << 20) + 1)).expect("written");
    assert!(
        files.refusal().ends_with("hero.toml: larger than the limit of 1MiB"),
        "{}",
        files.refusal()
    );
    fs::write(files.main(), b"[actor]\n# \xc3\xa4 \xff").expect("written");
    assert!(files.refusal().ends_with("hero.toml:2:5: not UTF-8 text"), "{}", files.refusal());
}
