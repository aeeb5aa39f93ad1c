//! Scripts of languages through the real program: checks, errors, bad input.

use crate::support::{Hero, Redis};

#[test]
fn a_script_is_checked_where_it_is_submitted() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let file = redis.folder().join("bad.sh");
    std::fs::write(&file, "if true; then\n").expect("written");
    let bad = file.to_str().expect("text");
    let checked = hero.run(&["script", "check", bad]).code(65).stdout;
    assert!(checked.contains("bad.sh: script.sh: line 2: syntax error"), "{checked}");
    hero.run(&["submit", "--check", bad]).code(65).says("syntax error");
    hero.run(&["submit", "--check", "-t", "python", "-e", "1 +"]).code(65).says("SyntaxError");
    hero.run(&["submit", "--check", "-t", "osis", "-e", "let x = ;"]).code(65).says("1:9: ");
    assert_eq!(redis.keys("hero:job:").len(), 0, "nothing was submitted");
    hero.run(&["script", "check", "-t", "bash", "-e", "echo 1"]).code(0).stdout("");
    hero.run(&["submit", "--check", "-t", "bash", "-e", "echo 1"]).code(0);
    hero.run(&["submit", bad]).code(0);
    let json = hero.run(&["--json", "script", "check", bad]).code(65).stdout;
    let found: serde_json::Value = serde_json::from_str(&json).expect("one JSON document");
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{json}");
}

#[test]
fn a_type_without_a_check_says_so() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("type.perl.engine", "\"command\"")
        .set("type.perl.command", "[\"/usr/bin/perl\", \"{script}\"]");
    hero.run(&["script", "check", "-t", "perl", "-e", "1"]).code(2).says("type.perl.check");
}

#[test]
fn an_exception_of_python_is_the_error_of_its_job() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = hero.actor("python-default-1").start();
    let code = "def f():\n    raise ValueError('bad')\nf()\n";
    hero.run(&["exec", "-t", "python", "-e", code])
        .code(1)
        .says("ValueError: bad (line 2, in f)")
        .says("Traceback");
    hero.run(&["exec", "-t", "python", "-e", "print('next')"]).code(0).stdout("next\n");
}

#[test]
fn a_name_of_300_characters_is_named_as_the_fault() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let name = format!("{}.py", "a".repeat(300));
    hero.run(&["submit", &name]).code(65).says("File name too long");
    hero.run(&["submit", "-t", &"a".repeat(300), "-e", "1"]).code(65);
}
