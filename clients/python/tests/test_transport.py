"""The clients over the API against a server that says what each test wants: sockets, addresses and errors."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import UnixStreamServer
from typing import Any, Dict, List, Tuple

from verbs import Blocking

from hero_client import (
    ApiError,
    AsyncClient,
    Client,
    IdTaken,
    InvalidJob,
    JobFailed,
    JobSpec,
    NoSuchJob,
    NotPermitted,
    Unreachable,
    WrongState,
)


class Said:
    """What the server was asked, and what it answers: a status of HTTP and a body, or bytes as they are."""

    def __init__(self) -> None:
        self.asked: List[Tuple[str, Dict[str, str], Any]] = []
        self.answer: Any = (200, "{}")

    def result(self, value: Any) -> None:
        self.answer = (200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}))

    def error(self, code: int, message: str, **data: Any) -> None:
        error = {"code": code, "message": message, "data": data}
        self.answer = (200, json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}))


def handler(said: Said) -> Any:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said.asked.append((self.path, dict(self.headers), body))
            if isinstance(said.answer, bytes):
                self.wfile.write(said.answer)
                return
            status, text = said.answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def address_string(self) -> str:
            return "a client"

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


class Transport(unittest.TestCase):
    def setUp(self) -> None:
        self.said = Said()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.socket = Path(folder.name) / "api.sock"
        self.loop = asyncio.new_event_loop()
        self.addCleanup(self.loop.close)
        tcp = HTTPServer(("127.0.0.1", 0), handler(self.said))
        self.tcp = f"http://127.0.0.1:{tcp.server_port}"
        for server in (tcp, UnixStreamServer(str(self.socket), handler(self.said))):
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            self.addCleanup(server.server_close)
            self.addCleanup(thread.join)
            self.addCleanup(server.shutdown)

    def clients(self, url: str, **settings: Any) -> List[Any]:
        return [Client(url, **settings), Blocking(self.loop, AsyncClient(url, **settings))]

    def test_calls_arrive_on_a_socket_and_on_tcp_with_the_token(self) -> None:
        self.said.result({"id": "a"})
        places = {f"unix://{self.socket}": "/rpc", self.tcp: "/rpc", self.tcp + "/hero/": "/hero/rpc"}
        for url, path in places.items():
            for client in self.clients(url, token="secret"):
                self.assertEqual(client.submit(JobSpec("osis", "1", id="a")), "a")
                asked, headers, body = self.said.asked.pop()
                self.assertEqual((asked, headers["Authorization"]), (path, "Bearer secret"))
                job = {"script_type": "osis", "script": "1", "id": "a"}
                self.assertEqual((body["method"], body["params"]), ("job.submit", {"job": job}))

    def test_an_error_has_its_class(self) -> None:
        expected: List[Any] = [
            (-32001, {}, NotPermitted),
            (-32003, {}, NotPermitted),
            (-32002, {"id": "a"}, NoSuchJob),
            (-32004, {"id": "a", "status": "started"}, WrongState),
            (-32005, {"id": "a"}, JobFailed),
            (-32603, {"retryable": True}, Unreachable),
            (-32603, {"retryable": False}, ApiError),
            (-32602, {"field": "id"}, ApiError),
        ]
        for client in self.clients(self.tcp):
            for code, data, kind in expected:
                self.said.error(code, "it failed", **data)
                with self.assertRaises(kind):
                    client.stop("a")
            for code, kind in ((-32602, InvalidJob), (-32004, IdTaken)):
                self.said.error(code, "it failed", id="a")
                with self.assertRaises(kind):
                    client.submit(JobSpec("osis", "1"))

    def test_an_answer_that_is_no_json_is_shown(self) -> None:
        for client in self.clients(self.tcp):
            for status, kind in ((401, NotPermitted), (403, NotPermitted), (502, ApiError)):
                self.said.answer = (status, "a proxy says no")
                with self.assertRaisesRegex(kind, "a proxy says no"):
                    client.get("a")

    def test_a_chunked_answer_is_read_and_a_cut_one_is_an_error(self) -> None:
        body = json.dumps({"result": {"id": "a"}})
        head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        whole = f"{head}{len(body):x}\r\n{body}\r\n0\r\n\r\n".encode()
        for client in self.clients(self.tcp):
            self.said.answer = whole
            self.assertEqual(client.submit(JobSpec("osis", "1")), "a")
            for cut in (b"", whole[:20], whole[:-20]):
                self.said.answer = cut
                with self.assertRaisesRegex(Unreachable, "cannot reach the API at http"):
                    client.submit(JobSpec("osis", "1"))

    def test_an_absent_server_is_named(self) -> None:
        for client in self.clients(f"unix://{self.socket}.absent"):
            with self.assertRaisesRegex(Unreachable, r"cannot reach the API at unix://.*absent"):
                client.get("a")

    def test_an_illegal_address_or_token_is_rejected(self) -> None:
        for url in ("redis://127.0.0.1", "unix:relative", "127.0.0.1:80", "http://"):
            with self.assertRaisesRegex(ValueError, "no address of the API"):
                Client(url)
        with self.assertRaisesRegex(ValueError, "token"):
            Client(self.tcp, token="a\r\nb: c").get("a")

    def test_every_method_has_a_function(self) -> None:
        self.said.result({"version": "1"})
        for client in (Client(self.tcp), AsyncClient(self.tcp)):
            answer = client.api.system_info()
            if isinstance(client, AsyncClient):
                answer = self.loop.run_until_complete(answer)
            self.assertEqual(answer, {"version": "1"})
        self.assertEqual([asked[2]["method"] for asked in self.said.asked], ["system.info"] * 2)


if __name__ == "__main__":
    unittest.main()
