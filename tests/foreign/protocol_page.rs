//! The page that teaches the protocol: its session runs as it stands there, and it names every key and
//! every field.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use hero::proto::job::SETTINGS;
use hero::proto::keys::Keys;
use hero::proto::pattern;

use crate::support::{Hero, Redis};

const PAGE: &str = include_str!("../../docs/protocol.md");

/// One command of the session, and what `redis-cli` prints.
struct Step {
    typed: String,
    printed: String,
}

fn session() -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in PAGE.lines() {
        match line {
            "```session" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match (line.strip_prefix("> "), steps.last_mut()) {
                (Some(typed), _) => {
                    steps.push(Step { typed: typed.to_owned(), printed: String::new() });
                }
                (None, Some(step)) => writeln!(step.printed, "{line}").expect("a text"),
                (None, None) => panic!("the session begins with output"),
            },
        }
    }
    steps
}

/// Types a command at `redis-cli`, as at a terminal.
#[expect(clippy::disallowed_methods, reason = "tests start the programs they test against")]
fn type_at_redis_cli(redis: &Redis, typed: &str) -> String {
    let mut cli = Command::new("redis-cli")
        .arg("-s")
        .arg(redis.folder().join("redis.sock"))
        .arg("--no-raw")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("redis-cli is installed");
    let mut input = cli.stdin.take().expect("a pipe");
    writeln!(input, "{typed}").expect("it reads");
    drop(input);
    let output = cli.wait_with_output().expect("it ends");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns whether a text is the expected one; there `…` is any text.
fn is_like(expected: &str, text: &str) -> bool {
    pattern::matches(&expected.replace('…', "*"), text)
}

/// The JSON object in a line such as `2) "{\"a\":1}"`: the order of its members means nothing.
fn object(line: &str) -> Option<BTreeMap<String, String>> {
    let quoted = line.get(line.find('"')?..)?;
    let text: String = serde_json::from_str(quoted).ok()?;
    serde_json::from_str(&text).ok()
}

fn agrees(expected: &str, line: &str) -> bool {
    let (Some(expected), Some(found)) = (object(expected), object(line)) else {
        return is_like(expected, line);
    };
    let is_same = |(name, value): (&String, &String)| {
        found.get(name).is_some_and(|other| is_like(value, other))
    };
    expected.len() == found.len() && expected.iter().all(is_same)
}

#[test]
fn the_session_of_the_protocol_page_runs_line_by_line() {
    let redis = Redis::start();
    let queues = r#"[{ legacy = "hero:work_queue:w1", type = "osis" }]"#;
    let hero = Hero::on(&redis)
        .set("supervisor.migration", "\"dual\"")
        .set("supervisor.legacy_queues", queues)
        .set("supervisor.rhailib_circles", r#"[{ circle = "main", type = "osis" }]"#);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("osis-default-1").start());
    let steps = session();
    assert!(steps.len() > 30, "only {} commands were found", steps.len());
    for Step { typed, printed } in steps {
        let found = type_at_redis_cli(&redis, &typed);
        let same = printed.lines().count() == found.lines().count()
            && std::iter::zip(printed.lines(), found.lines()).all(|(a, b)| agrees(a, b));
        assert!(same, "> {typed}\nthe page says\n{printed}redis-cli printed\n{found}");
    }
}

#[test]
fn the_protocol_page_names_every_key_family() {
    let constants = Keys::default().lua();
    let spelled = constants.lines().filter_map(|line| line.split('\'').nth(1));
    let families: BTreeSet<&str> =
        spelled.filter(|key| key.contains(':') && *key != "hero:").collect();
    assert!(families.len() > 40, "{families:?}");
    let missing: Vec<_> =
        families.iter().filter(|family| !PAGE.contains(&format!("`{family}"))).collect();
    assert!(missing.is_empty(), "docs/protocol.md does not name {missing:?}");
}

#[test]
fn the_protocol_page_names_every_field_of_a_job() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let record = std::fs::read_to_string(format!("{source}/proto/job/record.rs")).expect("a file");
    let (_, own) = record.split_once("\njob! {\n").expect("the list of fields");
    let (own, _) = own.split_once("\n}").expect("its end");
    let own = own.lines().filter(|line| !line.trim_start().starts_with("///"));
    let mut fields: BTreeSet<String> =
        own.filter_map(|line| Some(line.trim().split_once(':')?.0.to_owned())).collect();
    fields.extend(SETTINGS.iter().map(|setting| setting.field.to_owned()));
    fields.extend(["status", "output"].map(ToOwned::to_owned));
    // The fields that scripts alone write.
    for folder in ["store/scripts", "store/scripts/shared"] {
        for entry in std::fs::read_dir(format!("{source}/{folder}")).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|end| end != "lua") {
                continue;
            }
            let text = std::fs::read_to_string(path).expect("a file");
            for (at, _) in text.match_indices("JOB .. ") {
                let rest = text[at + "JOB .. ".len()..].split_once(", '");
                let Some((of, rest)) = rest else { continue };
                if !of.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                    continue;
                }
                fields.extend(rest.split_once('\'').map(|(name, _)| name.to_owned()));
            }
        }
    }
    fields.retain(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
    fields.remove("");
    assert!(fields.len() > 40, "{fields:?}");
    let missing: Vec<_> =
        fields.iter().filter(|field| !PAGE.contains(&format!("`{field}`"))).collect();
    assert!(missing.is_empty(), "docs/protocol.md does not name {missing:?}");
}
