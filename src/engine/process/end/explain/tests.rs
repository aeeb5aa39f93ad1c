//! Tests of explanations with a sandbox as it is by default.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use proptest::prelude::*;

use super::*;
use crate::engine::process::watch::Ended;
use crate::sandbox::{Limit, Sandbox, Support};

/// A script type `t` whose job has a folder `home`, beside a folder `data` with a file `x`.
struct World {
    folder: tempfile::TempDir,
    config: SandboxConfig,
    asked: AskedBounds,
    source: String,
}

impl World {
    fn new(config: SandboxConfig) -> Self {
        let folder = tempfile::Builder::new().prefix("explain").tempdir().expect("a folder");
        for name in ["home", "data"] {
            std::fs::create_dir(folder.path().join(name)).expect("made");
            std::fs::write(folder.path().join(name).join("x"), "").expect("written");
        }
        Self { folder, config, asked: AskedBounds::default(), source: String::new() }
    }

    fn explain<T>(&self, work: impl FnOnce(&Explainer<'_>) -> T) -> Option<T> {
        let config = self.config.for_job(&"t".parse().expect("legal"), &self.asked);
        let sandbox = Sandbox::of_type(&config.expect("allowed"));
        let home = self.folder.path().join("home");
        let allowance = sandbox.allowance("/bin/sh".as_ref(), &home, &[])?;
        Some(work(&Explainer {
            table: "type.t.sandbox".to_owned(),
            allowance,
            read: &self.config.read,
            write: &self.config.write,
            source: &self.source,
            of_type: Some((&self.config, &self.asked)),
        }))
    }

    /// Explains a text where `@` stands for the folder, with it again in the answer.
    fn text(&self, text: &str) -> Vec<String> {
        let folder = self.folder.path().canonicalize().expect("there").display().to_string();
        let lines = self.explain(|explainer| explainer.of_text(&text.replace('@', &folder)));
        lines.expect("a sandbox").into_iter().map(|line| line.replace(&folder, "@")).collect()
    }
}

fn by_default(text: &str) -> Vec<String> {
    World::new(SandboxConfig::default()).text(text)
}

#[test]
fn refused_process_names_each_bound_on_processes() {
    if !has_sandbox() {
        return;
    }
    for said in [
        "bash: fork: retry: Resource temporarily unavailable",
        "RuntimeError: can't start new thread",
        "pthread_create: Resource temporarily unavailable",
    ] {
        let told = by_default(said).concat();
        assert!(told.contains("TasksMax=") && told.contains("[type.t.sandbox]"), "{said}: {told}");
    }
    assert_eq!(by_default("read: Resource temporarily unavailable"), [""; 0]);
}

/// False, and nothing to test, where the kernel has no sandbox.
fn has_sandbox() -> bool {
    let support = Support::of_this_kernel();
    support.seccomp && support.landlock >= 6
}

const FILES: [(&str, &str); 8] = [
    (
        "cat: @/data/x: Permission denied",
        "sandbox: reading @/data/x was refused; [type.t.sandbox] read = [\"@/data\"] would allow it",
    ),
    (
        "touch: cannot touch '@/data/x': Permission denied",
        "sandbox: writing @/data/x was refused; [type.t.sandbox] write = [\"@/data\"] would allow it",
    ),
    (
        "script.sh: line 1: @/data/new: Permission denied",
        "sandbox: creating @/data/new was refused; [type.t.sandbox] write = [\"@/data\"] would allow it",
    ),
    (
        "rm: cannot remove '@/data/x': Permission denied",
        "sandbox: changing @/data/x was refused; [type.t.sandbox] write = [\"@/data\"] would allow it",
    ),
    (
        "ls: cannot open directory '@/data': Permission denied",
        "sandbox: listing @/data was refused; [type.t.sandbox] read = [\"@/data\"] would allow it",
    ),
    (
        "Error: EACCES: permission denied, open '@/data/x'",
        "sandbox: access to @/data/x was refused; [type.t.sandbox] read = [\"@/data\"] would allow reading it, \
         write = [\"@/data\"] writing too",
    ),
    (
        "Traceback (most recent call last):\n  File \"s.py\", line 1, in <module>\n    open('@/data/x', 'a')\n\
         PermissionError: [Errno 13] Permission denied: '@/data/x'",
        "sandbox: writing @/data/x was refused; [type.t.sandbox] write = [\"@/data\"] would allow it",
    ),
    ("cat: /etc/hero/hero.toml: Permission denied", ""),
];

#[test]
fn refused_files_are_explained_with_their_key() {
    if !has_sandbox() {
        return;
    }
    for (text, said) in FILES {
        let expected: Vec<&str> = Some(said).into_iter().filter(|said| !said.is_empty()).collect();
        let found = by_default(text);
        if text.contains("/etc/hero") {
            assert!(found.iter().all(|line| line.contains("[secrets]")), "{found:?}");
            continue;
        }
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn allowed_and_missing_files_are_not_explained() {
    for text in [
        "cat: @/home/x: Permission denied",
        "cat: /usr/bin/env: Permission denied",
        "cat: @/none/x: No such file or directory",
        "cat: @/data/x: No such file or directory",
        "cat: @/none/x/y: Permission denied",
        "OSError: [Errno 28] No space left on device: '@/data/x'",
        "OSError: [Errno 30] Read-only file system: '@/data/x'",
        "Permission denied",
        "sudo: a password is required",
        "PermissionError: [Errno 1] Operation not permitted",
        "a chmod: Operation not permitted",
        "/usr/bin/ld: cannot open output file @/home/a.out: Permission denied",
    ] {
        assert_eq!(by_default(text), [] as [&str; 0], "{text}");
    }
}

#[test]
fn key_keeps_the_folders_that_are_in_it() {
    if !has_sandbox() {
        return;
    }
    let with = |read: Vec<PathBuf>| {
        let world = World::new(SandboxConfig { read, ..SandboxConfig::default() });
        world.text("cat: @/data/x: Permission denied").concat()
    };
    assert!(with(vec!["/opt".into()]).contains("read = [\"/opt\", \"@/data\"]"));
    let many = (0..9).map(|number| format!("/opt/{number}").into()).collect();
    assert!(with(many).contains("[type.t.sandbox] \"@/data\" in read would allow it"));
}

#[test]
fn closed_network_is_explained_and_an_open_one_is_not() {
    if !has_sandbox() {
        return;
    }
    let name = "sandbox: the lookup of a name was refused; [type.t.sandbox] ports = [53] or network = true";
    let port =
        "sandbox: a connection to port 80 was refused; [type.t.sandbox] ports = [80] or network";
    let unix =
        "sandbox: a Unix socket was refused; [type.t.sandbox] unix_sockets = true would allow it";
    let any = "sandbox: the network was refused; [type.t.sandbox] network = true would allow it";
    for (text, said) in [
        ("curl: (6) Could not resolve host: example.com", name),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", name),
        ("Error: getaddrinfo EAI_AGAIN example.com", name),
        ("Error: connect EPERM 127.0.0.1:80 - Local (undefined:undefined)", port),
        ("curl: (7) Failed to connect to 127.0.0.1 port 80 after 0 ms: Couldn't connect", port),
        ("Error: connect EPERM /run/x.sock", unix),
        (
            "psql: error: connection to server on socket \"/run/.s\" failed: Operation not permitted",
            unix,
        ),
        ("bash: socket: Operation not permitted", any),
        (
            "Error: listen EPERM: operation not permitted 0.0.0.0:3000",
            "sandbox: listening was refused; [type.t.sandbox] network = true would allow it",
        ),
        (
            "Traceback:\n  File \"/usr/lib/python3.11/socket.py\", line 232, in __init__\n    \
             _socket.socket.__init__(self, family, type, proto, fileno)\n\
             PermissionError: [Errno 1] Operation not permitted",
            any,
        ),
    ] {
        let found = by_default(text);
        assert!(found.len() == 1 && found[0].starts_with(said), "{text}: {found:?}");
        let open = SandboxConfig { network: true, unix_sockets: true, ..SandboxConfig::default() };
        assert_eq!(World::new(open).text(text), [] as [&str; 0], "{text}");
    }
}

#[test]
fn unix_socket_that_only_the_script_names_is_explained() {
    if !has_sandbox() {
        return;
    }
    let curl =
        "curl: (7) Failed to connect to localhost port 80 after 0 ms: Couldn't connect to server";
    let aborted = "requests.exceptions.ConnectionError: ('Connection aborted.', PermissionError(1, \
                   'Operation not permitted'))";
    let docker = "docker.errors.DockerException: Error while fetching server API version: ('Connection \
                  aborted.', PermissionError(1, 'Operation not permitted'))";
    for (source, text, is_unix) in [
        ("curl --unix-socket /run/x.sock http://localhost/", curl, true),
        ("curl http://localhost/", curl, false),
        ("s.get('http+unix://%2Frun%2Fx.sock/info')", aborted, true),
        ("s.get('http://127.0.0.1/')", aborted, false),
        ("docker.from_env()", docker, true),
    ] {
        let mut world = World::new(SandboxConfig::default());
        source.clone_into(&mut world.source);
        let found = world.text(text).concat();
        assert_eq!(found.contains("unix_sockets = true"), is_unix, "{source}: {found}");
        assert!(is_unix || found.contains("network = true"), "{source}: {found}");
        world.config.unix_sockets = true;
        assert!(!is_unix || world.text(text).is_empty(), "{source}");
    }
}

#[test]
fn whole_text_has_each_refusal_once() {
    if !has_sandbox() {
        return;
    }
    let world = World::new(SandboxConfig::default());
    let folder = world.folder.path().canonicalize().expect("there").display().to_string();
    let text = format!(
        "cat: {folder}/data/x: Permission denied\ngoing on\ncat: {folder}/data/x: Permission denied\n\
         curl: (6) Could not resolve host: example.com\n"
    );
    let found = world.explain(|explainer| explainer.of_whole_text(&text)).expect("a sandbox");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("reading") && found[1].contains("lookup"), "{found:?}");
}

#[test]
fn other_port_than_those_of_the_type_is_explained() {
    if !has_sandbox() {
        return;
    }
    let config =
        SandboxConfig { ports: vec![53, 443], ports_max: vec![80], ..SandboxConfig::default() };
    let mut world = World::new(config);
    let found = world.text("Error: connect EACCES 127.0.0.1:80");
    let said = "ports = [53, 80, 443] or network = true would allow it, or the job asks for it with --network";
    assert!(found.concat().contains(said), "{found:?}");
    assert!(world.text("Error: connect EACCES 127.0.0.1:443").is_empty());
    assert!(world.text("Could not resolve host: example.com").is_empty(), "53 is open");
    for (asked, more) in [("none", "53"), ("443", "443,53")] {
        world.asked.network = asked.parse().ok();
        let found = world.text("Could not resolve host: example.com").concat();
        assert!(found.contains(&format!("--network {more} adds it")), "{found}");
    }
}

#[test]
fn denied_system_call_is_explained_by_its_name() {
    if !has_sandbox() {
        return;
    }
    for (text, said) in [
        ("unshare: unshare failed: Operation not permitted", "the system call unshare was refused"),
        ("mount: /mnt: permission denied.", "the system call mount was refused"),
        ("chroot: cannot change root directory to '/': Operation not permitted", "call chroot was"),
        ("dmesg: read kernel buffer failed: Operation not permitted", "call syslog was refused"),
        ("tail: inotify cannot be used: Function not implemented", "call inotify_init1 was"),
        ("chown: changing ownership of '/x': Operation not permitted", "call fchownat was"),
        ("bash: kill: (1) - Operation not permitted", "signals reach only the job's own"),
        (
            "Traceback:\n  File \"s.py\", line 1, in <module>\n    os.chroot('/')\n\
             PermissionError: [Errno 1] Operation not permitted: '/'",
            "the system call chroot is refused, probably why it failed; no key of [type.t.sandbox]",
        ),
    ] {
        let found = by_default(text);
        assert!(found.len() == 1 && found[0].contains(said), "{text}: {found:?}");
    }
    let closed = World::new(SandboxConfig { chmod: false, ..SandboxConfig::default() });
    let found = closed.text("chmod: changing permissions of '/x': Operation not permitted");
    assert!(found.concat().contains("chmod = true would allow it"), "{found:?}");
}

#[test]
fn limit_is_explained_with_its_value_and_who_set_it() {
    let mut world = World::new(SandboxConfig::default());
    let of = |world: &World, ended, raw, limit| {
        let status = ExitStatus::from_raw(raw);
        let told = world.explain(|explainer| explainer.of_end(Ending { ended, status, limit }));
        told.expect("a sandbox").unwrap_or_default()
    };
    for (ended, raw, limit, said) in [
        (Ended::Itself, 1 << 8, Limit::Memory, "probably reached its limit for the memory of one"),
        (
            Ended::Exceeded(Limit::Memory),
            9,
            Limit::Memory,
            "the job reached its limit for the memory of one process, 4GiB",
        ),
        (
            Ended::Itself,
            25,
            Limit::FileSize,
            "reached its limit for the size of a file, 1GiB; a larger file_size in",
        ),
        (Ended::Itself, 153 << 8, Limit::FileSize, "job reached its limit"),
        (
            Ended::Exceeded(Limit::Disk),
            9,
            Limit::Disk,
            "space on disk, 1GiB; a larger disk in [type.t.sandbox]",
        ),
        (
            Ended::Exceeded(Limit::Processes),
            9,
            Limit::Processes,
            "processes, 4096; a larger processes in",
        ),
        (
            Ended::Itself,
            9,
            Limit::JobMemory,
            "reached its limit for the memory of the whole job, 4GiB",
        ),
        (Ended::Itself, 1 << 8, Limit::OpenFiles, "open files of one process, 1024"),
    ] {
        let told = of(&world, ended, raw, Some(limit));
        assert!(told.contains(said), "{told}");
    }
    assert_eq!(of(&world, Ended::Exceeded(Limit::Output), 9, Some(Limit::Output)), "");
    assert_eq!(of(&world, Ended::Itself, 1 << 8, None), "");
    if has_sandbox() {
        assert!(of(&world, Ended::Itself, 31, None).contains("SIGSYS"));
    }
    world.asked.memory = "64MiB".parse().ok();
    let told = of(&world, Ended::Exceeded(Limit::Memory), 9, Some(Limit::Memory));
    assert!(told.ends_with("64MiB; it is the job's own: --memory asks for more"), "{told}");
}

#[test]
fn only_the_last_refusal_is_explained() {
    if !has_sandbox() {
        return;
    }
    let one = "cat: @/data/x: Permission denied\n";
    assert_eq!(by_default(&one.repeat(50)).len(), 1);
    let many: Vec<String> =
        (0..50).map(|n| format!("mkdir: '@/data/{n}': Permission denied")).collect();
    let found = by_default(&format!("{}\nleaving", many.join("\n")));
    assert!(found.len() == 1 && found[0].contains("creating @/data/49 "), "{found:?}");
    let moved = by_default("mv: cannot move '@/data/x' to '@/data/y': Permission denied");
    assert!(moved.len() <= REFUSALS_PER_LINE_MAX, "{moved:?}");
}

#[test]
fn no_key_for_the_whole_disk_or_for_secrets_is_proposed() {
    if !has_sandbox() {
        return;
    }
    for (text, said) in [
        ("mkdir: cannot create directory '/data-of-mine': Permission denied", "the whole disk"),
        ("ls: cannot open directory '/': Permission denied", "the whole disk"),
        ("cat: /etc/shadow: Permission denied", "it may hold secrets; [secrets] gives"),
        ("cat: /etc/ssl/private/x.key: Permission denied", "it may hold secrets; [secrets] gives"),
    ] {
        for line in by_default(text) {
            assert!(line.contains(said) && !line.contains("[\"/"), "{text}: {line}");
        }
    }
    assert!(
        may_be_secret("/root/.ssh/id_rsa".as_ref()) && !may_be_secret("/srv/keys.txt".as_ref())
    );
}

#[test]
fn programs_that_need_a_unix_socket_are_explained_with_its_key() {
    if !has_sandbox() {
        return;
    }
    for text in [
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: \
         Get \"http://%2Fvar%2Frun%2Fdocker.sock/v1.24/containers/json\": dial unix /var/run/docker.sock: socket: \
         operation not permitted",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "Failed to connect to bus: Operation not permitted",
        "Failed to connect to system scope bus via local transport: Operation not permitted",
    ] {
        let found = by_default(text);
        assert!(found.len() == 1 && found[0].contains("unix_sockets = true"), "{text}: {found:?}");
    }
}

#[test]
fn hostile_path_is_escaped() {
    if !has_sandbox() {
        return;
    }
    let found = by_default("cat: '@/data/\u{1b}[2J': Permission denied");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("\\u{1b}[2J") && !found[0].contains('\u{1b}'), "{found:?}");
}

proptest! {
    #[test]
    fn any_text_has_few_and_short_explanations(
        text in "((Permission denied|EPERM|open|socket|connect|mount|chmod|kill|resolve host|'|\"|‘|/etc/shadow|/proc/1/mem|/|: |\\n|  |\\PC|[\\x00-\\x1f]){0,60})"
    ) {
        let found = by_default(&text);
        prop_assert!(found.len() <= REFUSALS_PER_LINE_MAX);
        for line in found {
            prop_assert!(line.starts_with("sandbox: ") && line.len() < 20_000);
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
        }
    }
}
