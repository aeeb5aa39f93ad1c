//! Every example of the documentation, run in a world of its own: programs that would change the
//! machine or reach others are played by small scripts, pages by a server on the loopback.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::config::{JobConfig, RhaiLimits, SalConfig};
use crate::engine::process::{SYSTEM_PATH, Service, ServiceSpec};
use crate::engine::rhai::{Function, RhaiEngine};
use crate::engine::{Cancel, Engine, Failure, Log, STACK_SIZE_BYTES, Script, Stream, Success};

/// What plays the programs of the machine.
const PLAYED: [(&str, &str); 10] = [
    (
        "systemctl",
        "case \"$*\" in *list-units*) echo 'nginx.service loaded active running Web';; \
                   *show*) printf 'LoadState=loaded\\nActiveState=active\\nMemoryCurrent=[not set]\\n';; esac",
    ),
    ("journalctl", "echo one; echo two"),
    ("apt-get", "true"),
    ("apt-cache", "echo 'nginx - small web server'"),
    (
        "dpkg-query",
        "case \"$*\" in *Package*) echo 'ii bash'; echo 'rc old';; *) printf 'ii ';; esac",
    ),
    ("dpkg", "true"),
    ("ssh", "case \"$*\" in *hostname) echo web1;; esac"),
    ("rsync", "shift 3; cp -a \"$1.\" \"$2\""),
    ("ping", "true"),
    ("unzip", "true"),
];

/// The address that examples ask; the server's own stands for it.
const EXAMPLE_ADDRESS: &str = "127.0.0.1:8080";

struct Nobody;

impl Log for Nobody {
    fn line(&self, _: Stream, _: &str) {}
}

/// Where a script finds what the examples speak of.
pub(super) struct World {
    folder: TempDir,
    address: SocketAddr,
}

impl World {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let programs = folder.path().join("bin");
        std::fs::create_dir(&programs).expect("made");
        for (name, script) in PLAYED {
            let file = programs.join(name);
            std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("written");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("set");
        }
        Self { folder, address: serve() }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn run(&self, engine: &RhaiEngine, source: &str) -> Result<String, Failure> {
        self.run_for(engine, source, Duration::from_mins(1)).map(|success| success.output)
    }

    pub(super) fn run_for(
        &self,
        engine: &RhaiEngine,
        source: &str,
        timeout: Duration,
    ) -> Result<Success, Failure> {
        let origin = self.path().join("origin.git");
        let env = BTreeMap::from([
            ("PATH".to_owned(), format!("{}:{SYSTEM_PATH}", self.path().join("bin").display())),
            ("ORIGIN".to_owned(), origin.display().to_string()),
        ]);
        let script = Script {
            job_id: "job-1",
            caller_id: "someone",
            context_id: "somewhere",
            source: &source.replace(EXAMPLE_ADDRESS, &self.address.to_string()),
            env: &env,
            deadline: Instant::now() + timeout,
        };
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .stack_size(STACK_SIZE_BYTES)
                .spawn_scoped(scope, || engine.run(&script, &cancel, &Nobody))
                .expect("a thread")
                .join()
                .expect("no panic")
        })
    }

    /// A repository that examples clone and push to, as new.
    fn make_origin(&self, engine: &RhaiEngine) {
        let source = r#"
            delete(env_get("ORIGIN"));
            run_command(`
                git init --quiet --bare --initial-branch=main "$ORIGIN"
                git init --quiet --initial-branch=main first
                cd first
                echo read me > README
                git add README
                git -c user.name=t -c user.email=t@localhost commit --quiet -m first
                git push --quiet "$ORIGIN" main
            `);"#;
        self.run(engine, source).expect("an origin");
    }
}

pub(super) fn sal_with(sal: &SalConfig) -> RhaiEngine {
    let (limits, job) = (RhaiLimits::default(), JobConfig::default());
    RhaiEngine::sal("sal".parse().expect("legal"), &limits, &job, sal)
}

pub(super) fn sal() -> &'static RhaiEngine {
    static ENGINE: OnceLock<RhaiEngine> = OnceLock::new();
    // Whoever runs the tests, they leave nothing in the folders of the machine.
    let config = || SalConfig { write: vec![std::env::temp_dir()], ..SalConfig::default() };
    ENGINE.get_or_init(|| sal_with(&config()))
}

/// Answers until the test program ends.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { break };
            let mut asked = Vec::new();
            let mut buffer = [0_u8; 4096];
            while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
                match connection.read(&mut buffer) {
                    Ok(count) if count > 0 => asked.extend_from_slice(&buffer[..count]),
                    _ => break,
                }
            }
            let asked = String::from_utf8_lossy(&asked).into_owned();
            let path = asked.split_ascii_whitespace().nth(1).unwrap_or_default();
            let (status, body) = page(path);
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = connection.write_all(head.as_bytes());
            let _ = connection.write_all(&body);
        }
    });
    address
}

fn page(path: &str) -> (&'static str, Vec<u8>) {
    match path {
        "/" => ("200 OK", b"hello".to_vec()),
        "/site.tar.gz" => ("200 OK", archive()),
        "/tool.deb" => ("200 OK", b"a package".to_vec()),
        "/away" => ("302 Found\r\nLocation: file:///etc/passwd", Vec::new()),
        _ => ("404 Not Found", Vec::new()),
    }
}

/// A tar archive with one file; tar sees by itself that it is not compressed.
fn archive() -> Vec<u8> {
    let mut header = [0_u8; 512];
    header[..10].copy_from_slice(b"index.html");
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(b"00000000005");
    header[136..147].copy_from_slice(b"00000000000");
    header[148..156].copy_from_slice(b"        ");
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut archive = header.to_vec();
    archive.extend_from_slice(b"hello");
    archive.resize(512 * 4, 0);
    archive
}

fn functions() -> impl Iterator<Item = &'static Function> {
    sal().groups().iter().flat_map(|group| &group.functions)
}

/// What the last lines of an example say that it gives.
fn expected(example: &str) -> Option<String> {
    let (_, told) = example.rsplit_once("// → ")?;
    let lines: Vec<&str> = told
        .lines()
        .enumerate()
        .map(|(number, line)| if number == 0 { line } else { line.trim_start_matches("//   ") })
        .collect();
    Some(lines.join("\n"))
}

#[test]
fn every_example_runs_and_gives_what_it_says() {
    let world = World::new();
    let mut wrong = Vec::new();
    for function in functions() {
        if function.example.contains("ORIGIN") {
            world.make_origin(sal());
        }
        let (name, expected) = (function.full_name(), expected(function.example));
        match world.run(sal(), function.example) {
            Ok(output) if expected.as_ref().is_none_or(|expected| output == *expected) => {}
            other => wrong.push(format!("{name}: {other:?}, not {expected:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_example_calls_its_function() {
    for function in functions() {
        let call = format!("{}(", function.name);
        assert!(function.example.contains(&call), "{}", function.full_name());
    }
}

#[test]
fn every_function_says_what_it_does_in_sentences_and_once() {
    let mut names = std::collections::BTreeSet::new();
    for function in functions() {
        let name = function.full_name();
        assert!(function.says.ends_with('.') && !function.says.contains("  "), "{name}");
        assert!(names.insert(name.clone()), "{name} is there twice");
        assert!(!function.signatures.is_empty(), "{name}");
        for signature in &function.signatures {
            assert!(
                !signature.contains(": value") && !signature.contains("-> value"),
                "{name} has a type without a name: {signature}"
            );
        }
    }
}

fn refusal(engine: &RhaiEngine, world: &World, source: &str) -> String {
    match world.run(engine, source) {
        Err(Failure::Script { message, .. }) => message,
        other => panic!("{source}: no failure: {other:?}"),
    }
}

#[test]
fn every_function_of_the_interpreter_is_documented() {
    for engine in [sal(), &osis()] {
        let registered = engine.interpreter.collect_fn_metadata(
            None,
            |info| Some(info.metadata.name.to_string()),
            false,
        );
        assert!(!registered.is_empty());
        let documented: Vec<&str> = engine
            .groups()
            .iter()
            .flat_map(|group| group.functions.iter().map(|function| function.name))
            .collect();
        for name in registered {
            assert!(documented.contains(&name.as_str()), "{name}");
        }
    }
}

fn osis() -> RhaiEngine {
    let (limits, job) = (RhaiLimits::default(), JobConfig::default());
    RhaiEngine::osis("osis".parse().expect("legal"), &limits, &job)
}

#[test]
fn what_the_configuration_forbids_is_refused_by_the_name_of_the_setting() {
    let world = World::new();
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
fn failures_name_the_operation_and_its_object() {
    let world = World::new();
    for (source, expected) in [
        ("copy(\"no\", \"x\")", "copy no: no such file or directory"),
        ("copy(\"*.no\", \"x\")", "copy *.no: nothing matches"),
        ("mkdir(\"a\"); copy(\"a\", \"a/b\")", "copy a: a folder is not copied into itself"),
        ("file_write(\"a\", \"\"); copy(\"a\", \"a\")", "copy a: a file is not copied onto itself"),
        ("mv(\"no\", \"x\")", "mv no: no such file or directory"),
        ("find_file(\".\", \"*.no\")", "find_file .: nothing matches `*.no`"),
        ("cmd_ensure_exists(\"sh, no-such\")", "cmd_ensure_exists sh, no-such: no no-such in PATH"),
        ("process_get(\"no such process\")", "process_get no such process: no process matches"),
        ("kill(1)", "kill 1: it is not for a script to end"),
        ("kill(\"\")", "kill: the pattern is empty"),
        ("tcp_check(\"-x y\", 80)", "tcp_check -x y:80: that is no name of a host"),
        ("tcp_check(\"127.0.0.1\", 0)", "tcp_check 127.0.0.1:0: a port is a number"),
        (
            "http_status(\"file:///etc/passwd\")",
            "http_status file:///etc/passwd: a url starts with",
        ),
        (
            "http_status(\"http://127.0.0.1:1/\")",
            "http_status http://127.0.0.1:1/: it does not answer",
        ),
        ("http_status(\"http://127.0.0.1:8080/away\")", "http_status http://127.0.0.1"),
        ("download_file(\"http://127.0.0.1:8080/no\", \"x\", 0)", "download_file http://127.0.0.1"),
        ("download_file(\"http://127.0.0.1:8080/\", \"x\", 1)", "download_file http://127.0.0.1"),
        (
            "ssh_execute(\"-oProxyCommand=x\", \"u\", \"c\")",
            "ssh_execute -oProxyCommand=x: that is no",
        ),
        ("package_install(\"--purge\")", "package_install --purge: that is no name of a package"),
        ("systemd_stop(\"--all\")", "systemd_stop --all: that is no name of a unit"),
        ("git_clone(\"ext::sh -c true\")", "git_clone ext::sh -c true: git: exit code 128"),
        ("git_tree_new(\".\").get(\"no\")", "git get no: no repository matches"),
        ("json_parse(\"{\")", "json_parse: EOF while parsing"),
        ("time_format(0, \"%!\")", "time_format %!: "),
        ("time_iso(9223372036854775807)", "time_iso 9223372036854775807: a time so far away"),
        ("text_replacer_new().build()", "text_replacer build: a pattern is empty"),
        (
            "file_write(\"t\", \"a\\n{{ b }}\"); template_builder_open(\"t\").render()",
            "render t: undefined value (in line 2 of the template)",
        ),
    ] {
        let message = refusal(sal(), &world, source);
        assert!(message.starts_with(expected), "{source}: {message}");
    }
}

#[test]
fn what_a_link_leads_to_outlives_the_deletion_of_the_link() {
    let source = r#"
        mkdir("kept"); file_write("kept/f", "here");
        mkdir("gone/deep"); symlink("../../kept", "gone/deep/link"); symlink("loop", "gone/loop");
        delete("gone");
        mkdir("a"); symlink("a", "a/self");
        [exist("gone"), file_read("kept/f"), find_files(".", "*")]"#;
    let world = World::new();
    assert_eq!(world.run(sal(), source), Ok(r#"[false,"here",["./kept/f"]]"#.to_owned()));
}

#[test]
fn whatever_takes_long_ends_with_the_job() {
    let world = World::new();
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
        let started = Instant::now();
        let result = world.run_for(sal(), &source, Duration::from_millis(300));
        assert_eq!(result, Err(Failure::Timeout), "{source}");
        assert!(started.elapsed() < Duration::from_secs(20), "{source}: {:?}", started.elapsed());
    }
}

/// A template that writes a little for a very long time.
fn file_of_loops(path: &Path) {
    let deep = 4;
    let open = "{% for i in range(100000) %}".repeat(deep);
    std::fs::write(path, format!("{open}x{}", "{% endfor %}".repeat(deep))).expect("written");
}

#[test]
fn a_result_stays_within_the_longest_string() {
    let world = World::new();
    for (source, expected) in [
        (
            "let t = \"a\"; t.pad(1000000, \"a\"); \
             text_replacer_new().pattern(\"a\").replacement(t).build().replace(t)",
            "replace: the text becomes longer than 10000000 bytes",
        ),
        (
            "file_write(\"t\", \"{% for i in range(99999) %}{{ a }}{% endfor %}\"); \
             let a = \"a\"; a.pad(100000, \"a\"); template_builder_open(\"t\").add_var(\"a\", a).render()",
            "render t: the text becomes longer than 10000000 bytes",
        ),
        (
            "let t = \"[1\"; for i in 0..10000 { t += \",1\"; } json_parse(t + \"]\")",
            "json_parse: an array or object has more than 10000 elements",
        ),
    ] {
        let message = refusal(sal(), &world, source);
        assert!(message.starts_with(expected), "{source}: {message}");
    }
}

#[test]
fn the_scripts_of_the_examples_do_their_work() {
    let world = World::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for (folder, engine) in [("sal", sal()), ("osis", &osis())] {
        let mut seen = 0;
        for entry in std::fs::read_dir(examples.join(folder)).expect("examples") {
            let path = entry.expect("an entry").path();
            let source = std::fs::read_to_string(&path).expect("a script");
            assert_eq!(engine.check(&source, &[]), [], "{}", path.display());
            seen += 1;
            // Those that keep objects run where there is a store: in the integration tests.
            if source.contains("osis_") {
                continue;
            }
            let output = world.run(engine, &source);
            let output = output.unwrap_or_else(|failure| panic!("{}: {failure}", path.display()));
            let expected = expected(&source).unwrap_or_else(|| panic!("{}", path.display()));
            assert_eq!(output, expected.trim_end(), "{}", path.display());
        }
        assert!(seen >= 2, "{folder}");
    }
}

/// Kept by all cases: what one leaves does not trouble the next.
static WORLD: OnceLock<World> = OnceLock::new();

/// All but `kill`: what it matches are the processes of whoever works on this machine.
fn harmless() -> Vec<&'static str> {
    functions().map(|function| function.name).filter(|name| *name != "kill").collect()
}

#[test]
fn kill_ends_what_its_pattern_names_and_nothing_for_a_wrong_argument() {
    let world = World::new();
    // A time that nobody else sleeps for.
    let seconds = format!("{}.{}", fastrand::u32(100_000_000..), fastrand::u64(1_000_000_000..));
    let sleeper = || {
        Service::start(ServiceSpec {
            program: "/bin/sleep".into(),
            args: vec![seconds.clone().into()],
            ..ServiceSpec::default()
        })
        .expect("sleep starts")
    };
    let (mut first, mut second) = (sleeper(), sleeper());
    let source = format!("kill(\"{seconds}\")");
    assert_eq!(world.run(sal(), &source), Ok("ended 2 processes".to_owned()));
    for sleeper in [&mut first, &mut second] {
        assert_eq!(sleeper.wait().expect("ended").code(), None);
    }
    for source in ["kill(())", "kill([])", "kill(\"\")", "kill(\" \\t\")", "kill(0)", "kill(-1)"] {
        refusal(sal(), &world, source);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(400))]

    #[test]
    fn no_argument_makes_a_function_of_sal_panic(
        function in proptest::sample::select(harmless()),
        arguments in proptest::collection::vec(proptest::sample::select(vec![
            "()", "0", "-1", "1.5", "true", "\"\"", "\"\\x00\"", "\"no such\"", "\"a\\u00ffb\"",
            "'c'", "[]", "#{}", "#{die: 1}", "#{die: false}", "#{odd: true}", "blob(3)", "|| 1",
            "long", "\"..\\x00\"", "\"-x\"", "\"*\"", "\"[(\"", "\"%\"", "9223372036854775807",
            "text_replacer_new()", "text_replacer_new().pattern(\"a\").build()", "run(\"exit 1\")",
            "git_tree_new(\".\")", "\"binary\"", "\"loop\"",
        ]), 0..4)
    ) {
        let source = format!(
            "let long = \"x\"; long.pad(5000, \"y\"); symlink(\"loop\", \"loop\");
             run_silent(`printf '\\377\\376' > binary`);
             {function}({})", arguments.join(", ")
        );
        let world = WORLD.get_or_init(World::new);
        let result = world.run_for(sal(), &source, Duration::from_millis(500));
        // Only a failure can be one: an output may hold that word from anywhere on the machine.
        let message = result.err().map(|failure| failure.to_string()).unwrap_or_default();
        proptest::prop_assert!(!message.contains("the engine panicked"), "{source}: {message}");
    }
}
