//! Tests of the forks of a warm interpreter: their start, their end, and that nothing is left.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{ParentState, SPARES, Warm};
use crate::engine::process::CommandEngine;
use crate::engine::process::end;
use crate::engine::process::prepare::tests::{World, can_install_packages};
use crate::engine::{Cancel, Engine, Failure, Inputs, Script, SecretValues, StopReason};
use crate::proto::job::AskedBounds;

mod likeness;

impl Warm {
    /// True if a parent and all forks made ahead are ready.
    pub(in crate::process) fn is_ready(&self) -> bool {
        self.spares().len() == SPARES
    }

    /// The process id of the parent.
    fn pid(&self) -> Option<i32> {
        match &*self.lock() {
            ParentState::Ready(ready) => i32::try_from(ready.parent.child.id()).ok(),
            _ => None,
        }
    }

    /// The process ids of the waiting forks, the next one first.
    fn spares(&self) -> Vec<i32> {
        match &*self.lock() {
            ParentState::Ready(ready) => {
                let forks = ready.spares.iter().filter_map(|spare| spare.fork.as_ref());
                forks.map(|fork| fork.pid.as_raw()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// True if the parent could not be started.
    fn has_failed(&self) -> bool {
        self.failures.load(Ordering::Relaxed) > 0
    }
}

/// Prints whether it is a fork: the parent has imported this module, a new interpreter has not.
const IS_WARM: &str = "import sys; print('ctypes' in sys.modules)";

fn until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < until, "in vain: {what}");
        std::thread::yield_now();
    }
}

fn warm(world: &World, keys: &str) -> CommandEngine {
    warmed(world, world.engine("python", &format!("warm = true\n{keys}")))
}

fn warmed(world: &World, engine: CommandEngine) -> CommandEngine {
    engine.warm_up();
    until("a fork waits", || engine.warm.as_deref().is_some_and(Warm::is_ready));
    assert_eq!(world.output(&engine, IS_WARM), "True");
    engine
}

#[test]
fn kernel_without_memory_kills_a_job_before_the_daemon() {
    let world = World::new();
    let score = "print(open('/proc/self/oom_score_adj').read().strip())";
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").expect("a number");
    let own: i32 = own.trim().parse().expect("a number");
    let engine = |warm| world.engine_in("python", &format!("warm = {warm}"), "read = [\"/proc\"]");
    for engine in [warmed(&world, engine(true)), engine(false)] {
        assert_eq!(world.output(&engine, score), own.max(500).to_string());
    }
}

#[test]
fn nothing_passes_from_one_job_to_the_next() {
    let world = World::new();
    let (warm, cold) =
        (warm(&world, "preload = [\"random\"]"), world.engine("python", "warm = false"));
    for (change, look) in [
        (
            "global_name = 1; import builtins; builtins.extra = 1",
            "print('extra' in dir(__builtins__))",
        ),
        ("import json; json.dumps = None", "import json; print(json.dumps(1))"),
        (
            "import sys; sys.path.insert(0, '/x'); sys.flag = 1",
            "import sys; print('/x' in sys.path, hasattr(sys, 'flag'))",
        ),
        (
            "import os; os.environ['LEFT'] = '1'; os.putenv('C_LEFT', '1')",
            "import subprocess; print(b'LEFT' in subprocess.run(['/usr/bin/env'], capture_output=True).stdout)",
        ),
        (
            "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])",
            "import signal; print(signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.pthread_sigmask(signal.SIG_BLOCK, []))",
        ),
        (
            "import locale; locale.setlocale(locale.LC_ALL, 'C')",
            "import locale; print(locale.setlocale(locale.LC_ALL))",
        ),
        (
            "import threading, time; threading.Thread(target=time.sleep, args=[0.05], daemon=True).start()",
            "import threading; print(threading.active_count())",
        ),
        ("import os; os.chdir('/usr')", "import os; print(os.getcwd() == os.environ['HOME'])"),
        ("import os; os.umask(0o777)", "import os; print(os.umask(0o22))"),
        (
            "import os; os.dup2(os.open('/dev/null', os.O_RDONLY), 77)",
            "import os\ndef is_open(fd):\n    try: return bool(os.fstat(fd))\n    except OSError: return False\nprint([fd for fd in range(200) if is_open(fd)])",
        ),
        (
            "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))",
            "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))",
        ),
        ("import os; os.nice(5)", "import os; print(os.nice(0))"),
        (
            "import os; open('left', 'w'); print(os.listdir())",
            "import os; print('left' in os.listdir())",
        ),
        (
            "import socket; socket.setdefaulttimeout(5)",
            "import socket; print(socket.getdefaulttimeout())",
        ),
        (
            "import time, os; os.environ['TZ'] = 'Asia/Tokyo'; time.tzset()",
            "import time; print(time.timezone)",
        ),
    ] {
        let expected = world.output(&cold, look);
        assert_eq!(world.output(&warm, look), expected, "{look}");
        world.output(&warm, change);
        assert_eq!(world.output(&warm, look), expected, "after {change}");
    }
    let random = "import random, uuid, tempfile; print(random.random(), uuid.uuid4(), next(tempfile._get_candidate_names()))";
    let (first, second) = (world.output(&warm, random), world.output(&warm, random));
    for (first, second) in first.split(' ').zip(second.split(' ')) {
        assert_ne!(first, second, "the same random value twice");
    }
}

#[test]
fn variables_read_at_the_start_of_an_interpreter_make_a_job_start_cold() {
    let world = World::new();
    let engine = warm(&world, "env = { TZ = \"Asia/Tokyo\" }");
    let look =
        "import sys, time; print('ctypes' in sys.modules, time.timezone, sys.flags.utf8_mode)";
    let with = |name: &str, value: &str| {
        let env = [(name.to_owned(), value.to_owned())].into();
        world.run_with(&engine, look, &env).expect("success").output.to_string()
    };
    assert_eq!(with("ANY", "1"), "True -32400 0");
    assert_eq!(with("PYTHONUTF8", "1"), "False -32400 1");
    assert_eq!(with("LC_ALL", "C"), "False -32400 1");
    assert_eq!(with("PYTHONUNBUFFERED", ""), "False -32400 0");
    assert_eq!(with("PYTHONUNBUFFERED", "1"), "True -32400 0");
}

#[test]
fn fork_enters_the_sandbox() {
    let world = World::new();
    let (warm, cold) = (warm(&world, ""), world.engine("python", "warm = false"));
    for source in [
        "open('/etc/shadow').read()",
        "open('/root/x', 'w')",
        "import os; os.listdir('/proc/1')",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
        "import ctypes; print(ctypes.CDLL(None).ptrace(0, 0, 0, 0))",
        "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))",
        "import resource; print([resource.getrlimit(n) for n in range(10)])",
        "import ctypes; print([ctypes.CDLL(None).prctl(n, 0, 0, 0, 0) for n in (3, 21, 39)])",
    ] {
        assert_eq!(world.run(&warm, source), world.run(&cold, source), "{source}");
    }
    // The daemon is its parent now, and is out of reach.
    let parent = "import os; os.kill(os.getppid(), 0)";
    assert!(world.message(&warm, parent).starts_with("PermissionError"), "the daemon is reached");
}

fn run_until(engine: &CommandEngine, source: &str, timeout_ms: u64, cancel: &Cancel) -> Failure {
    let (env, inputs) = (BTreeMap::new(), Inputs::default());
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
        env: &env,
        args: &[],
        params: &crate::proto::job::Params::new(),
        bounds: &AskedBounds::default(),
        secrets: &SecretValues::default(),
        inputs: &inputs,
        files: None,
        output_overflow: None,
        deadline: Instant::now() + Duration::from_millis(timeout_ms),
    };
    engine.run(&script, cancel, &World::new().log).expect_err("it is ended")
}

#[test]
fn job_gets_the_oldest_fork_and_it_is_replaced() {
    let world = World::new();
    let engine = warm(&world, "");
    let is_ready = || engine.warm.as_deref().is_some_and(Warm::is_ready);
    let waiting = || {
        until("forks wait", is_ready);
        engine.warm.as_deref().map(Warm::spares).unwrap_or_default()
    };
    for _ in 0..3 {
        let waited = waiting()[0].to_string();
        assert_eq!(world.output(&engine, "import os; print(os.getpid())"), waited);
    }
    // Dead forks are replaced.
    for waited in waiting() {
        let waited = Pid::from_raw(waited);
        kill(waited, Signal::SIGKILL).expect("killed");
    }
    assert_eq!(world.output(&engine, IS_WARM), "True");
    // No fork outlives its engine.
    let waited: Vec<_> =
        waiting().iter().map(|pid| Path::new("/proc").join(pid.to_string())).collect();
    drop(engine);
    until("they have ended", || !waited.iter().any(|process| process.exists()));
}

#[test]
fn jobs_cannot_reach_the_parent() {
    let world = World::new();
    let engine = warm(&world, "");
    let pid = engine.warm.as_deref().and_then(Warm::pid).expect("a parent");
    for source in [
        format!("import os; os.kill({pid}, 0)"),
        format!("open('/proc/{pid}/mem', 'rb')"),
        format!("open('/proc/{pid}/environ', 'rb')"),
        format!("import os; os.listdir('/proc/{pid}/fd')"),
        format!("import os; os.sched_setaffinity({pid}, [0])"),
    ] {
        let message = world.message(&engine, &source);
        assert!(message.starts_with("PermissionError"), "{source}: {message}");
    }
    let trace = format!("import ctypes; print(ctypes.CDLL(None).ptrace(16, {pid}, 0, 0))");
    assert_eq!(world.output(&engine, &trace), "-1");
    assert_eq!(world.output(&engine, IS_WARM), "True");
}

#[test]
fn memory_of_a_job_holds_nothing_of_the_previous_one() {
    let world = World::new();
    let engine = warm(&world, "");
    world.output(&engine, "secret = 'left' + '-over-' + str(6 * 7); keep = [secret] * 1000");
    let look = r"
import gc
wanted = 'left' + '-over-'
lists = [o for o in gc.get_objects() if isinstance(o, (list, tuple))]
print(sum(isinstance(o[0], str) and o[0].startswith(wanted) for o in lists if o))
";
    assert_eq!(world.output(&engine, look), "0");
}

#[test]
fn forks_share_string_hashes_but_not_random_numbers() {
    let world = World::new();
    let engine = warm(&world, "preload = [\"random\"]");
    let (hashes, chance) = ("print(hash('a'))", "import random; print(random.random())");
    assert_eq!(world.output(&engine, hashes), world.output(&engine, hashes));
    assert_ne!(world.output(&engine, chance), world.output(&engine, chance));
}

#[test]
fn orphan_without_a_mark_is_killed_though_an_older_fork_waits() {
    let world = World::new();
    let engine = warm(&world, "");
    let file = world.path("bare");
    let source = r"
import os, time
file = FILE
if os.fork() == 0:
    os.setsid()
    with open(file + '.new', 'w') as new:
        new.write(str(os.getpid()))
    os.rename(file + '.new', file)
    os.execve('/bin/sleep', ['sleep', '600'], {})
while not os.path.exists(file):
    time.sleep(0.01)
";
    let source = source.replace("FILE", &format!("{file:?}"));
    assert_eq!(world.output(&engine, &source), "");
    assert_reaped(file.as_ref());
}

#[test]
fn only_options_of_the_interpreter_may_precede_the_script() {
    let are = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        super::are_options(&words)
    };
    for options in [&[][..], &["-I"], &["-W", "error", "-bb"], &["-Xdev", "-X", "utf8"]] {
        assert!(are(options), "{options:?}");
    }
    for other in [&["wrapper.py"][..], &["-m", "coverage"], &["-Im", "x"], &["-c", "1"], &["-"]] {
        assert!(!are(other), "{other:?}");
    }
}

/// Waits until not even a zombie is left.
fn assert_reaped(file: &Path) {
    let pid = std::fs::read_to_string(file).expect("it was there");
    until("it is gone", || {
        end::sweep(None);
        !Path::new("/proc").join(pid.trim()).exists()
    });
}

#[test]
fn fork_is_killed_with_all_that_it_started() {
    let world = World::new();
    let engine = warm(&world, "");
    let file = world.path("hidden");
    let source = format!(
        "import os, time\n\
         if os.fork() == 0:\n    os.setsid()\n    \
            if os.fork() == 0:\n        \
                with open({file:?} + '.new', 'w') as f: f.write(str(os.getpid()))\n        \
                os.rename({file:?} + '.new', {file:?})\n        time.sleep(600)\n    os._exit(0)\n\
         while not os.path.exists({file:?}): time.sleep(0.01)\n"
    );
    assert_eq!(world.output(&engine, &source), "");
    assert_reaped(file.as_ref());
    std::fs::remove_file(&file).expect("removed");
    let endless =
        format!("{source}\nimport signal\nsignal.signal(15, signal.SIG_IGN)\nwhile True: pass");
    assert_eq!(run_until(&engine, &endless, 3_000, &Cancel::new()), Failure::Timeout);
    assert_reaped(file.as_ref());
    let cancel = Cancel::new();
    cancel.request(StopReason::Requested);
    let stopped = run_until(&engine, "while True: pass", 60_000, &cancel);
    assert_eq!(stopped, Failure::Stopped(StopReason::Requested));
    assert_eq!(world.output(&engine, IS_WARM), "True");
}

#[test]
fn dead_parent_is_replaced_without_a_failed_job() {
    let world = World::new();
    let engine = warm(&world, "");
    let pid = engine.warm.as_deref().and_then(Warm::pid).expect("a parent");
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("killed");
    assert_eq!(world.output(&engine, "print('done')"), "done");
    until("it is warm again", || world.output(&engine, IS_WARM) == "True");
}

#[test]
fn jobs_start_cold_if_a_module_cannot_be_imported() {
    let world = World::new();
    let engine = world.engine("python", "warm = true\npreload = [\"no_such_module\"]");
    engine.warm_up();
    let warm = engine.warm.as_deref().expect("configured");
    until("it has failed", || warm.has_failed());
    assert_eq!(world.output(&engine, IS_WARM), "False");
}

#[test]
fn forks_find_the_packages_that_their_script_asks_for() {
    if !can_install_packages() {
        return;
    }
    let world = World::new();
    let engine = warm(&world, &world.wheel());
    let source = "# /// script\n# dependencies = [\"greeting\"]\n# ///\n\
        import greeting, sys\nprint(greeting.hello(), 'ctypes' in sys.modules)\n";
    assert_eq!(world.output(&engine, source), "hello True");
    // The second is in the folder of the job.
    let path = "sys.path[1].endswith('/hero/python'), sys.path[2:]";
    let path = source.replace("'ctypes' in sys.modules", path);
    let cold = world.engine("python", &format!("warm = false\n{}", world.wheel()));
    assert_eq!(world.output(&engine, &path), world.output(&cold, &path));
    let preloading = warm(&world, &format!("preload = [\"json\"]\n{}", world.wheel()));
    assert_eq!(world.output(&preloading, source), "hello False");
    let other = "import importlib.util; print(importlib.util.find_spec('greeting'))";
    assert_eq!(world.output(&engine, other), "None");
}
