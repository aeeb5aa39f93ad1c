"""Following over a WebSocket against bytes that a server may send, without a connection."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unittest
from typing import Any, List

from hero_client import LogLine, NoSuchJob, NotPermitted, StatusChange, Unreachable
from hero_client import _websocket as websocket
from hero_client._follow import Connect, Exchange, follow
from hero_client._http import Endpoint
from hero_client._steps import Pause


def from_server(opcode: int, payload: bytes, first: int = 0x80) -> bytes:
    """Returns a frame as a server sends it."""
    length = len(payload)
    if length < 126:
        return bytes([first | opcode, length]) + payload
    return bytes([first | opcode, 126]) + length.to_bytes(2, "big") + payload


def message(value: Any) -> bytes:
    return from_server(websocket.TEXT, json.dumps(value).encode())


def notice(**params: Any) -> bytes:
    return message({"jsonrpc": "2.0", "method": "job.follow", "params": {"subscription": "1", **params}})


def unmasked(data: bytes) -> bytes:
    """Returns the payload of a short frame of the client."""
    start = 8 if data[1] & 0x7F == 126 else 6
    mask = data[start - 4 : start]
    return bytes(byte ^ mask[at % 4] for at, byte in enumerate(data[start:]))


class Connection:
    """A connection that notes its end."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


class Server:
    """Answers the steps of a follower: each connection gets the answers of its turn."""

    def __init__(self, *turns: List[bytes]) -> None:
        self.turns = list(turns)
        self.sent: List[bytes] = []
        self.connections: List[Connection] = []

    def run(self) -> List[Any]:
        """Returns the events of a follower."""
        steps = follow(Endpoint.of("http://127.0.0.1:1"), "secret", "a")
        events: List[Any] = []
        go_on: Any = steps.send
        value: Any = None
        turn: List[bytes] = []
        while True:
            try:
                step = go_on(value)
            except StopIteration:
                return events
            go_on, value = steps.send, None
            if isinstance(step, Connect):
                if not self.turns:
                    go_on, value = steps.throw, Unreachable("it is away")
                    continue
                turn = self.turns.pop(0)
                value = Connection()
                self.connections.append(value)
            elif isinstance(step, Exchange):
                self.sent.append(step.data)
                key = re.search(rb"Sec-WebSocket-Key: (\S+)", step.data)
                value = self.opened(key.group(1)) if key else turn.pop(0) if turn else b""
            elif not isinstance(step, Pause):
                events.append(step)

    def opened(self, key: bytes) -> bytes:
        guid = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        answer = base64.b64encode(hashlib.sha1(key + guid).digest()).decode()
        head = f"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {answer}\r\n\r\n"
        return head.encode()


SUBSCRIBED = message({"jsonrpc": "2.0", "id": 1, "result": {"subscription": "1"}})
LINE = {"id": "5-0", "fd": 1, "line": "tea"}


class Following(unittest.TestCase):
    def test_a_lost_connection_is_made_again_after_the_last_line(self) -> None:
        first = [SUBSCRIBED + notice(seq="0-0", status="started") + notice(seq="5-0", lines=[LINE])]
        second = [SUBSCRIBED, notice(seq="5-0", status="started"), notice(seq="5-0", status="finished", ended=True)]
        server = Server(first, second)
        line = LogLine(1, "tea", "5-0")
        self.assertEqual(server.run(), [StatusChange("started"), line, StatusChange("finished")])
        calls = [json.loads(unmasked(data)) for data in server.sent if data and not data.startswith(b"GET")]
        self.assertEqual([call["params"].get("since") for call in calls], [None, "5-0"])
        self.assertTrue(all(one.closed for one in server.connections))
        self.assertIn(b"Authorization: Bearer secret", server.sent[0])

    def test_pings_are_answered_and_messages_may_come_in_pieces(self) -> None:
        whole = SUBSCRIBED + from_server(websocket.PING, b"?") + notice(seq="0-0", status="finished", ended=True)
        server = Server([whole[at : at + 1] for at in range(len(whole))])
        self.assertEqual(server.run(), [StatusChange("finished")])
        self.assertIn(b"?", [unmasked(data) for data in server.sent if data[:1] == b"\x8a"])
        text = json.dumps({"jsonrpc": "2.0", "method": "job.follow", "params": {"seq": "0-0", "ended": True}})
        half = len(text) // 2
        parts = from_server(websocket.TEXT, text[:half].encode(), 0) + from_server(0, text[half:].encode())
        self.assertEqual(Server([parts]).run(), [])

    def test_an_end_has_its_error(self) -> None:
        missing = {"code": -32002, "message": "no such job", "data": {"id": "a"}}
        revoked = from_server(websocket.CLOSE, (1008).to_bytes(2, "big") + b"the token was revoked")
        for answer, kind in (
            (message({"jsonrpc": "2.0", "id": 1, "error": missing}), NoSuchJob),
            (notice(seq="0-0", ended=True, error=missing), NoSuchJob),
            (revoked, NotPermitted),
            (b"", Unreachable),
            (b"\xf0\xff", Unreachable),
        ):
            with self.assertRaises(kind):
                Server([answer]).run()

    def test_a_frame_is_masked_and_read_as_it_was_written(self) -> None:
        for length in (0, 1, 2, 3, 4, 5, 125, 126, 1000):
            payload = bytes(number % 251 for number in range(length))
            self.assertEqual(unmasked(websocket.frame(websocket.TEXT, payload)), payload)
        long = websocket.frame(websocket.TEXT, bytes(70_000))
        self.assertEqual(long[1:10], b"\xff" + (70_000).to_bytes(8, "big"))
        reader = websocket.Reader()
        sent = from_server(websocket.TEXT, b"a" * 300) + from_server(websocket.CLOSE, b"")
        self.assertEqual(reader.feed(sent), [(websocket.TEXT, b"a" * 300), (websocket.CLOSE, b"")])


if __name__ == "__main__":
    unittest.main()
