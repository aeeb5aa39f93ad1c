//! The limits of a script: each one holds, and the error names it.

use super::*;

#[test]
fn exceeded_limit_is_named() {
    let limits = RhaiLimits { operations: 10_000, ..RhaiLimits::default() };
    let few = RhaiEngine::osis("osis".parse().expect("legal"), &limits, &job_config());
    assert!(message(&few, "loop { }").starts_with("too many operations"));
    let limits = RhaiLimits {
        array_len_max: 1_000,
        map_len_max: 1_000,
        string_size_max: 10_000_000,
        ..RhaiLimits::default()
    };
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
        ("let s = \"x\"; s.pad(5000000, \"x\"); s.replace(\"x\", s)", "string too long"),
        ("let s = \"x\"; s.pad(5000000, \"x\"); s.replace(\"\", s)", "string too long"),
        ("let s = \"x\"; s.pad(5000000, \"x\"); s.replace('x', s)", "string too long"),
        ("let s = \"x\"; s.pad(9000000, \"x\"); s.replace('x', '\u{00e4}')", "string too long"),
        ("let s = \"x\"; s.pad(5000000, \"x\"); s.split(\"x\")", "array too large"),
        ("let s = \"x\"; s.pad(5000000, \"x\"); s.split_rev('x', 4000000)", "array too large"),
        ("let s = \"x\"; s.pad(5000000, \"x\"); s.to_chars()", "array too large"),
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
fn strings_are_replaced_and_cut_as_by_rhai_itself() {
    let bare = ::rhai::Engine::new();
    let mut calls = vec!["to_chars()".to_owned(), "split()".to_owned()];
    for at in ["\"l\"", "'l'", "\"lo \"", "\"\"", "\"none\""] {
        calls.push(format!("split({at})"));
        calls.push(format!("split_rev({at})"));
        for most in [-1, 0, 1, 2, 3, i64::MAX] {
            calls.push(format!("split({at}, {most})"));
            calls.push(format!("split_rev({at}, {most})"));
        }
        for to in ["\"\"", "\"xyz\"", "'\u{00e4}'"] {
            calls.push(format!("replace({at}, {to})"));
        }
    }
    for text in ["hello, wor\u{1f680}ld l", "l", " \t", ""] {
        for call in &calls {
            let source = format!("let s = {text:?}; let part = s.{call}; [s, part].to_string()");
            let expected: String = bare.eval(&source).expect(&source);
            let output = run(&osis(), &source).result.expect(&source).output;
            assert_eq!(output, expected.as_str(), "{source}");
        }
    }
}

#[test]
fn arguments_of_a_call_are_bounded() {
    let of =
        |arguments: usize| format!("fn f(a) {{ 1 }} f({})", vec!["[0, 0]"; arguments].join(", "));
    let reason = "syntax error: too many arguments: a call has at most 64 (line 1, position ";
    assert!(message(&osis(), &of(65)).starts_with(reason), "{}", message(&osis(), &of(65)));
    let found = &osis().check(&of(65), &[])[0];
    assert!(found.message.ends_with("a call has at most 64"), "{}", found.message);
    // Not the elements of an array in a call, and not the elements of an earlier script.
    for source in [of(64), format!("let f = |a| a.len; f.call([{}])", "1, ".repeat(1000))] {
        let message = run(&osis(), &source).result.err().map(|error| format!("{error:?}"));
        assert!(!message.unwrap_or_default().contains("too many"), "{}", &source[..30]);
    }
    let many = vec!["1"; 100].join(",");
    for source in [
        format!("fn f({}) {{}}", (0..100).map(|n| format!("a{n},")).collect::<Vec<_>>().concat()),
        format!("let x = 1; x.f({many})"),
        format!("let x = |a| a; x.call({many})"),
        format!("`${{f({many})}}`"),
    ] {
        assert!(message(&osis(), &source).contains("too many arguments"), "{source}");
    }
}

#[test]
fn script_with_many_cases_or_statements_runs_once_it_is_parsed() {
    let cases = (0..50_000).map(|n| format!("{n} => {n},")).collect::<Vec<_>>().concat();
    for source in [
        format!("switch 7 {{ {cases} }} 7"),
        format!("{} 7", "{}".repeat(50_000)),
        format!("{} 7", "1;".repeat(200_000)),
    ] {
        let output = run_for(&osis(), &source, Duration::from_mins(5), &Cancel::new());
        assert_eq!(output.result.map(|success| success.output), Ok("7".into()));
    }
}

#[test]
fn total_memory_of_a_script_is_bounded() {
    let source = "fn grow(n) {
        let s = \"x\"; while s.bytes < 4200000 { s += s; }
        if n > 0 { grow(n - 1) }
        s.bytes
    }
    grow(126)";
    let limit = "too much memory: more than 512MiB, the limit type.NAME.limits.memory";
    assert_eq!(message(&osis(), source), limit);
    let limits = RhaiLimits { memory: 16 << 20, ..RhaiLimits::default() };
    let small = RhaiEngine::osis("osis".parse().expect("legal"), &limits, &job_config());
    let source = "let a = []; for i in 0..90 { let s = \"\"; s.pad(1000000, \"x\"); a.push(s); } a";
    assert!(message(&small, source).starts_with("too much memory: more than 16MiB"));
    let kept = "let f = || 0; loop { let s = \"x\"; while s.bytes < 4200000 { s += s; } let g = [f, s]; f = || g; }";
    let message = message(&osis(), kept);
    let limits = ["too much memory", "values or calls nested too deeply"];
    assert!(limits.iter().any(|limit| message.starts_with(limit)), "{message}");
}

#[test]
fn chain_of_closures_is_stopped_before_the_stack_overflows() {
    for source in [
        "let f = || 0; loop { let g = f; f = || g; }",
        "let a = [0]; loop { let b = a; a = [|| b]; }",
        "let m = #{}; loop { let b = m; m = #{x: || b}; }",
        "let f = Fn(\"x\"); loop { f = f.curry(f); }",
        "let f = Fn(\"x\"); loop { f = curry(f, f); }",
        // Each link is deep itself, and nothing but `this` is read while it is nested.
        "fn nest() { for i in 0..5000 { this.push([this.pop()]); } }
        let v = 0; loop { let h = [[v]]; h.nest(); let c = h; v = [|| c]; }",
        "let m = #{}; fn nest() { for i in 0..999 { this = #{a: this}; } }
        loop { let b = m; let f = || b; m = #{x: f}; m.nest(); }",
        "let f = (); f = || f; loop { f = [f]; }",
    ] {
        message(&osis(), source);
    }
}

#[test]
fn endless_loop_ends_at_the_deadline() {
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
fn script_that_parses_for_long_ends_at_the_deadline() {
    let cases: Vec<String> = (0..100_000).map(|n| format!("{n} => {n}")).collect();
    for source in [
        (0..50_000).map(|n| format!("let a{n}=0;")).collect::<Vec<_>>().concat(),
        format!("switch 7 {{ {} }}", cases.join(",")),
        format!("`{}`", "${1}".repeat(400_000)),
        "x.y();".repeat(400_000),
    ] {
        let run = run_for(&osis(), &source, Duration::from_millis(50), &Cancel::new());
        assert_eq!(run.result, Err(Failure::Timeout), "{}", &source[..20]);
    }
}

#[test]
fn stop_ends_a_loop_and_a_sleep_with_its_reason() {
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
fn job_stopped_before_it_starts_does_not_run() {
    let cancel = Cancel::new();
    cancel.request(StopReason::Requested);
    let run = run_for(&osis(), "print(1)", Duration::from_mins(1), &cancel);
    assert_eq!(run.result, Err(Failure::Stopped(StopReason::Requested)));
    assert!(run.log.is_empty());
}

#[test]
fn sleep_accepts_integers_and_floats() {
    let run = run(&osis(), "sleep(0.02); sleep(0); sleep(-1); sleep(0.0 / 0.0); 1");
    assert_eq!(run.result.map(|success| success.output), Ok("1".into()));
    assert!(run.took >= Duration::from_millis(20));
}

#[test]
fn deepest_nesting_within_the_limits_fits_on_the_stack() {
    let engine = osis();
    // The deepest calls, each inside a deep expression.
    for (open, close) in [("-(", ")"), ("[1, ", "].len()"), ("f(", ")"), ("if true { ", " }")] {
        for deep in [10, 20, 30, 40, 60, 80, 100, 120] {
            let body = format!("{}g(n + 1){}", open.repeat(deep), close.repeat(deep));
            run(&engine, &format!("fn f(x) {{ x }} fn g(n) {{ {body} }} g(0)"));
        }
    }
}

/// The values are made here, because a script would need minutes to nest them.
#[test]
fn values_nested_as_deep_as_the_limits_allow_fit_on_the_stack() {
    let (engine, limits) = (osis(), RhaiLimits::default());
    let nested = |levels: usize, array: bool, map: bool| {
        (0..levels).fold(Dynamic::UNIT, |inner, level| {
            if array && (level % 2 == 0 || !map) {
                vec![inner].into()
            } else {
                ::rhai::Map::from([("a".into(), inner)]).into()
            }
        })
    };
    let used = ["let b = a; b.len()", "fn f(a) { [a] } f(a).len()"];
    // Copied, compared, printed and dropped.
    let used_by_functions = [
        "let b = a; a == b",
        "let c = a; c.push(1); c.len",
        "`${a}`.len",
        "let b = a; a.contains(b)",
    ];
    for (array, map, levels, sources) in [
        (true, false, limits.array_len_max, &used[..]),
        (false, true, limits.map_len_max, &used),
        (true, true, limits.array_len_max + limits.map_len_max, &used),
        (true, false, 9_000, &used_by_functions),
    ] {
        for source in sources {
            let evaluate = |_: &ScriptRun<'_>| {
                let mut scope = Scope::new();
                scope.push_dynamic("a", nested(levels, array, map));
                let value = engine.interpreter.eval_with_scope::<Dynamic>(&mut scope, source);
                value.map_err(|error| failure::message(&error))
            };
            let run = on_a_thread(&engine, source, Duration::from_mins(1), |script, log| {
                engine.run_with(script, &Cancel::new(), log, evaluate)
            });
            let message = run.result.map_or_else(|failure| failure.to_string(), |_| String::new());
            let expected = ["", "array too large"];
            assert!(expected.iter().any(|text| message.starts_with(text)), "{message}");
        }
    }
}

#[test]
fn large_arrays_maps_and_strings_are_within_the_limits() {
    for (source, expected) in [
        ("let s = \"\"; for i in 0..20000 { s += `line ${i}\n`; } s.split(\"\\n\").len", "20001"),
        ("let a = []; for i in 0..50000 { a.push(i); } a.len", "50000"),
        ("let m = #{}; for i in 0..30000 { m[`k${i}`] = i; } m.len()", "30000"),
        ("let s = \"\"; s.pad(20000000, \"x\"); s.len", "20000000"),
    ] {
        assert_eq!(output(&osis(), source), expected, "{source}");
    }
}

#[test]
fn deep_nesting_in_the_source_is_rejected() {
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
fn eval_is_off_unless_the_configuration_allows_it() {
    let error = "syntax error: eval is off; type.osis.eval = true in the configuration allows it";
    for source in ["eval(\"1\")", "let f = Fn(\"eval\"); eval(f)"] {
        let message = message(&osis(), source);
        assert!(message.starts_with(error), "{source}: {message}");
        assert!(osis().check(source, &[])[0].message.ends_with("allows it"), "{source}");
    }
    message(&osis(), "Fn(\"eval\").call(\"1\")");
    let engine = osis().with_eval(true);
    for (source, expected) in [
        ("eval(\"40 + 2\")", "42"),
        ("let x = 1; eval(\"x += 1; let y = 5;\"); x + y", "7"),
        ("try { eval(\"1 +\") } catch { } eval(\"JOB_ID\")", "job-1"),
    ] {
        assert_eq!(output(&engine, source), expected, "{source}");
        assert!(engine.check("eval(\"x\")", &[]).is_empty());
    }
}

#[test]
fn evaluated_texts_obey_the_limits() {
    let engine = osis().with_eval(true);
    for (source, expected) in [
        ("let s = \"eval(s)\"; eval(s)", ""),
        ("fn f(s) { eval(s) } let s = \"f(s)\"; f(s)", ""),
        ("let s = \"x\"; eval(\"loop { s += s; }\")", "string too long"),
        ("let f = || 0; eval(\"let q = 1;\"); loop { let g = f; f = || g; }", "values or calls"),
        ("let s = \"1\"; loop { s = \"[\" + s + \"]\"; eval(s); }", "expression nested too deeply"),
    ] {
        let message = message(&engine, source);
        assert!(message.starts_with(expected), "{source}: {message}");
    }
    let endless = "loop { try { eval(\"loop { }\") } catch { } }";
    let run = run_for(&engine, endless, Duration::from_millis(100), &Cancel::new());
    assert_eq!(run.result, Err(Failure::Timeout));
}
