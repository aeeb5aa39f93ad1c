"""Clients over the API: JSON-RPC over HTTP, on the socket of the supervisor or TCP."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from typing import Any, AsyncIterator, Dict, Generator, Iterable, Iterator, List, Mapping, Optional, TypeVar

from . import _calls
from ._calls import Call, JobPage, Pause, Steps
from ._http import Endpoint
from ._jobs import Event, Job, JobSpec, LogEntry
from .api import AsyncMethods, Methods

T = TypeVar("T")

URL = "unix:///run/hero/api.sock"
"""Where the packaged supervisor listens."""
SECONDS = 30.0
"""The patience with an answer, beside what a call waits by itself."""


class Client:
    """The verbs over the API. It may be shared by threads.

    `url` is `unix:///PATH`, `http://HOST:PORT` or `https://HOST:PORT`; `token` is one of `hero token new`, and not
    needed on the socket. `api` has every method of the API.
    """

    def __init__(self, url: str = URL, token: Optional[str] = None, tls: Optional[ssl.SSLContext] = None) -> None:
        self._endpoint = Endpoint.of(url, tls)
        self._token = token
        self.api = Methods(self.call)

    def submit(self, spec: JobSpec) -> str:
        """Submits a job. Returns its id, or that of the job that holds its unique key. Raises InvalidJob,
        IdTaken."""
        return self._all(_calls.submit(spec))

    def run(self, spec: JobSpec, timeout: Optional[float] = None) -> Job:
        """Submits a job and waits for its end, for `timeout` seconds or without a bound. Raises JobFailed,
        WaitTimeout, and what submit raises."""
        return self._all(_calls.run(spec, timeout))

    def wait(self, job_id: str, timeout: Optional[float] = None) -> Job:
        """Waits for the end of a job. Raises JobFailed, WaitTimeout, NoSuchJob."""
        return self._all(_calls.wait(job_id, timeout))

    def get(self, job_id: str) -> Job:
        """Reads a job. Raises NoSuchJob."""
        return self._all(_calls.get(job_id))

    def output(self, job_id: str) -> Optional[bytes]:
        """Reads the output of a job; None until it has finished. Raises JobFailed, NoSuchJob."""
        return self._all(_calls.output(job_id))

    def log(self, job_id: str) -> List[LogEntry]:
        """Reads the log of a job so far. Raises NoSuchJob."""
        return self._all(_calls.log(job_id))

    def follow(self, job_id: str) -> Iterator[Event]:
        """Yields the states of a job and the entries of its log, until its end. Raises NoSuchJob."""
        yield from self._each(_calls.follow(job_id))

    def batch(self, specs: Iterable[JobSpec]) -> List[str]:
        """Submits jobs, all or none. Returns their ids in the same order."""
        return self._all(_calls.batch(specs))

    def graph(self, jobs: Mapping[str, JobSpec]) -> Dict[str, str]:
        """Submits jobs that wait for each other by their names here, all or none. Returns the ids by
        name."""
        return self._all(_calls.graph(jobs))

    def stop(self, job_id: str) -> None:
        """Asks for the stop of a job, waiting or running; `wait` tells when it has ended. Raises
        NoSuchJob, WrongState."""
        self._all(_calls.stop(job_id))

    def retry(self, job_id: str, with_dependents: bool = False) -> None:
        """Runs an ended job again; with its dependents that failed because it did, if asked for. Raises
        NoSuchJob, WrongState."""
        self._all(_calls.retry(job_id, with_dependents))

    def delete(self, job_id: str) -> None:
        """Deletes a job that does not run. Raises NoSuchJob, WrongState."""
        self._all(_calls.delete(job_id))

    def list(
        self,
        status: Optional[str] = None,
        script_type: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> JobPage:
        """Reads a page of the list of jobs, the newest first."""
        return self._all(_calls.page(status, script_type, limit, cursor))

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Calls a method of the API by its name."""
        return self._all(_calls.call(method, params))

    def close(self) -> None:
        """Does nothing: each call has a connection of its own."""

    def __enter__(self) -> Client:
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
            if isinstance(step, Call):
                reply = self._answer(step)
            elif isinstance(step, Pause):
                time.sleep(step.seconds)
            else:
                yield step

    def _all(self, steps: Steps[T]) -> T:
        """Runs the steps of a verb without events. Returns its result."""
        try:
            next(self._each(steps))
        except StopIteration as stop:
            result: T = stop.value
            return result
        raise AssertionError("a verb without events yielded one")

    def _answer(self, call: Call) -> Any:
        endpoint = self._endpoint
        request = endpoint.request(self._token, call.method, call.params)
        try:
            with self._connect(call.seconds + SECONDS) as connection:
                connection.sendall(request)
                answer = b"".join(iter(lambda: connection.recv(65536), b""))
        except OSError as error:
            raise endpoint.unreachable(error) from error
        return endpoint.result(call.method, answer)

    def _connect(self, patience: float) -> socket.socket:
        endpoint = self._endpoint
        if endpoint.socket is None:
            connection = socket.create_connection((endpoint.host, endpoint.port), patience)
        else:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(patience)
            try:
                connection.connect(endpoint.socket)
            except OSError:
                connection.close()
                raise
        if endpoint.tls is None:
            return connection
        return endpoint.tls.wrap_socket(connection, server_hostname=endpoint.host)


class AsyncClient:
    """The verbs of Client for asyncio."""

    def __init__(self, url: str = URL, token: Optional[str] = None, tls: Optional[ssl.SSLContext] = None) -> None:
        self._endpoint = Endpoint.of(url, tls)
        self._token = token
        self.api = AsyncMethods(self.call)

    async def submit(self, spec: JobSpec) -> str:
        """See Client.submit."""
        return await self._all(_calls.submit(spec))

    async def run(self, spec: JobSpec, timeout: Optional[float] = None) -> Job:
        """See Client.run."""
        return await self._all(_calls.run(spec, timeout))

    async def wait(self, job_id: str, timeout: Optional[float] = None) -> Job:
        """See Client.wait."""
        return await self._all(_calls.wait(job_id, timeout))

    async def get(self, job_id: str) -> Job:
        """See Client.get."""
        return await self._all(_calls.get(job_id))

    async def output(self, job_id: str) -> Optional[bytes]:
        """See Client.output."""
        return await self._all(_calls.output(job_id))

    async def log(self, job_id: str) -> List[LogEntry]:
        """See Client.log."""
        return await self._all(_calls.log(job_id))

    async def follow(self, job_id: str) -> AsyncIterator[Event]:
        """See Client.follow."""
        async for event in self._each(_calls.follow(job_id), []):
            yield event

    async def batch(self, specs: Iterable[JobSpec]) -> List[str]:
        """See Client.batch."""
        return await self._all(_calls.batch(specs))

    async def graph(self, jobs: Mapping[str, JobSpec]) -> Dict[str, str]:
        """See Client.graph."""
        return await self._all(_calls.graph(jobs))

    async def stop(self, job_id: str) -> None:
        """See Client.stop."""
        await self._all(_calls.stop(job_id))

    async def retry(self, job_id: str, with_dependents: bool = False) -> None:
        """See Client.retry."""
        await self._all(_calls.retry(job_id, with_dependents))

    async def delete(self, job_id: str) -> None:
        """See Client.delete."""
        await self._all(_calls.delete(job_id))

    async def list(
        self,
        status: Optional[str] = None,
        script_type: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> JobPage:
        """See Client.list."""
        return await self._all(_calls.page(status, script_type, limit, cursor))

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Calls a method of the API by its name."""
        return await self._all(_calls.call(method, params))

    async def close(self) -> None:
        """Does nothing: each call has a connection of its own."""

    async def __aenter__(self) -> AsyncClient:
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
            if isinstance(step, Call):
                reply = await self._answer(step)
            elif isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
            else:
                yield step

    async def _all(self, steps: Steps[T]) -> T:
        """Runs the steps of a verb without events. Returns its result."""
        results: List[T] = []
        async for _ in self._each(steps, results):
            raise AssertionError("a verb without events yielded one")
        return results[0]

    async def _answer(self, call: Call) -> Any:
        endpoint = self._endpoint
        request = endpoint.request(self._token, call.method, call.params)
        try:
            answer = await asyncio.wait_for(self._exchange(request), call.seconds + SECONDS)
        except (OSError, asyncio.TimeoutError) as error:
            raise endpoint.unreachable(error) from error
        return endpoint.result(call.method, answer)

    async def _exchange(self, request: bytes) -> bytes:
        endpoint = self._endpoint
        if endpoint.socket is None:
            reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=endpoint.tls)
        else:
            reader, writer = await asyncio.open_unix_connection(endpoint.socket)
        try:
            writer.write(request)
            await writer.drain()
            return await reader.read()
        finally:
            writer.close()
