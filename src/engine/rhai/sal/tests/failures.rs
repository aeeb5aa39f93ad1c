//! Errors of functions: settings that forbid them, messages, and the end of their job.

use super::*;

#[test]
fn forbidden_operation_is_rejected_with_its_setting() {
    let world = ExampleWorld::new();
    let allowed = world.path().join("allowed");
    std::fs::create_dir(&allowed).expect("made");
    std::fs::write(allowed.join("f"), "text").expect("written");
    let engine = sal_with(&SalConfig {
        read: vec![allowed.clone()],
        write: Vec::new(),
        run: false,
        network: false,
        ..SalConfig::default()
    });
    let fine = format!(
        "file_write(\"own\", \"x\"); mv(\"own\", \"moved\"); [file_read(\"moved\"), \
         file_read(\"{}/f\"), exist(script_dir())]",
        allowed.display()
    );
    assert_eq!(world.run(&engine, &fine), Ok("[\"x\",\"text\",true]".to_owned()));
    let (read, write) = ("folders of sal.read", "folders of sal.write");
    let (run, network) = ("sal.run is false", "sal.network is false");
    for (source, setting) in [
        ("file_read(\"/etc/hostname\")", read),
        ("exist(\"/etc\")", read),
        ("find_files(\"/etc\", \"*\")", read),
        ("copy(\"/etc/hostname\", \"x\")", read),
        ("chdir(\"/\")", read),
        ("is_symlink(\"/etc/hostname\")", read),
        ("template_builder_open(\"/etc/hostname\")", read),
        ("symlink(\"/etc\", \"link\"); file_read(\"link/hostname\")", read),
        ("git_tree_new(\"/etc\")", read),
        ("file_write(\"/tmp/x\", \"\")", write),
        ("file_write_append(\"../x\", \"\")", write),
        ("delete(\"/tmp/x\")", write),
        ("mkdir(\"/tmp/x\")", write),
        ("symlink(\"x\", \"/tmp/x\")", write),
        ("file_write(\"x\", \"\"); mv(\"x\", \"/tmp/x\")", write),
        ("symlink(\"/tmp/x\", \"y\"); file_write(\"y\", \"\")", write),
        ("run_command(\"true\")", run),
        ("run(\"true\").ignore_error().execute()", run),
        ("kill(\"nobody\")", run),
        ("package_install(\"nginx\")", run),
        ("systemd_list()", run),
        ("tcp_check(\"127.0.0.1\", 9)", network),
        ("tcp_ping(\"localhost\")", network),
        ("http_status(\"http://127.0.0.1/\")", network),
        ("ssh_ping(\"host\", \"user\")", network),
        ("git_clone(\"https://example.org/x.git\")", network),
        ("download_file(\"http://127.0.0.1/\", \"x\", 0)", network),
        ("rsync(\"host:/x\", \"x\")", network),
    ] {
        let message = refusal(&engine, &world, source);
        assert!(
            message.contains("not allowed") && message.contains(setting),
            "{source}: {message}"
        );
    }
}

#[test]
fn errors_name_the_operation_and_its_object() {
    let world = ExampleWorld::new();
    let curl = has_curl();
    for (source, expected) in [
        ("copy(\"no\", \"x\")", "copy no: no such file or directory"),
        ("copy(\"*.no\", \"x\")", "copy *.no: nothing matches"),
        ("mkdir(\"a\"); copy(\"a\", \"a/b\")", "copy a: a folder cannot be copied into itself"),
        (
            "file_write(\"a\", \"\"); copy(\"a\", \"a\")",
            "copy a: a file cannot be copied onto itself",
        ),
        ("mv(\"no\", \"x\")", "mv no: no such file or directory"),
        ("find_file(\".\", \"*.no\")", "find_file .: nothing matches `*.no`"),
        ("cmd_ensure_exists(\"sh, no-such\")", "cmd_ensure_exists sh, no-such: no no-such in PATH"),
        ("process_get(\"no such process\")", "process_get no such process: no process matches"),
        ("kill(1)", "kill 1: this process cannot be ended by a script"),
        ("kill(\"\")", "kill: the pattern is empty"),
        (
            "http_wait(\"file:///etc/passwd\", 1)",
            "http_wait file:///etc/passwd: a URL must start with",
        ),
        ("download_file(\"http://127.0.0.1:8080/no\", \"x\", 0)", "download_file http://127.0.0.1"),
        ("download_file(\"http://127.0.0.1:8080/\", \"x\", 1)", "download_file http://127.0.0.1"),
        ("package_install(\"--purge\")", "package_install --purge: invalid package name"),
        ("systemd_stop(\"--all\")", "systemd_stop --all: invalid unit name"),
        ("git_clone(\"ext::sh -c true\")", "git_clone ext::sh -c true: Git error: exit code 128"),
        ("git_tree_new(\".\").get(\"no\")", "git get no: no repository matches"),
        ("json_parse(\"{\")", "json_parse: EOF while parsing"),
        ("redis_get(\"x\")", "redis_get x: not allowed: sal.redis_url is not set"),
        ("exec(\"no.rhai\")", "exec no.rhai: no such file or directory"),
        (
            "exec(\"/etc/hostname\")",
            "exec /etc/hostname: not allowed: the script is outside the folders of sal.exec",
        ),
        ("exec(\"http://127.0.0.1:8080/\")", "exec http://127.0.0.1"),
        ("file_write(\"x.rhai\", \"let x = ;\"); exec(\"x.rhai\")", "exec x.rhai: syntax error"),
        (
            "file_write(\"x.rhai\", \"exec(`x.rhai`)\"); exec(\"x.rhai\")",
            "exec x.rhai: exec x.rhai: exec x.rhai: exec x.rhai: exec calls are nested deeper than 3",
        ),
        (
            "fn f(n) { if n > 0 { f(n - 1) } else { exec(\"x.rhai\") } } f(9)",
            "exec x.rhai: exec is called from functions nested deeper than 8",
        ),
        ("time_format(0, \"%!\")", "time_format %!: "),
        ("time_iso(9223372036854775807)", "time_iso 9223372036854775807: the time is out of range"),
        ("text_replacer_new().build()", "text_replacer build: no pattern is set"),
        ("file_size(\".\")", "file_size .: not a file"),
        ("ensure(\"no\")", "ensure no: no such file or directory"),
        ("find_dir(\".\", \"no\")", "find_dir .: nothing matches `no`"),
        (
            "platform_check_macos_arm()",
            "platform_check_macos_arm: this machine is not macOS on ARM",
        ),
        ("repeat(\"a\", -1)", "repeat: the count is negative"),
        (
            "git_tree_new(\".\").get(\"https://example.org/../x\")",
            "git get https://example.org/../x: Git error: ",
        ),
        (
            "file_write(\"t\", \"a\\n{{ b }}\"); template_builder_open(\"t\").render()",
            "render t: undefined value (line 2 of the template)",
        ),
    ] {
        if !curl && source.contains("http://") {
            continue;
        }
        let message = refusal(sal(), &world, source);
        assert!(message.starts_with(expected), "{source}: {message}");
    }
}

#[test]
fn deleting_a_link_keeps_its_target() {
    let source = r#"
        mkdir("kept"); file_write("kept/f", "here");
        mkdir("gone/deep"); symlink("../../kept", "gone/deep/link"); symlink("loop", "gone/loop");
        delete("gone");
        mkdir("a"); symlink("a", "a/self");
        [exist("gone"), file_read("kept/f"), find_files(".", "*")]"#;
    let world = ExampleWorld::new();
    assert_eq!(world.run(sal(), source), Ok(r#"[false,"here",["./kept/f"]]"#.to_owned()));
}

#[test]
fn long_calls_end_with_the_job() {
    let world = ExampleWorld::new();
    let curl = has_curl();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = listener.local_addr().expect("an address");
    let name = world.path().join("bin/ssh");
    std::fs::write(name, "#!/bin/sh\nsleep 600 & wait\n").expect("written");
    file_of_loops(&world.path().join("endless.txt"));
    for source in [
        format!("http_status(\"http://{silent}/\")"),
        format!("loop {{ try {{ http_status(\"http://{silent}/\") }} catch {{ }} }}"),
        "http_wait(\"http://127.0.0.1:1/\", 1000)".to_owned(),
        "ssh_execute(\"host\", \"user\", \"command\")".to_owned(),
        format!("template_builder_open(\"{}/endless.txt\").render()", world.path().display()),
        "loop { try { process_list(\"\") } catch { } }".to_owned(),
    ] {
        if !curl && source.contains("http://") {
            continue;
        }
        let result = world.run_for(sal(), &source, Duration::from_millis(300));
        assert_eq!(result, Err(Failure::Timeout), "{source}");
    }
}

/// Writes a template that renders for a very long time.
fn file_of_loops(path: &Path) {
    let deep = 4;
    let open = "{% for i in range(100000) %}".repeat(deep);
    std::fs::write(path, format!("{open}x{}", "{% endfor %}".repeat(deep))).expect("written");
}

#[test]
fn result_larger_than_a_string_is_rejected() {
    let world = ExampleWorld::new();
    for (source, expected) in [
        (
            "let t = \"a\"; t.pad(1000000, \"a\"); \
             text_replacer_new().pattern(\"a\").replacement(t).build().replace(t)",
            "replace: the result is longer than 10000000 bytes",
        ),
        (
            "file_write(\"t\", \"{% for i in range(99999) %}{{ a }}{% endfor %}\"); \
             let a = \"a\"; a.pad(100000, \"a\"); template_builder_open(\"t\").add_var(\"a\", a).render()",
            "render t: the result is longer than 10000000 bytes",
        ),
        (
            "let all = repeat(\"$0\", 4000000); let t = repeat(\"a\", 4000000); \
             text_replacer_new().pattern(\".+\").replacement(all).regex(true).build().replace(t)",
            "replace: the result is longer than 10000000 bytes",
        ),
        (
            "prefix(repeat(\"\\n\", 4000000), repeat(\"a\", 4000000))",
            "prefix: the result is longer than 10000000 bytes",
        ),
        ("repeat(\"ab\", 9223372036854775807)", "repeat: the result is longer than 10000000 bytes"),
        (
            "let a = repeat(\"a\", 100000); file_write(\"t\", \"{{ a|replace(from=a[0], to=a) }}\"); \
             template_builder_open(\"t\").add_var(\"a\", a).render()",
            "render t: the result of a filter is longer than 10000000 bytes",
        ),
        (
            "file_write(\"t\", \"{{ 'a'|indent(99999999999) }}\"); template_builder_open(\"t\").render()",
            "render t: the result of a filter is longer than 10000000 bytes",
        ),
        (
            "let t = \"[1\"; for i in 0..10000 { t += \",1\"; } json_parse(t + \"]\")",
            "json_parse: more than 10000 elements of arrays, the limit",
        ),
    ] {
        let message = refusal(sal(), &world, source);
        assert!(message.starts_with(expected), "{source}: {message}");
    }
}
