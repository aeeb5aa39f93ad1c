# Runs a program until it and all that it has started have ended, and ends as it did.
import ctypes, os, signal, sys

ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans become children of this process
child = os.fork()
if child == 0:
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
_, status = os.waitpid(child, 0)
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
if os.WIFSIGNALED(status):
    os.kill(os.getpid(), os.WTERMSIG(status))
os._exit(os.waitstatus_to_exitcode(status))
