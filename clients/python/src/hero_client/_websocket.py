"""One WebSocket (RFC 6455) of a client without a connection: the bytes to send, and the messages in those that
arrive."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import List, Optional, Tuple

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
_CONTINUED = 0
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MESSAGE_MAX = 64 << 20
"""The most bytes of a message of the server."""


class Malformed(ValueError):
    """The server sent what is no frame."""


def new_key() -> str:
    """Returns the key of a handshake."""
    return base64.b64encode(os.urandom(16)).decode()


def accepts(key: str, answer: Optional[str]) -> bool:
    """Returns whether the header Sec-WebSocket-Accept of the server belongs to a key."""
    return answer == base64.b64encode(hashlib.sha1((key + _GUID).encode()).digest()).decode()


def frame(opcode: int, payload: bytes) -> bytes:
    """Returns the bytes of a whole message."""
    length, mask = len(payload), os.urandom(4)
    if length < 126:
        head = bytes([0x80 | opcode, 0x80 | length])
    elif length < 1 << 16:
        head = bytes([0x80 | opcode, 0x80 | 126]) + length.to_bytes(2, "big")
    else:
        head = bytes([0x80 | opcode, 0x80 | 127]) + length.to_bytes(8, "big")
    key = int.from_bytes(mask * (length // 4 + 1), "big") >> 8 * (4 - length % 4)
    masked = (int.from_bytes(payload, "big") ^ key).to_bytes(length, "big")
    return head + mask + masked


def close_reason(payload: bytes) -> Tuple[int, str]:
    """Returns the code and the reason in a closing frame."""
    return int.from_bytes(payload[:2] or b"\x03\xed", "big"), payload[2:].decode("utf-8", "replace")


class Reader:
    """Puts the messages together from the bytes that arrive."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._parts: Optional[Tuple[int, bytearray]] = None

    def feed(self, data: bytes) -> List[Tuple[int, bytes]]:
        """Returns the messages that are whole with these bytes: opcodes and payloads. Raises Malformed."""
        self._bytes += data
        messages: List[Tuple[int, bytes]] = []
        while True:
            found = self._next()
            if found is None:
                return messages
            is_last, opcode, payload = found
            if opcode >= CLOSE:
                messages.append((opcode, payload))
                continue
            if (opcode == _CONTINUED) != (self._parts is not None):
                raise Malformed("a frame continues no message")
            kind, parts = self._parts or (opcode, bytearray())
            parts += payload
            if len(parts) > MESSAGE_MAX:
                raise Malformed("a message is too long")
            self._parts = None if is_last else (kind, parts)
            if is_last:
                messages.append((kind, bytes(parts)))

    def _next(self) -> Optional[Tuple[bool, int, bytes]]:
        """Takes one frame."""
        held = self._bytes
        if len(held) < 2:
            return None
        if held[1] & 0x80 or held[0] & 0x70:
            raise Malformed("a frame is masked or has an extension")
        length, at = held[1], 2
        if length >= 126:
            at = 4 if length == 126 else 10
            if len(held) < at:
                return None
            length = int.from_bytes(held[2:at], "big")
        if length > MESSAGE_MAX:
            raise Malformed("a message is too long")
        if len(held) < at + length:
            return None
        first, payload = held[0], bytes(held[at : at + length])
        del held[: at + length]
        return bool(first & 0x80), first & 15, payload
