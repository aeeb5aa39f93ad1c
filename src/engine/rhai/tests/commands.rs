//! Commands and files, as scripts of `sal` use them.

use super::*;

#[test]
fn command_returns_its_output_and_exit_code() {
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
fn long_command_is_run_from_a_file() {
    let source = "let c = \"echo \"; c.pad(300000, \"x\"); run_silent(c).stdout.len";
    assert_eq!(output(&sal(), source), "299995");
}

#[test]
fn failed_command_throws_an_error_that_can_be_caught() {
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
fn command_output_is_logged_unless_silent() {
    let run = run(
        &sal(),
        "run_command(\"echo a; echo b >&2\"); run_silent(\"echo c\"); run(\"echo d\").log().execute();",
    );
    let mut lines: Vec<String> = run.log.into_iter().map(|(_, line)| line).collect();
    lines[..2].sort();
    assert_eq!(lines, ["a", "b", "echo d", "d"]);
}

#[test]
fn command_ends_with_its_job() {
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
fn file_error_names_the_operation_and_the_file() {
    let engine = sal();
    for (source, expected) in [
        ("file_read(\"/no/such\")", "file_read /no/such: no such file or directory"),
        ("file_read(\"\")", "file_read: the path is empty"),
        ("file_read(\"/dev/zero\")", "file_read /dev/zero: not a regular file"),
        ("file_read(\"/tmp\")", "file_read /tmp: not a regular file"),
        ("file_write(\"/dev/null/x\", \"\")", "file_write /dev/null/x: /dev/null is not a folder"),
        ("file_write(\"/dev/null\", \"\")", "file_write /dev/null: not a regular file"),
        ("mkdir(\"/dev/null/x\")", "mkdir /dev/null/x: not a directory"),
        ("delete(\"/\")", "delete /: the root folder cannot be deleted"),
        ("run_command(\"printf '\\\\377' > f\"); file_read(\"f\")", "file_read f: not UTF-8 text"),
        (
            "run_command(\"truncate -s 100000001 f\"); file_read(\"f\")",
            "file_read f: larger than 100000000 bytes",
        ),
        ("run_command(\"mkfifo f\"); file_read(\"f\")", "file_read f: not a regular file"),
    ] {
        let message = message(&engine, source);
        assert!(message.starts_with(expected), "{source}: {message}");
    }
}

#[test]
fn which_and_env_get_match_the_environment_of_commands() {
    let engine = sal();
    assert!(output(&engine, "which(\"sh\")").ends_with("/sh"));
    assert_eq!(output(&engine, "which(\"no-such-program\") == ()"), "true");
    assert_eq!(output(&engine, "env_get(\"GREETING\") + env_get(\"LC_CTYPE\")"), "helloC.UTF-8");
    assert_eq!(output(&engine, "env_get(\"CARGO_MANIFEST_DIR\") == ()"), "true");
    assert_eq!(output(&engine, "env_get(\"HOME\") == run_command(\"pwd\").stdout"), "true");
}

#[test]
fn folder_of_a_script_is_removed_after_it() {
    let engine = sal();
    let folder = output(&engine, "file_write(\"f\", \"\"); env_get(\"HOME\")");
    assert!(folder.contains("job-") && !std::path::Path::new(&folder).exists(), "{folder}");
}

#[test]
fn script_that_ends_in_a_command_that_was_not_run_fails() {
    let message = message(&sal(), "run(\"touch f\").silent()");
    assert!(message.contains("call `.execute()`"), "{message}");
}

#[test]
fn value_without_a_text_is_output_as_its_type_name() {
    assert_eq!(output(&sal(), "git_tree_new(script_dir())"), "GitTree");
    assert_eq!(output(&sal(), "[git_tree_new(script_dir())]"), r#"["GitTree"]"#);
}
