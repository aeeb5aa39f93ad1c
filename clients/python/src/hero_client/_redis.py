"""Clients over plain Redis: the verbs of the protocol on connections of redis-py."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Dict, Generator, Iterable, Iterator, List, Mapping, Optional, TypeVar

from ._errors import HeroError, NotPermitted, Unreachable
from ._jobs import Event, Job, JobSpec, LogEntry, LogLine, Progress, StatusChange
from ._protocol import Protocol, Steps

try:
    import redis
    import redis.asyncio as redis_asyncio
except ImportError as error:
    raise ImportError("the clients over Redis need redis-py 4.2 or later: pip install 'hero-client[redis]'") from error

T = TypeVar("T")

_EVENTS = (StatusChange, LogLine, Progress)


def _url(url: str) -> str:
    """Returns the url in the spelling of redis-py: Hero's configuration names a socket redis+unix."""
    return url[len("redis+") :] if url.startswith("redis+unix:") else url


def _error(error: Exception) -> HeroError:
    """Returns the error of this package for one of redis-py."""
    refused = (redis.AuthenticationError, redis.exceptions.NoPermissionError)
    if isinstance(error, refused):
        return NotPermitted(f"Redis refuses the call: {error}")
    if isinstance(error, (redis.ConnectionError, redis.TimeoutError)):
        return Unreachable(f"cannot reach Redis: {error}")
    return HeroError(f"Redis refuses the call: {error}")


class RedisClient:
    """The verbs over plain Redis. It may be shared by threads.

    `url` is `redis://`, `rediss://` or `redis+unix:///PATH`; further arguments go to `redis.Redis.from_url`.
    `list`, `retry` and `delete` need the API and raise NeedsApi.
    """

    def __init__(self, url: str = "redis://127.0.0.1:6379/0", namespace: str = "hero", **settings: Any) -> None:
        self._redis: Any = redis.Redis.from_url(_url(url), **settings)
        self._protocol = Protocol(namespace)

    def submit(self, spec: JobSpec) -> str:
        """Submits a job. Returns its id. Raises InvalidJob, IdTaken."""
        return self._all(self._protocol.submit(spec))

    def run(self, spec: JobSpec, timeout: Optional[float] = None) -> Job:
        """Submits a job and waits for its end, for `timeout` seconds or without a bound. Raises JobFailed,
        WaitTimeout, and what submit raises."""
        return self._all(self._protocol.run(spec, timeout))

    def wait(self, job_id: str, timeout: Optional[float] = None) -> Job:
        """Waits for the end of a job. Raises JobFailed, WaitTimeout, NoSuchJob."""
        return self._all(self._protocol.wait(job_id, timeout))

    def get(self, job_id: str) -> Job:
        """Reads a job. Raises NoSuchJob."""
        return self._all(self._protocol.get(job_id))

    def output(self, job_id: str) -> Optional[bytes]:
        """Reads the output of a job; None until it has finished. Raises JobFailed, NoSuchJob."""
        return self._all(self._protocol.output(job_id))

    def log(self, job_id: str) -> List[LogEntry]:
        """Reads the log of a job so far. Raises NoSuchJob."""
        return self._all(self._protocol.log(job_id))

    def follow(self, job_id: str) -> Iterator[Event]:
        """Yields the states of a job and the entries of its log as they come, until its end. Raises
        NoSuchJob."""
        yield from self._each(self._protocol.follow(job_id))

    def batch(self, specs: Iterable[JobSpec]) -> List[str]:
        """Submits jobs, 500 in a round trip. Returns their ids in the same order."""
        return self._all(self._protocol.batch(specs))

    def graph(self, jobs: Mapping[str, JobSpec]) -> Dict[str, str]:
        """Submits jobs that wait for each other by their names here, all or none. Returns the ids by
        name."""
        return self._all(self._protocol.graph(jobs))

    def stop(self, job_id: str) -> None:
        """Asks for the stop of a job, waiting or running; `wait` tells when it has ended. Raises
        NoSuchJob, WrongState."""
        self._all(self._protocol.stop(job_id))

    def list(self, **query: Any) -> Any:
        """Raises NeedsApi."""
        return self._all(self._protocol.list())

    def retry(self, job_id: str) -> Any:
        """Raises NeedsApi."""
        return self._all(self._protocol.retry())

    def delete(self, job_id: str) -> Any:
        """Raises NeedsApi."""
        return self._all(self._protocol.delete())

    def close(self) -> None:
        """Closes the connections."""
        self._redis.close()
        self._redis.connection_pool.disconnect()

    def __enter__(self) -> RedisClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _each(self, steps: Steps[T]) -> Generator[Event, None, T]:
        """Runs the steps of a verb and yields its events. Returns its result."""
        reply: Any = None
        while True:
            try:
                step = steps.send(reply)
            except StopIteration as stop:
                result: T = stop.value
                return result
            reply = None
            if isinstance(step, _EVENTS):
                yield step
                continue
            try:
                if isinstance(step, tuple):
                    reply = self._redis.execute_command(*step)
                else:
                    with self._redis.pipeline(transaction=True) as pipe:
                        for command in step:
                            pipe.execute_command(*command)
                        reply = pipe.execute()
            except redis.RedisError as error:
                raise _error(error) from error

    def _all(self, steps: Steps[T]) -> T:
        """Runs the steps of a verb without events. Returns its result."""
        try:
            next(self._each(steps))
        except StopIteration as stop:
            result: T = stop.value
            return result
        raise AssertionError("a verb without events yielded one")


class AsyncRedisClient:
    """The verbs of RedisClient for asyncio."""

    def __init__(self, url: str = "redis://127.0.0.1:6379/0", namespace: str = "hero", **settings: Any) -> None:
        self._redis: Any = redis_asyncio.Redis.from_url(_url(url), **settings)
        self._protocol = Protocol(namespace)

    async def submit(self, spec: JobSpec) -> str:
        """See RedisClient.submit."""
        return await self._all(self._protocol.submit(spec))

    async def run(self, spec: JobSpec, timeout: Optional[float] = None) -> Job:
        """See RedisClient.run."""
        return await self._all(self._protocol.run(spec, timeout))

    async def wait(self, job_id: str, timeout: Optional[float] = None) -> Job:
        """See RedisClient.wait."""
        return await self._all(self._protocol.wait(job_id, timeout))

    async def get(self, job_id: str) -> Job:
        """See RedisClient.get."""
        return await self._all(self._protocol.get(job_id))

    async def output(self, job_id: str) -> Optional[bytes]:
        """See RedisClient.output."""
        return await self._all(self._protocol.output(job_id))

    async def log(self, job_id: str) -> List[LogEntry]:
        """See RedisClient.log."""
        return await self._all(self._protocol.log(job_id))

    async def follow(self, job_id: str) -> AsyncIterator[Event]:
        """See RedisClient.follow."""
        async for event in self._each(self._protocol.follow(job_id), []):
            yield event

    async def batch(self, specs: Iterable[JobSpec]) -> List[str]:
        """See RedisClient.batch."""
        return await self._all(self._protocol.batch(specs))

    async def graph(self, jobs: Mapping[str, JobSpec]) -> Dict[str, str]:
        """See RedisClient.graph."""
        return await self._all(self._protocol.graph(jobs))

    async def stop(self, job_id: str) -> None:
        """See RedisClient.stop."""
        await self._all(self._protocol.stop(job_id))

    async def list(self, **query: Any) -> Any:
        """Raises NeedsApi."""
        return await self._all(self._protocol.list())

    async def retry(self, job_id: str) -> Any:
        """Raises NeedsApi."""
        return await self._all(self._protocol.retry())

    async def delete(self, job_id: str) -> Any:
        """Raises NeedsApi."""
        return await self._all(self._protocol.delete())

    async def close(self) -> None:
        """Closes the connections."""
        await self._redis.connection_pool.disconnect()

    async def __aenter__(self) -> AsyncRedisClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _each(self, steps: Steps[T], results: List[T]) -> AsyncIterator[Event]:
        """Runs the steps of a verb and yields its events. Adds its result to `results`."""
        reply: Any = None
        while True:
            try:
                step = steps.send(reply)
            except StopIteration as stop:
                results.append(stop.value)
                return
            reply = None
            if isinstance(step, _EVENTS):
                yield step
                continue
            # Some versions of redis-py leave the reply of a cancelled command to the next command.
            answer = asyncio.ensure_future(self._answer(step))
            answer.add_done_callback(_looked_at)
            try:
                reply = await asyncio.shield(answer)
            except redis.RedisError as error:
                raise _error(error) from error

    async def _answer(self, step: Any) -> Any:
        if isinstance(step, tuple):
            return await self._redis.execute_command(*step)
        async with self._redis.pipeline(transaction=True) as pipe:
            for command in step:
                pipe.execute_command(*command)
            return await pipe.execute()

    async def _all(self, steps: Steps[T]) -> T:
        """Runs the steps of a verb without events. Returns its result."""
        results: List[T] = []
        async for _ in self._each(steps, results):
            raise AssertionError("a verb without events yielded one")
        return results[0]


def _looked_at(answer: asyncio.Future[Any]) -> None:
    """Keeps asyncio from reporting the error of an answer that its caller has left."""
    if not answer.cancelled():
        answer.exception()
