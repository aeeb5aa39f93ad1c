//! Tests of the command engine with real shells.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::*;
use crate::config::{EngineKind, SandboxConfig};
use crate::engine::{Inputs, SecretValues, StopReason, Stream};
use crate::proto::job::AskedBounds;

mod corpus;
mod ends;
mod hidden;

#[derive(Default)]
struct Lines(Mutex<Vec<(Stream, String)>>, Option<std::sync::Arc<Cancel>>);

impl Log for Lines {
    fn line(&self, stream: Stream, line: &str) {
        self.0.lock().expect("a lock").push((stream, line.to_owned()));
        if let Some(cancel) = &self.1 {
            cancel.request(StopReason::Requested);
        }
    }
}

impl Lines {
    fn text(&self) -> Vec<String> {
        self.0.lock().expect("a lock").iter().map(|(_, line)| line.clone()).collect()
    }
}

fn engine_with(command: &[&str], output_size_max: u64, kill_grace_ms: u64) -> CommandEngine {
    engine_of(command, output_size_max, kill_grace_ms, OutputOverflow::Fail)
}

fn engine_of(
    command: &[&str],
    output_size_max: u64,
    kill_grace_ms: u64,
    output_overflow: OutputOverflow,
) -> CommandEngine {
    let config = TypeConfig {
        engine: EngineKind::Command,
        command: command.iter().map(|&part| part.to_owned()).collect(),
        extension: ".sh".to_owned(),
        sandbox: SandboxConfig { write: vec![std::env::temp_dir()], ..SandboxConfig::default() },
        ..TypeConfig::default()
    };
    let kill_grace = Duration::from_millis(kill_grace_ms);
    let job = JobConfig { output_size_max, output_overflow, kill_grace, ..JobConfig::default() };
    CommandEngine::new("bash".parse().expect("legal"), &config, &job)
}

fn bash() -> CommandEngine {
    engine_with(&["/bin/bash", "{script}"], 1_000_000, 5_000)
}

struct Job {
    env: BTreeMap<String, String>,
    inputs: Inputs,
    timeout_ms: u64,
    cancel: std::sync::Arc<Cancel>,
    log: Lines,
}

impl Default for Job {
    fn default() -> Self {
        let (env, cancel) = (BTreeMap::new(), std::sync::Arc::default());
        Self { env, inputs: Inputs::default(), timeout_ms: 60_000, cancel, log: Lines::default() }
    }
}

impl Job {
    fn lasting_ms(timeout_ms: u64) -> Self {
        Self { timeout_ms, ..Self::default() }
    }

    /// A job that is stopped when it writes its first line to standard error.
    fn stopped_by_its_first_line() -> Self {
        let mut job = Self::default();
        job.log.1 = Some(job.cancel.clone());
        job
    }

    fn run(&self, engine: &CommandEngine, source: &str) -> Result<Success, Failure> {
        let script = Script {
            job_id: "job-1",
            caller_id: "caller",
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
            env: &self.env,
            args: &[],
            params: &crate::proto::job::Params::new(),
            bounds: &AskedBounds::default(),
            secrets: &SecretValues::default(),
            inputs: &self.inputs,
            files: None,
            output_overflow: None,
            deadline: Instant::now() + Duration::from_millis(self.timeout_ms),
        };
        engine.run(&script, &self.cancel, &self.log)
    }
}

fn output(source: &str) -> String {
    Job::default().run(&bash(), source).expect("it succeeds").output.to_string()
}

fn message(result: Result<Success, Failure>) -> String {
    match result {
        Err(Failure::Script { message, .. }) => message,
        other => panic!("no failure of the script: {other:?}"),
    }
}

/// Lists the live processes of a group. A killed process may be a zombie until it is reaped.
fn alive(group: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("proc").flatten();
    processes
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            let fields: Vec<&str> =
                stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
            fields.get(2) == Some(&group) && !matches!(fields.first(), Some(&"Z" | &"X"))
        })
        .collect()
}

/// Waits until a group is empty: `/proc` shows the effect of a kill a moment later.
fn assert_gone(group: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    while !alive(group).is_empty() {
        assert!(Instant::now() < until, "still there: {:?}", alive(group));
        std::thread::yield_now();
    }
}

#[test]
fn standard_output_without_its_last_line_end_is_the_output() {
    assert_eq!(output("printf 'a\\nb\\n\\n'"), "a\nb\n");
    assert_eq!(output("printf 'a\\r\\n'"), "a");
    assert_eq!(output(""), "");
}

#[test]
fn output_that_is_not_utf8_is_unchanged_and_escaped_in_the_log() {
    let job = Job::default();
    let script = "printf 'a\\377\\000b\\n'; printf 'x\\377\\n' >&2";
    let output = job.run(&bash(), script).expect("it succeeds").output;
    assert_eq!(output.as_bytes(), b"a\xff\0b\n");
    assert_eq!(job.log.text(), ["x\\xff"]);
}

#[test]
fn output_of_a_failed_script_is_logged() {
    for (script, expected) in [
        ("echo a; echo b >&2; printf c; exit 3", &["b", "a", "c"][..]),
        ("echo a; kill -9 $$", &["a"]),
        ("exit 1", &[]),
        ("echo a", &[]),
    ] {
        let job = Job::default();
        let _ = job.run(&bash(), script);
        assert_eq!(job.log.text(), expected, "{script}");
    }
    let job = Job::lasting_ms(300);
    assert_eq!(job.run(&bash(), "echo before; sleep 600"), Err(Failure::Timeout));
    assert_eq!(job.log.text(), ["before"]);
    let job = Job::default();
    assert!(job.run(&bash(), "while :; do echo endless; done").is_err());
    assert_eq!(job.log.text(), [""; 0], "it is too much");
}

#[test]
fn only_the_last_lines_of_a_long_failed_output_are_logged() {
    let job = Job::default();
    let failed = job.run(&bash(), "for n in {1..20000}; do echo line $n; done; exit 1");
    assert!(failed.is_err());
    let lines = job.log.text();
    assert_eq!(lines.last().map(String::as_str), Some("line 20000"));
    assert!(lines.len() < 10_000 && lines[0].starts_with("line "), "{}", lines.len());
}

#[test]
fn standard_error_is_logged_line_by_line() {
    let job = Job::default();
    job.run(&bash(), "echo out; echo one >&2; printf two >&2").expect("success");
    assert_eq!(job.log.text(), ["one", "two"]);
}

#[test]
fn environment_is_clean_and_identifies_the_job() {
    let mut job = Job::default();
    job.env.insert("GREETING".to_owned(), "hello $HOME".to_owned());
    job.env.insert("HERO_JOB_ID".to_owned(), "pretended".to_owned());
    let output = job.run(&bash(), "/usr/bin/env; pwd").expect("success").output.to_string();
    let mut names: Vec<&str> = output.lines().filter_map(|line| line.split('=').next()).collect();
    let home = names.pop().expect("the folder").to_owned();
    names.retain(|name| !["_", "SHLVL", "PWD", "OLDPWD"].contains(name));
    names.sort_unstable();
    let mut expected = [&["GREETING"], variable_names().as_slice()].concat();
    expected.sort_unstable();
    assert_eq!(names, expected);
    for line in ["GREETING=hello $HOME", "HERO_JOB_ID=job-1", &format!("HOME={home}")] {
        assert!(output.lines().any(|found| found == line), "{line} is not in {output}");
    }
}

#[test]
fn locale_of_a_job_replaces_the_default() {
    for (name, value) in [("LANG", "C"), ("LC_ALL", "POSIX")] {
        let mut job = Job::default();
        job.env.insert(name.to_owned(), value.to_owned());
        let output =
            job.run(&bash(), "env | grep -E '^(LANG|LC_)'").expect("success").output.to_string();
        assert_eq!(output, format!("{name}={value}"));
    }
}

#[test]
fn invalid_variable_is_rejected_by_name() {
    for (name, value, expected) in [
        ("A=B", "", "environment variable `A=B`: the name contains `=` or a NUL"),
        ("A\0", "", "environment variable `A\\0`: the name contains `=` or a NUL"),
        ("A", "x\0", "environment variable `A`: the value contains a NUL"),
        ("", "x", "environment variable with an empty name"),
    ] {
        let mut job = Job::default();
        job.env.insert(name.to_owned(), value.to_owned());
        assert_eq!(message(job.run(&bash(), "true")), expected);
    }
}

#[test]
fn failure_has_the_exit_code_and_the_last_lines_of_standard_error() {
    let result = Job::default().run(&bash(), "echo bad luck >&2; exit 3");
    assert_eq!(
        result,
        Err(Failure::Script { message: "exit code 3: bad luck".to_owned(), exit_code: Some(3) })
    );
    assert_eq!(message(Job::default().run(&bash(), "exit 4")), "exit code 4");
}

#[test]
fn signal_is_reported_by_its_name() {
    let result = Job::default().run(&bash(), "echo last >&2; kill -9 $$");
    assert_eq!(message(result), "killed by signal 9 (SIGKILL): last");
}

#[test]
fn end_of_a_large_output_is_kept_behind_a_mark_and_the_script_goes_on() {
    let engine = engine_of(&["/bin/bash", "{script}"], 1000, 5_000, OutputOverflow::Truncate);
    let run = |source: &str| Job::default().run(&engine, source).expect("it succeeds").output;
    let text = run("seq 1 100000").to_string();
    assert!(text.len() <= 1000 && text.ends_with("\n99999\n100000"), "{text}");
    let (mark, rest) = text.split_once('\n').expect("lines");
    let cut = 588_895 - rest.len() - 1;
    assert_eq!(mark, format!("[hero: the first {cut} bytes of the output were cut off]"));
    let bytes = run("seq 1 10000; head -c 2000 /dev/urandom; printf '\\377\\376'");
    assert!(bytes.as_bytes().len() <= 1000 && bytes.as_bytes().ends_with(b"\xff\xfe"));
    assert!(bytes.as_bytes().starts_with(b"[hero: the first "));
    let reported = "printf '{\"output\": \"%2000s\"}\\n' x >&$HERO_FD; sleep 60";
    let failed = message(Job::default().run(&engine, reported));
    assert_eq!(failed, "output too large: more than 1000 bytes");
}

#[test]
fn endless_output_is_stopped_at_its_limit() {
    let job = Job::default();
    let engine = engine_with(&["/bin/bash", "{script}"], 100_000, 5_000);
    let result = job.run(&engine, "echo $$ >&2; yes");
    assert_eq!(message(result), "output too large: more than 100000 bytes");
    assert_gone(&job.log.text()[0]);
    let exactly = job.run(&engine, "head -c 100000 /dev/zero").expect("it fits");
    assert_eq!(exactly.output.as_bytes().len(), 100_000);
}

#[test]
fn flood_on_standard_error_does_not_delay_deadline_or_end() {
    assert_eq!(Job::lasting_ms(300).run(&bash(), "yes >&2"), Err(Failure::Timeout));
    let result = Job::default().run(&bash(), "head -c 300000 /dev/zero >&2; echo end >&2; exit 1");
    let message = message(result);
    assert!(message.len() < 20_000 && message.ends_with("end"), "{} bytes", message.len());
}

#[test]
fn scratch_folder_is_always_removed() {
    for (script, timeout_ms) in [
        ("pwd >&2; mkdir a; touch a/b; chmod 0 a", 60_000),
        ("pwd >&2; exit 1", 60_000),
        ("pwd >&2; sleep 600", 300),
    ] {
        let job = Job::lasting_ms(timeout_ms);
        let _ = job.run(&bash(), script);
        let folder = &job.log.text()[0];
        assert!(folder.contains("job-"), "{folder}");
        assert!(!Path::new(folder).exists(), "{folder} is left of {script}");
    }
}

#[test]
fn script_file_replaces_its_placeholder_in_the_command() {
    let engine = engine_with(&["/bin/echo", "--file={script}", "{script}"], 1000, 100);
    let output = Job::default().run(&engine, "").expect("success").output.to_string();
    let (first, second) = output.split_once(' ').expect("two arguments");
    assert_eq!(first, format!("--file={second}"));
    assert!(second.ends_with("/script.sh"), "{second}");
}

#[test]
fn missing_interpreter_is_named() {
    for (command, expected) in [
        ("/usr/bin/no-such-v", "no file /usr/bin/no-such-v, and no no-such-v in PATH"),
        ("no-such-v", "no no-such-v in PATH"),
        ("/etc/passwd", "/etc/passwd is not executable"),
        ("", "no command is configured"),
    ] {
        let engine = engine_with(&[command, "{script}"], 1000, 100);
        assert_eq!(engine.unavailable().as_deref(), Some(expected));
        let failure = Failure::Machine { message: expected.to_owned() };
        assert_eq!(Job::default().run(&engine, ""), Err(failure), "it may come back");
    }
    assert_eq!(
        engine_with(&[], 1000, 100).unavailable().as_deref(),
        Some("no command is configured")
    );
    assert_eq!(bash().unavailable(), None);
}

#[test]
fn interpreter_in_another_folder_is_found_by_its_name() {
    let engine = engine_with(&["/no/such/folder/sh", "{script}"], 1000, 100);
    assert_eq!(engine.unavailable(), None);
    assert_eq!(Job::default().run(&engine, "echo found").expect("success").output, "found");
}

#[test]
fn interpreter_that_cannot_be_executed_fails_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("broken");
    std::fs::write(&file, "#!/no/such/interpreter\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&file, mode).expect("executable");
    let path = file.to_str().expect("text");
    let message = message(Job::default().run(&engine_with(&[path], 1000, 100), ""));
    assert_eq!(message, format!("cannot run {path}: no such file or directory"));
}

#[test]
fn child_gets_its_inputs_in_a_file_if_it_has_any() {
    let by_name = [("a".to_owned(), Some("x \"y\"".into())), ("b".to_owned(), None)].into();
    let inputs = Inputs { by_name, ..Inputs::default() };
    let job = Job { inputs, ..Job::default() };
    let read = job.run(&bash(), "cat \"$HERO_INPUTS\"; stat -c %a \"$HERO_INPUTS\"");
    assert_eq!(read.expect("it succeeds").output, "{\"a\":\"x \\\"y\\\"\",\"b\":null}600");
    let mut pretends = Job::default();
    pretends.env.insert("HERO_INPUTS".to_owned(), "/etc/passwd".to_owned());
    let none = pretends.run(&bash(), "echo \"${HERO_INPUTS-none}\"");
    assert_eq!(none.expect("it succeeds").output, "none");
}
