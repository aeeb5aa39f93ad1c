# What a script can see of the process that it is, one line each.
import builtins, ctypes, gc, locale, os, resource, signal, site, stat, sys, threading, time, warnings
home = os.path.dirname(os.environ['HOME'])
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
    # The tenth is the number of the run.
    'limits': [resource.getrlimit(number) for number in range(16) if number != 10],
    'threads': [(thread.name, thread.daemon, thread is threading.main_thread()) for thread in threading.enumerate()],
    'kernel': [ctypes.CDLL(None).prctl(number, 0, 0, 0, 0) for number in (3, 21, 39)],
    'site': (site.ENABLE_USER_SITE, site.USER_SITE, site.USER_BASE),
    'hero': sorted(n for n in dir(__import__('hero')) if n in ('discard', 'inputs', 'log', 'output', 'progress', 'retry_in')),
}.items():
    print(name, shown(value))
