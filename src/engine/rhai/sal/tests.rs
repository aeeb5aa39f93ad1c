//! Runs every example of the documentation. Small scripts stand in for programs that would change the
//! machine or contact others; a local server answers HTTP requests.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::config::{JobConfig, RhaiLimits, SalConfig};
use crate::engine::process::{SYSTEM_PATH, Service, ServiceSpec, find_in};
use crate::engine::rhai::{Function, RhaiEngine};
use crate::engine::{Cancel, Engine, Failure, Inputs, Log, Script, SecretValues, Stream, Success};
use crate::proto::job::AskedBounds;
use crate::test_support::needs;

mod failures;
mod hostile;
mod names;
mod published;

/// The scripts that stand in for programs of the machine.
const STAND_INS: [(&str, &str); 10] = [
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

/// The address in the examples, replaced by the local server's.
const EXAMPLE_ADDRESS: &str = "127.0.0.1:8080";

struct NoLog;

impl Log for NoLog {
    fn line(&self, _: Stream, _: &str) {}
}

/// The programs, the server and the repository that examples use.
pub(super) struct ExampleWorld {
    folder: TempDir,
    address: SocketAddr,
}

impl ExampleWorld {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let programs = folder.path().join("bin");
        std::fs::create_dir(&programs).expect("made");
        for (name, script) in STAND_INS {
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
        self.run_for(engine, source, Duration::from_mins(1))
            .map(|success| success.output.to_string())
    }

    pub(super) fn run_for(
        &self,
        engine: &RhaiEngine,
        source: &str,
        timeout: Duration,
    ) -> Result<Success, Failure> {
        self.run_logged(engine, source, timeout, &NoLog)
    }

    pub(super) fn run_logged(
        &self,
        engine: &RhaiEngine,
        source: &str,
        timeout: Duration,
        log: &impl Log,
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
            token_bounds: None,
            attempt: 1,
            traceparent: None,
            attempts_left: 0,
            started_at: None,
            state: None,
            event: None,
            source: &source.replace(EXAMPLE_ADDRESS, &self.address.to_string()),
            extension: "",
            env: &env,
            args: &[],
            params: &crate::proto::job::Params::new(),
            bounds: &AskedBounds::default(),
            secrets: &SecretValues::default(),
            inputs: &Inputs::default(),
            files: None,
            output_overflow: None,
            deadline: Instant::now() + timeout,
        };
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .stack_size(engine.stack_bytes())
                .spawn_scoped(scope, || engine.run(&script, &cancel, log))
                .expect("a thread")
                .join()
                .expect("no panic")
        })
    }

    /// Creates the repository that examples clone and push to.
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
    sal_of(sal, 10_000_000)
}

/// Returns an engine with smaller values than by default, so that tests of the limits are short.
fn sal_of(sal: &SalConfig, string_size_max: u64) -> RhaiEngine {
    let limits = RhaiLimits {
        string_size_max,
        array_len_max: 10_000,
        map_len_max: 10_000,
        ..RhaiLimits::default()
    };
    let job = JobConfig::default();
    RhaiEngine::sal("sal".parse().expect("legal"), &limits, &job, sal)
}

pub(super) fn sal() -> &'static RhaiEngine {
    static ENGINE: OnceLock<RhaiEngine> = OnceLock::new();
    ENGINE.get_or_init(|| sal_with(&of_temporary_folder()))
}

/// Tests write only to the temporary folder, even as root.
fn of_temporary_folder() -> SalConfig {
    SalConfig {
        write: vec![std::env::temp_dir()],
        exec: vec![std::env::temp_dir()],
        ..SalConfig::default()
    }
}

/// Returns whether scripts that call `curl` can run, which are those that name an `http://` address.
fn has_curl() -> bool {
    needs("curl", || find_in("curl", SYSTEM_PATH.as_ref()).is_some())
}

/// Starts an HTTP server that runs until the test program ends.
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

/// Returns an uncompressed tar archive with one file.
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

/// Returns the parameter types of a signature without the receiver.
fn parameter_types(signature: &str) -> Vec<&str> {
    let call = signature.split(" -> ").next().unwrap_or_default();
    let (_, parameters) = call.split_once('(').expect("a call");
    let parameters = parameters.trim_end_matches(')').split(", ");
    parameters.filter_map(|named| named.split_once(": ")).map(|(_, kind)| kind).collect()
}

/// Returns the expected output at the end of an example.
fn expected(example: &str) -> Option<String> {
    let (_, output) = example.rsplit_once("// → ")?;
    let lines: Vec<&str> = output
        .lines()
        .enumerate()
        .map(|(number, line)| if number == 0 { line } else { line.trim_start_matches("//   ") })
        .collect();
    Some(lines.join("\n"))
}

#[test]
fn every_example_returns_its_documented_output() {
    let world = ExampleWorld::new();
    let curl = has_curl();
    let mut wrong = Vec::new();
    // Integration tests run the examples of redisclient, which need a Redis.
    for function in functions().filter(|function| !function.name.starts_with("redis_")) {
        if !curl && function.example.contains("http://") {
            continue;
        }
        if function.example.contains("ORIGIN") {
            world.make_origin(sal());
        }
        let (name, expected) = (&function.full_name, expected(function.example));
        match world.run(sal(), function.example) {
            Ok(output) if expected.as_ref().is_none_or(|expected| output == *expected) => {}
            Err(Failure::Postponed { .. }) if function.name == "retry_in" => {}
            Err(Failure::Discarded { .. }) if function.name == "discard" => {}
            Err(Failure::Waits { .. }) if function.name == "wait" => {}
            other => wrong.push(format!("{name}: {other:?}, not {expected:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_example_calls_its_function() {
    for function in functions() {
        let call = format!("{}(", function.name);
        assert!(function.example.contains(&call), "{}", &function.full_name);
    }
}

#[test]
fn every_function_is_documented_once_in_sentences() {
    let mut names = std::collections::BTreeSet::new();
    for function in functions() {
        let name = &function.full_name;
        assert!(function.summary.ends_with('.') && !function.summary.contains("  "), "{name}");
        assert!(names.insert(name.clone()), "{name} is registered twice");
        assert!(!function.signatures.is_empty(), "{name}");
        for signature in &function.signatures {
            assert!(
                !signature.contains(": value") && !signature.contains("-> value"),
                "{name} has a type without a name: {signature}"
            );
        }
    }
}

fn refusal(engine: &RhaiEngine, world: &ExampleWorld, source: &str) -> String {
    match world.run(engine, source) {
        Err(Failure::Script { message, .. }) => message,
        other => panic!("{source}: no failure: {other:?}"),
    }
}

#[test]
fn every_registered_function_is_documented() {
    // Those that replace a function of Rhai with a limit are documented there.
    let of_rhai = ::rhai::Engine::new().collect_fn_metadata(
        None,
        |info| Some(info.metadata.name.to_string()),
        true,
    );
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
            assert!(documented.contains(&name.as_str()) || of_rhai.contains(&name), "{name}");
        }
    }
}

fn osis() -> RhaiEngine {
    let (limits, job) = (RhaiLimits::default(), JobConfig::default());
    RhaiEngine::osis("osis".parse().expect("legal"), &limits, &job)
}

#[test]
fn example_scripts_return_their_documented_output() {
    let world = ExampleWorld::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for (folder, engine) in [("sal", sal()), ("osis", &osis())] {
        let mut seen = 0;
        for entry in std::fs::read_dir(examples.join(folder)).expect("examples") {
            let path = entry.expect("an entry").path();
            let source = std::fs::read_to_string(&path).expect("a script");
            assert_eq!(engine.check(&source, &[]), [], "{}", path.display());
            seen += 1;
            // Integration tests run the scripts that need an object store.
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
