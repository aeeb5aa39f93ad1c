//! Scripts that run with functions of a folder.

use std::time::{Duration, Instant};

use super::*;
use crate::config::{JobConfig, RhaiLimits};
use crate::engine::{Inputs, SecretValues, Stream};
use crate::proto::job::AskedBounds;

/// Collects the lines of a log.
#[derive(Debug, Default)]
struct Lines(std::sync::Mutex<Vec<String>>);

impl Log for Lines {
    fn line(&self, _: Stream, line: &str) {
        self.0.lock().expect("no panic").push(line.to_owned());
    }
}

const PERSON: &str = "\
#!/usr/bin/env rhai
fn person_define(p) { print(`${p.name} is ${p.age}`); p.age + 1 }
fn person_fail(p) { throw `no ${p.name}`; }
fn person_show(p) { p }
fn person_import(p) { import `tools` as tools; tools::double(p.n) }
fn person_two(a, b) { a }
private fn person_secret(p) { p }
";

fn engine() -> (tempfile::TempDir, HeroScriptEngine) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("person.rhai"), PERSON).expect("written");
    std::fs::write(folder.path().join("broken.rhai"), "fn broken_x(p) {").expect("written");
    let tools = folder.path().join("tools.rhai");
    std::fs::write(tools, "fn double(n) { n * 2 }").expect("written");
    std::fs::write(folder.path().join("notes.txt"), "no module").expect("written");
    let engine = engine_of("heroscript", &[folder.path().to_owned()], false);
    (folder, engine)
}

fn engine_of(name: &str, folders: &[PathBuf], takes_rhai: bool) -> HeroScriptEngine {
    let name = name.parse().expect("legal");
    let rhai = RhaiEngine::osis(name, &RhaiLimits::default(), &JobConfig::default());
    HeroScriptEngine::new(rhai.with_modules(folders), folders, takes_rhai)
}

/// Runs a script. Returns its output or its error, and its log.
fn run(source: &str) -> (Result<String, String>, Vec<String>) {
    let (_folder, engine) = engine();
    run_on(&engine, source)
}

fn run_on(engine: &dyn Engine, source: &str) -> (Result<String, String>, Vec<String>) {
    let (log, env, inputs) = (Lines::default(), BTreeMap::new(), Inputs::default());
    let script = Script {
        job_id: "1",
        caller_id: "",
        context_id: "",
        token_bounds: None,
        attempt: 1,
        traceparent: None,
        attempts_left: 0,
        started_at: None,
        state: None,
        event: None,
        source,
        extension: "",
        env: &env,
        args: &[],
        params: &crate::proto::job::Params::new(),
        bounds: &AskedBounds::default(),
        secrets: &SecretValues::default(),
        inputs: &inputs,
        files: None,
        output_overflow: None,
        deadline: Instant::now() + Duration::from_mins(1),
    };
    let result = engine.run(&script, &Cancel::default(), &log);
    let result = match result {
        Ok(success) => Ok(success.output.to_string()),
        Err(failure) => Err(failure.to_string()),
    };
    (result, log.0.into_inner().expect("no panic"))
}

#[test]
fn each_action_calls_its_function_in_order() {
    let (result, log) = run("!!person.define name:'Ann' age:30\n!!person.define name:Bob age:4\n");
    assert_eq!(result.as_deref(), Ok("5"));
    assert_eq!(log, ["Ann is 30", "Bob is 4"]);
    let (result, _) = run("!!person.show fast tags:a,b ratio:0.5");
    assert_eq!(result.as_deref(), Ok(r#"{"args":["fast"],"ratio":0.5,"tags":["a","b"]}"#));
    assert_eq!(run("// nothing\n").0.as_deref(), Ok(""));
}

#[test]
fn failed_action_is_named_and_the_following_do_not_run() {
    let (result, log) =
        run("!!person.define name:a age:1\n\n!!person.fail name:b\n!!person.define name:c age:1");
    let error = result.expect_err("it fails");
    assert!(error.starts_with("line 3, !!person.fail: no b (line 3, position "), "{error}");
    assert!(error.ends_with("person.rhai"), "{error}");
    assert_eq!(log, ["a is 1"]);
}

#[test]
fn script_with_an_unknown_action_does_not_begin() {
    for (action, expected) in [
        ("!!person.defin", "unknown action `defin`: "),
        ("!!person.two", "unknown action `two`: "),
        ("!!person.secret", "unknown action `secret`: "),
        ("!!persn.define", "unknown actor `persn`: no file persn.rhai in "),
        ("!!broken.x", "cannot use "),
        ("!!notes.x", "unknown actor `notes`"),
    ] {
        let (result, log) = run(&format!("!!person.define name:a age:1\n{action}"));
        let error = result.expect_err(action);
        let place = format!("line 2, {action}: {expected}");
        assert!(error.starts_with(&place), "{error}");
        assert_eq!(log, Vec::<String>::new());
    }
    let (_folder, engine) = engine();
    let found = engine.check("!!person.show\n!!person.defin\n!!persn.define x:1", &[]);
    let lines: Vec<usize> = found.iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [2, 3]);
    assert!(found[0].message.ends_with("did you mean `define`?"), "{}", found[0].message);
    assert_eq!(
        engine.check("!!person.show\n  x:'", &[]).first().map(|f| (f.line, f.column)),
        Some((2, 5))
    );
}

#[test]
fn engine_without_a_folder_says_which_it_misses() {
    let engine = engine_of("heroscript", &["/nonexistent/modules".into()], false);
    let why = engine.unavailable().expect("no folder");
    assert!(
        why.starts_with("cannot read type.heroscript.modules: /nonexistent/modules: "),
        "{why}"
    );
}

#[test]
fn function_imports_another_file_of_the_folders() {
    assert_eq!(run("!!person.import n:21").0, Ok("42".to_owned()));
}

#[test]
fn engine_of_rhai_runs_actions_too() {
    let (folder, _) = engine();
    let folders = [folder.path().to_owned()];
    let of_rhai = |folders: &[PathBuf]| engine_of("osis", folders, true);
    let ran = |engine: &HeroScriptEngine, source: &str| run_on(engine, source).0;
    let either = of_rhai(&folders);
    assert_eq!(ran(&either, "!!person.define name:Ann age:30").as_deref(), Ok("31"));
    assert_eq!(ran(&either, "40 + 2").as_deref(), Ok("42"));
    let condition = ran(&either, "!!params.flag").unwrap_or_else(|error| error);
    assert!(!condition.contains("unknown actor"), "{condition}");
    let error = ran(&of_rhai(&[]), "!!person.define name:Ann").expect_err("no folder");
    let why = "unknown actor `person`: type.osis.modules names no folder with person.rhai";
    assert_eq!(error, format!("line 1, !!person.define: {why}"));
    assert_eq!(either.unavailable(), None);
}

#[test]
fn script_is_of_actions_if_its_first_statement_is_one() {
    for source in [
        "!!person.define name:Ann",
        "\u{feff}#!/usr/bin/env hero\n\n// people\n  !!person.define\n",
        "!!a.b\r\n",
    ] {
        assert!(is_of_actions(source), "{source}");
    }
    for source in [
        "",
        "40 + 2",
        "!!params.flag",
        "!!true",
        "let x = 1; !!x.y",
        "!!a.b()",
        "!! a.b",
        "// !!a.b",
    ] {
        assert!(!is_of_actions(source), "{source}");
    }
}
