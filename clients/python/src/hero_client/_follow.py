"""Following a job over a WebSocket of the API, without a connection: a generator that yields steps.

A Connect gives a connection with a method `close`, an Exchange sends bytes and gives those that arrive, a Pause
is a wait, and an Event goes to the follower."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Dict, Generator, Iterator, List, Mapping, Optional, TypeVar

from . import _websocket as websocket
from ._errors import NotPermitted, Unreachable
from ._http import Endpoint
from ._jobs import ENDED, Event, StatusChange, log_entry
from ._steps import Pause

T = TypeVar("T")
Steps = Generator[Any, Any, T]

SILENCE_SECONDS = 90.0
"""A connection is lost after this time without a byte: the server asks a silent client more often."""
AWAY_SECONDS = 30.0
"""How long a lost connection is tried again: a supervisor may restart."""
PAUSE_SECONDS = 0.5
_REFUSED = 1008


@dataclass(frozen=True)
class Connect:
    """A new connection to the API."""


@dataclass(frozen=True)
class Exchange:
    """Sends bytes, if any, and receives some; none at the end of the connection."""

    connection: Any
    data: bytes = b""


def follow(endpoint: Endpoint, token: Optional[str], job_id: str) -> Steps[None]:
    """Yields the states of a job and the entries of its log, until its end. A lost connection is made again, and
    continues where the last one ended."""
    told = _Told()
    while True:
        try:
            yield from _followed(endpoint, token, job_id, told)
            return
        except Unreachable:
            # Without a first word from the server there is nothing to continue.
            if told.heard is None or time.monotonic() - told.heard > AWAY_SECONDS:
                raise
        yield Pause(PAUSE_SECONDS)


class _Told:
    """What the follower knows already."""

    def __init__(self) -> None:
        self.seq: Optional[str] = None
        self.status: Optional[str] = None
        self.heard: Optional[float] = None

    def events(self, notice: Mapping[str, Any]) -> Iterator[Event]:
        """Yields the events in a notification."""
        status = notice.get("status", self.status)
        is_news, self.status = status != self.status, status
        if is_news and status not in ENDED:
            yield StatusChange(status)
        for line in notice.get("lines", ()):
            yield log_entry(line["id"], line)
        self.seq = notice["seq"]
        if status in ENDED:
            yield StatusChange(status)


def _followed(endpoint: Endpoint, token: Optional[str], job_id: str, told: _Told) -> Steps[None]:
    params: Dict[str, Any] = {"id": job_id}
    if told.seq is not None:
        params["since"] = told.seq
    connection = yield Connect()
    try:
        rest = yield from _opened(endpoint, token, connection)
        reader, call = websocket.Reader(), endpoint.call("job.follow", params)
        send, data = websocket.frame(websocket.TEXT, call), rest
        while True:
            answers: List[bytes] = []
            for opcode, payload in _messages(endpoint, reader, data):
                told.heard = time.monotonic()
                if opcode == websocket.PING:
                    answers.append(websocket.frame(websocket.PONG, payload))
                elif opcode == websocket.CLOSE:
                    code, reason = websocket.close_reason(payload)
                    if code == _REFUSED:
                        raise NotPermitted(reason)
                    raise endpoint.unreachable(ConnectionError(reason))
                elif opcode == websocket.TEXT:
                    said = json.loads(payload)
                    if "method" not in said:
                        endpoint.checked("job.follow", said)
                        continue
                    notice = said["params"]
                    yield from told.events(notice)
                    if notice.get("error") is not None:
                        endpoint.checked("job.follow", notice)
                    if notice.get("ended"):
                        return
            data = yield Exchange(connection, send + b"".join(answers))
            send = b""
            if not data:
                raise endpoint.unreachable(ConnectionError("the connection was closed"))
    finally:
        connection.close()


def _messages(endpoint: Endpoint, reader: websocket.Reader, data: bytes) -> Any:
    try:
        return reader.feed(data)
    except websocket.Malformed as error:
        raise endpoint.unreachable(error) from error


def _opened(endpoint: Endpoint, token: Optional[str], connection: Any) -> Steps[bytes]:
    """Opens the WebSocket. Returns the bytes that came after the answer."""
    key = websocket.new_key()
    answer = yield Exchange(connection, endpoint.upgrade(token, key))
    while not endpoint.is_whole(answer):
        more = yield Exchange(connection)
        if not more:
            break
        answer += more
    rest: bytes = endpoint.upgraded(key, answer)
    return rest
