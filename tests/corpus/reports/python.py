#: staticafi/symbiotic#138, last line of a child that ends at once
import subprocess, sys
sys.stdout.flush()
subprocess.Popen(["/bin/sh", "-c", "printf 'line %s\\n' 1 2 3; sleep 0.1; printf 'last\\n'"])
#: datalad/datalad#3656, lines that a child has not written at its end
import subprocess
subprocess.Popen(["/bin/sh", "-c", "printf 'one\\ntwo'; sleep 0.1; echo ' three' >&2"])
#: r-lib/processx#235, program in the background
import subprocess
print("started", flush=True)
child = subprocess.Popen(["/bin/sh", "-c", "for n in 1 2 3; do echo step $n; sleep 0.05; done"])
#: celery/celery#1584, pool of a worker
from multiprocessing import Pool
def task(n):
    return n * n
if __name__ == "__main__":
    with Pool(2) as pool:
        print(pool.map(task, range(5)))
#: celery/celery#185, semaphore as the first thing
import multiprocessing
print(multiprocessing.Semaphore(3).get_value())
#: celery/billiard#288, semaphore of the interpreter's own module
from _multiprocessing import SemLock, sem_unlink
lock = SemLock(1, 1, 1, "/corpus-288", False)
print(lock.acquire(), lock.acquire(False), lock.release())
sem_unlink("/corpus-288")
#: ansible/ansible#13830, lock at the import of a module
import importlib, pathlib, sys
pathlib.Path("display.py").write_text("from multiprocessing import Lock\ndebug_lock = Lock()\n")
sys.path.insert(0, ".")
with importlib.import_module("display").debug_lock:
    print("displayed")
#: ansible/ansible#82118, queue of results from forks
import multiprocessing
context = multiprocessing.get_context("fork")
queue = context.Queue()
workers = [context.Process(target=queue.put, args=(n,)) for n in range(3)]
for worker in workers:
    worker.start()
print(sorted(queue.get(timeout=30) for _ in workers))
for worker in workers:
    worker.join()
#: ansible/ansible#83746, pool of threads
from multiprocessing.pool import ThreadPool
print(ThreadPool(2).map(len, ["a", "bb"]))
#: apptainer/singularity#315, semaphore of a package that copies multiprocessing
import pathlib, sys
pathlib.Path("_multiprocess.py").write_text("from _multiprocessing import *\n")
sys.path.insert(0, ".")
from _multiprocess import SemLock
print(SemLock(1, 2, 2, "/corpus-315", True).maxvalue)
#: joblib/loky#42, named semaphores and interpreters of their own
import multiprocessing
def work(lock, n):
    with lock:
        return n + 1
def begin(shared):
    global lock
    lock = shared
def locked(n):
    return work(lock, n)
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with context.Pool(2, begin, (context.Lock(),)) as pool:
        print(pool.map(locked, range(4)))
#: joblib/joblib#825, module of semaphores is there
from multiprocessing import synchronize
print(synchronize.SEM_VALUE_MAX > 1000)
#: nalepae/pandarallel#128, pool of a context with an initializer
import multiprocessing
def work(n):
    return n * 2
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with context.Pool(2, maxtasksperchild=1) as pool:
        print(sorted(pool.imap_unordered(work, range(4))))
#: numba/numba#3344, lock that is taken twice
import multiprocessing
lock = multiprocessing.RLock()
with lock, lock:
    print("twice")
#: wandb/weave#4835, lock of a class
import multiprocessing
class Evaluation:
    lock = multiprocessing.Lock()
    def run(self):
        with self.lock:
            return "evaluated"
print(Evaluation().run())
#: zauberzeug/nicegui#2785, executor of processes
from concurrent.futures import ProcessPoolExecutor
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as executor:
        print(list(executor.map(abs, [-1, 2, -3])))
#: DataDog/dd-trace-py#7251, queue between a thread and its process
import multiprocessing, threading
queue = multiprocessing.Queue()
thread = threading.Thread(target=queue.put, args=("traced",))
thread.start()
print(queue.get(timeout=30))
thread.join()
#: yahoo/TensorFlowOnSpark#173, event and condition
import multiprocessing
event, condition = multiprocessing.Event(), multiprocessing.Condition()
child = multiprocessing.get_context("fork").Process(target=event.set)
child.start()
print(event.wait(30))
child.join()
with condition:
    print(condition.wait(0.01))
#: travis-ci/travis-ci#943, simple queue
import multiprocessing
queue = multiprocessing.SimpleQueue()
queue.put({"a": 1})
print(queue.get())
#: vectordotdev/timber-python#17, joinable queue
import multiprocessing
queue = multiprocessing.JoinableQueue()
queue.put("line")
print(queue.get(timeout=30))
queue.task_done()
queue.join()
#: umich-brcf-bioinf/Connor#7, name of the user in a log
import getpass, os, pwd
print(getpass.getuser() == pwd.getpwuid(os.getuid()).pw_name)
#: PyMySQL/PyMySQL#472, default user at the import
import getpass
DEFAULT_USER = getpass.getuser()
print(bool(DEFAULT_USER))
#: datafolklabs/cement#331, USER is read from the environment
import os
print(os.environ["USER"] == os.environ["LOGNAME"])
#: tqdm/tqdm#506, bar of a redirected run
import sys, time
for n in range(4):
    sys.stderr.write(f"\r{n * 25:3d}%|{'#' * n:<4}| {n}/4")
    time.sleep(0.01)
sys.stderr.write("\r100%|####| 4/4\n")
#: tqdm/tqdm#750, bar that ends without a line end
import sys
sys.stderr.write("\rLoading persons: 0it [00:00, ?it/s]")
#: meta-pytorch/torchx#424, bar and lines of the output
import sys
for n in range(3):
    print(f"step {n}", flush=True)
    sys.stderr.write(f"\r{n}/3")
    sys.stderr.flush()
#: neuro-inc/apolo-cli#1199, bar in the output
for n in range(3):
    print(f"\r{n}/3", end="", flush=True)
#: allenai/allennlp#599, bar longer than a line of the log
import sys
for n in range(2000):
    sys.stderr.write(f"\r{n:4d}/2000 [#####     ]")
sys.stderr.write("\n")
#: experimaestro/experimaestro-python#221, two bars with a cursor that goes up
import sys
sys.stderr.write("\r 0%\n\r 0%\x1b[A\r50%\n\r 10%\x1b[A\n\n")
#: projg2/python-exec#6, three options by env
#!/usr/bin/env -S /usr/bin/python3 -O -E -s
import sys
print(sys.flags.optimize, sys.flags.ignore_environment, sys.flags.no_user_site)
#: efroemling/ballistica#115, optimised by env
#!/usr/bin/env -S python3 -O
import sys
assert sys.flags.optimize == 0
print(sys.flags.optimize)
#: sabnzbd/sabnzbd#1663, optimised without texts
#!/usr/bin/python3 -OO
def served():
    """text"""
print(served.__doc__)
#: CERT-Polska/Artemis#2478, output that goes through tee
import subprocess, sys
tee = subprocess.Popen(["tee", "task.log"], stdin=subprocess.PIPE, text=True)
for n in range(200):
    tee.stdin.write(f"line {n}\n")
tee.stdin.close()
#: deepmodeling/dpdispatcher#400, files of the runner beside the script
import os
print(os.listdir(os.path.dirname(os.path.abspath(__file__))))
#: psnc-qcg/QCG-PilotJob#14, hidden files of the runner
import glob, os
print(glob.glob(os.path.join(os.environ["HOME"], ".*")), glob.glob(".*"))
