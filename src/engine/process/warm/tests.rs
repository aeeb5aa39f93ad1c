//! Forks of a warm interpreter beside cold starts: the same results, and nothing that stays.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::engine::process::CommandEngine;
use crate::engine::process::orphans;
use crate::engine::process::prepare::tests::World;
use crate::engine::{Cancel, Engine, Failure, Script, StopReason};

/// Says whether it is a fork: the parent has this module, a new interpreter has not.
const IS_WARM: &str = "import sys; print('ctypes' in sys.modules)";

fn until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < until, "in vain: {what}");
        std::thread::yield_now();
    }
}

fn warm(world: &World, keys: &str) -> CommandEngine {
    let engine = world.engine("python", &format!("warm = true\n{keys}"));
    engine.warm_up();
    until("the parent is ready", || engine.warm.as_ref().is_some_and(super::Warm::is_ready));
    assert_eq!(world.output(&engine, IS_WARM), "True");
    engine
}

#[test]
fn a_fork_gives_what_a_cold_start_gives() {
    let world = World::new();
    let (warm, cold) = (warm(&world, "preload = [\"json\"]"), world.engine("python", ""));
    for source in [
        "print(1)",
        "",
        "print('a', end='')",
        "import os, sys; print(sorted(k for k in globals()), __name__, sys.argv[1:], len(sys.path))",
        "import sys; print(__file__ == sys.argv[0], sys.path[0] == sys.argv[0].rsplit('/', 1)[0])",
        "import sys; print(sys.stdin.read() == '', sys.stdout.isatty(), sys.stdout.encoding)",
        "import sys; print(sys.executable, sys.prefix, sys.orig_argv[0])",
        "1 / 0",
        "def f():\n    raise ValueError('x')\n\nf()\n",
        "x = (",
        "import sys; sys.exit(3)",
        "import sys; sys.exit('said')",
        "raise SystemExit",
        "import os; os.kill(os.getpid(), 9)",
        "import os; os.abort()",
        "open('kept', 'w').write('x'); f = open('open', 'w'); f.write('y')",
        "import atexit; atexit.register(print, 'at the end')",
        "import threading; threading.Timer(0.05, print, ['late']).start(); print('early')",
        "import os\npid = os.fork()\nif pid == 0: os._exit(7)\nprint(os.waitpid(pid, 0)[1] >> 8)",
        "import subprocess; print(subprocess.run(['/bin/echo', 'a'], capture_output=True).stdout)",
        "import sys; sys.setrecursionlimit(200)\ndef f(): f()\nf()",
        "import hero; hero.output({'a': 1}); hero.log('x')",
        "import locale; print(locale.getlocale(), locale.getpreferredencoding())",
        "print('\\udcff'.encode('utf-8', 'surrogateescape'))",
        "import sys; sys.stdout.write('x' * 300000)",
        "class A:\n    def __del__(self): print('gone')\na = A()",
        "import time; print(time.tzname)",
    ] {
        assert_eq!(world.run(&warm, source), world.run(&cold, source), "{source}");
    }
}

#[test]
fn nothing_passes_from_one_job_to_the_next() {
    let world = World::new();
    let (warm, cold) = (warm(&world, "preload = [\"random\"]"), world.engine("python", ""));
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
        assert_ne!(first, second, "the same chance twice");
    }
}

#[test]
fn what_an_interpreter_reads_as_it_starts_is_given_to_a_new_one() {
    let world = World::new();
    let engine = warm(&world, "env = { TZ = \"Asia/Tokyo\" }");
    let look =
        "import sys, time; print('ctypes' in sys.modules, time.timezone, sys.flags.utf8_mode)";
    let with = |name: &str, value: &str| {
        let env = [(name.to_owned(), value.to_owned())].into();
        world.run_with(&engine, look, &env).expect("success").output
    };
    assert_eq!(with("ANY", "1"), "True -32400 0");
    assert_eq!(with("PYTHONUTF8", "1"), "False -32400 1");
    assert_eq!(with("LC_ALL", "C"), "False -32400 1");
}

#[test]
fn a_fork_is_shut_into_the_sandbox() {
    let world = World::new();
    let (warm, cold) = (warm(&world, ""), world.engine("python", ""));
    for source in [
        "open('/etc/shadow').read()",
        "open('/root/x', 'w')",
        "import os; os.listdir('/proc/1')",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
        "import ctypes; print(ctypes.CDLL(None).ptrace(0, 0, 0, 0))",
        "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))",
        "import resource; print([resource.getrlimit(n) for n in range(10)])",
        "print([l for l in open('/proc/self/status') if 'Cap' in l or 'NoNew' in l or 'Secc' in l])",
    ] {
        assert_eq!(world.run(&warm, source), world.run(&cold, source), "{source}");
    }
    // It began as a child of the parent; nobody it could reach is its parent now.
    let parent = "import os; os.kill(os.getppid(), 0)";
    assert!(world.message(&warm, parent).starts_with("PermissionError"), "the daemon is reached");
}

fn run_until(engine: &CommandEngine, source: &str, timeout_ms: u64, cancel: &Cancel) -> Failure {
    let (env, inputs) = (BTreeMap::new(), BTreeMap::new());
    let script = Script {
        job_id: "job-1",
        caller_id: "",
        context_id: "",
        source,
        env: &env,
        inputs: &inputs,
        deadline: Instant::now() + Duration::from_millis(timeout_ms),
    };
    engine.run(&script, cancel, &World::new().log).expect_err("it is ended")
}

/// Not even a zombie is left of it.
fn assert_reaped(file: &Path) {
    let pid = std::fs::read_to_string(file).expect("it was there");
    until("it is gone", || {
        orphans::sweep(None);
        !Path::new("/proc").join(pid.trim()).exists()
    });
}

#[test]
fn a_fork_is_ended_with_all_that_it_started() {
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
fn a_parent_that_dies_is_replaced_and_no_job_notices() {
    let world = World::new();
    let engine = warm(&world, "");
    let pid = engine.warm.as_ref().and_then(super::Warm::pid).expect("a parent");
    kill_process(Pid::from_raw(pid).expect("a pid"), Signal::KILL).expect("killed");
    assert_eq!(world.output(&engine, "print('done')"), "done");
    until("it is warm again", || world.output(&engine, IS_WARM) == "True");
}

#[test]
fn a_module_that_cannot_be_imported_only_leaves_jobs_cold() {
    let world = World::new();
    let engine = world.engine("python", "warm = true\npreload = [\"no_such_module\"]");
    engine.warm_up();
    let warm = engine.warm.as_ref().expect("configured");
    until("it has failed", || warm.has_failed());
    assert_eq!(world.output(&engine, IS_WARM), "False");
}

#[test]
fn forks_find_the_packages_that_their_script_asks_for() {
    let world = World::new();
    let engine = warm(&world, &world.wheel());
    let source = "# /// script\n# dependencies = [\"greeting\"]\n# ///\n\
        import greeting, sys\nprint(greeting.hello(), 'ctypes' in sys.modules)\n";
    assert_eq!(world.output(&engine, source), "hello True");
    let other = "import importlib.util; print(importlib.util.find_spec('greeting'))";
    assert_eq!(world.output(&engine, other), "None");
}
