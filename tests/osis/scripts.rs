//! The functions of `osis`, called by scripts in a real actor.

use std::path::Path;

use serde_json::Value;

use crate::support::{Hero, Redis, keys, wait_until};

fn world() -> (Redis, Hero) {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("osis.index.person", "[\"email\", \"age\", \"name\"]")
        .set("osis.access.alice", "[\"shared\"]")
        .set("osis.impure", "true");
    (redis, hero)
}

/// Returns the expected output at the end of an example.
fn expected(example: &str) -> Option<&str> {
    example.rsplit_once("// → ").map(|(_, output)| output.trim_end())
}

#[test]
fn every_example_of_the_documentation_returns_its_output() {
    let (_redis, hero) = world();
    let _osis = hero.actor("osis-default-1").start();
    let documented = hero.run(&["--json", "script", "doc", "-t", "osis"]).code(0).stdout;
    let documented: Value = serde_json::from_str(&documented).expect("one JSON document");
    let mut seen = 0;
    for function in documented.as_array().expect("functions") {
        // These three end their attempt without an output.
        if ["retry_in", "discard", "wait"].contains(&function["name"].as_str().expect("a name")) {
            continue;
        }
        let example = function["example"].as_str().expect("an example");
        let context = format!("example {seen}");
        let done = hero.run(&["exec", "-t", "osis", "--context", &context, "-e", example]).code(0);
        if let Some(output) = expected(example) {
            assert_eq!(done.stdout.trim_end(), output, "{}", function["name"]);
        }
        seen += 1;
    }
    assert!(seen > 8);
}

#[test]
fn time_of_a_script_is_the_start_of_its_attempt() {
    let (redis, hero) = world();
    let _osis = hero.actor("osis-default-1").start();
    // A clock that went on would be 50 ms later.
    let run = ["exec", "-t", "osis", "--id", "a", "-e", "sleep(0.05); time_now_text()"];
    let time = hero.run(&run).code(0).stdout;
    assert_eq!(Some(time.trim().to_owned()), redis.field(&keys::job("a"), "started_at"));
}

#[test]
fn check_of_a_script_of_heromodels_names_the_page_about_objects() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    let check = ["script", "check", "-t", "osis", "-e", "let circle = new_circle();"];
    let found = hero.run(&check).code(65).stdout;
    assert!(found.contains("docs/objects.md#scripts-of-heromodels"), "{found}");
}

/// Returns the scripts in the code blocks of a page.
fn examples(page: &str) -> Vec<&str> {
    let blocks = page.split("```rust\n").skip(1);
    blocks.map(|block| block.split("```").next().expect("an end")).collect()
}

#[test]
fn every_example_of_the_objects_page_returns_its_output() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("osis.index.person", "[\"email\", \"age\", \"city\", \"home.floor\"]")
        .set("osis.access.alice", "[\"shared\"]")
        .set(
            "osis.schema.project.task",
            "{ required = [\"title\"], text = [\"title\", \"tags\"], fields = { title = \"string\", status = [\"open\", \"done\"], \
             tags = \"[string]\", due = \"time\" } }",
        );
    let _osis = hero.actor("osis-default-1").start();
    let examples = examples(include_str!("../../docs/objects.md"));
    assert!(examples.len() > 8, "{}", examples.len());
    let people = examples[0].split("osis_list").next().expect("the part that creates people");
    for (number, example) in examples.iter().enumerate() {
        let context = format!("page {number}");
        // Each uses the people of the first.
        let source = if number == 0 { (*example).to_owned() } else { format!("{people}{example}") };
        let output = expected(example).unwrap_or_else(|| panic!("no output: {example}"));
        let exec =
            ["exec", "-t", "osis", "--caller", "alice", "--context", &context, "-e", &source];
        let done = hero.run(&exec).code(0);
        assert_eq!(done.stdout.trim_end(), output, "{example}");
    }
}

#[test]
fn example_scripts_return_their_documented_output() {
    let (_redis, hero) = world();
    let _osis = hero.actor("osis-default-1").start();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/osis");
    let mut storing = 0;
    for entry in std::fs::read_dir(folder).expect("examples") {
        let path = entry.expect("an entry").path();
        let source = std::fs::read_to_string(&path).expect("a script");
        let output = expected(&source).unwrap_or_else(|| panic!("{}", path.display()));
        let file = path.to_str().expect("a name");
        // Twice: stored objects do not change the result.
        for _ in 0..2 {
            hero.run(&["exec", file]).code(0).stdout(&format!("{output}\n"));
        }
        storing += usize::from(source.contains("osis_set"));
    }
    assert!(storing > 0, "no example stores objects");
}

#[test]
fn actors_share_objects_and_contexts_are_separate() {
    let (_redis, hero) = world();
    let first = hero.actor("osis-default-1").start();
    hero.run(&[
        "exec",
        "-t",
        "osis",
        "--context",
        "c",
        "-e",
        "osis_set(\"person\", #{id: \"a\", age: 7})",
    ])
    .code(0)
    .stdout("a\n");
    drop(first);
    let _second = hero.actor("osis-default-2").start();
    let find = "osis_find(\"person\", \"age > 5\").map(|p| p.id)";
    hero.run(&["exec", "-t", "osis", "--context", "c", "-e", find]).code(0).stdout("[\"a\"]\n");
    hero.run(&["exec", "-t", "osis", "--context", "d", "-e", find]).code(0).stdout("[]\n");
    hero.run(&["exec", "-t", "osis", "-e", find]).code(0).stdout("[]\n");
}

#[test]
fn other_context_is_usable_only_with_a_grant() {
    let (_redis, hero) = world();
    let _osis = hero.actor("osis-default-1").start();
    let put = "let own = osis_use(\"shared\"); osis_set(\"person\", #{id: \"a\"}); osis_use(own); \
               [own, osis_exists(\"person\", \"a\")]";
    hero.run(&["exec", "-t", "osis", "--caller", "alice", "--context", "hers", "-e", put])
        .code(0)
        .stdout("[\"hers\",false]\n");
    hero.run(&[
        "exec",
        "-t",
        "osis",
        "--context",
        "shared",
        "-e",
        "osis_exists(\"person\", \"a\")",
    ])
    .code(0)
    .stdout("true\n");
    for caller in ["bob", ""] {
        hero.run(&["exec", "-t", "osis", "--caller", caller, "-e", put])
            .code(1)
            .says("osis_use shared: not allowed: osis.access");
    }
    hero.run(&["exec", "-t", "osis", "--caller", "alice", "-e", "osis_use(\"other\")"])
        .code(1)
        .says("osis_use other: not allowed");
}

#[test]
fn errors_name_the_operation_and_its_object() {
    let (_redis, hero) = world();
    let _osis = hero.actor("osis-default-1").start();
    for (source, message) in [
        ("osis_get(\"no type\", 1)", "osis_get no type 1: object type `no type` is not legal"),
        ("osis_get(\"person\", \"\")", "osis_get person: object id `` is not legal"),
        ("osis_get(\"person\", 1.5)", "osis_get person 1.5: an id must be a string, not f64"),
        ("osis_set(\"person\", #{id: 1, f: || 1})", "osis_set person 1: f has the type Fn"),
        (
            "osis_set(\"person\", #{version: -1})",
            "osis_set person: a version must be a whole number",
        ),
        (
            "osis_set(\"person\", #{created_at: \"soon\"})",
            "osis_set person: created_at must be a time",
        ),
        (
            "let m = #{}; for i in 0..1000 { m = #{m: m}; } osis_set(\"person\", m)",
            "osis_set person: the object is nested",
        ),
        ("osis_find(\"person\", \"age >\")", "osis_find person: query, column 6: expected a value"),
        (
            "osis_find(\"person\", \"city = 'x'\")",
            ": no index on person.city; write below [osis.index] in hero.toml: person = [",
        ),
        (
            "osis_find(\"person\", \"age > 1 limit 99999\")",
            "osis_find person: the limit must be a number from 1",
        ),
        (
            "osis_find(\"person\", \"\", #{})",
            "osis_find person: the object to start the page after has no id",
        ),
        ("osis_list(\"person\", \"\", 0)", "osis_list person: the limit must be a number from 1"),
        ("osis_batch([1])", "osis_batch: change 0: expected a map with `set`"),
        (
            "osis_batch([#{set: \"person\", object: #{id: 1}}, #{delete: \"person\"}])",
            "osis_batch: change 1: expected a map",
        ),
        (
            "osis_set(\"person\", #{id: 1}); osis_delete(\"person\", 1, 7)",
            "osis_delete person 1: stale version: person 1 has version 1, not 7",
        ),
    ] {
        // No objects exist: a query needs an index only for existing ones.
        hero.run(&["exec", "-t", "osis", "-e", source]).code(1).says(message);
    }
}

#[test]
fn script_can_be_stopped_while_it_waits_and_gets_an_error_without_redis() {
    let mut redis = Redis::that_keeps();
    let hero = Hero::on(&redis).set("actor.lease", "\"30s\"").set("job.log_to_journal", "true");
    let osis = hero.actor("osis-default-1").start();
    let script = "for i in 0..1000000 { osis_set(\"n\", #{id: i % 10, n: i}); }";
    let id = hero.run(&["submit", "-t", "osis", "-e", script]).code(0).stdout.trim().to_owned();
    wait_until("it has begun", || !redis.keys("hero:meta:osis:body:").is_empty());
    hero.run(&["job", "stop", &id]).code(0);
    hero.run(&["job", "wait", &id]).code(1).says("was stopped by ");
    // Without Redis the script gets an error that it can catch.
    let retrying = "let said = \"\"; while said == \"\" { try { osis_get(\"n\", 1); sleep(0.01); } \
                   catch (error) { said = error; } } print(said)";
    let id = hero.run(&["submit", "-t", "osis", "-e", retrying]).code(0).stdout.trim().to_owned();
    let key = format!("hero:job:{id}");
    wait_until("it runs", || redis.field(&key, "status").as_deref() == Some("started"));
    redis.kill();
    wait_until("it has caught the error", || osis.err().contains("osis_get n 1: redis at"));
    redis.start_again();
    hero.run(&["job", "wait", &id]).code(0);
}
