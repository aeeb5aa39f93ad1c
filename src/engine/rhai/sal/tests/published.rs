//! The answers that scripts of the published SAL crates expect. `make test-sal-original` compares more of
//! them with the crates' answers.

use std::sync::Mutex;

use super::*;

fn output(source: &str) -> String {
    let world = ExampleWorld::new();
    world.run(sal(), source).unwrap_or_else(|failure| panic!("{source}: {failure}"))
}

fn assert_outputs(cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        assert_eq!(output(source), *expected, "{source}");
    }
}

#[test]
fn missing_folders_of_a_new_file_are_created() {
    assert_outputs(&[
        ("file_write(\"a/b/f\", \"x\"); file_read(\"a/b/f\")", "x"),
        ("file_write_append(\"a/b/f\", \"x\"); file_read(\"a/b/f\")", "x"),
        ("file_write(\"f\", \"x\"); copy(\"f\", \"a/b/g\"); file_read(\"a/b/g\")", "x"),
        ("try { copy(\"no\", \"a/b/g\") } catch { } exist(\"a\")", "false"),
        ("mkdir(\"d\"); copy(\"d\", \"a/e\"); exist(\"a/e\")", "true"),
        ("git_tree_new(\"code/new\").list().len", "0"),
    ]);
    if has_curl() {
        let source =
            "download_file(\"http://127.0.0.1:8080/\", \"a/b/f\", 0); file_read(\"a/b/f\")";
        assert_outputs(&[(source, "hello")]);
    }
}

#[test]
fn first_of_several_files_is_found_and_a_direct_folder_before_deeper_ones() {
    let files =
        "file_write(\"d/z\", \"\"); file_write(\"d/a/y\", \"\"); file_write(\"d/a/a/x\", \"\");";
    assert_outputs(&[
        (&format!("{files} find_file(\"d\", \"*\")"), "d/a/a/x"),
        (&format!("{files} find_dir(\"d\", \"a\")"), "d/a"),
        (&format!("{files} mkdir(\"d/a/deep\"); find_dir(\"d\", \"de*\")"), "d/a/deep"),
    ]);
}

#[test]
fn names_and_indentation_are_changed_as_by_the_published_crates() {
    assert_outputs(&[
        ("name_fix(\"Hello, World!\")", "hello_world_"),
        ("name_fix(\"User's File [Draft].txt\")", "user_s_file_draft_.txt"),
        ("name_fix(\"__a: b/c~\")", "__a:_b/c~"),
        ("name_fix(\"Café\")", "caf"),
        ("path_fix(\"/To/My File.txt\")", "/To/my_file.txt"),
        ("dedent(\"    a\\n\\tb\")", "a\nb"),
        ("text_replacer_new().pattern(\"a\").replacement(\"b\").and().build().replace(\"a\")", "b"),
        ("name_fix_kubernetes(\"-My  App_v2!\")", "my-app-v2"),
        ("pad_left(\"é\", 3) + pad_right(\"b\", 2) + repeat(\"-\", 2)", "  éb --"),
    ]);
}

#[test]
fn failed_question_to_the_network_has_a_value_and_its_reason_in_the_log() {
    let world = ExampleWorld::new();
    let ssh = world.path().join("bin/ssh");
    std::fs::write(ssh, "#!/bin/sh\necho part\necho unknown host >&2\nexit 255\n")
        .expect("written");
    let mut cases = vec![
        ("tcp_check(\"\", 80)", "false", "tcp_check :80: invalid host name"),
        ("net_tcp_check(\"-x y\", 80)", "false", "net_tcp_check -x y:80: invalid host name"),
        ("tcp_check(\"127.0.0.1\", 70000)", "false", "a port must be a number"),
        ("tcp_ping(\"-x\")", "false", "tcp_ping -x: invalid host name"),
        ("ssh_ping(\"\", \"user\")", "false", "invalid host name"),
        (
            "ssh_execute(\"host\", \"user\", \"true\")",
            "255",
            "ssh_execute host: ssh: exit code 255: unknown host",
        ),
        ("ssh_execute(\"-oProxyCommand=x\", \"u\", \"c\")", "255", "invalid host name"),
        ("ssh_execute(\"host\", \"-o\", \"c\")", "255", "invalid user name"),
        (
            "ssh_execute_output(\"host\", \"user\", \"c\")",
            "part",
            "ssh_execute_output host: ssh: exit code 255",
        ),
        ("http_status(\"file:///etc/passwd\")", "-1", "a URL must start with http:// or https://"),
        ("http_check(\"not a url\")", "false", "a URL must start with http:// or https://"),
    ];
    if has_curl() {
        cases.extend([
            (
                "http_status(\"http://127.0.0.1:1/\")",
                "-1",
                "http_status http://127.0.0.1:1/: curl: exit code 7",
            ),
            ("http_status(\"http://127.0.0.1:8080/away\")", "-1", "curl: exit code 1"),
            ("http_check(\"http://127.0.0.1:8080/missing\")", "false", ""),
            (
                "http_ping(\"http://127.0.0.1:1/\")",
                "false",
                "http_ping http://127.0.0.1:1/: curl: ",
            ),
        ]);
    }
    for (source, expected, reason) in cases {
        let log = Lines::default();
        let output = world.run_logged(sal(), source, Duration::from_mins(1), &log);
        let output = output.unwrap_or_else(|failure| panic!("{source}: {failure}")).output;
        assert_eq!(output.to_string(), expected, "{source}");
        let lines = log.0.into_inner().expect("no panic").join("\n");
        assert!(lines.contains(reason), "{source}: {lines}");
        assert_eq!(lines.is_empty(), reason.is_empty(), "{source}: {lines}");
    }
}

#[test]
fn forbidden_question_to_the_network_is_an_error() {
    let world = ExampleWorld::new();
    let engine = sal_with(&SalConfig { run: false, ..SalConfig::default() });
    for source in [
        "tcp_ping(\"localhost\")",
        "http_check(\"http://127.0.0.1:1/\")",
        "http_status(\"http://127.0.0.1:1/\")",
        "http_wait(\"http://127.0.0.1:1/\", 1)",
        "ssh_execute(\"host\", \"user\", \"true\")",
        "ssh_execute_output(\"host\", \"user\", \"true\")",
        "ssh_ping(\"host\", \"user\")",
    ] {
        let message = refusal(&engine, &world, source);
        assert!(message.contains("not allowed: sal.run is false"), "{source}: {message}");
    }
    // A connection needs no program.
    assert_eq!(world.run(&engine, "tcp_check(\"\", 1)"), Ok("false".to_owned()));
}

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn line(&self, _: Stream, text: &str) {
        self.0.lock().expect("no panic").push(text.to_owned());
    }
}

/// Renders a template with the values.
fn rendered(template: &str, values: &str) -> String {
    let values = if values.is_empty() { "#{}" } else { values };
    output(&format!(
        "file_write(\"t\", `{template}`); template_open(\"t\").add_vars({values}).render()"
    ))
}

#[test]
fn templates_have_the_filters_functions_and_tests_of_tera() {
    for (template, values, expected) in [
        ("{{ a }} {{ b }} {{ c }}", "#{a: true, b: 1.5, c: 2.0}", "true 1.5 2"),
        ("{% if no %}yes{% else %}no{% endif %}", "", "no"),
        ("{{ no | default(value=\"none\") }}{{ no | default(1) }}", "", "none1"),
        (
            "{{ a | truncate(length=5) }}{{ a | truncate(length=2, end=\"-\") }}",
            "#{a: \"Hello World\"}",
            "Hello…He-",
        ),
        ("{{ a | join(sep=\", \") }}{{ a | join }}", "#{a: [\"x\", \"y\"]}", "x, yxy"),
        (
            "{{ a | nth(n=1) }}{{ a | slice(start=1) | join }}{{ a | slice(end=-1) | join }}",
            "#{a: [1, 2, 3]}",
            "22312",
        ),
        ("{{ a | replace(from=\"l\", to=\"L\") }}", "#{a: \"hello\"}", "heLLo"),
        ("{{ a | trim_start }}|{{ a | trim_end }}|", "#{a: \" x \"}", "x | x|"),
        (
            "{{ a | trim_start_matches(pat=\"x\") }}{{ a | trim_end_matches(pat=\"x\") }}",
            "#{a: \"xax\"}",
            "axxa",
        ),
        (
            "{{ a | split(pat=\" \") | concat(with=\"c\") | join(sep=\"-\") }}",
            "#{a: \"a b\"}",
            "a-b-c",
        ),
        (
            "{{ a | wordcount }}{{ a | slugify }}{{ a | urlencode_strict }}",
            "#{a: \"A b\"}",
            "2a-bA%20b",
        ),
        ("{{ a | striptags }}{{ a | spaceless }}", "#{a: \"<b> <i>x\"}", " x<b><i>x"),
        ("{{ a | indent(prefix=\"> \") }}", "#{a: \"a\\nb\"}", "a\n> b"),
        ("{{ 2.14 | round(method=\"ceil\", precision=1) }}{{ 2.1 | round }}", "", "2.22"),
        ("{{ 2 | pluralize }}{{ 1 | pluralize(singular=\"y\", plural=\"ies\") }}", "", "sy"),
        ("{{ 123456 | filesizeformat }} {{ 1024 | filesizeformat }}", "", "120.56 kB 1 kB"),
        (
            "{{ a | json_encode }}",
            "#{a: [1, \"b\", #{c: ()}, 1.5, true]}",
            "[1,\"b\",{\"c\":null},1.5,true]",
        ),
        ("{{ a | get(key=\"b\") }}{{ a | get(key=\"c\", default=2) }}", "#{a: #{b: 1}}", "12"),
        (
            "{{ a | filter(attribute=\"b\", value=1) | length }}",
            "#{a: [#{b: 1}, #{b: 2}, #{}]}",
            "1",
        ),
        (
            "{{ (a | group_by(attribute=\"b\"))[\"x\"] | length }}",
            "#{a: [#{b: \"x\"}, #{b: \"x\"}]}",
            "2",
        ),
        (
            "{{ 86400 | date }} {{ 0 | date(format=\"%H:%M\", timezone=\"Asia/Tokyo\") }}",
            "",
            "1970-01-02 09:00",
        ),
        (
            "{{ \"2024-02-03\" | date(format=\"%d.%m.\") }}{{ \"2024-02-03T01:00:00+02:00\" | date(format=\"%H\") }}",
            "",
            "03.02.01",
        ),
        (
            "{{ now() | date(format=\"%Y\") | length }}{{ now(timestamp=true) > 1700000000 }}",
            "",
            "4true",
        ),
        (
            "{% for i in range(end=3) %}{{ i }}{% endfor %}{% for i in range(start=2, end=8, step_by=3) %}{{ i }}{% endfor %}{% for i in range(2) %}{{ i }}{% endfor %}",
            "",
            "0122501",
        ),
        (
            "{{ a is starting_with(\"x\") }}{{ a is ending_with(\"x\") }}{{ a is containing(\"y\") }}{{ a is matching(\"^x.$\") }}",
            "#{a: \"xy\"}",
            "truefalsetruetrue",
        ),
        (
            "{{ get_env(name=\"NO\", default=\"unset\") }}{{ get_random(start=7, end=8) }}",
            "",
            "unset7",
        ),
    ] {
        assert_eq!(rendered(template, values), expected, "{template}");
    }
}

#[test]
fn wrong_parameters_and_too_long_results_of_filters_are_errors() {
    let world = ExampleWorld::new();
    // A chain of forty doublings reaches any limit; this one soon.
    let small = sal_of(&of_temporary_folder(), 100_000);
    for (template, reason) in [
        ("{{ no }}", "undefined value"),
        (&chain("{{ \"'\"", "|addslashes", " }}"), "the result of a filter is longer than"),
        (&chain("{{ \"'\"", "|json_encode", " }}"), "the value is too long for a text of JSON"),
        (
            &chain("{% set a = 1 %}", "{% set a = [a, a] %}", "{{ a|json_encode }}"),
            "the value is too long",
        ),
        (
            &chain("{% set a = 1 %}", "{% set a = [a, a] %}", "{{ a|join }}"),
            "the result of a filter is",
        ),
        (
            &chain("{% set a = 1 %}", "{% set a = [a, a] %}", "{{ a|as_str }}"),
            "the result of a filter is",
        ),
        (&chain("{% set a = [1, 2] %}", "{% set a = a|concat(with=a) %}", ""), "more than "),
        ("{{ throw(message=\"stop here\") }}", "stop here"),
        ("{{ 1 | date(format=\"%!\") }}", ""),
        ("{{ \"a\" | truncate(size=1) }}", "unknown keyword argument 'size'"),
        ("{{ \"a\" | replace(from=\"a\") }}", "no parameter `to`"),
        ("{{ \"a\" is matching(\"(\") }}", "invalid regular expression"),
    ] {
        let source = format!("file_write(\"t\", `{template}`); template_open(\"t\").render()");
        let message = refusal(&small, &world, &source);
        assert!(message.starts_with(&format!("render t: {reason}")), "{template}: {message}");
    }
}

/// Returns a template that does the same forty times.
fn chain(start: &str, step: &str, end: &str) -> String {
    format!("{start}{}{end}", step.repeat(40))
}

#[test]
fn values_are_escaped_in_templates_of_html() {
    let of = |name: &str| {
        output(&format!(
            "file_write(\"{name}\", `{{{{ a }}}}{{{{ a|safe }}}}{{{{ true }}}}`); \
             template_open(\"{name}\").add_var(\"a\", \"<&\").render()"
        ))
    };
    assert_eq!(of("t.html"), "&lt;&amp;<&true");
    assert_eq!(of("t.txt"), "<&<&true");
}

#[test]
fn tree_clones_a_url_once() {
    let world = ExampleWorld::new();
    world.make_origin(sal());
    let source = r#"
        run_silent(`git config --global url.file://$ORIGIN.insteadOf https://git.invalid/ann/site.git`);
        let tree = git_tree_new("code");
        let first = tree.get("https://git.invalid/ann/site.git");
        file_write(first.path() + "/new", "");
        let again = tree.get("https://git.invalid/ann/site");
        [first.path().ends_with("/code/git.invalid/ann/site"), again.has_changes(), tree.list().len,
         tree.get("site").path() == again.path()]"#;
    assert_eq!(world.run(sal(), source), Ok("[true,true,1,true]".to_owned()));
    for url in
        ["https://git.invalid/ann", "http://git.invalid/../x", "git@git.invalid:/x", "https:///a/b"]
    {
        let message = refusal(sal(), &world, &format!("git_tree_new(\"code\").get(\"{url}\")"));
        assert!(message.contains("Git error: not the URL of a repository"), "{url}: {message}");
    }
}

#[test]
fn processes_are_listed_by_name_before_command_line() {
    let world = ExampleWorld::new();
    let name = format!("p{}", fastrand::u32(100_000_000..));
    let link = world.path().join(&name);
    std::os::unix::fs::symlink("/bin/sleep", &link).expect("linked");
    let start = |program: &Path, args: &[&str]| {
        let args = args.iter().map(Into::into).collect();
        let spec = ServiceSpec { program: program.into(), args, ..ServiceSpec::default() };
        Service::start(spec).expect("it starts")
    };
    let mut by_name = start(&link, &["1000000"]);
    let path = link.display().to_string();
    let mut by_command =
        start(Path::new("/usr/bin/tail"), &["-q", "-n", "0", "-f", "/dev/null", &path]);
    let source = format!(
        "while !process_list(\"null {path}\").some(|found| found.name == \"tail\")
                 || process_list(\"{name}\")[0].name != \"{name}\" {{ sleep(0.01) }}
         let found = [process_get(\"{name}\").name, process_get(\"null {path}\").name];
         found.push(kill(\"{name}\"));
         found"
    );
    let expected = format!("[\"{name}\",\"tail\",\"Successfully killed 2 processes\"]");
    assert_eq!(world.run(sal(), &source), Ok(expected));
    by_name.wait().expect("ended");
    by_command.wait().expect("ended");
}

/// A program of Hero is one with the same file name as this one.
#[test]
fn kill_by_name_spares_programs_of_hero_and_their_parents() {
    let world = ExampleWorld::new();
    let seconds = format!("{}.{}", fastrand::u32(100_000_000..), fastrand::u64(1_000_000_000..));
    let own = std::env::current_exe().expect("a path");
    let submitter = world.path().join(own.file_name().expect("a name"));
    std::fs::copy("/bin/sleep", &submitter).expect("copied");
    // 126: the kernel starts no file that a fork of another test still holds open for writing.
    let command = format!("while {} {seconds}; [ $? = 126 ]; do :; done", submitter.display());
    let mut parent = Service::start(ServiceSpec {
        program: "/bin/bash".into(),
        args: vec!["-c".into(), command.into()],
        ..ServiceSpec::default()
    })
    .expect("bash starts");
    // Before it has become the program, a child looks like its parent.
    let runs = format!(
        "process_list(\"{seconds}\").some(|found| found.cmd.starts_with(\"{}\"))",
        submitter.display()
    );
    let both = format!("process_list(\"{seconds}\").len == 2");
    let source = format!("while !{runs} {{ sleep(0.01) }} [kill(\"{seconds}\"), {both}]");
    assert_eq!(world.run(sal(), &source), Ok("[\"No matching processes found\",true]".to_owned()));
    let source =
        format!("for one in process_list(\"{seconds}\") {{ try {{ kill(one.pid) }} catch {{ }} }}");
    world.run(sal(), &source).expect("its pid ends a process");
    parent.wait().expect("ended");
}
