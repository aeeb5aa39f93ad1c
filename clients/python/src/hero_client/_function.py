"""Makes a Python function a job: its source travels, its arguments and its result are JSON."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import json
import symtable
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, Protocol, TypeVar

from ._errors import HeroError, InvalidJob
from ._jobs import Job, JobSpec

if TYPE_CHECKING:
    from typing_extensions import ParamSpec
else:
    try:
        from typing import ParamSpec
    except ImportError:
        # Python 3.9, where only type checkers know the parameters.
        ParamSpec = TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# Annotations are not evaluated, so that the actor need not know their names. Prints go to the job's log.
_SCRIPT = """from __future__ import annotations
{source}
def _hero_run(function):
    import contextlib, json, os, sys
    args, kwargs = json.loads({arguments!r})
    with contextlib.redirect_stdout(sys.stderr):
        result = json.dumps(function(*args, **kwargs))
    with open(int(os.environ["HERO_FD"]), "w", closefd=False) as channel:
        channel.write(json.dumps({{"output": result}}) + "\\n")
_hero_run({name})
"""


class Submitter(Protocol):
    """What a function needs of a client: Client and RedisClient have it."""

    def submit(self, spec: JobSpec) -> str:
        """Submits a job."""

    def run(self, spec: JobSpec, timeout: Optional[float] = None) -> Job:
        """Runs a job."""


class JobFunction(Generic[P, R]):
    """A function that can run as a job. A plain call runs it here."""

    def __init__(self, function: Callable[P, R], client: Optional[Submitter], settings: JobSpec) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._client = client
        self._settings = settings
        self._source = _source(function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def spec(self, *args: P.args, **kwargs: P.kwargs) -> JobSpec:
        """Returns the job of one call, for any client. Raises InvalidJob if the arguments are no JSON."""
        inspect.signature(self._function).bind(*args, **kwargs)
        try:
            arguments = json.dumps([args, kwargs])
        except (TypeError, ValueError) as error:
            raise InvalidJob(f"the arguments of {self._function.__name__} cannot travel as JSON: {error}") from error
        script = _SCRIPT.format(source=self._source, arguments=arguments, name=self._function.__name__)
        return replace(self._settings, script=script)

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Submits a call with the client of the decorator. Returns the id."""
        return self._own().submit(self.spec(*args, **kwargs))

    def run(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs a call with the client of the decorator. Returns what the function returned there; raises
        JobFailed if it raised."""
        return self.result(self._own().run(self.spec(*args, **kwargs)))

    def result(self, job: Job) -> R:
        """Returns the result of a finished job of this function."""
        result: R = job.json()
        return result

    def _own(self) -> Submitter:
        if self._client is None:
            name = self._function.__name__
            raise HeroError(f"@job of {name} names no client: give it one, or pass {name}.spec(...) to a client")
        return self._client


def job(
    client: Optional[Submitter] = None, *, script_type: str = "python", **settings: Any
) -> Callable[[Callable[P, R]], JobFunction[P, R]]:
    """Makes a function a job with these settings of JobSpec. Raises InvalidJob if its source
    cannot travel.

        @job(client, timeout=30)
        def add(a, b):
            return a + b

        assert add.run(40, 2) == 42
    """

    def decorate(function: Callable[P, R]) -> JobFunction[P, R]:
        template = JobSpec(script_type, "pass", **{"name": function.__name__, **settings})
        return JobFunction(function, client, template)

    return decorate


def _source(function: Callable[..., Any]) -> str:
    """Returns the source of a function without its decorators. Raises InvalidJob if it would not run
    alone."""
    name = getattr(function, "__name__", repr(function))
    try:
        source = textwrap.dedent(inspect.getsource(function))
        found = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError) as error:
        raise InvalidJob(f"the source of {name} cannot be read: {error}") from error
    if not isinstance(found, ast.FunctionDef):
        raise InvalidJob(f"{name} is no plain function: only one with `def` can be a job")
    lines = source.splitlines()
    source = "\n".join(lines[found.lineno - 1 : found.end_lineno])
    missing = sorted(_foreign_names(found))
    if missing:
        raise InvalidJob(
            f"{name} uses {', '.join(missing)} of its module or of the function around it, which does not"
            " travel with it: import or define it inside, or pass it as an argument"
        )
    return source


def _foreign_names(function: ast.FunctionDef) -> set[str]:
    """Returns the names that a function takes from outside of itself."""
    function.decorator_list = []
    for node in ast.walk(function):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    table = symtable.symtable(ast.unparse(function), "<job>", "exec")
    names = {one.get_name() for one in table.get_symbols() if one.is_referenced()}
    inner = list(table.get_children())
    while inner:
        scope = inner.pop()
        names |= {one.get_name() for one in scope.get_symbols() if one.is_global() and one.is_referenced()}
        inner += scope.get_children()
    return names - {function.name} - set(dir(builtins)) - {"__name__", "__file__"}
