//! Tests of the command engine per language: Python, compiled languages, checks and bad input.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::fill;
use crate::config::{Config, JobConfig};
use crate::engine::process::start::command;
use crate::engine::process::{CommandEngine, find_program};
use crate::engine::{Cancel, Engine, Failure, Inputs, Log, Script, SecretValues, Stream, Success};
use crate::proto::job::AskedBounds;
use crate::test_support::needs;

mod compiled;
mod extensions;
mod packages;

#[derive(Default)]
pub(in crate::process) struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn progress(&self, fraction: f64, text: &str) {
        self.line(Stream::Stdout, &format!("{fraction} {text}"));
    }

    fn line(&self, _: Stream, line: &str) {
        self.0.lock().expect("a lock").push(line.to_owned());
    }
}

/// A Python script that prints the attributes of its own process.
pub(in crate::process) const OBSERVABLES: &str = include_str!("../tests/observables.py");

/// Returns false where packages of Python cannot be installed: the test is skipped.
pub(in crate::process) fn can_install_packages() -> bool {
    let has_module = |name: &str| {
        let mut python = command("/usr/bin/python3".as_ref());
        let ran = python.args(["-m", name, "--version"]).output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    needs("python3-venv", || has_module("pip") || has_module("ensurepip"))
}

/// A folder for the cache and the files of a test.
pub(in crate::process) struct World {
    folder: tempfile::TempDir,
    pub(in crate::process) log: Lines,
}

impl World {
    pub(in crate::process) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), log: Lines::default() }
    }

    /// Writes an executable file.
    pub(in crate::process) fn program(&self, name: &str, text: &str) -> String {
        let file = self.folder.path().join(name);
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("executable");
        self.path(name)
    }

    pub(in crate::process) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("text").to_owned()
    }

    /// Returns an engine for a script type with these keys of the configuration.
    pub(in crate::process) fn engine(&self, script_type: &str, keys: &str) -> CommandEngine {
        self.engine_in(script_type, keys, "")
    }

    /// Does the same with keys of its sandbox.
    pub(in crate::process) fn engine_in(
        &self,
        script_type: &str,
        keys: &str,
        sandbox_keys: &str,
    ) -> CommandEngine {
        // The compilers of the tests write into the folder of the test.
        let own = format!(
            "[type.{script_type}.sandbox]\nwrite = [{:?}]\n{sandbox_keys}",
            self.folder.path()
        );
        let text = format!("[type.{script_type}]\n{keys}\n{own}\n");
        let config = Config::from_toml("hero.toml".as_ref(), &text).expect("legal");
        let name = script_type.parse().expect("legal");
        let job = JobConfig {
            cache_dir: self.folder.path().join("cache"),
            kill_grace: Duration::from_secs(2),
            ..JobConfig::default()
        };
        let of_type = &config.types[&name];
        CommandEngine::new(name.clone(), of_type, &job)
    }

    pub(in crate::process) fn run(
        &self,
        engine: &CommandEngine,
        source: &str,
    ) -> Result<Success, Failure> {
        self.run_with(engine, source, &BTreeMap::new())
    }

    pub(in crate::process) fn run_with(
        &self,
        engine: &CommandEngine,
        source: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<Success, Failure> {
        let script = Script {
            job_id: "job-1",
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
            env,
            args: &[],
            params: &crate::proto::job::Params::new(),
            bounds: &AskedBounds::default(),
            secrets: &SecretValues::default(),
            inputs: &Inputs::default(),
            files: None,
            output_overflow: None,
            deadline: Instant::now() + Duration::from_mins(5),
        };
        engine.run(&script, &Cancel::new(), &self.log)
    }

    pub(in crate::process) fn output(&self, engine: &CommandEngine, source: &str) -> String {
        self.run(engine, source).expect(source).output.to_string()
    }

    pub(in crate::process) fn message(&self, engine: &CommandEngine, source: &str) -> String {
        match self.run(engine, source) {
            Err(Failure::Script { message, .. } | Failure::Invalid { message }) => message,
            other => panic!("no failure of the script: {other:?}"),
        }
    }

    pub(in crate::process) fn log(&self) -> String {
        self.log.0.lock().expect("a lock").join("\n")
    }

    /// Builds a wheel with the module `greeting`, and returns the configuration that installs it.
    pub(in crate::process) fn wheel(&self) -> String {
        let source = "import sys, zipfile\n\
            with zipfile.ZipFile(sys.argv[1] + '/greeting-1.0-py3-none-any.whl', 'w') as wheel:\n    \
                info = 'greeting-1.0.dist-info/'\n    \
                wheel.writestr('greeting.py', 'def hello(): return \"hello\"\\n')\n    \
                wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: greeting\\nVersion: 1.0\\n')\n    \
                wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n    \
                wheel.writestr(info + 'RECORD', '')\n";
        let script = self.path("make.py");
        fs::write(&script, source).expect("written");
        let mut python = command("/usr/bin/python3".as_ref());
        let made = python.arg(script).arg(self.folder.path()).status().expect("it runs");
        assert!(made.success());
        format!("dependencies = {{ index = \"none\", find_links = [{:?}] }}", self.folder.path())
    }
}

#[test]
fn placeholders_are_replaced_and_other_braces_are_kept() {
    let (script, binary) = ("/s".as_ref(), Some("/b".as_ref()));
    for (word, filled) in [
        ("{script}", "/s"),
        ("-o={binary}:{script}{", "-o=/b:/s{"),
        ("{}{x}{{script}}", "{}{x}{/s}"),
        ("plain", "plain"),
    ] {
        assert_eq!(fill(word, script, binary), filled);
    }
    assert_eq!(fill("{binary}", script, None), "{binary}");
}

#[test]
fn an_exception_becomes_the_error_and_the_log_has_the_traceback() {
    let world = World::new();
    let python = world.engine("python", "");
    let source = "def half(n):\n    return 1 / n\n\nhalf(0)\n";
    let message = "ZeroDivisionError: division by zero (line 2, in half)".to_owned();
    let failure = Failure::Script { message, exit_code: Some(1) };
    assert_eq!(world.run(&python, source), Err(failure));
    assert!(world.log().contains("Traceback") && world.log().contains("line 4, in <module>"));
    assert_eq!(world.message(&python, "x = 1\nif x\n"), "SyntaxError: expected ':' (line 2)");
    assert_eq!(world.message(&python, "import sys\nsys.exit('no')"), "exit code 1: no");
    assert_eq!(world.message(&python, "import sys\nsys.exit(3)"), "exit code 3");
}

#[test]
fn the_module_hero_reports_progress_log_and_output() {
    let world = World::new();
    let python = world.engine("python", "");
    let source = "import hero\nprint('not this')\nhero.progress(0.25, 'a')\nhero.log('b', 1)\n\
        hero.output({'c': [1, hero.inputs]})\n";
    assert_eq!(world.output(&python, source), "{\"c\":[1,{}]}");
    assert_eq!(world.log(), "0.25 a\nb 1");
    assert_eq!(world.output(&python, "import json\nprint(json.dumps(1))"), "1");
    let message = world.message(&python, "import hero\nhero.output(float('nan'))");
    assert!(message.starts_with("ValueError: Out of range float"), "{message}");
}

#[test]
fn scripts_with_byte_order_marks_and_crlf_run() {
    let world = World::new();
    let (python, bash) = (world.engine("python", ""), world.engine("bash", ""));
    for (engine, source, output) in [
        (&python, "\u{feff}print('ä')", "ä"),
        (&python, "if True:\r\n    print(1)\r\n", "1"),
        (&python, "print(2)", "2"),
        (&python, "", ""),
        (&bash, "\u{feff}echo 1", "1"),
        (&bash, "if true; then\r\necho a\r\nfi\r\n", "a"),
        (&bash, "echo b", "b"),
    ] {
        assert_eq!(world.output(engine, source), output, "{source:?}");
    }
}

#[test]
fn a_nul_makes_the_job_invalid_with_its_line() {
    let world = World::new();
    for name in ["python", "bash"] {
        let engine = world.engine(name, "");
        let result = world.run(&engine, "one\ntwo \0");
        let message = "invalid job: script has a NUL in line 2".to_owned();
        assert_eq!(result, Err(Failure::Invalid { message }));
    }
}

#[test]
fn the_error_names_the_signal_that_killed_the_interpreter() {
    let world = World::new();
    let dying = world.program("dying", "#!/bin/sh\nkill -9 $$\n");
    let engine =
        world.engine("x", &format!("engine = \"command\"\ncommand = [{dying:?}, \"{{script}}\"]"));
    assert_eq!(world.message(&engine, "1"), "killed by signal 9 (SIGKILL)");
}

#[test]
fn variables_of_the_job_override_those_of_its_type() {
    let world = World::new();
    let keys = format!(
        "env = {{ A = \"type\", B = \"type\", HERO_JOB_ID = \"x\" }}\ncwd = {:?}",
        world.path("")
    );
    let bash = world.engine("bash", &keys);
    let env = BTreeMap::from([("B".to_owned(), "job".to_owned())]);
    let script = Script {
        job_id: "job-1",
        caller_id: "",
        context_id: "",
        token_bounds: None,
        attempt: 1,
        traceparent: None,
        attempts_left: 0,
        started_at: None,
        state: None,
        event: None,
        source: "echo $A $B $HERO_JOB_ID; pwd",
        extension: "",
        env: &env,
        args: &[],
        params: &crate::proto::job::Params::new(),
        bounds: &AskedBounds::default(),
        secrets: &SecretValues::default(),
        inputs: &Inputs::default(),
        files: None,
        output_overflow: None,
        deadline: Instant::now() + Duration::from_mins(1),
    };
    let output = bash.run(&script, &Cancel::new(), &world.log).expect("success").output.to_string();
    let folder = world.folder.path().canonicalize().expect("there");
    assert_eq!(output, format!("type job job-1\n{}", folder.display()));
}

#[test]
fn a_check_finds_the_error_and_runs_nothing() {
    let world = World::new();
    let marker = world.path("ran");
    for (name, good, bad, expected) in [
        ("bash", format!("touch {marker}"), "if true; then", "script.sh: line"),
        ("python", format!("open({marker:?}, 'w')"), "def f(:", "SyntaxError"),
    ] {
        let engine = world.engine(name, "");
        assert_eq!(engine.check(&good, ""), Ok(None), "{name}");
        let found = engine.check(bad, "").expect("checked").expect("an error");
        assert!(found.contains(expected) && !found.contains("/job-"), "{found}");
        assert!(engine.check("a\0", "").expect("checked").is_some());
    }
    assert!(!Path::new(&marker).exists());
}
