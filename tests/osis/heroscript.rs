//! `HeroScript` in a real actor, with functions that manage objects.

use std::path::{Path, PathBuf};

use crate::support::{Hero, Redis};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/heroscript").join(name)
}

fn world() -> (Redis, Hero) {
    let redis = Redis::start();
    let modules = example("modules");
    let hero =
        Hero::on(&redis).set("type.heroscript.modules", &format!("[\"{}\"]", modules.display()));
    (redis, hero)
}

#[test]
fn heroscript_manages_objects_with_the_functions_of_a_folder() {
    let (_redis, hero) = world();
    let _actors =
        (hero.actor("heroscript-default-1").start(), hero.actor("osis-default-1").start());
    let file = example("people.hero");
    let source = std::fs::read_to_string(&file).expect("the example");
    let (_, expected) = source.rsplit_once("// → ").expect("an output");
    let file = file.to_str().expect("a name");
    // Twice: the objects of the first run do not change the result.
    for _ in 0..2 {
        hero.run(&["exec", file]).code(0).stdout(expected);
    }
    hero.run(&["exec", "-t", "osis", "-e", "osis_get(\"person\", \"ann\").tags"])
        .code(0)
        .stdout("[\"admin\",\"editor\"]\n");
    hero.run(&["exec", "-t", "heroscript", "-e", "!!person.define name:dora"])
        .code(1)
        .says("line 1, !!person.define: email is missing (line 5, position 28) in ");
    hero.run(&["exec", "-t", "heroscript", "-e", "!!person.show"])
        .code(1)
        .says("line 1, !!person.show: unknown action `show`");
}

#[test]
fn check_of_a_heroscript_points_at_the_line() {
    let (_redis, hero) = world();
    let file = example("people.hero");
    hero.run(&["script", "check", file.to_str().expect("a name")]).code(0).stdout("");
    for (source, expected) in [
        ("!!person.define\n\n!!person.defin", ":3:1: unknown action `defin`: "),
        ("!!person.define\n  name:'x", ":2:8: this text has no end"),
        ("!!play.include path:x", ":1:1: includes are not possible"),
    ] {
        let found =
            hero.run(&["script", "check", "-t", "heroscript", "-e", source]).code(65).stdout;
        assert!(found.contains(expected), "{found}");
    }
    // The same form in a type of Rhai is the same language.
    let script = ["script", "check", "-t", "osis", "-e"];
    let found = hero.run(&[&script[..], &["!!person.define name:'x"]].concat()).code(65).stdout;
    assert!(found.contains(":1:22: this text has no end"), "{found}");
    let found = hero.run(&[&script[..], &["!!nobody.acts"]].concat()).code(65).stdout;
    assert!(found.contains("unknown actor `nobody`"), "{found}");
    hero.run(&[&script[..], &["let x = !!true; x"]].concat()).code(0).stdout("");
}
