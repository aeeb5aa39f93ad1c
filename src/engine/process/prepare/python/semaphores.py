"""Semaphores of `multiprocessing` without `/dev/shm`, which the sandbox of a job closes.

A new semaphore is memory that this process shares with its forks, or a file in the job's folder for
processes that are not forks of it, which find it by its name. All else, such as waiting, stays with the interpreter's
own module. Where the system makes semaphores, nothing is different.
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
    module.sem_unlink = _unlink_over(module.sem_unlink)


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
        _of_hero = True

        def __new__(cls, kind, value, maxvalue, name, unlink):
            try:
                return base(kind, value, maxvalue, name, unlink)
            except FileExistsError:
                raise
            except OSError:
                path = None if unlink else _new_file(name)
            own = _Address(_map(path, value))
            own.path, own.process = path, os.getpid()
            lock = super()._rebuild(own, kind, maxvalue, None)
            lock._own, lock._name = own, None if unlink else name
            return lock

        @classmethod
        def _rebuild(cls, handle, kind, maxvalue, name):
            path = _file_of(name)
            if path is None:
                lock = super()._rebuild(handle, kind, maxvalue, name)
                lock._own = handle
                return lock
            own = _Address(handle if isinstance(handle, _Address) else _map(path))
            own.path, own.process = path, None
            lock = super()._rebuild(own, kind, maxvalue, None)
            lock._own, lock._name = own, name
            return lock

        @property
        def name(self):
            return getattr(self, "_name", None) or base.name.__get__(self)

        @property
        def handle(self):
            return self._own

        # At the end of an interpreter the names of modules are gone.
        def __del__(self, memory=_memory, getpid=os.getpid, unlink=os.unlink):
            own = getattr(self, "_own", None)
            if isinstance(own, _Address) and own.process == getpid():
                memory.pop(int(own), None)
                if own.path is not None:
                    try:
                        unlink(own.path)
                    except OSError:
                        pass

    return SemLock


class _Address(int):
    """The address of a semaphore; a process that is no fork maps it for itself."""

    def __reduce__(self):
        return _attach, (self.path,)


def _attach(path):
    """Maps a semaphore in another process, which may have loaded the interpreter's own module."""
    import _multiprocessing
    base = _multiprocessing.SemLock
    if not hasattr(base, "_of_hero"):
        install()
        # Loky has taken the class out of its module.
        for module in list(sys.modules.values()):
            if getattr(module, "_SemLock", None) is base:
                module._SemLock = _multiprocessing.SemLock
    return _map(path)


def _unlink_over(base):
    def sem_unlink(name):
        """Removes the file of a semaphore, or the system's semaphore of this name."""
        path = _file_of(name)
        return base(name) if path is None else os.unlink(path)

    return sem_unlink


def _path_of(name):
    import tempfile
    return os.path.join(tempfile.gettempdir(), "semaphore" + name.replace("/", "-"))


def _file_of(name):
    """Returns the file of a semaphore; None if it has none."""
    path = name and _path_of(name)
    return path if path and os.path.isfile(path) else None


def _new_file(name):
    path = _path_of(name)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
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
