"""Semaphores of `multiprocessing` without `/dev/shm`, which the sandbox of a job closes.

A new semaphore is memory that this process shares with its forks, or a file in the job's folder for
processes that are not forks of it. All else, such as waiting, stays with the interpreter's own module. Where the
system makes semaphores, nothing is different.
"""

import os
import sys

# The memory of this process's semaphores, by its address.
_memory = {}


def install(stands_in=None):
    """Lets the module `_multiprocessing` make its semaphores so. `stands_in` is a file of that name which
    the interpreter found first and which only calls this function."""
    if stands_in is None:
        import _multiprocessing as module
    else:
        module = _behind(os.path.dirname(os.path.abspath(stands_in)))
    module.SemLock = _over(module.SemLock)


def _behind(folder):
    """Loads the interpreter's own module, as if `folder` were not searched."""
    from importlib import machinery, util
    others = [other for other in sys.path if os.path.abspath(other) != folder]
    spec = machinery.PathFinder.find_spec("_multiprocessing", others)
    spec = spec or machinery.BuiltinImporter.find_spec("_multiprocessing")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["_multiprocessing"] = module
    return module


def _over(base):
    class SemLock(base):
        __module__, __qualname__ = base.__module__, base.__qualname__

        def __new__(cls, kind, value, maxvalue, name, unlink):
            try:
                return base(kind, value, maxvalue, name, unlink)
            except FileExistsError:
                raise
            except OSError:
                path = None if unlink else _new_file()
            own = _Address(_map(path, value))
            own.path, own.process = path, os.getpid()
            lock = cls._rebuild(own, kind, maxvalue, None)
            lock._own = own
            return lock

        @property
        def handle(self):
            return self._own

        # At the end of an interpreter the names of modules are gone.
        def __del__(self, memory=_memory, getpid=os.getpid, unlink=os.unlink):
            memory.pop(int(self._own), None)
            if self._own.path is not None and self._own.process == getpid():
                try:
                    unlink(self._own.path)
                except OSError:
                    pass

    return SemLock


class _Address(int):
    """The address of a semaphore; a process that is no fork maps it for itself."""

    def __reduce__(self):
        return _map, (self.path,)


def _new_file():
    import tempfile
    number, path = tempfile.mkstemp(prefix="semaphore-")
    os.close(number)
    return path


def _map(path, value=None):
    """Returns the address of shared memory, with a new semaphore in it if there is a value."""
    import ctypes
    import mmap
    number = -1 if path is None else os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        if path is not None and value is not None:
            os.ftruncate(number, mmap.PAGESIZE)
        memory = mmap.mmap(number, mmap.PAGESIZE)
    finally:
        if path is not None:
            os.close(number)
    memory = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(memory)
    _memory[address] = memory
    if value is not None:
        ctypes.CDLL(None).sem_init(ctypes.c_void_p(address), 1, value)
    return address
