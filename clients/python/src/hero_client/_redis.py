"""Clients over plain Redis: the verbs of the protocol on connections of redis-py."""

from __future__ import annotations

import asyncio
from typing import Any, Optional

from ._circles import run_in_circle
from ._errors import HeroError, NotPermitted, Unreachable
from ._protocol import Protocol
from ._steps import AsyncVerbs, BlockingVerbs

try:
    import redis
    import redis.asyncio as redis_asyncio
except ImportError as error:
    raise ImportError("the clients over Redis need redis-py 4.2 or later: pip install 'hero-client[redis]'") from error


def _url(url: str) -> str:
    """Returns the url in the spelling of redis-py: Hero's configuration names a socket redis+unix."""
    scheme, _, _ = url.partition("://")
    if scheme in ("redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel"):
        raise HeroError(f"{scheme}:// is for Hero itself: give a Client the address of its API, which follows failovers")
    return url[len("redis+") :] if url.startswith("redis+unix:") else url


def _error(error: Exception) -> HeroError:
    """Returns the error of this package for one of redis-py."""
    refused = (redis.AuthenticationError, redis.exceptions.NoPermissionError)
    if isinstance(error, refused):
        return NotPermitted(f"Redis refuses the call: {error}")
    if isinstance(error, (redis.ConnectionError, redis.TimeoutError)):
        return Unreachable(f"cannot reach Redis: {error}")
    return HeroError(f"Redis refuses the call: {error}")


class RedisClient(BlockingVerbs):
    """The verbs over plain Redis. It may be shared by threads.

    `url` is `redis://`, `rediss://` or `redis+unix:///PATH`; further arguments go to `redis.Redis.from_url`.
    `list`, `retry` and `delete` need the API and raise NeedsApi.
    """

    def __init__(self, url: str = "redis://127.0.0.1:6379/0", namespace: str = "hero", **settings: Any) -> None:
        self._redis: Any = redis.Redis.from_url(_url(url), **settings)
        self._verbs = Protocol(namespace)

    def list(self, **query: Any) -> Any:
        """Raises NeedsApi."""
        return self._all(self._verbs.list())

    def retry(self, job_id: str) -> Any:
        """Raises NeedsApi."""
        return self._all(self._verbs.retry())

    def delete(self, job_id: str) -> Any:
        """Raises NeedsApi."""
        return self._all(self._verbs.delete())

    def run_in_circle(self, circle: str, script: str, timeout: Optional[float] = None) -> str:
        """Runs a script in a circle of rhailib, and returns its output. Raises JobFailed, WaitTimeout with the id of the
        task."""
        return self._all(run_in_circle(circle, script, timeout))

    def close(self) -> None:
        """Closes the connections."""
        self._redis.close()
        self._redis.connection_pool.disconnect()

    def __enter__(self) -> RedisClient:
        return self

    def _do(self, step: Any) -> Any:
        try:
            if isinstance(step, tuple):
                return self._redis.execute_command(*step)
            with self._redis.pipeline(transaction=True) as pipe:
                for command in step:
                    pipe.execute_command(*command)
                return pipe.execute()
        except redis.RedisError as error:
            raise _error(error) from error


class AsyncRedisClient(AsyncVerbs):
    """The verbs of RedisClient for asyncio."""

    def __init__(self, url: str = "redis://127.0.0.1:6379/0", namespace: str = "hero", **settings: Any) -> None:
        self._redis: Any = redis_asyncio.Redis.from_url(_url(url), **settings)
        self._verbs = Protocol(namespace)

    async def list(self, **query: Any) -> Any:
        """Raises NeedsApi."""
        return await self._all(self._verbs.list())

    async def retry(self, job_id: str) -> Any:
        """Raises NeedsApi."""
        return await self._all(self._verbs.retry())

    async def delete(self, job_id: str) -> Any:
        """Raises NeedsApi."""
        return await self._all(self._verbs.delete())

    async def run_in_circle(self, circle: str, script: str, timeout: Optional[float] = None) -> str:
        """Runs a script in a circle of rhailib, and returns its output."""
        return await self._all(run_in_circle(circle, script, timeout))

    async def close(self) -> None:
        """Closes the connections."""
        await self._redis.connection_pool.disconnect()

    async def __aenter__(self) -> AsyncRedisClient:
        return self

    async def _do(self, step: Any) -> Any:
        # Some versions of redis-py leave the reply of a cancelled command to the next command.
        answer = asyncio.ensure_future(self._answer(step))
        answer.add_done_callback(_looked_at)
        try:
            return await asyncio.shield(answer)
        except redis.RedisError as error:
            raise _error(error) from error

    async def _answer(self, step: Any) -> Any:
        if isinstance(step, tuple):
            return await self._redis.execute_command(*step)
        async with self._redis.pipeline(transaction=True) as pipe:
            for command in step:
                pipe.execute_command(*command)
            return await pipe.execute()


def _looked_at(answer: asyncio.Future[Any]) -> None:
    """Keeps asyncio from reporting the error of an answer that its caller has left."""
    if not answer.cancelled():
        answer.exception()
