//! Hostile scripts, each run in the sandbox and, if that is harmless, without one: the first run
//! shows that it is contained, the second that it can do harm. All targets are created by the test.

mod files;
mod job_groups;
mod kernel;
mod leftovers;
mod network;
mod processes;
mod resources;
mod rhai;
mod targets;

use std::fmt::Write as _;

use hero::config::Require;
use hero::sandbox::Support;

use crate::support::{Hero, Process, Redis, needs, wait_until};
use targets::Targets;

/// A hostile script.
struct Escape {
    /// The attempt, as in the table.
    tries: &'static str,
    kind: Kind,
    /// For Python the body of a function that returns whether it escaped, or fails; else the complete
    /// script, which prints `ESCAPED` if it did.
    script: &'static str,
    /// A part of the error of its job; empty if the job reports that it was contained.
    held_by: &'static str,
    open: Open,
}

/// The script type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Python,
    /// With TCP to one port that the test does not use, and without `chmod`; started cold.
    PythonWithSettings,
    Bash,
    Osis,
}

/// The way in which the scripts of a table are started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// As new processes.
    Cold,
    /// As forks of a warm interpreter: Python only.
    Fork,
}

impl Start {
    fn has(self, escape: &Escape) -> bool {
        match self {
            Self::Cold => true,
            Self::Fork => escape.kind == Kind::Python,
        }
    }
}

/// The result without a sandbox.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// It escapes.
    Escapes,
    /// It escapes if the tests run as root.
    EscapesAsRoot,
    /// It is contained by something else than the sandbox.
    HeldToo,
    /// It is not run: it would do harm, or some kernels lack what it needs.
    NotTried,
}

const fn python(tries: &'static str, script: &'static str) -> Escape {
    Escape { tries, kind: Kind::Python, script, held_by: "", open: Open::Escapes }
}

const fn bash(tries: &'static str, script: &'static str) -> Escape {
    Escape { kind: Kind::Bash, ..python(tries, script) }
}

const fn osis(tries: &'static str, script: &'static str, held_by: &'static str) -> Escape {
    let open = Open::HeldToo;
    Escape { tries, kind: Kind::Osis, script, held_by, open }
}

impl Escape {
    const fn open(self, open: Open) -> Self {
        Self { open, ..self }
    }

    const fn held_by(self, held_by: &'static str) -> Self {
        Self { held_by, ..self }
    }

    const fn with_settings(self) -> Self {
        Self { kind: Kind::PythonWithSettings, ..self }
    }

    fn text(&self) -> String {
        match self.kind {
            Kind::Bash | Kind::Osis => self.script.to_owned(),
            Kind::Python | Kind::PythonWithSettings => {
                let mut body = String::new();
                for line in self.script.lines() {
                    let _ = writeln!(body, "    {line}");
                }
                format!("{PRELUDE}\ndef attempt():\n{body}\n{POSTLUDE}")
            }
        }
    }

    fn sandboxed_type(&self, start: Start) -> &'static str {
        match self.kind {
            Kind::Python if start == Start::Fork => WARM,
            Kind::Python => "sandboxed_python",
            Kind::PythonWithSettings => "settings_python",
            Kind::Bash => "sandboxed_bash",
            Kind::Osis => "osis",
        }
    }

    fn open_type(&self) -> Option<&'static str> {
        if self.open == Open::NotTried {
            return None;
        }
        match self.kind {
            Kind::Python | Kind::PythonWithSettings => Some("open_python"),
            Kind::Bash => Some("open_bash"),
            Kind::Osis => None,
        }
    }
}

/// The prelude of Python scripts: the targets, and system calls by number.
const PRELUDE: &str = r#"
import ctypes, fcntl, mmap, os, resource, signal, socket, stat, struct, subprocess, sys, time
SECRET, FOLDER, OUTSIDE, FILE = (os.environ[n] for n in ("SECRET", "FOLDER", "OUTSIDE", "FILE"))
VICTIM, DAEMON = int(os.environ["VICTIM"]), int(os.environ["DAEMON"])
TCP, UDP = int(os.environ["TCP"]), int(os.environ["UDP"])
UNIX, REDIS, TOKEN = os.environ["UNIX"], os.environ["REDIS"], os.environ["TOKEN"]
libc = ctypes.CDLL(None, use_errno=True)
def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def call(number, *args):
    if isinstance(number, tuple):
        number = number[os.uname().machine != "x86_64"]
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    return checked(libc.syscall(ctypes.c_long(number), *args))
def reaches_the_kernel(action):
    "Returns whether the kernel evaluates the request, so that it is not the filter that answers."
    try:
        action()
    except OSError as error:
        return error.errno not in (1, 38)
    return True
"#;
const POSTLUDE: &str = r#"
try:
    escaped = attempt()
except BaseException as error:
    print("held:", repr(error))
else:
    print("ESCAPED" if escaped else "held")
"#;

/// One line of the table.
struct Line {
    tries: &'static str,
    shut: String,
    open: String,
    is_held: bool,
    is_shown: bool,
}

struct World {
    hero: Hero,
    targets: Targets,
    start: Start,
    _actors: Vec<Process>,
}

impl World {
    /// The target actor is that of the Python scripts.
    fn new(redis: &Redis, start: Start) -> Self {
        let interpreter = |name, command| (format!("type.{name}"), command);
        let command = r#"["/usr/bin/python3", "{script}"]"#;
        let bash = r#"["/bin/bash", "{script}"]"#;
        let mut hero = Hero::on(redis).set("job.output_size_max", "\"64KiB\"");
        for (of_type, command) in [
            interpreter("sandboxed_python", command),
            interpreter("warm_python", command),
            interpreter("settings_python", command),
            interpreter("open_python", command),
            interpreter("sandboxed_bash", bash),
            interpreter("open_bash", bash),
        ] {
            hero = hero.set(&format!("{of_type}.engine"), "\"command\"");
            hero = hero.set(&format!("{of_type}.command"), command);
            if of_type.contains("open") {
                hero = hero.set(&format!("{of_type}.sandbox.enabled"), "false");
                continue;
            }
            for (key, value) in [
                ("cpu", "\"1s\""),
                ("memory", "\"512MiB\""),
                ("open_files", "128"),
                ("file_size", "\"1MiB\""),
                ("disk", "\"4MiB\""),
            ] {
                hero = hero.set(&format!("{of_type}.sandbox.{key}"), value);
            }
        }
        hero = hero.set("type.settings_python.sandbox.ports", "[1]");
        hero = hero.set("type.settings_python.sandbox.chmod", "false");
        hero = hero.set("type.warm_python.warm", "true");
        let types: &[&str] = match start {
            Start::Cold => &[
                "sandboxed_python",
                "settings_python",
                "open_python",
                "sandboxed_bash",
                "open_bash",
                "osis",
            ],
            Start::Fork => &[WARM],
        };
        let actor = |name: &&str| hero.actor(&format!("{name}-default-1")).tasks(1).start();
        let actors: Vec<Process> = types.iter().map(actor).collect();
        let daemon = actors[0].pid();
        Self { targets: Targets::new(redis, daemon), hero, start, _actors: actors }
    }

    /// Runs a script as a job. Returns what it printed, or `error: …`.
    fn run(&self, of_type: &str, escape: &Escape) -> String {
        said(self.begin(of_type, escape))
    }

    fn begin(&self, of_type: &str, escape: &Escape) -> Process {
        let mut args = vec!["exec", "-t", of_type, "--timeout", "60s"];
        if escape.held_by == "timeout" {
            args[4] = "2s";
        }
        let env: Vec<String> =
            self.targets.env().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        if escape.kind != Kind::Osis {
            args.extend(env.iter().flat_map(|pair| ["--env", pair.as_str()]));
        }
        let cold_exits = format!(
            "import sys\nif 'ctypes' not in sys.modules:\n    print({STARTED_COLD:?})\n    sys.exit()\n"
        );
        let text = format!("{}{}", if of_type == WARM { &cold_exits } else { "" }, escape.text());
        args.extend(["-e", &text]);
        self.hero.begin(&args)
    }

    fn run_sandboxed(&self, escape: &Escape) -> String {
        match self.start {
            Start::Cold => self.run(escape.sandboxed_type(self.start), escape),
            Start::Fork => self.run_as_fork(escape),
        }
    }

    /// Repeats a script that was started cold.
    fn run_as_fork(&self, escape: &Escape) -> String {
        let mut said = String::new();
        wait_until("the job is a fork", || {
            said = self.run(WARM, escape);
            said != STARTED_COLD
        });
        said
    }

    fn line(&self, escape: &Escape) -> Line {
        let shut = self.run_sandboxed(escape);
        let is_held = !shut.contains("ESCAPED")
            && match escape.held_by {
                "" => shut.starts_with("held"),
                text => shut.starts_with("error: ") && shut.contains(text),
            };
        let harm = self.targets.harm();
        let is_held = is_held && harm.is_none();
        let shut = harm.map_or(shut, |harm| format!("HARM: {harm}"));
        let as_root = nix::unistd::geteuid().is_root();
        // The run without a sandbox is made once.
        let (open, is_shown) = match escape.open_type().filter(|_| self.start == Start::Cold) {
            None => ("not tried".to_owned(), true),
            Some(open_type) => {
                let open = self.run(open_type, escape);
                let got_out = open.contains("ESCAPED");
                let must = match escape.open {
                    Open::Escapes => true,
                    Open::EscapesAsRoot => as_root,
                    Open::HeldToo | Open::NotTried => got_out,
                };
                self.targets.restore();
                (open, got_out || !must)
            }
        };
        Line { tries: escape.tries, shut, open, is_held, is_shown }
    }
}

/// Returns what a job printed, or `error: …`.
fn said(job: Process) -> String {
    let done = job.ends();
    let said = match done.code {
        0 => done.stdout,
        _ => format!("error: {}", done.stderr),
    };
    said.trim().chars().take(300).collect()
}

/// Prints the table. Fails if a script escaped, or if one does not escape without a sandbox either.
#[expect(clippy::print_stdout, reason = "the table is what the test is for")]
fn judge(title: &str, lines: &[Line]) {
    let first = |text: &str| -> String {
        text.lines().next().unwrap_or_default().chars().take(58).collect()
    };
    println!("\n{:<52} {:<58} WITHOUT", title, "IN THE SANDBOX");
    for line in lines {
        println!("{:<52} {:<58} {}", line.tries, first(&line.shut), first(&line.open));
    }
    let bad = |is_bad: fn(&Line) -> bool| -> Vec<String> {
        let bad = lines.iter().filter(|line| is_bad(line));
        bad.map(|line| format!("{}: {} | {}", line.tries, line.shut, line.open)).collect()
    };
    let escapes = bad(|line| !line.is_held);
    let idle = bad(|line| !line.is_shown);
    println!("{}: {} hostile scripts, {} escapes", title, lines.len(), escapes.len());
    assert!(
        escapes.is_empty(),
        "these escaped, or were contained by something unknown:\n{escapes:#?}"
    );
    assert!(idle.is_empty(), "these do not escape even without a sandbox:\n{idle:#?}");
}

/// The type whose scripts are forks.
const WARM: &str = "warm_python";
/// The output of a script that is not a fork, and does nothing else.
const STARTED_COLD: &str = "started cold";

/// Tries all scripts in each way of starting them, concurrently.
fn try_all(title: &str, escapes: &[Escape]) {
    if !needs("landlock", || Support::of_this_kernel().level() >= Require::Full) {
        return;
    }
    std::thread::scope(|scope| {
        for (start, how) in [(Start::Cold, ""), (Start::Fork, ", WARM")] {
            let those: Vec<_> = escapes.iter().filter(|escape| start.has(escape)).collect();
            if !those.is_empty() {
                scope.spawn(move || try_in(&format!("{title}{how}"), &those, start));
            }
        }
    });
}

fn try_in(title: &str, escapes: &[&Escape], start: Start) {
    let redis = Redis::start();
    let world = World::new(&redis, start);
    let mut lines = Vec::new();
    for escape in escapes {
        lines.push(world.line(escape));
        // The actor runs the next job.
        if !escape.held_by.is_empty() {
            let next = if escape.kind == Kind::Bash { "echo 1" } else { "print(1)" };
            let next = if escape.kind == Kind::Osis { "1" } else { next };
            let of_type = escape.sandboxed_type(start);
            world.hero.run(&["exec", "-t", of_type, "-e", next]).code(0).stdout("1\n");
        }
    }
    judge(title, &lines);
}
