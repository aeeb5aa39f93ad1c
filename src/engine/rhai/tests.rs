//! Tests of both Rhai engines on a thread with the stack of an actor.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::config::OsisConfig;
use crate::engine::{Inputs, SecretValues, StopReason, Stream};
use crate::proto::job::AskedBounds;

mod commands;
mod limits;
mod modules;

#[derive(Default)]
struct CollectedLog(Mutex<Vec<(Stream, String)>>);

impl Log for CollectedLog {
    fn line(&self, stream: Stream, line: &str) {
        self.0.lock().expect("a lock").push((stream, line.to_owned()));
    }
}

fn job_config() -> JobConfig {
    JobConfig {
        output_size_max: 1_000_000,
        kill_grace: Duration::from_secs(1),
        ..JobConfig::default()
    }
}

fn osis() -> RhaiEngine {
    RhaiEngine::osis("osis".parse().expect("legal"), &RhaiLimits::default(), &job_config())
}

fn sal() -> RhaiEngine {
    sal_with(&SalConfig::default())
}

fn sal_with(sal: &SalConfig) -> RhaiEngine {
    let limits = RhaiLimits::default();
    RhaiEngine::sal("sal".parse().expect("legal"), &limits, &job_config(), sal)
}

struct TestRun {
    result: Result<Success, Failure>,
    log: Vec<(Stream, String)>,
    took: Duration,
}

/// Runs a script on a thread like an actor's.
fn run_for(engine: &RhaiEngine, source: &str, timeout: Duration, cancel: &Cancel) -> TestRun {
    let work = |script: &Script<'_>, log: &CollectedLog| engine.run(script, cancel, log);
    on_a_thread(engine, source, timeout, work)
}

fn on_a_thread(
    engine: &RhaiEngine,
    source: &str,
    timeout: Duration,
    work: impl FnOnce(&Script<'_>, &CollectedLog) -> Result<Success, Failure> + Send,
) -> TestRun {
    let env = BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]);
    let by_name = [("first".to_owned(), Some("42".into())), ("b".to_owned(), None)].into();
    let inputs = Inputs { by_name, ..Inputs::default() };
    let (log, started) = (CollectedLog::default(), Instant::now());
    let script = Script {
        job_id: "job-1",
        caller_id: "someone",
        context_id: "somewhere",
        token_bounds: None,
        attempt: 1,
        traceparent: None,
        attempts_left: 0,
        started_at: Some(jiff::Timestamp::UNIX_EPOCH),
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
        deadline: started + timeout,
    };
    let result = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(engine.stack_bytes())
            .spawn_scoped(scope, || work(&script, &log))
            .expect("a thread")
            .join()
            .expect("no panic")
    });
    let log = log.0.into_inner().expect("a lock");
    TestRun { result, log, took: started.elapsed() }
}

fn run(engine: &RhaiEngine, source: &str) -> TestRun {
    run_for(engine, source, Duration::from_mins(1), &Cancel::new())
}

#[track_caller]
fn output(engine: &RhaiEngine, source: &str) -> String {
    run(engine, source).result.expect(source).output.to_string()
}

#[track_caller]
fn message(engine: &RhaiEngine, source: &str) -> String {
    match run(engine, source).result {
        Err(Failure::Script { message, exit_code: None }) => message,
        other => panic!("no failure of `{}`: {other:?}", &source[..source.len().min(200)]),
    }
}

#[test]
fn last_value_is_the_output() {
    let engine = osis();
    for (source, expected) in [
        ("", ""),
        ("let x = 1;", ""),
        ("40 + 2", "42"),
        ("\"a\\nb\"", "a\nb"),
        ("1.0", "1.0"),
        ("'x'", "x"),
        ("true", "true"),
        ("return 7; 8", "7"),
        (
            "#{b: [1, 2.5, \"x\\\"\", ()], a: #{c: 'y', d: true}}",
            r#"{"a":{"c":"y","d":true},"b":[1,2.5,"x\"",null]}"#,
        ),
        ("[1e400, -0.5]", "[null,-0.5]"),
        ("let b = blob(2, 255); [b]", r#"["ffff"]"#),
        ("blob(3, 16)", "101010"),
        ("let a = [1]; let f = || a.push(2); f.call(); a", "[1,2]"),
        ("fn f() { 1 } [Fn(\"f\")]", r#"["Fn(f)"]"#),
    ] {
        assert_eq!(output(&engine, source), expected, "{source}");
    }
}

#[test]
fn byte_order_mark_and_line_of_the_interpreter_are_skipped() {
    for engine in [osis(), sal()] {
        for source in [
            "#!/usr/bin/env hero\n42",
            "\u{feff}42",
            "\u{feff}#!/usr/bin/env herodo\n\n42",
            "#!\n42",
        ] {
            assert_eq!(output(&engine, source), "42", "{source}");
            assert!(engine.check(source, &[]).is_empty(), "{source}");
        }
        let late = message(&engine, "#!/usr/bin/env hero\nthrow \"x\";");
        assert!(late.contains("(line 2, "), "{late}");
        assert!(message(&engine, "1;\n#!/usr/bin/env hero").starts_with("syntax error"));
    }
}

#[test]
fn output_over_a_limit_is_rejected_with_its_limit() {
    let engine = osis();
    let large = "let s = \"x\"; while s.len < 900000 { s += s; } [s + s]";
    assert_eq!(message(&engine, large), "output too large: more than 1000000 bytes");
    let deep = "let a = []; for i in 0..200 { a = [a]; } a";
    assert_eq!(message(&engine, deep), "output too deep: more than 127 levels");
}

#[test]
fn print_and_debug_write_lines_to_the_log() {
    let run = run(&osis(), "print(\"a\\nb\"); debug(\"c\"); print(1); print(\"\")");
    let lines: Vec<(Stream, &str)> =
        run.log.iter().map(|(stream, line)| (*stream, line.as_str())).collect();
    assert_eq!(
        lines,
        [
            (Stream::Stdout, "a"),
            (Stream::Stdout, "b"),
            (Stream::Stderr, "\"c\""),
            (Stream::Stdout, "1"),
            (Stream::Stdout, ""),
        ]
    );
}

#[test]
fn constants_are_visible_in_functions_and_can_be_shadowed() {
    let engine = osis();
    let source = "fn f() { `${JOB_ID} ${CALLER_ID} ${CONTEXT_ID} ${ENV.GREETING}` } f()";
    assert_eq!(output(&engine, source), "job-1 someone somewhere hello");
    assert_eq!(output(&engine, "let f = || ENV[\"GREETING\"]; f.call()"), "hello");
    assert_eq!(output(&engine, "fn f() { INPUTS.first + INPUTS[\"b\"].type_of() } f()"), "42()");
    assert_eq!(output(&engine, "let i = INPUTS; i.c = 1; `${i.len()} ${INPUTS.len()}`"), "3 2");
    assert_eq!(output(&engine, "result(\"first\") + 1"), "43", "JSON is a value");
    assert_eq!(output(&engine, "fn f() { result(\"b\").type_of() } f()"), "()");
    assert!(message(&engine, "result(\"other\")").contains("does not wait for `other`"));
    assert_eq!(output(&engine, "let JOB_ID = 5; JOB_ID += 1; JOB_ID"), "6");
    assert_eq!(output(&engine, "fn f(JOB_ID) { JOB_ID } f(3)"), "3");
    assert!(message(&engine, "JOB_ID = 1;").contains("JOB_ID"));
    assert_eq!(output(&engine, "let args = [1]; let params = #{a: 2}; args[0] + params.a"), "3");
    assert_eq!(output(&engine, "fn f(args, params) { args + params } f(1, 2)"), "3");
    assert_eq!(output(&engine, "[args, params]"), "[[],{}]");
}

#[test]
fn error_names_the_problem_and_its_position() {
    let engine = osis();
    for (source, expected) in [
        ("\n\nlet y = x;", "variable not found: x (line 3, position 9)"),
        ("fn f() {\n  no() }\nf()", "function not found: no () (line 2, position 3)"),
        ("\"a\" - 1", "function not found: - (string, i64) (line 1, position 5)"),
        ("no(\"a\", [])", "function not found: no (string, array) (line 1, position 1)"),
        ("let x = ;", "syntax error: unexpected ';' (line 1, position 9)"),
        ("throw \"no luck\"", "no luck (line 1, position 1)"),
        ("throw #{code: 7}", "{\"code\":7} (line 1, position 1)"),
        ("throw", "the script threw an error without a message (line 1, position 1)"),
        ("1 / 0", "division by zero: 1 / 0 (line 1, position 3)"),
    ] {
        assert_eq!(message(&engine, source), expected, "{source}");
    }
}

#[test]
fn osis_script_cannot_reach_the_system() {
    let engine = osis();
    for source in [
        "import \"/etc/passwd\" as p;",
        "import \"x\" as p;",
        "eval(\"1\")",
        "file_read(\"/etc/passwd\")",
        "run(\"id\")",
        "env_get(\"PATH\")",
    ] {
        message(&engine, source);
    }
}

#[test]
fn script_is_compiled_once_for_all_its_runs() {
    let engine = osis();
    assert_eq!(output(&engine, "1 + 1"), "2");
    let first = engine.cache.get("1 + 1").expect("kept");
    assert_eq!(output(&engine, "1 + 1"), "2");
    assert!(engine.cache.get("1 + 1").is_some_and(|hit| Arc::ptr_eq(&hit, &first)));
    message(&engine, "1 +");
    assert!(engine.cache.get("1 +").is_none());
}

#[test]
fn variables_of_one_run_are_unknown_to_the_next() {
    let engine = osis();
    assert_eq!(output(&engine, "let left = 1; left"), "1");
    assert!(message(&engine, "left").starts_with("variable not found: left"));
}

#[test]
fn time_and_random_values_of_osis_follow_from_the_job_its_attempt_and_its_start() {
    let with = |impure| {
        let backends = Backends {
            osis: OsisConfig { impure, ..OsisConfig::default() },
            ..Backends::default()
        };
        osis().with_backends(&backends)
    };
    let script =
        r#"[time_now_text(), time_now(), random(1, 1000000000), uuid(), osis_new("note")]"#;
    let first = output(&with(true), script);
    assert_eq!(output(&with(true), script), first);
    assert!(first.starts_with(r#"["1970-01-01T00:00:00.000Z",0,"#), "{first}");
    let twice = output(&with(true), "uuid() == uuid()");
    assert_eq!(twice, "false");
    for call in ["uuid()", "time_now()", "random(1, 2)"] {
        assert!(message(&with(false), call).contains("[osis] impure = true would allow it"));
    }
    let id = r#"osis_new("note").id"#;
    assert_ne!(output(&with(false), id), output(&with(false), id));
    assert!(message(&with(true), "random(2, 1)").contains("the first number is larger"));
}

/// Prints the time instead of asserting it: other tests may slow the machine down.
#[test]
fn prints_the_time_of_an_empty_run() {
    const RUNS: u32 = 20_000;
    let (engine, env, log, cancel) =
        (osis(), BTreeMap::new(), CollectedLog::default(), Cancel::new());
    let inputs = Inputs::default();
    let started = Instant::now();
    for _ in 0..RUNS {
        let deadline = Instant::now() + Duration::from_mins(1);
        let (job_id, caller_id, context_id) = ("j", "c", "x");
        let script = Script {
            job_id,
            caller_id,
            context_id,
            token_bounds: None,
            attempt: 1,
            traceparent: None,
            attempts_left: 0,
            started_at: Some(jiff::Timestamp::UNIX_EPOCH),
            state: None,
            event: None,
            source: "1",
            extension: "",
            env: &env,
            args: &[],
            params: &crate::proto::job::Params::new(),
            bounds: &AskedBounds::default(),
            secrets: &SecretValues::default(),
            inputs: &inputs,
            files: None,
            output_overflow: None,
            deadline,
        };
        assert!(engine.run(&script, &cancel, &log).is_ok());
    }
    println!("{:?} for an empty run", started.elapsed() / RUNS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_text_does_not_make_the_engine_panic(source in ".{0,200}") {
        let run = run_for(&osis(), &source, Duration::from_millis(200), &Cancel::new());
        prop_assert!(!format!("{:?}", run.result).contains("panicked"), "{source}");
    }

    #[test]
    fn random_tokens_do_not_make_the_engine_panic(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "let x = ", "x", "1", "[", "]", "(", ")", "{", "}", "#{", "a: ", ", ", "; ", "+ ", "- ",
            "* ", "/ ", "% ", "** ", "<< ", "loop ", "if ", "else ", "true ", "fn f(", "f(", "|y| ",
            ".push(", ".map(", ".pad(", ".sort()", ".len", "\"é\"", "`${", "}`", "'c'", "1.5 ",
            "for i in ", "0..9 ", "x[-1]", "blob(9)", ".call(", "throw ", "try ", "catch ", "= ",
            "return ", "-9223372036854775808", "timestamp()", "this", "ENV", ".sub_string(",
            ".remove(", ".splice(", ".extract(", ".drain(", "range(", ".parse_int(",
        ]), 0..40)
    ) {
        let source = parts.concat();
        let run = run_for(&osis(), &source, Duration::from_millis(200), &Cancel::new());
        prop_assert!(!format!("{:?}", run.result).contains("panicked"), "{source}");
    }
}
