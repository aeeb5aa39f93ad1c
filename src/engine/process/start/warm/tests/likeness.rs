//! Tests that a fork of a warm interpreter behaves like a cold start.

use super::*;
use crate::engine::process::prepare::tests::OBSERVABLES;

#[test]
fn fork_has_the_result_of_a_cold_start() {
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
        "import sys; print('kept'); sys.stdout = sys.stderr",
        "import io, sys; print('kept'); sys.stdout = io.StringIO(); print('not shown')",
        "import os, sys; print('first'); sys.stdout = os.fdopen(os.dup(1), 'w'); print('second')",
        "import sys; print('closed'); sys.stdout.close()",
        "import sys; sys.stderr.close()",
        "import sys\nwith sys.stdout as out: out.write('closed')",
        "import sys; sys.stdout = None; print('nothing')",
        "import atexit; atexit.register(lambda: print('__file__' in globals()))",
        "import gc, sys; gc.kept = open('/dev/fd/1', 'w'); gc.kept.write('of a module')",
        "import builtins; builtins.kept = open('/dev/fd/1', 'w'); builtins.kept.write('of builtins')",
        "import os; os._Environ.kept = open('/dev/fd/1', 'w'); os._Environ.kept.write('of a class')",
        "import os; os.getcwdb.__self__.kept = f = open('/dev/fd/1', 'w'); f.write('of a C module'); del f",
        "import builtins; builtins.SystemExit = None; 1 / 0",
    ] {
        assert_eq!(world.run(&warm, source), world.run(&cold, source), "{source}");
    }
}

#[test]
fn fork_sees_the_process_state_of_a_cold_start() {
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
fn fork_reports_the_errors_of_a_cold_start() {
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
        "import os, signal; os.kill(os.getpid(), signal.SIGINT)
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
            // Each job has a folder of another name.
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
