//! docs/hero.schema.json takes what hero.toml takes, and rejects mistakes where they stand.

use hero::config::Config;
use serde_json::Value;

use crate::support::{fault_by_schema, needs_json_schema};

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/hero.schema.json");
const SHIPPED: &str = include_str!("../../etc/hero.toml");

fn fault(toml: &str) -> Option<String> {
    let table: toml::Table = toml::from_str(toml).expect("TOML");
    fault_by_schema(SCHEMA, &serde_json::to_value(table).expect("JSON"))
}

/// Returns the lines of the shipped file that begin so, without that.
fn lines_after(mark: &str) -> String {
    SHIPPED.lines().filter_map(|line| line.strip_prefix(mark)).collect::<Vec<_>>().join("\n")
}

#[test]
fn schema_takes_every_default_and_example_and_names_mistakes() {
    if !needs_json_schema() {
        return;
    }
    let defaults = Config::default().to_toml().expect("writable");
    assert_eq!(fault(&defaults), None);
    assert_eq!(fault(&lines_after("#     ")), None);
    for (toml, said) in [
        ("job.timeuot = \"1s\"", "timeuot"),
        ("job.timeout = 60", "60"),
        ("redis.shards = 300", "300"),
        ("job.log_dir = \"logs\"", "logs"),
        ("type.x.engine = \"java\"", "java"),
        ("type.x.sandbox.open_files = 1", "open_files"),
        ("unit.x.actors = [{ instance = 0 }]", "instance"),
        ("limit.x.runing = 1", "runing"),
    ] {
        let fault = fault(toml).unwrap_or_else(|| panic!("{toml} was accepted"));
        assert!(fault.contains(said), "{toml}: {fault}");
    }
}

#[test]
fn shipped_file_names_its_schema_for_editors() {
    let line = lines_after("#:schema ");
    assert_eq!(line, "file:///usr/share/hero/hero.schema.json");
    let installed = include_str!("../../packaging/debian/hero.install");
    assert!(installed.lines().any(
        |line| line.starts_with("docs/hero.schema.json ") && line.ends_with(" usr/share/hero")
    ));
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(SCHEMA).expect("a file")).expect("JSON");
    assert!(schema.pointer("/properties/redis/properties/url/description").is_some());
}
