//! Calls every function of `osis` with unsuitable arguments on a real store: it returns a value or an
//! error that the script can catch. New functions are included by themselves.

use serde_json::Value;

use crate::support::{Hero, Redis};

const BEFORE: &str = r#"
let long = "x"; long.pad(5000, "y");
let huge = "x"; huge.pad(9900000, "y");
let deep = #{}; for level in 0..1000 { deep = #{deep: deep}; }
let seen = 0;
"#;

const STRINGS: &[&str] = &[
    "\"\"",
    "\"\\x00\"",
    "\"thing\"",
    "\"no such\"",
    "\"a:b\"",
    "\"{x}\"",
    "\"*\"",
    "\"%\"",
    "\"one\\ntwo\"",
    "\"\\U0001F4A3\"",
    "long",
    "huge",
    "\"id = 'a\"",
    "\"((((\"",
    "\"id in [] limit -1\"",
    "\"id > 'a' order by id desc limit 3\"",
];
const NUMBERS: &[&str] = &["0", "1", "-1", "9223372036854775807", "-9223372036854775807 - 1"];
const MAPS: &[&str] = &[
    "#{}",
    "#{\"\": 1}",
    "#{\"a\\x00:b\": (), \"\\U0001F4A3\": 1}",
    "#{id: long}",
    "#{id: ()}",
    "#{id: \"a\", version: -1}",
    "#{id: \"a\", version: \"x\"}",
    "#{id: \"a\", created_at: 0}",
    "#{id: \"a\", text: huge}",
    "#{id: \"a\", f: 0.0 / 0.0}",
    "#{id: \"a\", f: blob(3)}",
    "#{id: \"a\", f: || 1}",
    "deep",
];
const ARRAYS: &[&str] = &[
    "[]",
    "[()]",
    "[#{}]",
    "[#{set: 1, object: 2}]",
    "[#{set: \"thing\", object: deep}]",
    "[#{set: \"thing\", delete: \"thing\"}]",
    "[#{delete: \"thing\", id: blob(2)}]",
    "[#{delete: \"thing\", id: \"a\", version: -1}]",
];
const OTHERS: &[&str] = &["()", "1.5", "true", "'c'", "blob(3)", "|| 1", "timestamp()"];

fn argument(kind: &str) -> &'static str {
    let all = [STRINGS, NUMBERS, MAPS, ARRAYS, OTHERS];
    let of_kind = match kind {
        "string" => STRINGS,
        "int" => NUMBERS,
        "map" => MAPS,
        "array" => ARRAYS,
        _ => OTHERS,
    };
    let values = if fastrand::u8(0..4) == 0 { all[fastrand::usize(0..all.len())] } else { of_kind };
    values[fastrand::usize(0..values.len())]
}

/// Returns a call of every overload of every function.
fn calls(hero: &Hero) -> Vec<String> {
    let documented = hero.run(&["--json", "script", "doc", "osis", "-t", "osis"]).code(0).stdout;
    let documented: Value = serde_json::from_str(&documented).expect("one JSON document");
    let functions = documented.as_array().expect("functions").iter();
    let signatures =
        functions.flat_map(|function| function["signatures"].as_array().expect("some"));
    signatures
        .map(|signature| {
            let signature = signature.as_str().expect("a string");
            let call = signature.split(" -> ").next().expect("a call");
            let (name, parameters) = call.trim_end_matches(')').split_once('(').expect("a call");
            let parameters = parameters.split(", ").filter_map(|named| named.split_once(": "));
            let arguments: Vec<&str> = parameters.map(|(_, kind)| argument(kind)).collect();
            format!("{name}({})", arguments.join(", "))
        })
        .collect()
}

#[test]
fn unsuitable_arguments_cause_only_errors_that_a_script_can_catch() {
    const ROUNDS: usize = 4;
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("osis.index.thing", "[\"n\"]");
    let mut osis = hero.actor("osis-default-1").start();
    for _ in 0..ROUNDS {
        let calls = calls(&hero);
        assert!(calls.len() > 10, "{calls:?}");
        let caught = |call: &String| format!("try {{ {call}; }} catch (error) {{ seen += 1; }}\n");
        let tried = calls.iter().map(caught).collect::<Vec<_>>().concat();
        let source = format!("{BEFORE}{tried}seen <= {}", calls.len());
        // Shown when the test fails.
        println!("{tried}");
        let exec = ["exec", "-t", "osis", "--timeout", "10m", "-e", &source];
        hero.run(&exec).code(0).stdout("true\n");
    }
    assert!(!osis.has_ended(), "the actor did not restart");
}

#[test]
fn concurrent_writers_do_not_overwrite_each_other() {
    const EACH: usize = 50;
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _osis = hero.actor("osis-default-1").tasks(2).start();
    hero.run(&["exec", "-t", "osis", "-e", "osis_set(\"counter\", #{id: \"c\", n: 0})"]).code(0);
    let count = format!(
        "let done = 0; while done < {EACH} {{
            let c = osis_get(\"counter\", \"c\");
            c.n += 1;
            try {{ osis_set(\"counter\", c); done += 1; }}
            catch (error) {{ if !error.contains(\"stale version\") {{ throw error; }} }}
        }}"
    );
    let submit =
        || hero.run(&["submit", "-t", "osis", "-e", &count]).code(0).stdout.trim().to_owned();
    for id in [submit(), submit()] {
        hero.run(&["job", "wait", &id]).code(0);
    }
    hero.run(&["exec", "-t", "osis", "-e", "osis_get(\"counter\", \"c\").n"])
        .code(0)
        .stdout(&format!("{}\n", 2 * EACH));
}
