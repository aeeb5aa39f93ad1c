//! Both Rhai engines, run as the actor runs them: on a thread with the documented stack.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::engine::{Inputs, STACK_SIZE_BYTES, StopReason, Stream};

#[derive(Default)]
struct Lines(Mutex<Vec<(Stream, String)>>);

impl Log for Lines {
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

struct Run {
    result: Result<Success, Failure>,
    log: Vec<(Stream, String)>,
    took: Duration,
}

/// Runs a script on a thread like the actor's.
fn run_for(engine: &RhaiEngine, source: &str, timeout: Duration, cancel: &Cancel) -> Run {
    let env = BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]);
    let inputs: Inputs = [("first".to_owned(), Some("42".into())), ("b".to_owned(), None)].into();
    let (log, started) = (Lines::default(), Instant::now());
    let script = Script {
        job_id: "job-1",
        caller_id: "someone",
        context_id: "somewhere",
        source,
        env: &env,
        inputs: &inputs,
        deadline: started + timeout,
    };
    let result = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK_SIZE_BYTES)
            .spawn_scoped(scope, || engine.run(&script, cancel, &log))
            .expect("a thread")
            .join()
            .expect("no panic")
    });
    let log = log.0.into_inner().expect("a lock");
    Run { result, log, took: started.elapsed() }
}

fn run(engine: &RhaiEngine, source: &str) -> Run {
    run_for(engine, source, Duration::from_mins(1), &Cancel::new())
}

#[track_caller]
fn output(engine: &RhaiEngine, source: &str) -> String {
    run(engine, source).result.expect(source).output
}

#[track_caller]
fn message(engine: &RhaiEngine, source: &str) -> String {
    match run(engine, source).result {
        Err(Failure::Script { message, exit_code: None }) => message,
        other => panic!("no failure of `{}`: {other:?}", &source[..source.len().min(200)]),
    }
}

#[test]
fn the_last_value_is_the_output() {
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
fn an_output_over_its_limit_is_named() {
    let engine = osis();
    let large = "let s = \"x\"; while s.len < 900000 { s += s; } s + s";
    assert_eq!(message(&engine, large), "output too large: more than 1000000 bytes");
    let deep = "let a = []; for i in 0..200 { a = [a]; } a";
    assert_eq!(message(&engine, deep), "output too deep: more than 127 levels");
}

#[test]
fn print_and_debug_go_to_the_log_line_by_line() {
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
fn constants_are_seen_everywhere_and_a_variable_of_that_name_wins() {
    let engine = osis();
    let source = "fn f() { `${JOB_ID} ${CALLER_ID} ${CONTEXT_ID} ${ENV.GREETING}` } f()";
    assert_eq!(output(&engine, source), "job-1 someone somewhere hello");
    assert_eq!(output(&engine, "let f = || ENV[\"GREETING\"]; f.call()"), "hello");
    assert_eq!(output(&engine, "fn f() { INPUTS.first + INPUTS[\"b\"].type_of() } f()"), "42()");
    assert_eq!(output(&engine, "let i = INPUTS; i.c = 1; `${i.len()} ${INPUTS.len()}`"), "3 2");
    assert_eq!(output(&engine, "let JOB_ID = 5; JOB_ID += 1; JOB_ID"), "6");
    assert_eq!(output(&engine, "fn f(JOB_ID) { JOB_ID } f(3)"), "3");
    assert!(message(&engine, "JOB_ID = 1;").contains("JOB_ID"));
}

#[test]
fn a_failure_names_the_matter_and_the_place() {
    let engine = osis();
    for (source, expected) in [
        ("\n\nlet y = x;", "variable not found: x (line 3, position 9)"),
        ("fn f() {\n  no() }\nf()", "function not found: no () (line 2, position 3)"),
        ("let x = ;", "syntax error: unexpected ';' (line 1, position 9)"),
        ("throw \"no luck\"", "no luck (line 1, position 1)"),
        ("throw #{code: 7}", "{\"code\":7} (line 1, position 1)"),
        ("throw", "the script threw an error without a text (line 1, position 1)"),
        ("1 / 0", "division by zero: 1 / 0 (line 1, position 3)"),
    ] {
        assert_eq!(message(&engine, source), expected, "{source}");
    }
}

#[test]
fn there_is_no_way_to_the_outside() {
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
fn a_limit_gives_its_name() {
    let limits = RhaiLimits { operations: 10_000, ..RhaiLimits::default() };
    let few = RhaiEngine::osis("osis".parse().expect("legal"), &limits, &job_config());
    assert!(message(&few, "loop { }").starts_with("too many operations"));
    let limits = RhaiLimits { array_len_max: 1_000, map_len_max: 1_000, ..RhaiLimits::default() };
    let engine = RhaiEngine::osis("osis".parse().expect("legal"), &limits, &job_config());
    for (source, limit) in [
        ("let a = []; loop { a.push(1); }", "array too large"),
        ("let s = \"x\"; loop { s += s; }", "string too long"),
        ("let m = #{}; let i = 0; loop { m[`k${i}`] = i; i += 1; }", "map too large"),
        ("let a = []; loop { a.push([1, 2, 3]); }", "array too large"),
        ("let a = [1]; loop { a = [a, a]; }", "array too large"),
        ("let a = []; loop { a = [a]; }", "array too large"),
        ("let m = #{}; loop { m = #{a: m}; }", "map too large"),
        ("let a = []; a.pad(1000000000000, 0)", "array too large"),
        ("let b = blob(1000000000000)", "array too large"),
        ("let s = \"\"; s.pad(1000000000000, \"x\")", "string too long"),
        ("fn f(n) { f(n + 1) } f(0)", "call stack overflow"),
        ("let f = |f| f.call(f); f.call(f)", "call stack overflow"),
    ] {
        let message = message(&engine, source);
        assert!(message.starts_with(limit), "{source}: {message}");
    }
    let many: Vec<String> = (0..1000).map(|number| format!("let v{number} = 0;")).collect();
    assert!(message(&engine, &many.concat()).starts_with("too many variables"));
    let functions: Vec<String> = (0..2000).map(|number| format!("fn f{number}() {{}}")).collect();
    assert!(message(&engine, &functions.concat()).starts_with("too many functions"));
}

#[test]
fn the_sum_of_what_a_script_holds_is_bounded() {
    let source = "fn grow(n) {
        let s = \"x\"; while s.bytes < 4200000 { s += s; }
        if n > 0 { grow(n - 1) }
        s.bytes
    }
    grow(126)";
    assert_eq!(message(&osis(), source), "too much memory");
    let kept = "let f = || 0; loop { let s = \"x\"; while s.bytes < 4200000 { s += s; } let g = [f, s]; f = || g; }";
    let message = message(&osis(), kept);
    assert!(["too much memory", "values nested too deeply"].contains(&message.as_str()));
}

#[test]
fn a_chain_of_closures_ends_before_the_stack_does() {
    for source in [
        "let f = || 0; loop { let g = f; f = || g; }",
        "let a = [0]; loop { let b = a; a = [|| b]; }",
        "let m = #{}; loop { let b = m; m = #{x: || b}; }",
        "let f = Fn(\"x\"); loop { f = f.curry(f); }",
        "let f = Fn(\"x\"); loop { f = curry(f, f); }",
    ] {
        message(&osis(), source);
    }
}

#[test]
fn an_endless_loop_ends_at_its_deadline() {
    for source in [
        "loop { }",
        "while true { let x = 1; }",
        "let a = []; a.pad(1000, 0); loop { a.sort(); }",
        "loop { try { loop { } } catch { } }",
        "fn f() { loop { } } loop { try { f(); } catch(e) { } }",
        "loop { try { [1, 2].map(|x| { loop { } }); } catch { } }",
        "loop { try { sleep(1000); } catch { } }",
        "sleep(9223372036854775807)",
        "sleep(1e300)",
    ] {
        let run = run_for(&osis(), source, Duration::from_millis(100), &Cancel::new());
        assert_eq!(run.result, Err(Failure::Timeout), "{source}");
        assert!(run.took >= Duration::from_millis(100), "{source}: {:?}", run.took);
        assert!(run.took < Duration::from_secs(5), "{source}: {:?}", run.took);
    }
}

#[test]
fn a_stop_ends_a_loop_and_a_sleep_for_its_reason() {
    let engine = osis();
    for source in ["print(0); loop { }", "print(0); sleep(1000)"] {
        let cancel = Cancel::new();
        let run = std::thread::scope(|scope| {
            let stopper = scope.spawn(|| {
                let started = Instant::now();
                while started.elapsed() < Duration::from_millis(20) {
                    std::thread::yield_now();
                }
                cancel.request(StopReason::Shutdown);
            });
            let run = run_for(&engine, source, Duration::from_mins(1), &cancel);
            stopper.join().expect("no panic");
            run
        });
        assert_eq!(run.result, Err(Failure::Stopped(StopReason::Shutdown)), "{source}");
        assert!(run.took < Duration::from_secs(10), "{source}: {:?}", run.took);
    }
}

#[test]
fn a_job_stopped_before_it_starts_does_not_run() {
    let cancel = Cancel::new();
    cancel.request(StopReason::Requested);
    let run = run_for(&osis(), "print(1)", Duration::from_mins(1), &cancel);
    assert_eq!(run.result, Err(Failure::Stopped(StopReason::Requested)));
    assert!(run.log.is_empty());
}

#[test]
fn sleep_takes_whole_and_broken_seconds() {
    let run = run(&osis(), "sleep(0.02); sleep(0); sleep(-1); sleep(0.0 / 0.0); 1");
    assert_eq!(run.result.map(|success| success.output), Ok("1".to_owned()));
    assert!(run.took >= Duration::from_millis(20));
}

#[test]
fn the_deepest_that_the_limits_allow_fits_on_the_stack() {
    let engine = osis();
    // Calls at their deepest, each within an expression that is itself deep.
    for (open, close) in [("-(", ")"), ("[1, ", "].len()"), ("f(", ")"), ("if true { ", " }")] {
        for deep in [10, 20, 30, 40, 60, 80, 100, 120] {
            let body = format!("{}g(n + 1){}", open.repeat(deep), close.repeat(deep));
            run(&engine, &format!("fn f(x) {{ x }} fn g(n) {{ {body} }} g(0)"));
        }
    }
    // Values at their deepest, copied, compared, shown and dropped.
    let deep = "let a = []; for i in 0..9000 { a = [a]; } let b = a;";
    for use_of_it in ["a == b", "let c = a; c.push(1); c.len", "`${a}`.len", "a.contains(b)"] {
        run(&engine, &format!("{deep} {use_of_it}"));
    }
}

#[test]
fn deep_nesting_in_the_source_is_refused_not_followed() {
    const SIZE: usize = 1024 * 1024;
    let engine = osis();
    for part in [
        "(",
        "[",
        "{",
        "-",
        "!",
        "#{a:",
        "f(",
        "if x {",
        "|x| ",
        "x[",
        "x.",
        "x + ",
        "x ?? ",
        "x = ",
        "`${",
        "/*",
        "while x {",
        "switch x { _ => ",
        "if x {} else ",
        "fn f() {",
        "x::",
        "x?.",
        "1..",
        "x && ",
        "(|| ",
        "try {",
        "let x = ",
        "return ",
        "do { ",
        "for x in ",
        "x ** ",
        "throw ",
        "import ",
        "x in ",
        ".1",
        "a,",
        ";",
        "\"",
        "'",
        "\u{0}",
        "\u{fffd}",
    ] {
        run(&engine, &part.repeat(SIZE / part.len()));
    }
    for (part, end) in [("x.x", ""), ("[1]", ""), ("+x", ""), (".f()", ""), (" else if x {}", "")] {
        run(&engine, &format!("let x = 1; if x {{}} {}{end}", part.repeat(SIZE / part.len())));
        run(&engine, &format!("let x = 1; x{}{end}", part.repeat(SIZE / part.len())));
    }
    run(&engine, &format!("{}1", "x = ".repeat(100_000)));
    run(&engine, &format!("parse_json(`{}`)", "[".repeat(100_000)));
    run(&engine, &format!("parse_json(`{{\"a\":{}1}}`)", "[".repeat(100_000)));
}

#[test]
fn a_script_is_compiled_once_for_all_its_runs() {
    let engine = osis();
    assert_eq!(output(&engine, "1 + 1"), "2");
    let first = engine.cache.get("1 + 1").expect("kept");
    assert_eq!(output(&engine, "1 + 1"), "2");
    assert!(engine.cache.get("1 + 1").is_some_and(|hit| Arc::ptr_eq(&hit, &first)));
    message(&engine, "1 +");
    assert!(engine.cache.get("1 +").is_none());
}

#[test]
fn one_run_leaves_nothing_to_the_next() {
    let engine = osis();
    assert_eq!(output(&engine, "let left = 1; left"), "1");
    assert!(message(&engine, "left").starts_with("variable not found: left"));
}

/// Prints rather than asserts: a machine that is busy with other tests is no measure.
#[test]
fn a_run_that_does_nothing_is_cheap() {
    const RUNS: u32 = 20_000;
    let (engine, env, log, cancel) = (osis(), BTreeMap::new(), Lines::default(), Cancel::new());
    let inputs = Inputs::new();
    let started = Instant::now();
    for _ in 0..RUNS {
        let deadline = Instant::now() + Duration::from_mins(1);
        let (job_id, caller_id, context_id) = ("j", "c", "x");
        let script = Script {
            job_id,
            caller_id,
            context_id,
            source: "1",
            env: &env,
            inputs: &inputs,
            deadline,
        };
        assert!(engine.run(&script, &cancel, &log).is_ok());
    }
    println!("{:?} for each run that does nothing", started.elapsed() / RUNS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_text_makes_the_engine_panic(source in ".{0,200}") {
        let run = run_for(&osis(), &source, Duration::from_millis(200), &Cancel::new());
        prop_assert!(!format!("{:?}", run.result).contains("panicked"), "{source}");
    }

    #[test]
    fn no_mix_of_the_language_makes_the_engine_panic(
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

#[test]
fn a_command_gives_its_output_and_its_code() {
    let engine = sal();
    assert_eq!(
        output(&engine, "run(\"echo out; echo err >&2; exit 3\").ignore_error().execute()"),
        r#"{"code":3,"stderr":"err","stdout":"out","success":false}"#
    );
    assert_eq!(output(&engine, "run_command(\"echo hi\").stdout"), "hi");
    assert_eq!(output(&engine, "run(\"exit 2\", #{die: false, silent: true}).code"), "2");
    assert_eq!(
        output(&engine, "run(\"echo $A $HERO_JOB_ID\").env(\"A\", \"b c\").execute().stdout"),
        "b c job-1"
    );
    assert_eq!(
        output(&engine, "run(`\n    if true; then\n      echo deep\n    fi\n`).execute().stdout"),
        "deep"
    );
    assert_eq!(
        output(
            &engine,
            "run_command(\"echo kept > f\"); run_command(\"cat f\").stdout + file_read(\"f\")"
        ),
        "keptkept\n"
    );
}

#[test]
fn a_long_command_is_run_from_a_file() {
    let source = "let c = \"echo \"; c.pad(300000, \"x\"); run_silent(c).stdout.len";
    assert_eq!(output(&sal(), source), "299995");
}

#[test]
fn a_command_that_fails_throws_and_can_be_caught() {
    let engine = sal();
    let failed = message(&engine, "run_command(\"echo bad >&2; exit 3\")");
    assert_eq!(failed, "run_command `echo bad >&2; exit 3`: exit code 3: bad (line 1, position 1)");
    assert!(message(&engine, "run(\"false\\necho no\").execute()").contains("exit code 1"));
    assert_eq!(
        output(&engine, "let r = 0; try { run_command(\"exit 1\") } catch { r = 1 } r"),
        "1"
    );
    let late = message(&engine, "run(\"sleep 600\").timeout(0.05).execute()");
    assert!(late.starts_with("run `sleep 600`: timeout"), "{late}");
}

#[test]
fn a_command_writes_to_the_log_unless_silent() {
    let run = run(
        &sal(),
        "run_command(\"echo a; echo b >&2\"); run_silent(\"echo c\"); run(\"echo d\").log().execute();",
    );
    let mut lines: Vec<String> = run.log.into_iter().map(|(_, line)| line).collect();
    lines[..2].sort();
    assert_eq!(lines, ["a", "b", "echo d", "d"]);
}

#[test]
fn a_command_ends_with_its_job() {
    for source in [
        "run_command(\"sleep 600 & sleep 600\")",
        "loop { try { run(\"sleep 600\").ignore_error().execute(); } catch { } }",
        "run(\"sleep 600\").timeout(500).execute()",
    ] {
        let run = run_for(&sal(), source, Duration::from_millis(200), &Cancel::new());
        assert_eq!(run.result, Err(Failure::Timeout), "{source}");
        assert!(run.took < Duration::from_secs(10), "{source}: {:?}", run.took);
    }
    let cancel = Cancel::new();
    cancel.request(StopReason::Requested);
    let run = run_for(&sal(), "run_command(\"sleep 600\")", Duration::from_mins(1), &cancel);
    assert_eq!(run.result, Err(Failure::Stopped(StopReason::Requested)));
}

#[test]
fn files_are_written_read_and_deleted() {
    let source = "
        mkdir(\"a/b\"); mkdir(\"a/b\");
        file_write(\"a/b/f\", \"long text\"); file_write(\"a/b/f\", \"one\");
        file_write_append(\"a/b/f\", \"two\"); file_write_append(\"a/g\", \"new\");
        let seen = [file_read(\"a/b/f\"), file_read(\"a/g\"), exist(\"a/b\"), exist(\"a/x\")];
        delete(\"a/g\"); delete(\"a\"); delete(\"a\");
        seen.push(exist(\"a\"));
        seen";
    assert_eq!(output(&sal(), source), r#"["onetwo","new",true,false,false]"#);
}

#[test]
fn a_failed_file_operation_names_itself_and_its_file() {
    let engine = sal();
    for (source, expected) in [
        ("file_read(\"/no/such\")", "file_read /no/such: no such file or directory"),
        ("file_read(\"\")", "file_read: the path is empty"),
        ("file_read(\"/dev/zero\")", "file_read /dev/zero: not a regular file"),
        ("file_read(\"/tmp\")", "file_read /tmp: not a regular file"),
        ("file_write(\"/no/such\", \"\")", "file_write /no/such: no such file or directory"),
        ("file_write(\"/dev/null\", \"\")", "file_write /dev/null: not a regular file"),
        ("mkdir(\"/dev/null/x\")", "mkdir /dev/null/x: not a directory"),
        ("delete(\"/\")", "delete /: the root is not deleted"),
        ("run_command(\"printf '\\\\377' > f\"); file_read(\"f\")", "file_read f: not UTF-8 text"),
        (
            "run_command(\"truncate -s 10000001 f\"); file_read(\"f\")",
            "file_read f: larger than 10000000 bytes",
        ),
        ("run_command(\"mkfifo f\"); file_read(\"f\")", "file_read f: not a regular file"),
    ] {
        let message = message(&engine, source);
        assert!(message.starts_with(expected), "{source}: {message}");
    }
}

#[test]
fn programs_and_variables_are_those_of_the_jobs_own_commands() {
    let engine = sal();
    assert!(output(&engine, "which(\"sh\")").ends_with("/sh"));
    assert_eq!(output(&engine, "which(\"no-such-program\") == ()"), "true");
    assert_eq!(output(&engine, "env_get(\"GREETING\") + env_get(\"LANG\")"), "helloC.UTF-8");
    assert_eq!(output(&engine, "env_get(\"CARGO_MANIFEST_DIR\") == ()"), "true");
    assert_eq!(output(&engine, "env_get(\"HOME\") == run_command(\"pwd\").stdout"), "true");
}

#[test]
fn the_folder_of_a_script_is_gone_with_it() {
    let engine = sal();
    let folder = output(&engine, "file_write(\"f\", \"\"); env_get(\"HOME\")");
    assert!(folder.contains("job-") && !std::path::Path::new(&folder).exists(), "{folder}");
}
