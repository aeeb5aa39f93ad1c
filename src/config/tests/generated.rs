//! Configurations that nobody has written by hand, legal and otherwise.

use proptest::prelude::*;

use super::*;
use crate::proto::target::Group;

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
            let dead_letters = DeadLetters::All;
            let value = if is_command {
                let command = vec![word, "{script}".to_owned()];
                let open_files = 16 + operations % 1000;
                TypeConfig {
                    engine: EngineKind::Command,
                    command,
                    extension,
                    sandbox: SandboxConfig { open_files, ..SandboxConfig::default() },
                    dead_letters,
                    may_submit: vec!["python".to_owned(), "bash:web".to_owned()],
                    require_signature: vec!["ops".parse().expect("a name")],
                    before: "/etc/hero/hooks/ä".into(),
                    hook_timeout: Duration::from_millis(10 + operations % 100_000),
                    expect_within: Duration::from_millis(operations % 100_000),
                    ..TypeConfig::default()
                }
            } else {
                let limits = RhaiLimits { operations, depth, ..RhaiLimits::default() };
                TypeConfig {
                    engine: EngineKind::Sal,
                    limits,
                    dead_letters,
                    ..TypeConfig::default()
                }
            };
            config.types.insert(name.parse().expect("a type"), value);
            let public_key = format!("{}=", "A".repeat(43)).parse().expect("a key");
            config.keys.insert("ops".parse().expect("a name"), KeyConfig { public_key });
        }
        for (name, (tasks, instances)) in units {
            let actors = instances.into_iter().map(|number| UnitActor {
                script_type: "osis".parse().expect("a type"),
                group: Group::default(),
                instance: i64::from(number).try_into().expect("an instance"),
                tasks,
            });
            let role = tasks.map(|_| Role::Actor);
            config.units.insert(
                name,
                UnitConfig { role, tasks, actors: actors.collect(), ..UnitConfig::default() },
            );
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
