//! Scripts of several languages: checks, errors, invalid input.

use std::path::{Path, PathBuf};

use super::{field, until};
use crate::support::{Hero, Redis, keys, needs, wait_until};

#[test]
fn script_is_checked_at_submission() {
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
    assert_eq!(redis.all("JOB").len(), 0, "nothing was submitted");
    hero.run(&["script", "check", "-t", "bash", "-e", "echo 1"]).code(0).stdout("");
    hero.run(&["submit", "--check", "-t", "bash", "-e", "echo 1"]).code(0);
    hero.run(&["submit", bad]).code(0);
    let twice = "# /// script\n# dependencies = []\n# ///\n".repeat(2) + "print(1)";
    for args in [&["script", "check"][..], &["submit", "--check"]] {
        let checked = hero.run(&[args, &["-t", "python", "-e", &twice]].concat()).code(65);
        let told = format!("{}{}", checked.stdout, checked.stderr);
        assert!(told.contains("a second `# /// script` block"), "{args:?}: {told}");
    }
    let json = hero.run(&["--json", "script", "check", bad]).code(65).stdout;
    let found: serde_json::Value = serde_json::from_str(&json).expect("one JSON document");
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{json}");
}

#[test]
fn script_type_without_a_check_says_so() {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("type.perl.engine", "\"command\"")
        .set("type.perl.command", "[\"/usr/bin/perl\", \"{script}\"]");
    hero.run(&["script", "check", "-t", "perl", "-e", "1"]).code(2).says("type.perl.check");
}

#[test]
fn python_exception_is_the_error_of_its_job() {
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
fn name_of_300_characters_is_rejected_by_its_field() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let name = format!("{}.py", "a".repeat(300));
    hero.run(&["submit", &name]).code(65).says("File name too long");
    hero.run(&["submit", "-t", &"a".repeat(300), "-e", "1"]).code(65);
}

#[test]
fn invalid_input_fails_only_its_job() {
    let redis = Redis::start();
    let program = |name: &str, text: &str, mode: u32| {
        let file = redis.folder().join(name);
        std::fs::write(&file, text).expect("written");
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode))
            .expect("its mode is set");
        format!("[{file:?}, \"{{script}}\"]")
    };
    let dying = program("dying", "#!/bin/sh\nkill -9 $$\n", 0o755);
    let closed = program("closed", "#!/bin/sh\n", 0o644);
    let wheels = redis.folder().join("wheels");
    std::fs::create_dir(&wheels).expect("made");
    let mut hero = Hero::on(&redis)
        .set("type.python.dependencies.index", "\"none\"")
        .set("type.python.dependencies.find_links", &format!("[{wheels:?}]"));
    for (name, command) in [
        ("dying", dying.as_str()),
        ("closed", &closed),
        ("missing", "[\"/nonexistent/interpreter\", \"{script}\"]"),
    ] {
        hero = hero.set(&format!("type.{name}.engine"), "\"command\"");
        hero = hero.set(&format!("type.{name}.command"), command);
    }
    // An actor whose engine cannot run does not start.
    for (name, said) in [("missing", "no interpreter in PATH"), ("closed", "is not executable")] {
        let unit = format!("{name}-default-1");
        let done = hero.run(&["run", &unit]);
        assert!(done.code != 0 && done.stderr.contains(said), "{}: {}", done.code, done.stderr);
    }
    let _units = ["python-default-1", "bash-default-1", "dying-default-1"]
        .map(|unit| hero.actor(unit).start());
    for (of_type, script, code, said) in [
        ("dying", "1", 137, "killed by signal 9 (SIGKILL)"),
        (
            "python",
            "# /// script\n# dependencies = [\n# ///\n",
            1,
            "invalid job: script metadata: line 2",
        ),
        (
            "python",
            "# /// script\n# dependencies = [\"no-such-package\"]\n# ///\n",
            1,
            "no-such-package",
        ),
    ] {
        hero.run(&["exec", "-t", of_type, "-e", script]).code(code).says(said);
    }
    // A command line cannot hold a NUL; a file and a foreign client can.
    for (of_type, name) in [("python", "nul.py"), ("bash", "nul.sh")] {
        let file = redis.folder().join(name);
        std::fs::write(&file, "x = 1\nx = \0\n").expect("written");
        let done = hero.run(&["exec", "-t", of_type, file.to_str().expect("text")]);
        assert!(done.code != 0 && done.stderr.contains("NUL in line 2"), "{}", done.stderr);
    }
    for (of_type, script, output) in [
        ("python", "\u{feff}print('a')\r\nprint('b')", "a\nb\n"),
        ("bash", "\u{feff}if true; then\r\n  echo a\r\nfi", "a\n"),
    ] {
        hero.run(&["exec", "-t", of_type, "-e", script]).code(0).stdout(output);
    }
}

#[test]
fn examples_of_the_page_on_scripts_give_their_output() {
    let page = include_str!("../../docs/scripts.md");
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("type.c.engine", "\"command\"")
        .set("type.c.extension", "\".c\"")
        .set("type.c.compile", "[\"/usr/bin/gcc\", \"-O1\", \"-o\", \"{binary}\", \"{script}\"]")
        .set("type.c.command", "[\"{binary}\"]");
    let there: Vec<&str> = [
        ("python", "/usr/bin/python3"),
        ("bash", "/bin/bash"),
        ("node", "/usr/bin/node"),
        ("c", "/usr/bin/gcc"),
    ]
    .into_iter()
    .filter_map(|(name, program)| {
        let requirement = if name == "c" { "gcc" } else { name };
        needs(requirement, || Path::new(program).exists()).then_some(name)
    })
    .collect();
    let _actors: Vec<_> =
        there.iter().map(|name| hero.actor(&format!("{name}-default-1")).start()).collect();
    let blocks: Vec<(&str, &str)> =
        page.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect();
    let mut tried = 0;
    for pair in blocks.windows(2) {
        let [(language, script), (kind, expected)] = pair else { continue };
        if !["output", "error"].contains(kind) || !there.contains(language) {
            continue;
        }
        redis.delete(&keys::job("example"));
        let done = hero.run(&["exec", "--id", "example", "-t", language, "-e", script]);
        if *kind == "output" {
            let expected = format!("{expected}\n");
            assert_eq!(
                (done.code, done.stdout.as_str()),
                (0, expected.as_str()),
                "{script}\n{}",
                done.stderr
            );
        } else {
            assert_eq!(done.code, 1, "{script}");
            assert!(done.stderr.contains(expected.trim()), "{script}\n{}", done.stderr);
        }
        hero.run(&["job", "delete", "example"]).code(0);
        tried += 1;
    }
    assert!(tried >= 5, "only {tried} examples were found");
}

#[test]
fn two_hundred_concurrent_jobs_leave_nothing_behind() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.python.warm", "true");
    let actor = hero.actor("python-default-1").tasks(4).start();
    let pid = actor.pid();
    // The file rules of the next job come and go, at most one set of them.
    let descriptors = || {
        let all = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").flatten();
        let links = all.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
        let (rules, others): (Vec<_>, Vec<_>) =
            links.partition(|link| link.to_string_lossy().contains("landlock"));
        (others.len(), rules.len())
    };
    let children = || actor.children().len();
    let warm = "import sys; print('ctypes' in sys.modules)";
    let is_warm = || hero.run(&["exec", "-t", "python", "-e", warm]).stdout == "True\n";
    crate::support::wait_until("jobs are forks", is_warm);
    // Each leaves a background process, which does not hold its output, and files in its folder.
    let script = "import os, time\nopen('file', 'w').write('x')\nif os.fork() == 0:\n    \
        os.setsid(); os.close(1); os.close(2)\n    time.sleep(600)\nprint(os.environ['HOME'])\n";
    // The warm interpreter, and its forks that wait for the next jobs.
    crate::support::wait_until("forks wait", || children() == 3);
    let before = descriptors().0;
    let ids: Vec<String> = (0..200).map(|number| format!("job-{number}")).collect();
    for id in &ids {
        redis.push_job("python", id, script);
    }
    for id in &ids {
        until(&redis, id, "finished");
        let home = field(&redis, id, "output").expect("an output");
        assert!(home.contains("job-") && !Path::new(&home).exists(), "{home} is left");
    }
    crate::support::wait_until("no process and no descriptor is left", || {
        let (others, rules) = descriptors();
        children() == 3 && others <= before && rules <= 1
    });
}

#[test]
fn warm_job_is_stopped_and_timed_out() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.python.warm", "true");
    let _actor = hero.actor("python-default-1").start();
    let warm = "import sys; print('ctypes' in sys.modules)";
    let is_warm = || hero.run(&["exec", "-t", "python", "-e", warm]).stdout == "True\n";
    crate::support::wait_until("jobs are forks", is_warm);
    let endless = "while True: pass";
    hero.run(&["exec", "-t", "python", "--timeout", "300ms", "-e", endless])
        .code(1)
        .says("timeout");
    hero.run(&["submit", "-t", "python", "--id", "a", "-e", endless]).code(0);
    until(&redis, "a", "started");
    hero.run(&["job", "stop", "a"]).code(0);
    until(&redis, "a", "error");
    assert_eq!(field(&redis, "a", "error").as_deref(), Some("stopped_by_request"));
    assert!(is_warm(), "and the next is a fork again");
}

#[test]
fn line_at_the_prompt_sees_earlier_definitions() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let typed = "let x = 40;\nx + 2\nfn twice(a) {\n    a * 2\n}\ntwice(x)\nprint(\"said\")\n\
                 nope()\nlet y =\n\nx += 1; x\n[1, #{a: x}]";
    let done = hero.run_with_input(&["script", "repl", "-t", "osis"], typed).code(0);
    assert_eq!(done.stdout, "42\n80\nsaid\n41\n[1,{\"a\":41}]\n");
    let complaints: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert!(complaints[0].contains("nope"), "{complaints:?}");
}

#[test]
fn objects_at_the_prompt_are_kept_in_the_given_context() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let there = ["script", "repl", "-t", "osis", "--context", "here"];
    let typed = "osis_set(\"person\", #{id: \"a\", name: \"Ada\"})\n";
    hero.run_with_input(&there, typed).code(0);
    let asked = "osis_get(\"person\", \"a\").name\n";
    hero.run_with_input(&there, asked).code(0).stdout("Ada\n");
    hero.run_with_input(&there[..4], asked).code(0).stdout("");
    hero.run(&["script", "repl", "-t", "python"]).code(2).says("only osis and sal are Rhai");
}

#[test]
fn script_of_redis_is_printed_with_line_numbers_and_file_names() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let list = hero.run(&["script", "redis"]).code(0).stdout;
    assert!(list.lines().any(|line| line.starts_with("claim ")), "{list}");
    let text = hero.run(&["script", "redis", "settle"]).code(0).stdout;
    assert!(text.starts_with("   1  -- file: proto/keys.rs\n"), "{text}");
    for file in ["shared/time.lua", "settle.lua"] {
        assert!(text.lines().any(|line| line.ends_with(&format!("  -- file: {file}"))), "{file}");
    }
    hero.run(&["script", "redis", "nothing"]).code(66).says("hero script redis");
}

#[test]
fn options_of_the_first_line_count_and_others_are_refused() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let _python = hero.actor("python-default-1").start();
    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str, script: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, script).expect("written");
        hero.run(&["exec", file.to_str().expect("text")])
    };
    run("A.SH", "#!/bin/sh -e\nprintf '%s\\n' hi\nfalse\necho unreachable\n").code(1).says("hi\n");
    let piped = "#!/usr/bin/env -S bash -euo pipefail\nfalse | cat\necho unreachable\n";
    run("b.sh", piped).code(1).stdout("");
    run("C.PY", "#!/usr/bin/python3 -O\nprint(__debug__)\n").code(0).stdout("False\n");
    run("d.py", "#!/usr/bin/env -S python3 -u\nprint(__debug__)\n").code(0).stdout("True\n");
    let said = "invalid job: script cannot honour the option -i of env in its first line";
    run("e.sh", "#!/usr/bin/env -i bash\n").code(1).says(said);
    let http = "cat <<EOF | od -An -c | head -1\nGET / HTTP/1.0\r\n\r\nEOF\n";
    run("f.sh", http)
        .code(0)
        .stdout("   G   E   T       /       H   T   T   P   /   1   .   0  \\r  \\n\n");
}

#[test]
fn numbers_keep_their_digits_or_are_refused() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = hero.actor("python-default-1").start();
    let script = "import hero\nhero.output({'z': 10**20, 'a': [1.0, 2**64]})";
    let output = "{\"z\":100000000000000000000,\"a\":[1.0,18446744073709551616]}\n";
    hero.run(&["exec", "-t", "python", "-e", script]).code(0).stdout(output);
    let said = "the number 100000000000000000000 does not fit into 64 bits and would lose digits";
    let wide = "n:=100000000000000000000";
    hero.run(&["exec", "-t", "python", "--param", wide, "-e", "1"]).code(2).says(said);
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("written");
        file.to_str().expect("text").to_owned()
    };
    let params = file("wide.json", "{\"n\": 100000000000000000000}");
    hero.run(&["exec", "-t", "python", "--params", &params, "-e", "1"]).code(65).says(said);
    let line = "{\"script_type\": \"python\", \"script\": \"1\", \"params\": {\"n\": 100000000000000000000}}\n";
    hero.run(&["submit", "--batch", &file("wide.jsonl", line)]).code(65).says(said);
    let marked = file("marked.json", "\u{feff}{\"n\": 18446744073709551615}");
    let script = "import hero; print(hero.params['n'])";
    let ran = hero.run(&["exec", "-t", "python", "--params", &marked, "-e", script]);
    ran.code(0).stdout("18446744073709551615\n");
    let line =
        "\u{feff}{\"id\": \"b\", \"script_type\": \"python\", \"script\": \"print(6 * 7)\"}\n";
    hero.run(&["submit", "--batch", &file("marked.jsonl", line)]).code(0);
    until(&redis, "b", "finished");
    let large = file("large.env", &format!("A={}\n", "x".repeat(128 << 10)));
    hero.run(&["submit", "-t", "python", "--env-file", &large, "-e", "1"])
        .code(65)
        .says("the kernel passes at most");
    let open = "# /// script\n# dependencies = [\"tabulate\"]\n\n# ///\nprint(1)\n";
    let said = "metadata: line 1: this block is not closed: a line `# ///` must come before line 3";
    hero.run(&["exec", "-t", "python", "-e", open]).code(1).says(said);
}

#[test]
fn script_knows_its_user_and_its_attempt() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.retry_backoff", "\"1ms\"");
    let _bash = hero.actor("bash-default-1").start();
    let _supervisor = hero.supervisor().start();
    let script = "echo $HERO_ATTEMPT $HERO_ATTEMPTS_LEFT; test $HERO_ATTEMPT = 2";
    let words = ["exec", "-t", "bash", "--retries", "3", "-e", script];
    hero.run(&words).code(0).stdout("2 2\n");
    let user =
        hero.run(&["exec", "-t", "bash", "-e", "test \"$USER\" = \"$(id -un)\" && echo $LOGNAME"]);
    let user = user.code(0).stdout;
    assert!(!user.trim().is_empty(), "{user}");
}

#[test]
fn actions_of_heroscript_run_in_a_type_of_rhai() {
    let redis = Redis::start();
    let folder = tempfile::tempdir().expect("a folder");
    let module = "fn person_define(p) { `${p.name} is ${p.age}` }";
    std::fs::write(folder.path().join("person.rhai"), module).expect("written");
    let hero = Hero::on(&redis).set("type.osis.modules", &format!("[{:?}]", folder.path()));
    let _osis = hero.actor("osis-default-1").start();
    let script = "!!person.define name:'Ann' age:30";
    hero.run(&["exec", "-t", "osis", "-e", script]).code(0).stdout("Ann is 30\n");
    hero.run(&["exec", "-t", "osis", "-e", "40 + 2"]).code(0).stdout("42\n");
}

/// Makes an environment of the Python of this machine, without a program for that. Returns its folder of modules.
fn python_environment(folder: &Path) -> Option<PathBuf> {
    let of_system = std::fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path());
    let library = of_system.filter(|path| path.join("os.py").is_file()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3."))
    })?;
    let modules = folder.join("lib").join(library.file_name()?).join("site-packages");
    std::fs::create_dir_all(&modules).ok()?;
    std::fs::create_dir(folder.join("bin")).ok()?;
    std::os::unix::fs::symlink("/usr/bin/python3", folder.join("bin/python")).ok()?;
    std::fs::write(folder.join("pyvenv.cfg"), "home = /usr/bin\n").ok()?;
    Some(modules)
}

#[test]
fn warm_interpreter_is_started_again_once_a_module_that_it_preloads_changes() {
    let redis = Redis::start();
    let folder = redis.folder().join("environment");
    let Some(modules) = python_environment(&folder) else { return };
    let module = modules.join("prices.py");
    std::fs::write(&module, "VALUE = 1\n").expect("a module");
    let command = format!("[\"{}/bin/python\", \"{{script}}\"]", folder.display());
    let hero = Hero::on(&redis)
        .set("type.python.command", &command)
        .set("type.python.warm", "true")
        .set("type.python.preload", "[\"prices\"]")
        .set("type.python.sandbox.read", &format!("[{:?}]", redis.folder().display().to_string()));
    let _actor = hero.actor("python-default-1").start();
    let script = "import prices, sys; print(prices.VALUE, 'ctypes' in sys.modules)";
    let answer = || hero.run(&["exec", "-t", "python", "-e", script]).code(0).stdout;
    wait_until("it is warm", || answer() == "1 True\n");
    std::fs::write(&module, "VALUE = 1234\n").expect("a module");
    wait_until("the new module is warm", || answer() == "1234 True\n");
}
