#: command with its output
import subprocess
print(subprocess.run(["echo", "a"], capture_output=True, text=True))
#: command that writes itself
import subprocess, sys
print("before", flush=True)
subprocess.run("echo inside; echo error >&2", shell=True)
print("after")
#: command that fails
import subprocess
subprocess.run(["false"], check=True)
#: command that does not exist
import subprocess
subprocess.run(["no-such-program"])
#: command with a timeout
import subprocess
try:
    subprocess.run(["sleep", "60"], timeout=0.05)
except subprocess.TimeoutExpired as error:
    print(error.cmd)
#: input of a command
import subprocess
print(subprocess.run(["tr", "a-z", "A-Z"], input="abc", capture_output=True, text=True).stdout)
#: pipeline
import subprocess
first = subprocess.Popen(["echo", "b\na"], stdout=subprocess.PIPE)
second = subprocess.Popen(["sort"], stdin=first.stdout, stdout=subprocess.PIPE, text=True)
print(second.communicate()[0].split(), first.wait())
#: variables of commands
import os, subprocess
os.environ["NEW"] = "1"
print(subprocess.run("echo $NEW $MISSING", shell=True, capture_output=True, text=True).stdout)
print(subprocess.run(["env"], env={"ONLY": "1"}, capture_output=True, text=True).stdout)
#: os.system and os.popen
import os
print(os.system("exit 3") >> 8, os.popen("echo a").read())
#: fork
import os
child = os.fork()
if child == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
#: child of a fork ends normally
import os, sys
print("of both", flush=True)
child = os.fork()
if child == 0:
    print("of the child")
    sys.exit(3)
print("of the parent", os.waitpid(child, 0)[1] >> 8)
#: child of a fork fails
import os
child = os.fork()
if child == 0:
    1 / 0
print(os.waitpid(child, 0)[1] >> 8)
#: buffer is written by both after a fork
import os
print("twice")
child = os.fork()
if child:
    os.waitpid(child, 0)
#: exec
import os
print("before", flush=True)
os.execvp("echo", ["echo", "replaced"])
#: spawn
import os
print(os.spawnvp(os.P_WAIT, "true", ["true"]), os.posix_spawnp("true", ["true"], {}) > 0)
os.wait()
#: signal handler
import os, signal
signal.signal(signal.SIGUSR1, lambda number, frame: print("got", signal.Signals(number).name, frame.f_code.co_name))
os.kill(os.getpid(), signal.SIGUSR1)
print("end")
#: alarm
import signal
def late(*_):
    raise TimeoutError("too late")
signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.02)
signal.pause()
#: default handlers
import signal
print([signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD)])
#: broken pipe
import os, sys
read_end, write_end = os.pipe()
os.close(read_end)
os.write(write_end, b"x")
#: threads
import threading
total, lock = [0], threading.Lock()
def add():
    for _ in range(100):
        with lock:
            total[0] += 1
threads = [threading.Thread(target=add) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(total)
#: threads that are not joined
import threading, time
def late():
    time.sleep(0.05)
    print("late")
threading.Thread(target=late).start()
print("early")
#: daemon thread is cut off
import threading, time
threading.Thread(target=time.sleep, args=[60], daemon=True).start()
print("end")
#: thread is waited for before functions at exit
import atexit, threading, time
atexit.register(print, "at exit")
threading.Thread(target=lambda: (time.sleep(0.03), print("thread"))).start()
#: timer and event
import threading
event = threading.Event()
threading.Timer(0.01, event.set).start()
print(event.wait(30))
#: local values of threads
import threading
local = threading.local()
local.x = 1
threading.Thread(target=lambda: print(hasattr(local, "x"))).start()
#: pool of threads
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(3) as pool:
    print(list(pool.map(lambda n: n * n, range(5))))
#: pool of threads is not closed
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
future = pool.submit(print, "in the pool")
#: queue
import queue, threading
work = queue.Queue()
threading.Thread(target=lambda: [work.put(n) for n in range(3)]).start()
print([work.get() for _ in range(3)])
#: asyncio
import asyncio
async def double(n):
    await asyncio.sleep(0.001 * n)
    return n * 2
async def main():
    print(await asyncio.gather(*map(double, range(3))))
asyncio.run(main())
#: asyncio with a command
import asyncio
async def main():
    process = await asyncio.create_subprocess_exec("echo", "a", stdout=asyncio.subprocess.PIPE)
    print(await process.communicate())
asyncio.run(main())
#: asyncio that fails
import asyncio
async def main():
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(60))
        raise ValueError("in a task group")
asyncio.run(main())
#: coroutine is not awaited
async def f():
    pass
f()
print("end")
#: task is not awaited
import asyncio
async def fail():
    raise ValueError("nobody looks")
async def main():
    task = asyncio.create_task(fail())
    await asyncio.sleep(0.01)
asyncio.run(main())
#: process of multiprocessing
import multiprocessing
if __name__ == "__main__":
    process = multiprocessing.Process(target=print, args=["in a process"])
    process.start()
    process.join()
    print(process.exitcode)
#: pipe of multiprocessing
import multiprocessing
def work(end):
    end.send({"a": [1, 2]})
if __name__ == "__main__":
    own, other = multiprocessing.Pipe()
    process = multiprocessing.Process(target=work, args=[other])
    process.start()
    print(own.recv())
    process.join()
#: limits
import resource
print(resource.getrlimit(resource.RLIMIT_CORE)[0])
#: pool of processes
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(pool.map(abs, [-1, 2]))
#: pool of processes that are no forks
import multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(abs, [-1, 2]))
#: executor of processes
from concurrent.futures import ProcessPoolExecutor
def square(n):
    return n * n
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        print(list(pool.map(square, range(5))), pool.submit(square, 9).result())
#: error in an executor of processes
from concurrent.futures import ProcessPoolExecutor
def work(n):
    raise KeyError(n)
if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool:
        try:
            pool.submit(work, 3).result()
        except KeyError as error:
            print("failed with", error)
#: queue of multiprocessing
import multiprocessing
def work(numbers, results):
    for n in iter(numbers.get, None):
        results.put(n * n)
if __name__ == "__main__":
    for method in ["fork", "spawn"]:
        context = multiprocessing.get_context(method)
        numbers, results = context.Queue(), context.SimpleQueue()
        process = context.Process(target=work, args=[numbers, results])
        process.start()
        for n in [1, 2, None]:
            numbers.put(n)
        print(results.get(), results.get())
        process.join()
        print(process.exitcode, numbers.qsize())
#: locks of multiprocessing
import multiprocessing
def work(lock, event):
    with lock:
        event.set()
if __name__ == "__main__":
    lock, event = multiprocessing.RLock(), multiprocessing.Event()
    with lock, lock:
        process = multiprocessing.Process(target=work, args=[lock, event])
        process.start()
        print(event.is_set(), lock)
    print(event.wait(60))
    process.join()
    bounded = multiprocessing.BoundedSemaphore(1)
    print(bounded.acquire(), bounded.acquire(timeout=0.01), bounded)
    bounded.release()
    try:
        bounded.release()
    except ValueError as error:
        print(error)
#: condition of multiprocessing
import multiprocessing
def work(condition, results):
    with condition:
        results.put("ready")
        condition.notify()
if __name__ == "__main__":
    condition, results = multiprocessing.Condition(), multiprocessing.JoinableQueue()
    process = multiprocessing.Process(target=work, args=[condition, results])
    with condition:
        process.start()
        print(condition.wait(60))
    print(results.get())
    results.task_done()
    results.join()
    process.join()
#: value of multiprocessing
import multiprocessing
print(multiprocessing.Value("i", 5).value)
#: manager of multiprocessing
import multiprocessing
def work(shared):
    shared["b"] = 2
if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        shared = manager.dict(a=1)
        process = multiprocessing.Process(target=work, args=[shared])
        process.start()
        process.join()
        print(dict(shared))
#: semaphores that nothing closes
import multiprocessing
locks = [multiprocessing.get_context(method).Lock() for method in ["fork", "spawn"] for _ in range(3)]
print(len(locks), type(locks[0]._semlock))
#: module of semaphores
import _multiprocessing
print(_multiprocessing.SemLock.SEM_VALUE_MAX > 1000, _multiprocessing.__name__, _multiprocessing.SemLock.__name__)
#: semaphore of a started process has a name by which others find it
import multiprocessing as m
from multiprocessing.synchronize import SemLock
def take(lock):
    with lock:
        print("taken", flush=True)
if __name__ == "__main__":
    context = m.get_context("spawn")
    lock = context.Lock()
    print(type(lock._semlock.name).__name__, type(m.get_context("fork").Lock()._semlock.name).__name__)
    process = context.Process(target=take, args=[lock]); process.start(); process.join()
    print(process.exitcode)
#: semaphore is found again by its name
import _multiprocessing as m, os
first = m.SemLock(1, 1, 1, f"/by-name-{os.getpid()}", False)
again = m.SemLock._rebuild(0, 1, 1, first.name)
print(first.acquire(False), again.acquire(False), first.release(), again.acquire(False))
m.sem_unlink(first.name)
try:
    m.sem_unlink(first.name + "-none")
except OSError as error:
    print("gone")
