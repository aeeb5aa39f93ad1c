"""Verbs without a connection: each is a generator that yields steps and gets their results. The classes here carry
the steps out, without asyncio and with it, so that each verb stands in one place."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any, AsyncIterator, Dict, Generator, Iterable, Iterator, List, Mapping, Optional, TypeVar

from ._errors import HeroError
from ._jobs import Event, Job, JobSpec, LogEntry, LogLine, Progress, StatusChange

T = TypeVar("T")
Steps = Generator[Any, Any, T]

_EVENTS = (StatusChange, LogLine, Progress)


@dataclass(frozen=True)
class Pause:
    """A wait."""

    seconds: float


class BlockingVerbs:
    """The verbs that every client has. `_verbs` has a generator for each."""

    _verbs: Any

    def submit(self, spec: JobSpec) -> str:
        """Submits a job. Returns its id; over the API the id of the job that holds its unique key, if one does. Raises
        InvalidJob, IdTaken."""
        steps: Steps[str] = self._verbs.submit(spec)
        return self._all(steps)

    def run(self, spec: JobSpec, timeout: Optional[float] = None) -> Job:
        """Submits a job and waits for its end, for `timeout` seconds or without a bound. Raises JobFailed,
        WaitTimeout, and what submit raises."""
        steps: Steps[Job] = self._verbs.run(spec, timeout)
        return self._all(steps)

    def wait(self, job_id: str, timeout: Optional[float] = None) -> Job:
        """Waits for the end of a job. Raises JobFailed, WaitTimeout, NoSuchJob."""
        steps: Steps[Job] = self._verbs.wait(job_id, timeout)
        return self._all(steps)

    def get(self, job_id: str) -> Job:
        """Reads a job. Raises NoSuchJob."""
        steps: Steps[Job] = self._verbs.get(job_id)
        return self._all(steps)

    def output(self, job_id: str) -> Optional[bytes]:
        """Reads the output of a job; None until it has finished. Raises JobFailed, NoSuchJob."""
        steps: Steps[Optional[bytes]] = self._verbs.output(job_id)
        return self._all(steps)

    def log(self, job_id: str) -> List[LogEntry]:
        """Reads the log of a job so far. Raises NoSuchJob."""
        return self._all(self._verbs.log(job_id))

    def follow(self, job_id: str) -> Iterator[Event]:
        """Yields the states of a job and the entries of its log as they come, until its end. Raises NoSuchJob."""
        yield from self._each(self._verbs.follow(job_id))

    def batch(self, specs: Iterable[JobSpec]) -> List[str]:
        """Submits jobs: over the API all or none, over Redis 500 in a round trip. Returns their ids in the same
        order."""
        return self._all(self._verbs.batch(specs))

    def graph(self, jobs: Mapping[str, JobSpec]) -> Dict[str, str]:
        """Submits jobs that wait for each other by their names here, all or none. Returns the ids by name."""
        return self._all(self._verbs.graph(jobs))

    def stop(self, job_id: str) -> None:
        """Asks for the stop of a job, waiting or running; `wait` tells when it has ended. Raises NoSuchJob,
        WrongState."""
        self._all(self._verbs.stop(job_id))

    def close(self) -> None:
        """Closes the connections that are kept."""

    def __exit__(self, *_: object) -> None:
        self.close()

    def _do(self, step: Any) -> Any:
        """Carries out a step. Returns its result, or raises a HeroError."""
        raise NotImplementedError

    def _each(self, steps: Steps[T]) -> Generator[Event, None, T]:
        """Runs the steps of a verb and yields its events. Returns its result."""
        go_on: Any = steps.send
        result: Any = None
        try:
            while True:
                try:
                    step = go_on(result)
                except StopIteration as stop:
                    returned: T = stop.value
                    return returned
                go_on, result = steps.send, None
                if isinstance(step, _EVENTS):
                    yield step
                elif isinstance(step, Pause):
                    time.sleep(step.seconds)
                else:
                    try:
                        result = self._do(step)
                    except HeroError as error:
                        go_on, result = steps.throw, error
        finally:
            steps.close()

    def _all(self, steps: Steps[T]) -> T:
        """Runs the steps of a verb without events. Returns its result."""
        try:
            next(self._each(steps))
        except StopIteration as stop:
            result: T = stop.value
            return result
        raise AssertionError("a verb without events yielded one")


class AsyncVerbs:
    """The verbs of BlockingVerbs for asyncio."""

    _verbs: Any

    async def submit(self, spec: JobSpec) -> str:
        """See Client.submit."""
        return await self._all(self._verbs.submit(spec))

    async def run(self, spec: JobSpec, timeout: Optional[float] = None) -> Job:
        """See Client.run."""
        return await self._all(self._verbs.run(spec, timeout))

    async def wait(self, job_id: str, timeout: Optional[float] = None) -> Job:
        """See Client.wait."""
        return await self._all(self._verbs.wait(job_id, timeout))

    async def get(self, job_id: str) -> Job:
        """See Client.get."""
        return await self._all(self._verbs.get(job_id))

    async def output(self, job_id: str) -> Optional[bytes]:
        """See Client.output."""
        return await self._all(self._verbs.output(job_id))

    async def log(self, job_id: str) -> List[LogEntry]:
        """See Client.log."""
        return await self._all(self._verbs.log(job_id))

    async def follow(self, job_id: str) -> AsyncIterator[Event]:
        """See Client.follow."""
        async for event in self._each(self._verbs.follow(job_id), []):
            yield event

    async def batch(self, specs: Iterable[JobSpec]) -> List[str]:
        """See Client.batch."""
        return await self._all(self._verbs.batch(specs))

    async def graph(self, jobs: Mapping[str, JobSpec]) -> Dict[str, str]:
        """See Client.graph."""
        return await self._all(self._verbs.graph(jobs))

    async def stop(self, job_id: str) -> None:
        """See Client.stop."""
        await self._all(self._verbs.stop(job_id))

    async def close(self) -> None:
        """Closes the connections that are kept."""

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _do(self, step: Any) -> Any:
        """Carries out a step. Returns its result, or raises a HeroError."""
        raise NotImplementedError

    async def _each(self, steps: Steps[T], results: List[T]) -> AsyncIterator[Event]:
        """Runs the steps of a verb and yields its events. Adds its result to `results`."""
        go_on: Any = steps.send
        result: Any = None
        try:
            while True:
                try:
                    step = go_on(result)
                except StopIteration as stop:
                    results.append(stop.value)
                    return
                go_on, result = steps.send, None
                if isinstance(step, _EVENTS):
                    yield step
                elif isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                else:
                    try:
                        result = await self._do(step)
                    except HeroError as error:
                        go_on, result = steps.throw, error
        finally:
            steps.close()

    async def _all(self, steps: Steps[T]) -> T:
        """Runs the steps of a verb without events. Returns its result."""
        results: List[T] = []
        async for _ in self._each(steps, results):
            raise AssertionError("a verb without events yielded one")
        return results[0]
