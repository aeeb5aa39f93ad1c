//! What the sandbox refused: the log of a failed job says it, with the key that would allow it.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use crate::support::{Hero, Process, Redis, needs};

/// A type, a script that works outside of the sandbox, and what the log says inside. `@` stands for a folder that is
/// not the job's, `%` for a port that something listens on.
const REFUSED: [(&str, &str, &str); 14] = [
    (
        "python",
        "open('@/x').read()",
        "sandbox: reading @/x was refused; [type.python.sandbox] read = [\"@\"] would allow it",
    ),
    (
        "python",
        "open('@/x', 'a')",
        "sandbox: writing @/x was refused; [type.python.sandbox] write = [\"@\"] would allow it",
    ),
    (
        "python",
        "open('@/new', 'w')",
        "sandbox: creating @/new was refused; [type.python.sandbox] write = [\"@\"]",
    ),
    (
        "python",
        "import os\nos.listdir('@')",
        "sandbox: listing @ was refused; [type.python.sandbox] read = [\"@\"]",
    ),
    (
        "python",
        "import subprocess\nsubprocess.run(['@/tool'])",
        "sandbox: executing @/tool was refused; [type.python.sandbox] read",
    ),
    (
        "python",
        "import socket\nsocket.create_connection(('127.0.0.1', %))",
        "[type.python.sandbox] network = true would allow it",
    ),
    (
        "python",
        "import urllib.request as u\ntry: u.urlopen('http://127.0.0.1:%/', timeout=0.1)\nexcept TimeoutError: pass",
        "sandbox: the network was refused",
    ),
    (
        "python",
        "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "sandbox: the network was refused",
    ),
    (
        "python",
        "import socket\nsocket.socket(socket.AF_UNIX).connect('@/s.sock')",
        "[type.python.sandbox] unix_sockets = true",
    ),
    (
        "python",
        "import os\nos.chown('@/x', -1, -1)",
        "sandbox: the system call fchownat is refused, probably why it failed",
    ),
    (
        "bash",
        "set -e\ncat @/x",
        "sandbox: reading @/x was refused; [type.bash.sandbox] read = [\"@\"] would allow it",
    ),
    (
        "bash",
        "mkdir @/made",
        "sandbox: creating @/made was refused; [type.bash.sandbox] write = [\"@\"] would allow it",
    ),
    (
        "bash",
        "@/tool",
        "sandbox: access to @/tool was refused; [type.bash.sandbox] read = [\"@\"] would allow executing it",
    ),
    (
        "bash",
        "exec 3<>/dev/tcp/127.0.0.1/%",
        "sandbox: a connection to port % was refused; [type.bash.sandbox]",
    ),
];

/// The same for node, which not every machine has.
const REFUSED_OF_NODE: [(&str, &str, &str); 3] = [
    (
        "node",
        "require('fs').readFileSync('@/x')",
        "sandbox: access to @/x was refused; [type.node.sandbox] read = [\"@\"]",
    ),
    (
        "node",
        "require('fs').mkdirSync('@/of-node')",
        "sandbox: creating @/of-node was refused; [type.node.sandbox] write = [\"@\"]",
    ),
    (
        "node",
        "const c = require('net').connect(%, '127.0.0.1', () => c.destroy())",
        "sandbox: a connection to port % was refused",
    ),
];

/// A folder that jobs may not read, with a file, a program and a socket, and something that listens.
struct World {
    hero: Hero,
    redis: Redis,
    folder: tempfile::TempDir,
    port: u16,
    _listeners: (TcpListener, UnixListener),
}

/// The types have their sandbox as it is by default.
fn hero_on(redis: &Redis) -> Hero {
    Hero::on(redis).set("type.python.sandbox.write", "[]")
}

impl World {
    fn new() -> Self {
        let redis = Redis::start();
        let made = tempfile::Builder::new().prefix("refused").tempdir().expect("a folder");
        let folder = made.path();
        fs::write(folder.join("x"), "text").expect("written");
        fs::write(folder.join("tool"), "#!/bin/sh\n").expect("written");
        fs::set_permissions(folder.join("tool"), Permissions::from_mode(0o755)).expect("a mode");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let unix = UnixListener::bind(folder.join("s.sock")).expect("a socket");
        let port = tcp.local_addr().expect("an address").port();
        Self { hero: hero_on(&redis), redis, folder: made, port, _listeners: (tcp, unix) }
    }

    fn filled(&self, text: &str) -> String {
        let folder = self.folder.path().canonicalize().expect("there");
        text.replace('@', &folder.display().to_string()).replace('%', &self.port.to_string())
    }

    /// Runs a script, which fails, and returns the lines of its log about the sandbox.
    fn explained(&self, script_type: &str, script: &str) -> Vec<String> {
        let script = self.filled(script);
        let ran = self.hero.run(&["exec", "-t", script_type, "-e", &script]);
        assert_ne!(ran.code, 0, "{script} did not fail");
        let lines = ran.stderr.lines().filter(|line| line.starts_with("sandbox: "));
        lines.map(str::to_owned).collect()
    }

    fn check(&self, cases: &[(&str, &str, &str)]) -> Vec<Process> {
        let mut actors = Vec::new();
        let mut last = "";
        for (script_type, script, said) in cases {
            if *script_type != last {
                actors.push(self.hero.actor(&format!("{script_type}-default-1")).start());
                last = script_type;
            }
            let found = self.explained(script_type, script);
            assert!(
                found.len() == 1 && found[0].contains(&self.filled(said)),
                "{script_type}: {script}: {found:#?}"
            );
            assert!(succeeds_outside(script_type, &self.filled(script)), "{script}");
        }
        actors
    }
}

#[expect(clippy::disallowed_methods, reason = "the bare interpreter is the oracle")]
fn succeeds_outside(script_type: &str, script: &str) -> bool {
    let (program, option) = match script_type {
        "python" => ("/usr/bin/python3", "-c"),
        "node" => ("/usr/bin/node", "-e"),
        _ => ("/bin/bash", "-c"),
    };
    let ran = Command::new(program).args([option, script]).output().expect("it runs");
    ran.status.success()
}

#[test]
fn log_of_a_failed_job_names_what_was_refused_and_the_key() {
    World::new().check(&REFUSED);
}

#[test]
fn log_of_a_failed_job_of_node_names_what_was_refused() {
    if needs("node", || Path::new("/usr/bin/node").exists()) {
        World::new().check(&REFUSED_OF_NODE);
    }
}

#[test]
fn named_key_allows_what_was_refused() {
    let world = World::new();
    let folder = world.filled("[\"@\"]");
    let hero = hero_on(&world.redis)
        .set("type.python.sandbox.read", &folder)
        .set("type.bash.sandbox.write", &folder)
        .set("type.bash.sandbox.network", "true");
    let _python = hero.actor("python-default-1").start();
    let _bash = hero.actor("bash-default-1").start();
    for number in [0, 10, 11, 13] {
        let (script_type, script, _) = REFUSED[number];
        hero.run(&["exec", "-t", script_type, "-e", &world.filled(script)]).code(0);
    }
}

#[test]
fn explanation_after_success_lists_what_was_refused() {
    let world = World::new();
    let _bash = world.hero.actor("bash-default-1").start();
    let script = world.filled("cat @/x || true; cat @/x || true; touch @/new || true; echo done");
    let ran = world.hero.run(&["exec", "--explain", "-t", "bash", "-e", &script]).code(0);
    let ran = ran.says("hero: refused, while the script went on:");
    let reading =
        "sandbox: reading @/x was refused; [type.bash.sandbox] read = [\"@\"] would allow it";
    assert_eq!(ran.stderr.matches(&world.filled(reading)).count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains(&world.filled("sandbox: creating @/new was refused")));
    let script = world.filled("touch @/new; cat @/x");
    let failed = world.hero.run(&["exec", "--explain", "-t", "bash", "-e", &script]).code(1);
    let said = "hero: refused, while the script went on:\n  sandbox: creating @/new was refused";
    let failed = failed.says(&world.filled(said));
    assert!(failed.stderr.contains("hero: 1 refusal: see the line"), "{}", failed.stderr);
    let quiet = ["exec", "--explain", "-t", "bash", "-e", "cat data.csv 2>/dev/null || true"];
    world.hero.run(&quiet).code(0).says("hero: no refusal is known");
}

#[test]
fn missing_file_of_home_or_of_the_folder_of_submission_is_explained() {
    let world = World::new();
    let _bash = world.hero.actor("bash-default-1").start();
    let _python = world.hero.actor("python-default-1").start();
    let said = "note: a job has a HOME and a working directory of its own";
    for (script_type, script, name) in [
        ("bash", "set -e; cat data.csv", "data.csv"),
        ("bash", "cat ~/.aws/config", "~/.aws/config"),
        ("python", "open('data.csv')", "data.csv"),
        ("python", "import os; open(os.path.expanduser('~/.netrc'))", "~/.netrc"),
    ] {
        let ran = world.hero.run(&["exec", "-t", script_type, "-e", script]);
        let line = ran.stderr.lines().find(|line| line.starts_with(said)).unwrap_or_default();
        assert!(line.contains(&format!("so not with {name};")), "{script}: {}", ran.stderr);
    }
    let ran = world.hero.run(&["exec", "-t", "python", "-e", "import no_such_module.inner"]);
    let block = "# dependencies = [\"PACKAGE\"]";
    assert!(
        ran.stderr.contains("note: this Python has no module no_such_module;"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains(block), "{}", ran.stderr);
    let folder = world.redis.folder();
    std::fs::write(folder.join("company.py"), "answer = 42\n").expect("a module");
    let script = folder.join("report.py");
    std::fs::write(&script, "import company\nprint(company.answer)\n").expect("a script");
    let (script, module) =
        (script.display().to_string(), folder.join("company.py").display().to_string());
    let ran = world.hero.run(&["exec", &script]).code(1).says(&format!("--input {module} puts it"));
    assert!(!ran.stderr.contains("[\"company\"]"), "no stranger's package: {}", ran.stderr);
    let ran = world.hero.run(&["exec", "--input", &module, &script]).code(1);
    assert!(ran.stderr.contains("note: company is among the input files; "), "{}", ran.stderr);
    assert!(!ran.stderr.contains("lies beside"), "{}", ran.stderr);
    let made = "mkdir a; touch a/b; cat /srv/none";
    let ran = world.hero.run(&["exec", "-t", "bash", "-e", made]);
    assert!(!ran.stderr.contains("note: "), "{}", ran.stderr);
}

#[test]
fn curl_through_a_unix_socket_names_the_key_of_unix_sockets() {
    if !needs("curl", || Path::new("/usr/bin/curl").exists()) {
        return;
    }
    let world = World::new();
    let _bash = world.hero.actor("bash-default-1").start();
    let script = "curl --no-progress-meter --unix-socket @/s.sock http://localhost/";
    let found = world.explained("bash", script);
    let key = "[type.bash.sandbox] unix_sockets = true would allow it";
    assert!(found.len() == 1 && found[0].ends_with(key), "{found:?}");
}

#[test]
fn missing_files_and_modes_are_not_blamed_on_the_sandbox() {
    let world = World::new();
    let closed = world.folder.path().join("x");
    fs::set_permissions(closed, Permissions::from_mode(0o000)).expect("a mode");
    let _python = world.hero.actor("python-default-1").start();
    let _bash = world.hero.actor("bash-default-1").start();
    for (script_type, script) in [
        ("python", "open('@/none')"),
        ("python", "open('@/x')"),
        ("python", "raise PermissionError(13, 'Permission denied')"),
        ("python", "open('/dev/full', 'w').write('x' * 100000)"),
        ("bash", "cat @/x"),
        ("bash", "cat @/none/x"),
        ("bash", "echo failed >&2; exit 3"),
        ("bash", "touch own; chmod 0 own; cat own; cat $PWD/own"),
    ] {
        let found = world.explained(script_type, script);
        assert_eq!(found, [] as [&str; 0], "{script_type}: {script}");
    }
}

#[test]
fn reached_limit_is_named_with_its_key_in_the_log_that_is_kept() {
    let world = World::new();
    let hero = hero_on(&world.redis)
        .set("type.python.sandbox.memory", "\"256MiB\"")
        .set("type.bash.sandbox.file_size", "\"1MiB\"")
        .set("type.bash.sandbox.open_files", "16");
    let _python = hero.actor("python-default-1").start();
    let _bash = hero.actor("bash-default-1").start();
    for (id, script_type, script, code, said) in [
        (
            "m",
            "python",
            "x = bytearray(1 << 30)",
            1,
            "sandbox: the job probably reached its limit for the memory of one process, 256MiB; a larger memory in [type.python.sandbox] allows more\n",
        ),
        (
            "f",
            "bash",
            "head -c 2000000 /dev/zero > large",
            153,
            "sandbox: the job reached its limit for the size of a file, 1MiB; a larger file_size in [type.bash.sandbox] allows more\n",
        ),
        (
            "o",
            "bash",
            "set -e; for n in {10..40}; do eval \"exec $n</dev/null\"; done",
            1,
            "open files of one process, 16",
        ),
    ] {
        hero.run(&["exec", "-t", script_type, "--id", id, "-e", script]).code(code).says(said);
        let log = hero.run(&["job", "logs", id]).code(0).stdout;
        assert!(log.contains(said), "{log}");
    }
    let asked = ["exec", "-t", "python", "--memory=64MiB", "-e", "x = bytearray(1 << 30)"];
    hero.run(&asked).code(1).says("64MiB; it is the job's own: --memory asks for more");
}

#[test]
fn commands_of_sal_and_its_functions_name_the_key() {
    let world = World::new();
    let hero = hero_on(&world.redis)
        .set("sal.read", "[\"/usr\"]")
        .set("sal.network", "false")
        .set("sal.write", "[]");
    let _sal = hero.actor("sal-default-1").start();
    let run = |script: &str| hero.run(&["exec", "-t", "sal", "-e", &world.filled(script)]).code(1);
    run("file_read(\"@/x\")").says(&world.filled("[sal] read = [\"/usr\", \"@\"] would allow it"));
    run("tcp_check(\"127.0.0.1\", %)")
        .says("sal.network is false; [sal] network = true would allow it");
    let said = "sandbox: reading @/x was refused; [sal] read = [\"/usr\", \"@\"] would allow it";
    run("if !run_command(\"cat @/x\").success { throw \"no\" }").says(&world.filled(said));
}

#[test]
fn explained_run_begins_with_what_the_type_allows() {
    let world = World::new();
    let hero = hero_on(&world.redis)
        .set("type.python.sandbox.memory_max", "\"8GiB\"")
        .set("secrets.allow.db.types", "[\"python\"]")
        .set("sal.run", "false");
    let _python = hero.actor("python-default-1").start();
    let _osis = hero.actor("osis-default-1").start();
    let _sal = hero.actor("sal-default-1").start();
    let run = |of: &str, code: &str| hero.run(&["exec", "--explain", "-t", of, "-e", code]);
    let told = hero
        .run(&["exec", "--explain", "-t", "python", "--memory=5GiB", "--env=A=b", "-e", "print(1)"])
        .code(0)
        .stdout("1\n")
        .stderr;
    for said in [
        "hero: what type python allows on this machine\n",
        "/etc/hosts",
        "the job's own folder\n",
        "none: network = false\n",
        "unshare",
        "io_uring_setup",
        "memory 5GiB",
        "timeout  ",
        "A, HERO_ATTEMPT",
        "secrets ",
        " db\n",
        "hero: no refusal is known",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    let told = run("python", &world.filled("open('@/x')")).code(1).stderr;
    assert!(told.contains("hero: 1 refusal: see the line"), "{told}");
    run("osis", "1").code(0).says("the language has no functions for them");
    run("sal", "1").code(0).says("functions start");
}

#[test]
fn failure_that_a_program_hides_is_reported_with_the_missing_network() {
    let world = World::new();
    let _bash = world.hero.actor("bash-default-1").start();
    let note = "sandbox: the job has no network, which may be why it failed; [type.bash.sandbox] network = true \
                would allow it";
    let quiet = "curl -s http://127.0.0.1:%/ > page || exit 3";
    assert_eq!(world.explained("bash", quiet), [note]);
    for other in [
        "# curl -s http://127.0.0.1/\nexit 3",
        "curl-s http://127.0.0.1/",
        "curl -s http://a/ | ((",
        "echo \"No module named 'requests'\" >&2; : curl http://a/; exit 1",
    ] {
        assert_eq!(world.explained("bash", other), [""; 0], "{other}");
    }
    let temporary = "echo x > /tmp/hero-test-that-is-refused";
    let note = "sandbox: creating /tmp/hero-test-that-is-refused was refused; a job has a folder of its own for such \
                files, $TMPDIR, which mktemp uses";
    assert_eq!(world.explained("bash", temporary), [note]);
    let asked = ["exec", "-t", "bash", "--network", "none", "-e", &world.filled(quiet)];
    world.hero.run(&asked).code(3).says("the job's own --network has no more: --network ");
}
