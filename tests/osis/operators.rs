//! The command `hero osis`.

use serde_json::Value;

use crate::support::{Hero, Redis};

fn world() -> (Redis, Hero) {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("osis.index.person", "[\"age\"]");
    (redis, hero)
}

const LINES: &str = r#"{"context":"","type":"person","object":{"age":30,"created_at":"2026-01-31T12:00:00.000Z","id":"ann","name":"A\"nn"}}
{"context":"work: x","type":"person","object":{"id":"bob","tags":[1,1.5,null]}}

{"type":"thing","object":{"id":"é"}}
"#;

#[test]
fn exported_objects_can_be_imported_again() {
    let (_redis, hero) = world();
    hero.run_with_input(&["osis", "import"], LINES).code(0).stdout("3 imported\n");
    let exported = hero.run(&["osis", "export"]).code(0).stdout;
    assert_eq!(exported.lines().count(), 3);
    assert!(exported.contains("\"created_at\":\"2026-01-31T12:00:00.000Z\""), "{exported}");
    let (_other, second) = world();
    second.run_with_input(&["osis", "import", "-"], &exported).code(0).stdout("3 imported\n");
    let untimed = |text: &str| -> Vec<Value> {
        let strip = |line: &str| {
            let mut line: Value = serde_json::from_str(line).expect("JSON");
            for own in ["modified_at", "created_at"] {
                line["object"].as_object_mut().expect("a map").remove(own);
            }
            line
        };
        text.lines().map(strip).collect()
    };
    let again = second.run(&["osis", "export"]).code(0).stdout;
    assert_eq!(untimed(&again), untimed(&exported));
    second.run(&["osis", "export", "thing"]).code(0);
}

#[test]
fn objects_are_listed_found_shown_and_deleted() {
    let (_redis, hero) = world();
    hero.run_with_input(&["osis", "import"], LINES).code(0);
    hero.run(&["osis", "list"]).code(0).stdout(
        "CONTEXT  TYPE    OBJECTS\n\
         -        person        1\n\
         -        thing         1\n\
         work: x  person        1\n",
    );
    let shown = hero.run(&["osis", "get", "person", "bob", "--context", "work: x"]).code(0).stdout;
    let shown: Value = serde_json::from_str(&shown).expect("one JSON document");
    assert_eq!((&shown["tags"][1], &shown["version"]), (&1.5.into(), &1.into()));
    hero.run(&["osis", "get", "person", "bob"]).code(66).says("no such object: person bob");
    for (query, count) in [("age > 29", 1), ("age > 30", 0)] {
        let found = hero.run(&["--json", "osis", "list", "person", "--find", query]).code(0).stdout;
        let found: Value = serde_json::from_str(&found).expect("one JSON document");
        assert_eq!(found["objects"].as_array().map(Vec::len), Some(count), "{query}");
    }
    hero.run(&["osis", "list", "person", "--find", "age >"]).code(65).says("query, column 6");
    hero.run(&["osis", "list", "person", "--find", "name = 'x'"])
        .code(65)
        .says("no index on person.name");
    hero.run(&["osis", "delete", "person", "ann", "nobody"])
        .code(66)
        .stdout("1 deleted\n")
        .says("no such object: person nobody");
    hero.run(&["osis", "list", "person"]).code(0).stdout("ID  VERSION  MODIFIED  OBJECT\n");
}

#[test]
fn list_continues_after_the_previous_page() {
    let (_redis, hero) = world();
    let lines: Vec<String> =
        (0..5).map(|n| format!("{{\"type\":\"t\",\"object\":{{\"id\":\"{n}\"}}}}\n")).collect();
    hero.run_with_input(&["osis", "import"], &lines.concat()).code(0);
    let first = hero.run(&["osis", "list", "t", "--limit", "3"]).code(0);
    let first = first.says("more: hero osis list t --limit 3 --after 2");
    assert_eq!(first.stdout.lines().count(), 4);
    let last = hero.run(&["osis", "list", "t", "--limit", "3", "--after", "2"]).code(0);
    assert_eq!((last.stdout.lines().count(), last.stderr.as_str()), (3, ""));
}

#[test]
fn invalid_line_is_rejected_with_its_number() {
    let (_redis, hero) = world();
    for (line, said) in [
        ("{", "line 2: EOF while parsing"),
        ("{\"type\":\"a b\",\"object\":{}}", "line 2: object type `a b` is not legal"),
        ("{\"type\":\"t\",\"object\":{}}", "line 2: its id is not text"),
        ("{\"type\":\"t\",\"object\":{\"id\":\"a\"},\"x\":1}", "line 2: unknown field `x`"),
    ] {
        let text = format!("{{\"type\":\"t\",\"object\":{{\"id\":\"1\"}}}}\n{line}\n");
        hero.run_with_input(&["osis", "import"], &text).code(65).says(said);
    }
    hero.run(&["osis", "import", "no such file"]).code(66).says("no such file: no such file");
}

#[test]
fn indexes_are_rebuilt_on_demand() {
    let (redis, hero) = world();
    hero.run_with_input(&["osis", "import"], LINES).code(0);
    let later = Hero::on(&redis).set("osis.index.person", "[\"name\"]");
    later.run(&["osis", "reindex"]).code(0).stdout(
        "CONTEXT  TYPE    BUILT  REMOVED\n\
         -        person  name   age\n\
         work: x  person  name   age\n",
    );
    let again = later.run(&["osis", "reindex"]).code(0).stdout("CONTEXT  TYPE  BUILT  REMOVED\n");
    again.says("hero: no index had to be built or removed");
}
