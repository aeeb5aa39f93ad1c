"""One call of JSON-RPC over HTTP or a WebSocket, on a socket file or TCP, without a connection: what is sent, and what
the answer means. The clients with and without asyncio carry the bytes."""

from __future__ import annotations

import http.client
import io
import json
import re
import ssl
from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from ._errors import (
    ApiError,
    HeroError,
    IdTaken,
    InvalidJob,
    JobFailed,
    NoSuchJob,
    NotPermitted,
    Unreachable,
    WaitTimeout,
    WrongState,
)
from ._jobs import Job
from ._websocket import accepts

INVALID_PARAMS = -32602
INTERNAL = -32603
UNAUTHENTICATED = -32001
NOT_FOUND = -32002
NOT_PERMITTED = -32003
CONFLICT = -32004
JOB_FAILED = -32005
GAVE_UP = -32006

_SUBMITTING = frozenset({"job.submit", "job.create", "job.run", "batch.submit", "graph.submit"})


@dataclass(frozen=True)
class Endpoint:
    """Where the API listens."""

    url: str
    socket: Optional[str]
    """The path of its socket; without one it is TCP."""
    host: str
    port: int
    path: str
    tls: Optional[ssl.SSLContext]

    @classmethod
    def of(cls, url: str, tls: Optional[ssl.SSLContext] = None) -> Endpoint:
        """Reads `unix:///PATH`, `http://HOST:PORT` or `https://HOST:PORT`, with the path of a proxy or without.
        Raises ValueError."""
        parts = urlsplit(url)
        if parts.scheme == "unix" and parts.path.startswith("/") and not parts.netloc:
            return cls(url, parts.path, "localhost", 0, "/rpc", None)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"`{url}` is no address of the API: give unix:///PATH, http://HOST:PORT or https://HOST:PORT"
            )
        path = parts.path.rstrip("/")
        if not path.endswith("/rpc"):
            path += "/rpc"
        secure = parts.scheme == "https"
        tls = (tls or ssl.create_default_context()) if secure else None
        return cls(url, None, parts.hostname, parts.port or (443 if secure else 80), path, tls)

    def request(self, token: Optional[str], method: str, params: Mapping[str, Any]) -> bytes:
        """Returns the bytes of one call; then the server closes the connection."""
        body = self.call(method, params)
        lines = [
            "Content-Type: application/json",
            "Accept: application/json",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        return self._head("POST", token, lines) + body

    def download(self, token: Optional[str], path: str) -> bytes:
        """Returns the bytes that ask for a path below the address; then the server closes the connection."""
        below = self.path[: -len("/rpc")] + path
        return self._head("GET", token, ["Connection: close"], below)

    def call(self, method: str, params: Mapping[str, Any]) -> bytes:
        """Returns the text of one call."""
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()

    def upgrade(self, token: Optional[str], key: str) -> bytes:
        """Returns the bytes that ask for a WebSocket."""
        lines = [
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
        ]
        return self._head("GET", token, lines)

    def _head(self, verb: str, token: Optional[str], lines: List[str], path: Optional[str] = None) -> bytes:
        host = self.host if self.socket else f"[{self.host}]" if ":" in self.host else self.host
        if not self.socket and self.port != (443 if self.tls else 80):
            host += f":{self.port}"
        lines = [f"{verb} {path or self.path} HTTP/1.1", f"Host: {host}", *lines]
        if token is not None:
            if not token.isprintable() or not token.isascii():
                raise ValueError("the token has characters that no token has")
            lines.append(f"Authorization: Bearer {token}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n"

    def is_whole(self, answer: bytes) -> bool:
        """Returns whether these bytes are a whole answer to `upgrade`."""
        head, end, body = answer.partition(b"\r\n\r\n")
        if not end:
            return False
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
        return _is_upgrade(head) or length is None or len(body) >= int(length.group(1))

    def upgraded(self, key: str, answer: bytes) -> bytes:
        """Returns the bytes after an answer that opens a WebSocket. Raises the error of another."""
        head, _, rest = answer.partition(b"\r\n\r\n")
        if not _is_upgrade(head):
            self.result("job.follow", answer)
            raise self.unreachable(ConnectionError("it opens no WebSocket"))
        accepted = re.search(rb"\r\nsec-websocket-accept: *(\S+)", head, re.IGNORECASE)
        if not accepts(key, accepted.group(1).decode("ascii", "replace") if accepted else None):
            raise self.unreachable(ConnectionError("it opens a WebSocket of another client"))
        return rest

    def unreachable(self, error: Exception) -> Unreachable:
        """Returns the error of a connection."""
        return Unreachable(f"cannot reach the API at {self.url}: {error or type(error).__name__}")

    def _read(self, answer: bytes) -> Tuple[http.client.HTTPResponse, bytes]:
        """Returns an answer, and its whole body."""
        if b"\r\n\r\n" not in answer:
            raise self.unreachable(ConnectionError("the connection was closed before an answer"))
        try:
            response = http.client.HTTPResponse(_Bytes(answer))  # type: ignore[arg-type]
            response.begin()
            return response, response.read()
        except (http.client.HTTPException, ValueError) as error:
            raise self.unreachable(error) from error

    def content(self, method: str, answer: bytes) -> bytes:
        """Returns the content in an answer to `download`. Raises the error of another."""
        response, body = self._read(answer)
        if response.status != 200:
            self.result(method, answer)
            raise ApiError(response.status, f"the API at {self.url} answered {response.status} {response.reason}")
        return body

    def result(self, method: str, answer: bytes) -> Any:
        """Returns the result in an answer. Raises its error."""
        response, body = self._read(answer)
        try:
            said = json.loads(body)
            problem = said.get("error")
        except (ValueError, AttributeError):
            text = body.decode("utf-8", "replace").strip()[:500]
            said = f"the API at {self.url} answered {response.status} {response.reason}: {text}"
            if response.status in (401, 403):
                raise NotPermitted(said) from None
            raise ApiError(response.status, said) from None
        return self.checked(method, {"result": said.get("result"), "error": problem})

    def checked(self, method: str, said: Mapping[str, Any]) -> Any:
        """Returns the result in an answer that was read. Raises its error."""
        problem = said.get("error")
        if problem is not None:
            raise _error(method, problem)
        return said.get("result")


def _is_upgrade(head: bytes) -> bool:
    return head.split(b" ", 2)[1:2] == [b"101"]


class _Bytes:
    """The bytes of an answer, as http.client reads a socket."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def makefile(self, _: str) -> io.BytesIO:
        """Returns a file of the bytes."""
        return io.BytesIO(self._answer)


def _error(method: str, error: Mapping[str, Any]) -> HeroError:
    """Returns the error of this package for one of JSON-RPC."""
    code, message = error.get("code", 0), str(error.get("message", ""))
    found = error.get("data")
    data = found if isinstance(found, dict) else {}
    job_id = data.get("id")
    if code in (UNAUTHENTICATED, NOT_PERMITTED):
        return NotPermitted(message)
    if code == INVALID_PARAMS and method in _SUBMITTING:
        return InvalidJob(message)
    if code == NOT_FOUND and job_id is not None:
        return NoSuchJob(job_id)
    if code == CONFLICT and job_id is not None:
        return IdTaken(job_id) if method in _SUBMITTING else WrongState(message)
    if code == JOB_FAILED and job_id is not None:
        return JobFailed(Job(job_id, "error", error=message))
    if code == GAVE_UP and job_id is not None:
        return WaitTimeout(job_id, 0)
    if code == INTERNAL and (data.get("retryable") or data.get("unsure")):
        return Unreachable(message)
    return ApiError(code, message, found)
