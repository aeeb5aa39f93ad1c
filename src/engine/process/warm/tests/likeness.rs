//! Forks of a warm interpreter beside cold starts: the same to see, to say and to give.

use super::*;

#[test]
fn a_fork_gives_what_a_cold_start_gives() {
    let world = World::new();
    let (warm, cold) =
        (warm(&world, "preload = [\"json\"]"), world.engine("python", "warm = false"));
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

/// What a script can see of the process that it is, one line each.
const OBSERVABLES: &str = r"
import builtins, ctypes, gc, locale, os, resource, signal, site, stat, sys, threading, time, warnings
home = os.environ['HOME']
def shown(value):
    return repr(value).replace(home, 'HOME')
def kind(number):
    mode = os.fstat(number).st_mode
    return stat.S_IFMT(mode), os.isatty(number), os.get_inheritable(number)
def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False
environ = {name: value for name, value in os.environ.items() if name != 'HERO_RUN_ID'}
for name, value in {
    'argv': sys.argv, 'orig_argv': sys.orig_argv, 'name': __name__, 'file': __file__,
    'globals': sorted(globals()), 'spec': __spec__, 'doc': __doc__, 'loader': type(__loader__),
    'main': sys.modules['__main__'].__dict__ is globals(), 'builtins': __builtins__ is builtins,
    'path': sys.path, 'flags': sys.flags, 'executable': sys.executable, 'prefix': sys.prefix,
    'exec_prefix': sys.exec_prefix, 'warnoptions': sys.warnoptions, 'xoptions': sys._xoptions,
    'filters': warnings.filters, 'meta_path': [getattr(f, '__name__', type(f).__name__) for f in sys.meta_path], 'dont_write': sys.dont_write_bytecode,
    'recursion': sys.getrecursionlimit(), 'switch': sys.getswitchinterval(),
    'hooks': sys.excepthook is sys.__excepthook__, 'trace': (sys.gettrace(), sys.getprofile()),
    'ps1': hasattr(sys, 'ps1'), 'last': hasattr(sys, 'last_type'), 'gc': (gc.isenabled(), gc.get_threshold()),
    'environ': sorted(environ.items()), 'mark': len(os.environ['HERO_RUN_ID']) > 2,
    'cwd': os.getcwd(), 'umask': os.umask(0o22), 'nice': os.nice(0), 'ids': (os.getuid(), os.getgid(), os.getgroups()),
    'session': (os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()), 'parent': os.getppid(),
    'affinity': os.sched_getaffinity(0), 'policy': os.sched_getscheduler(0),
    'locale': (locale.setlocale(locale.LC_ALL), locale.getpreferredencoding(), sys.getfilesystemencoding()),
    'zone': (time.tzname, time.timezone),
    'streams': [(f.encoding, f.errors, f.line_buffering, f.write_through, f.newlines, f.mode, f.name, f.isatty())
                for f in (sys.stdin, sys.stdout, sys.stderr)],
    'dunder_streams': (sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__),
    'kinds': [kind(number) for number in range(4)],
    'open': [number for number in range(4, 300) if is_open(number)],
    'handlers': [signal.getsignal(number) for number in range(1, 65) if number not in (32, 33)],
    'blocked': signal.pthread_sigmask(signal.SIG_BLOCK, []), 'alarm': signal.getitimer(signal.ITIMER_REAL),
    'limits': [resource.getrlimit(number) for number in range(16)],
    'threads': [(thread.name, thread.daemon, thread is threading.main_thread()) for thread in threading.enumerate()],
    'kernel': [ctypes.CDLL(None).prctl(number, 0, 0, 0, 0) for number in (3, 21, 39)],
    'site': (site.ENABLE_USER_SITE, site.USER_SITE, site.USER_BASE),
    'hero': sorted(n for n in dir(__import__('hero')) if n in ('inputs', 'log', 'output', 'progress')),
}.items():
    print(name, shown(value))
";

#[test]
fn a_fork_sees_of_itself_what_a_cold_start_sees() {
    let world = World::new();
    let (warm, cold) = (warm(&world, ""), world.engine("python", "warm = false"));
    let seen = |engine: &CommandEngine| -> Vec<String> {
        world.output(engine, OBSERVABLES).lines().map(str::to_owned).collect()
    };
    let (forked, started) = (seen(&warm), seen(&cold));
    assert_eq!(forked.len(), started.len());
    let different: Vec<_> = forked.iter().zip(&started).filter(|(a, b)| a != b).collect();
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn what_a_fork_says_of_its_errors_is_what_a_cold_start_says() {
    let (of_warm, of_cold) = (World::new(), World::new());
    let (warm, cold) = (warm(&of_warm, ""), of_cold.engine("python", "warm = false"));
    for source in [
        "def f():
    1 / 0
f()
",
        "try:
    1 / 0
except ZeroDivisionError as error:
    raise ValueError('x') from error
",
        "try:
    1 / 0
except ZeroDivisionError:
    [][1]
",
        "x = (
",
        "raise ExceptionGroup('several', [ValueError(1), TypeError(2)])
",
        "import warnings; warnings.warn('careful')
",
        "import sys; sys.exit('leaving')
",
        "import sys; print('cut', end=''); sys.exit(7)
",
        "import os; print('lost'); os._exit(5)
",
        "import threading
def f(): raise KeyError('in a thread')
threading.Thread(target=f).start()
",
        "import subprocess, sys
if sys.argv[1:]:
    print('again', __name__)
else:
                 subprocess.run([sys.executable, __file__, 'x'], check=True)
",
        "import multiprocessing as m
if __name__ == '__main__':
                 p = m.get_context('fork').Process(target=print, args=['from another'])
    p.start(); p.join()
",
    ] {
        let ran = |world: &World, engine: &CommandEngine| {
            let before = world.log().len();
            let result = world.run(engine, source);
            // The folder of each job has a name of its own.
            let said = format!("{result:?} {}", &world.log()[before..]);
            let pieces: Vec<&str> = said.split("/job-").collect();
            let own =
                pieces.iter().skip(1).map(|piece| piece.split_once('/').map(|(_, rest)| rest));
            (
                pieces[0].to_owned(),
                own.map(|rest| rest.unwrap_or("").to_owned()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(ran(&of_warm, &warm), ran(&of_cold, &cold), "{source}");
    }
}
