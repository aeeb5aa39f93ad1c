"""Clients over the API: JSON-RPC over HTTP, on the socket of the supervisor or TCP, and a WebSocket to follow."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from typing import Any, AsyncIterator, Iterator, List, Mapping, Optional, Tuple, Union

from . import _calls
from ._calls import Call, Download, JobFile, JobPage
from ._errors import HeroError
from ._follow import SILENCE_SECONDS, Connect, Exchange, follow
from ._http import Endpoint
from ._jobs import Event, Job, JobSpec
from ._steps import AsyncVerbs, BlockingVerbs
from .api import AsyncMethods, Methods

URL = "unix:///run/hero/api.sock"
"""Where the packaged supervisor listens."""
SECONDS = 30.0
"""The patience with an answer, beside what a call waits by itself."""
_READ = 65536


class Client(BlockingVerbs):
    """The verbs over the API. It may be shared by threads.

    `url` is `unix:///PATH`, `http://HOST:PORT` or `https://HOST:PORT`, by default the variable `HERO_API`, else
    the socket of the package; `token` is one of `hero token new`, by default `HERO_TOKEN`, and not needed on the
    socket. `api` has every method of the API.
    """

    _verbs = _calls

    def __init__(
        self, url: Optional[str] = None, token: Optional[str] = None, tls: Optional[ssl.SSLContext] = None
    ) -> None:
        self._endpoint = Endpoint.of(url or os.environ.get("HERO_API") or URL, tls)
        self._token = token or os.environ.get("HERO_TOKEN")
        self.api = Methods(self.call)

    def follow(self, job_id: str) -> Iterator[Event]:
        """Yields the states of a job and the entries of its log as they come, until its end, over one connection. If it
        is lost, continues over another. Raises NoSuchJob."""
        yield from self._each(follow(self._endpoint, self._token, job_id))

    def submit(
        self, spec: JobSpec, inputs: Optional[Mapping[str, bytes]] = None, stdin: Optional[bytes] = None
    ) -> str:
        """Submits a job, with files for its script by their names, and its standard input. Returns its id, or the id
        of the job that holds its unique key, if one does. Raises InvalidJob, IdTaken."""
        return self._all(_calls.submit(spec, inputs, stdin))

    def run(
        self,
        spec: JobSpec,
        timeout: Optional[float] = None,
        inputs: Optional[Mapping[str, bytes]] = None,
        stdin: Optional[bytes] = None,
    ) -> Job:
        """Submits a job and waits for its end, for `timeout` seconds or without a bound. Raises JobFailed,
        WaitTimeout, and what submit raises."""
        return self._all(_calls.run(spec, timeout, inputs, stdin))

    def files(self, job_id: str) -> List[JobFile]:
        """Lists the files of a job, those that its script left first. Raises NoSuchJob."""
        return self._all(_calls.files(job_id))

    def file(self, job_id: str, name: str) -> bytes:
        """Reads a file of a job into memory. Raises NoSuchJob, also if it has no such file."""
        return self._all(_calls.file(job_id, name))

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
        **filters: Any,
    ) -> JobPage:
        """Reads a page of the list of jobs, the newest first. `filters` are further parameters of the method
        `job.list`: `tags`, `error`, `name`, `caller`, `text`, `failed_because`, `since` and others."""
        query = {"status": status, "script_type": script_type, "limit": limit, "cursor": cursor}
        return self._all(_calls.page({**query, **filters}))

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Calls a method of the API by its name."""
        return self._all(_calls.call(method, params))

    def __enter__(self) -> Client:
        return self

    def _do(self, step: Any) -> Any:
        try:
            if isinstance(step, Connect):
                return self._connect(SECONDS)
            if isinstance(step, Exchange):
                return _exchanged(step)
            return self._answer(step)
        except HeroError:
            raise
        except OSError as error:
            raise self._endpoint.unreachable(error) from error

    def _answer(self, step: Union[Call, Download]) -> Any:
        with self._connect(step.seconds + SECONDS) as connection:
            connection.sendall(_request(self._endpoint, self._token, step))
            answer = b"".join(iter(lambda: connection.recv(_READ), b""))
        return _result(self._endpoint, step, answer)

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


def _request(endpoint: Endpoint, token: Optional[str], step: Union[Call, Download]) -> bytes:
    if isinstance(step, Download):
        return endpoint.download(token, step.path)
    return endpoint.request(token, step.method, step.params)


def _result(endpoint: Endpoint, step: Union[Call, Download], answer: bytes) -> Any:
    if isinstance(step, Download):
        return endpoint.content("job.file", answer)
    return endpoint.result(step.method, answer)


def _exchanged(step: Exchange) -> bytes:
    connection: socket.socket = step.connection
    connection.settimeout(SILENCE_SECONDS)
    if step.data:
        connection.sendall(step.data)
    return connection.recv(_READ)


class AsyncClient(AsyncVerbs):
    """The verbs of Client for asyncio."""

    _verbs = _calls

    def __init__(
        self, url: Optional[str] = None, token: Optional[str] = None, tls: Optional[ssl.SSLContext] = None
    ) -> None:
        self._endpoint = Endpoint.of(url or os.environ.get("HERO_API") or URL, tls)
        self._token = token or os.environ.get("HERO_TOKEN")
        self.api = AsyncMethods(self.call)

    async def follow(self, job_id: str) -> AsyncIterator[Event]:
        """See Client.follow."""
        async for event in self._each(follow(self._endpoint, self._token, job_id), []):
            yield event

    async def submit(
        self, spec: JobSpec, inputs: Optional[Mapping[str, bytes]] = None, stdin: Optional[bytes] = None
    ) -> str:
        """See Client.submit."""
        return await self._all(_calls.submit(spec, inputs, stdin))

    async def run(
        self,
        spec: JobSpec,
        timeout: Optional[float] = None,
        inputs: Optional[Mapping[str, bytes]] = None,
        stdin: Optional[bytes] = None,
    ) -> Job:
        """See Client.run."""
        return await self._all(_calls.run(spec, timeout, inputs, stdin))

    async def files(self, job_id: str) -> List[JobFile]:
        """See Client.files."""
        return await self._all(_calls.files(job_id))

    async def file(self, job_id: str, name: str) -> bytes:
        """See Client.file."""
        return await self._all(_calls.file(job_id, name))

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
        **filters: Any,
    ) -> JobPage:
        """See Client.list."""
        query = {"status": status, "script_type": script_type, "limit": limit, "cursor": cursor}
        return await self._all(_calls.page({**query, **filters}))

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Calls a method of the API by its name."""
        return await self._all(_calls.call(method, params))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def _do(self, step: Any) -> Any:
        patience = SILENCE_SECONDS if isinstance(step, Exchange) else getattr(step, "seconds", 0) + SECONDS
        if isinstance(step, Download):
            # Each of its reads is bounded.
            patience = None
        try:
            return await asyncio.wait_for(self._done(step), patience)
        except HeroError:
            raise
        except (OSError, asyncio.TimeoutError) as error:
            raise self._endpoint.unreachable(error) from error

    async def _done(self, step: Any) -> Any:
        if isinstance(step, Connect):
            return _Connection(*await self._connect())
        if isinstance(step, Exchange):
            return await step.connection.exchanged(step.data)
        connection = _Connection(*await asyncio.wait_for(self._connect(), SECONDS))
        request = _request(self._endpoint, self._token, step)
        try:
            if isinstance(step, Download):
                answer = await connection.downloaded(request)
            else:
                answer = await connection.exchanged(request, -1)
        finally:
            connection.close()
        return _result(self._endpoint, step, answer)

    async def _connect(self) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        endpoint = self._endpoint
        if endpoint.socket is None:
            return await asyncio.open_connection(endpoint.host, endpoint.port, ssl=endpoint.tls)
        return await asyncio.open_unix_connection(endpoint.socket)


class _Connection:
    """A connection of asyncio."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def exchanged(self, data: bytes, size: int = _READ) -> bytes:
        """Sends bytes, if any, and receives some; with the size -1 all."""
        if data:
            self._writer.write(data)
            await self._writer.drain()
        return await self._reader.read(size)

    async def downloaded(self, request: bytes) -> bytes:
        """Sends a request and receives its whole answer, however long that takes while bytes come."""
        parts = [await asyncio.wait_for(self.exchanged(request), SECONDS)]
        while parts[-1]:
            parts.append(await asyncio.wait_for(self.exchanged(b""), SECONDS))
        return b"".join(parts)

    def close(self) -> None:
        """Closes it."""
        self._writer.close()
